"""A share server that moves, as the work finds it and drivers see it."""

import dataclasses
import typing

from manila_lite import exception
from manila_lite.db.queries.servers import migrations
from manila_lite.db.session import Session
from manila_lite.share.manager.driver_view import server_view
from manila_lite.share.manager.driver_view import share_view as driver_view
from manila_lite.share.manager.driver_view.server_view import FoundServer
from manila_lite.share.manager.driver_view.share_view import Found
from manila_lite.share.manager.driver_view.share_view import FoundSnapshot
from manila_lite.share.manager.driver_view.share_view import Names


class Moving(typing.NamedTuple):
    """A migration, its servers, and everything that moves.

    There is no destination before one is made or chosen.
    """

    migration: typing.Any
    source: FoundServer
    destination: FoundServer | None
    shares: list[Found]
    snapshots: list[FoundSnapshot]

    @property
    def dest_host(self) -> str:
        """Where it goes: host@backend, with the pool that was named."""
        host, pool = (
            self.migration.destination_host,
            self.migration.destination_pool,
        )
        return f'{host}#{pool}' if pool else host


def find(session: Session, source_id: str) -> Moving:
    """Everything a driver may want to know of a migration under way.

    Raises InvalidShareServer when there is none, and ShareServerNotFound
    when a server of it is gone.
    """
    migration = migrations.find_open(session, source_id)
    if migration is None:
        raise exception.InvalidShareServer(
            reason=f'{source_id} is not being migrated'
        )
    destination = None
    if migration.destination_server_id is not None:
        destination = server_view.find(
            session, migration.destination_server_id
        )
    shares, snapshots = find_all_on(session, source_id)
    return Moving(
        migration,
        server_view.find(session, source_id),
        destination,
        shares,
        snapshots,
    )


def find_all_on(
    session: Session, server_id: str
) -> tuple[list[Found], list[FoundSnapshot]]:
    """The shares on a server and their snapshots."""
    ids = [
        row.instance_id
        for row in migrations.with_shares(session, server_id)
        if row.instance_id
    ]
    shares = driver_view.find_all(session, ids)
    by_id = {found.row.id: found for found in shares}
    tags = migrations.snapshot_metadata(session, server_id)
    return shares, [
        FoundSnapshot(row, tags.get(row.id, {}), by_id[row.share_instance_id])
        for row in migrations.snapshots_on(session, server_id)
        if row.share_instance_id in by_id
    ]


def for_driver(moving: Moving, names: Names) -> tuple[typing.Any, ...]:
    """What all methods of the two phases are given, in order."""
    assert moving.destination is not None
    return (
        server_view.for_driver(moving.source),
        dataclasses.replace(
            server_view.for_driver(moving.destination), host=moving.dest_host
        ),
        *contents(moving.shares, moving.snapshots, names),
    )


def contents(
    shares: list[Found], snapshots: list[FoundSnapshot], names: Names
) -> tuple[list[typing.Any], list[typing.Any]]:
    """Shares and snapshots, as drivers are shown them."""
    return (
        [driver_view.for_driver(found, names.share) for found in shares],
        [driver_view.snapshot_for_driver(found, names) for found in snapshots],
    )


def request_spec(
    shares: list[Found], snapshots: list[FoundSnapshot]
) -> dict[str, typing.Any]:
    """What the destination is asked to hold, sizes in GiB."""
    return {
        'shares_size': sum(found.row.size for found in shares),
        'snapshots_size': sum(found.row.size for found in snapshots),
        'shares_req_spec': [
            {
                'share_id': found.row.share_id,
                'share_instance_id': found.row.id,
                'size': found.row.size,
                'share_proto': found.row.share_proto,
                'share_type_id': found.row.share_type_id,
            }
            for found in shares
        ],
    }


def network_for_driver(
    session: Session, network_id: str | None, server_id: str
) -> dict[str, typing.Any]:
    """A share network with its subnets; only the id when it is gone."""
    rows = migrations.networks_with_subnets(session, [network_id], server_id)
    return {
        'id': network_id,
        'project_id': rows[0].project_id if rows else None,
        'share_network_subnets': [
            {
                'id': row.subnet_id,
                'availability_zone': row.zone,
                'neutron_net_id': row.neutron_net_id,
                'neutron_subnet_id': row.neutron_subnet_id,
            }
            for row in rows
            if row.subnet_id
        ],
    }
