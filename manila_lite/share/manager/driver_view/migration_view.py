"""Migrations of shares and of share servers as read for work, and for drivers."""

from collections.abc import Mapping, Sequence
import dataclasses
import typing

from manila_lite import exception
from manila_lite.db.queries.servers import migrations as server_migrations
from manila_lite.db.queries.shares import migrations
from manila_lite.db.queries.snapshots import snapshots
from manila_lite.db.rows import MigrationRow, ShareMigrationRow
from manila_lite.db.session import Session
from manila_lite.host import Host
from manila_lite.share.drivers import base
from manila_lite.share.manager.driver_view import server_view, share_view
from manila_lite.share.manager.driver_view.server_view import LoadedServer
from manila_lite.share.manager.driver_view.share_view import (
    LoadedInstance,
    MovingSnapshot,
    NameTemplates,
)
from manila_lite.states.share_server import ServerStatus

DriverArguments = tuple[
    base.ShareServerForDriver,
    base.ShareServerForDriver,
    list[base.ShareForDriver],
    list[base.SnapshotForDriver],
]
"""Source and destination, shares and snapshots."""


class LoadedMigration(typing.NamedTuple):
    """A migration, its servers, and the shares and snapshots that move.

    `destination` is None until one has been created or chosen.
    """

    migration: MigrationRow
    source: LoadedServer
    destination: LoadedServer | None
    shares: list[LoadedInstance]
    snapshots: list[MovingSnapshot]

    @property
    def chosen_destination(self) -> LoadedServer:
        """The destination, in work that follows its choice."""
        assert self.destination is not None
        return self.destination

    @property
    def dest_host(self) -> str:
        """The destination: host@backend, with the requested pool if any."""
        return str(
            Host(self.migration.destination_host, self.migration.destination_pool or '')
        )


def load_migration(session: Session, source_id: str) -> LoadedMigration:
    """Read the open migration of a share server.

    Raises InvalidShareServer when there is none, and ShareServerNotFound
    when one of its servers no longer exists.
    """
    migration = server_migrations.find_open(session, source_id)
    if migration is None:
        raise exception.InvalidShareServer(reason=f'{source_id} is not being migrated')
    destination = None
    if migration.destination_server_id is not None:
        destination = server_view.load_server(session, migration.destination_server_id)
    shares, snapshots = load_contents(session, source_id)
    return LoadedMigration(
        migration,
        server_view.load_server(session, source_id),
        destination,
        shares,
        snapshots,
    )


def load_contents(
    session: Session, server_id: str
) -> tuple[list[LoadedInstance], list[MovingSnapshot]]:
    """Read the share instances on a server and their snapshots."""
    ids = [
        row.instance_id
        for row in server_migrations.list_server_with_shares(session, server_id)
        if row.instance_id
    ]
    shares = share_view.load_instances(session, ids)
    by_id = {instance.row.id: instance for instance in shares}
    tags = server_migrations.get_snapshot_metadata(session, server_id)
    return shares, [
        MovingSnapshot(row, tags.get(row.id, {}), by_id[row.share_instance_id])
        for row in server_migrations.list_snapshot_instances(session, server_id)
        if row.share_instance_id in by_id
    ]


def driver_arguments(loaded: LoadedMigration, names: NameTemplates) -> DriverArguments:
    """Return the arguments common to all driver methods of both phases."""
    return (
        server_view.server_for_driver(loaded.source),
        dataclasses.replace(
            server_view.server_for_driver(loaded.chosen_destination),
            host=loaded.dest_host,
        ),
        *contents_for_driver(loaded.shares, loaded.snapshots, names),
    )


def contents_for_driver(
    shares: list[LoadedInstance], snapshots: list[MovingSnapshot], names: NameTemplates
) -> tuple[list[base.ShareForDriver], list[base.SnapshotForDriver]]:
    """Return shares and snapshots in the form given to drivers."""
    return (
        [share_view.share_for_driver(one, names.share) for one in shares],
        [share_view.snapshot_for_driver(one, names) for one in snapshots],
    )


