"""Share servers inserted as rows, as a share manager would leave them."""

import typing

import sqlalchemy as sa

from manila_lite.db.models import share_servers, shares
from manila_lite.db.session import Session
from tests.support.api_client import ApiClient
from tests.support.cloud import Cloud

HOST = 'node@alpha'

_SERVER = share_servers.ShareServer.__table__
_SUBNET = share_servers.ShareServerSubnet.__table__
_DETAIL = share_servers.ShareServerBackendDetail.__table__
_INSTANCE = shares.ShareInstance.__table__


def create_network_with_subnets(
    api: ApiClient, *zones: str | None, **body: object
) -> tuple[str, list[str]]:
    """Create a share network with a subnet for each zone.

    Return its id and the ids of the subnets. None stands for all zones, and
    is the default.
    """
    first, *others = zones or (None,)
    network = api.request(
        'POST',
        '/share-networks',
        {'share_network': {'availability_zone': first, **body}},
        expect=200,
    ).json['share_network']
    return network['id'], [
        network['share_network_subnets'][0]['id'],
        *(create_network_subnet(api, network['id'], zone) for zone in others),
    ]


def create_network_subnet(
    api: ApiClient, network_id: str, zone: str | None = None
) -> str:
    """Add a subnet to a network and return its id."""
    return api.request(
        'POST',
        f'/share-networks/{network_id}/subnets',
        {'share-network-subnet': {'availability_zone': zone}},
        expect=200,
    ).json['share_network_subnet']['id']


def insert_server(
    cloud: Cloud,
    network_id: str | None = None,
    subnet_ids: typing.Sequence[str] = (),
    details: typing.Mapping[str, str] | None = None,
    **columns: object,
) -> str:
    """Insert a server, active by default, and return its id."""

    def insert(session: Session) -> str:
        server_id = session.new_id()
        session.run(
            sa.insert(_SERVER),
            **{
                'id': server_id,
                'host': HOST,
                'status': 'active',
                'share_network_id': network_id,
                'identifier': server_id,
                'is_auto_deletable': True,
                'security_service_update_support': False,
                'network_allocation_update_support': False,
                'share_replicas_migration_support': False,
                'created_at': session.now,
                'updated_at': session.now,
                **columns,
            },
        )
        session.run_many(
            sa.insert(_SUBNET),
            [
                {'share_server_id': server_id, 'share_network_subnet_id': id}
                for id in subnet_ids
            ],
        )
        session.run_many(
            sa.insert(_DETAIL),
            [
                {'share_server_id': server_id, 'key': key, 'value': value}
                for key, value in (details or {}).items()
            ],
        )
        return server_id

    return cloud.db.write(insert)


def assign_share_server(
    cloud: Cloud, share_id: str, server_id: str | None, network_id: str | None = None
) -> None:
    """Set the share server of a share."""
    cloud.db.write(
        lambda session: session.run(
            sa.update(_INSTANCE)
            .where(_INSTANCE.c.share_id == share_id)
            .values(share_server_id=server_id, share_network_id=network_id)
        )
    )
