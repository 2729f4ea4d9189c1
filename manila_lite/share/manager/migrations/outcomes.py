"""Record the steps and outcomes of share migrations.

Each method runs in a transaction of the caller.
"""

import dataclasses

from manila_lite.db.moves import share_migrations as moves
from manila_lite.db.moves.access_rules import mark_for_resync
from manila_lite.db.queries.access import share_rules, snapshot_rules
from manila_lite.db.queries.servers import relocation, share_servers
from manila_lite.db.queries.shares import instances as share_instances, migrations
from manila_lite.db.rows import InstanceRow, ShareMigrationRow
from manila_lite.db.session import Session
from manila_lite.host import Host
from manila_lite.quota import shares as migration_quota
from manila_lite.rpc import share
from manila_lite.rpc.contract import Client, work_kinds
from manila_lite.rpc.data import TOPIC as DATA_TOPIC, MigrationCopiesRpc
from manila_lite.share.drivers.base import (
    ShareMigrationCompleteReply,
    normalise_export_locations,
)
from manila_lite.share.manager.driver_view.migration_view import LoadedShareMigration
from manila_lite.share.manager.endpoint import owner_context, store_migrated_snapshots
from manila_lite.share.manager.servers.lifecycle import ShareServersEndpoint
from manila_lite.work import table
from manila_lite.work.table import Claim

_WORK = work_kinds(share.HostAssistedMigrationRpc)
_CREATE_DESTINATION = _WORK['host_assisted_migration.create_destination']
_REMOVE_DESTINATION = _WORK['host_assisted_migration.remove_destination']
_START = work_kinds(share.ShareMigrationRpc)['share_migration.start_share_migration']
_PROVIDE_SERVER = work_kinds(share.MigrationServersRpc)[
    'migration_servers.provide_migration_server'
]
_COPY = work_kinds(MigrationCopiesRpc)['migration_copies.copy_share']


def destination_queue(loaded: LoadedShareMigration) -> str:
    """Return the queue of the back end that a share moves to."""
    return Host.parse(loaded.destination.row.host).service_host


@dataclasses.dataclass(eq=False)
class ShareMigrationOutcomes:
    """Writes the database changes of share migrations."""

    access: Client[share.AccessRpc]
    snapshot_access: Client[share.SnapshotAccessRpc]
    servers: ShareServersEndpoint

    # Share servers

    def request_server(
        self, session: Session, job: Claim, loaded: LoadedShareMigration
    ) -> None:
        """Hand over to the back end of the destination."""
        table.hand_over(
            session,
            job,
            _PROVIDE_SERVER,
            destination_queue(loaded),
            {'share_id': loaded.migration.share_id},
        )

    def request_start(
        self, session: Session, job: Claim, migration: ShareMigrationRow
    ) -> None:
        """Hand over to the back end of the source."""
        table.hand_over(
            session,
            job,
            _START,
            migration.source_host,
            {'share_id': migration.share_id, 'needs_release_2': True},
        )

    # Access rules

    def cast_rules(self, session: Session, loaded: LoadedShareMigration) -> None:
        """Cast all rules to read-only while the share is copied."""
        source = loaded.source.row
        migrations.update(session, source.share_id, casts_rules=True)
        self._resync_rules(session, source, cast=True)

    def _resync_rules(
        self, session: Session, instance: InstanceRow, *, cast: bool
    ) -> None:
        has_rules = bool(share_rules.list_for_instance(session, instance.id))
        if has_rules:
            # As in requests, the work is locked before the instance.
            self._sync(session, instance)
        migrations.set_rules_readonly(session, instance.id, cast)
        if has_rules:
            mark_for_resync(session, [instance.id])

    def _sync(self, session: Session, instance: InstanceRow) -> None:
        self.access.on(instance.host).sync_access(
            session, owner_context(instance), instance_id=instance.id
        )

    def restore_rules(self, session: Session, share_id: str) -> None:
        """Undo the cast to read-only, if there was one."""
        migration = migrations.find_open(session, share_id)
        if migration is None or not migration.casts_rules:
            return
        source = share_instances.find(session, migration.source_instance_id)
        if source is not None:
            self._resync_rules(session, source, cast=False)

    # The ends

    def complete(
        self,
        session: Session,
        loaded: LoadedShareMigration,
        reply: ShareMigrationCompleteReply,
        error: str | None = None,
    ) -> None:
        """Let the destination replace the source.

        With an `error` the source could not be removed.
        """
        source, destination = loaded.source.row, loaded.destination.row
        if share_rules.list_for_instance(session, source.id):
            self._sync(session, destination)
        self._take_snapshots_over(session, loaded, reply)
        locations = reply.get('export_locations')
        if locations is not None:
            share_instances.replace_export_locations(
                session, destination.id, normalise_export_locations(locations)
            )
        migration_quota.cut_over(session, source, destination, error)
        self.servers.release(session, source.share_server_id)
        moves.end_task(session, source.share_id, 'completed')

    def _take_snapshots_over(
        self,
        session: Session,
        loaded: LoadedShareMigration,
        reply: ShareMigrationCompleteReply,
    ) -> None:
        """Store where snapshots are now, and sync their access rules."""
        source = loaded.source.row.id
        with_rules = snapshot_rules.list_with_rules_on(session, [source])
        # Same lock order as in requests: the work, then the instance.
        moved = sorted(
            loaded.copies[id].row.id for id in with_rules if id in loaded.copies
        )
        for id in moved:
            self.snapshot_access.on(loaded.destination.row.host).sync_snapshot_access(
                session, owner_context(loaded.destination.row), snapshot_instance_id=id
            )
        store_migrated_snapshots(
            session,
            reply.get('snapshot_updates') or {},
            {one.row.id: one.row for one in loaded.copies.values()},
        )
        relocation.mark_snapshot_rules_stale(session, moved)

    # Copies by the data service

    def request_destination(
        self,
        session: Session,
        job: Claim,
        loaded: LoadedShareMigration,
        ignored: list[str],
    ) -> None:
        """Hand over to the back end of the destination."""
        share_id = loaded.migration.share_id
        migrations.update(session, share_id, host_assisted=True)
        table.hand_over(
            session,
            job,
            _CREATE_DESTINATION,
            destination_queue(loaded),
            {'share_id': share_id, 'ignored': ignored},
        )

    def request_removal(
        self, session: Session, job: Claim, loaded: LoadedShareMigration
    ) -> None:
        """Hand over to the back end of the destination, at the end."""
        table.hand_over(
            session,
            job,
            _REMOVE_DESTINATION,
            destination_queue(loaded),
            {'share_id': loaded.migration.share_id},
        )

    def request_copy(
        self, session: Session, job: Claim, share_id: str, ignored: list[str]
    ) -> None:
        """Hand over to a data service."""
        table.hand_over(
            session, job, _COPY, DATA_TOPIC, {'share_id': share_id, 'ignored': ignored}
        )

    def roll_back(self, session: Session, share_id: str, event: str) -> None:
        """Restore what was before the migration; its copy is gone."""
        self.restore_rules(session, share_id)
        server_id = self._destination_server(session, share_id)
        migration_quota.roll_back(session, share_id)
        self.servers.release(session, server_id)
        moves.end_task(session, share_id, event)

    def _destination_server(self, session: Session, share_id: str) -> str | None:
        migration = migrations.find_open(session, share_id)
        if migration is None or migration.destination_instance_id is None:
            return None
        return share_servers.find_server_id(session, migration.destination_instance_id)