def request_spec(
    shares: list[LoadedInstance], snapshots: list[MovingSnapshot]
) -> dict[str, typing.Any]:
    """Return what the destination has to hold; sizes are in GiB."""
    return {
        'shares_size': sum(one.row.size for one in shares),
        'snapshots_size': sum(one.row.size for one in snapshots),
        'shares_req_spec': [
            {
                'share_id': one.row.share_id,
                'share_instance_id': one.row.id,
                'size': one.row.size,
                'share_proto': one.row.share_proto,
                'share_type_id': one.row.share_type_id,
            }
            for one in shares
        ],
    }


def network_for_driver(
    session: Session, network_id: str | None, server_id: str
) -> dict[str, typing.Any]:
    """Return a share network with its subnets.

    A network that no longer exists has its id only.
    """
    rows = server_migrations.list_networks_with_subnets(
        session, [network_id], server_id
    )
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


ShareMigrationArguments = tuple[
    base.ShareForDriver,
    base.ShareForDriver,
    list[base.SnapshotForDriver],
    dict[str, base.SnapshotForDriver],
    base.ShareServerForDriver | None,
    base.ShareServerForDriver | None,
]
"""Source and destination, the snapshots of the source, those of the
destination by the ids of the former, and the share servers.
"""


class LoadedShareMigration(typing.NamedTuple):
    """A running migration, both instances of the share, and snapshots.

    `snapshots` are on the source, `copies` on the destination, by the ids of
    the former.
    """

    migration: ShareMigrationRow
    source: share_view.LoadedInstance
    destination: share_view.LoadedInstance
    snapshots: Sequence[share_view.LoadedSnapshot] = ()
    copies: Mapping[str, share_view.LoadedSnapshot] = {}

    @property
    def lacks_server(self) -> bool:
        """Whether the share server of the destination does not exist yet.

        Until it does, no driver is called for the destination.
        """
        server = self.destination.server
        return self.destination.row.share_network_id is not None and (
            server is None or server.row.status == ServerStatus.CREATING
        )


def load_share_migration(session: Session, share_id: str) -> LoadedShareMigration:
    """Read the running migration of a share.

    Raises InvalidShare when there is none, and when one of the instances no
    longer exists: then the work fails, which ends the migration. Work whose
    own resource is gone would only be dropped, and asked for again.
    """
    migration = migrations.get_open(session, share_id)
    try:
        loaded = LoadedShareMigration(
            migration,
            share_view.load_instance(session, migration.source_instance_id),
            share_view.load_instance(session, migration.destination_instance_id or ''),
        )
    except exception.ShareInstanceNotFound as error:
        raise exception.InvalidShare(
            reason=f'an instance of it is gone: {error}'
        ) from error
    return _with_copies(session, loaded) if migration.preserve_snapshots else loaded


def _with_copies(
    session: Session, loaded: LoadedShareMigration
) -> LoadedShareMigration:
    found = snapshots.list_on_share_instance(session, loaded.source.row.id)
    copies = {
        row.snapshot_id: row
        for row in snapshots.list_on_share_instance(session, loaded.destination.row.id)
    }
    metadata = snapshots.list_metadata(session, [row.snapshot_id for row in found])
    return loaded._replace(
        snapshots=[
            share_view.LoadedSnapshot(row, metadata[row.snapshot_id], loaded.source)
            for row in found
        ],
        copies={
            row.id: share_view.LoadedSnapshot(
                copies[row.snapshot_id], metadata[row.snapshot_id], loaded.destination
            )
            for row in found
            if row.snapshot_id in copies
        },
    )


def share_migration_arguments(
    loaded: LoadedShareMigration, names: share_view.NameTemplates
) -> ShareMigrationArguments:
    """Return the arguments common to the driver methods of both phases."""
    return (
        share_view.share_for_driver(loaded.source, names.share),
        share_view.share_for_driver(loaded.destination, names.share),
        [share_view.snapshot_for_driver(one, names) for one in loaded.snapshots],
        {
            id: share_view.snapshot_for_driver(copy, names)
            for id, copy in loaded.copies.items()
        },
        loaded.source.share_server,
        loaded.destination.share_server,
    )
