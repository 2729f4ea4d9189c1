"""A share migration as read for work, and as given to drivers."""

from collections.abc import Mapping, Sequence
import typing

from manila_lite import exception
from manila_lite.db.queries.shares import migrations
from manila_lite.db.queries.snapshots import snapshots
from manila_lite.db.rows import ShareMigrationRow
from manila_lite.db.session import Session
from manila_lite.share.drivers import base
from manila_lite.share.manager.driver_view import share_view
from manila_lite.states.share_server import ServerStatus

DriverArguments = tuple[
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


def load_migration(session: Session, share_id: str) -> LoadedShareMigration:
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
    return _with_snapshots(session, loaded) if migration.preserve_snapshots else loaded


def _with_snapshots(
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


def driver_arguments(
    loaded: LoadedShareMigration, names: share_view.NameTemplates
) -> DriverArguments:
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
