"""A share migration as read for work, and as given to drivers."""

import typing

from manila_lite.db.queries.shares import migrations
from manila_lite.db.rows import ShareMigrationRow
from manila_lite.db.session import Session
from manila_lite.share.drivers.base import ShareForDriver
from manila_lite.share.drivers.base import ShareServerForDriver
from manila_lite.share.drivers.base import SnapshotForDriver
from manila_lite.share.manager.driver_view import share_view
from manila_lite.share.manager.driver_view.share_view import LoadedInstance
from manila_lite.states.share_server import ServerStatus

DriverArguments = tuple[
    ShareForDriver,
    ShareForDriver,
    list[SnapshotForDriver],
    dict[str, SnapshotForDriver],
    ShareServerForDriver | None,
    ShareServerForDriver | None,
]
"""Source and destination, their snapshots, of which there are none, and
their share servers."""


class LoadedShareMigration(typing.NamedTuple):
    """A running migration and both instances of the share."""

    migration: ShareMigrationRow
    source: LoadedInstance
    destination: LoadedInstance

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

    Raises InvalidShare when there is none, and ShareInstanceNotFound when
    one of the instances no longer exists.
    """
    migration = migrations.get_open(session, share_id)
    return LoadedShareMigration(
        migration,
        share_view.load_instance(session, migration.source_instance_id),
        share_view.load_instance(
            session, migration.destination_instance_id or ''
        ),
    )


def driver_arguments(
    loaded: LoadedShareMigration, name_template: str
) -> DriverArguments:
    """Return the arguments common to the driver methods of both phases."""
    return (
        share_view.share_for_driver(loaded.source, name_template),
        share_view.share_for_driver(loaded.destination, name_template),
        [],
        {},
        loaded.source.share_server,
        loaded.destination.share_server,
    )
