"""Record the steps and outcomes of share server migrations.

Each method runs in a transaction of the caller. Rows in an unexpected
status, for example after `reset_status`, are left unchanged and do not
keep others from coming to rest.
"""

from collections.abc import Collection, Mapping
import dataclasses
import typing
from typing import Annotated

from manila_lite import messages
from manila_lite.conf import Option
from manila_lite.db.moves.access_rules import mark_for_resync
from manila_lite.db.moves.servers import end_migration
from manila_lite.db.queries.servers import (
    migrations as server_migrations,
    relocation as server_relocation,
    share_servers,
)
from manila_lite.db.queries.services import pools, services
from manila_lite.db.rows import InstanceRow, MigrationRow, ServerShareRow
from manila_lite.db.session import Session
from manila_lite.db.transitions import fire, fire_matching, insert_row
from manila_lite.host import Host
from manila_lite.messages import Action
from manila_lite.rpc.contract import Client
from manila_lite.rpc.share import BINARY, AccessRpc, ShareServersRpc, SnapshotAccessRpc
from manila_lite.share.drivers import base
from manila_lite.share.manager.driver_view.migration_view import LoadedMigration
from manila_lite.share.manager.endpoint import owner_context, store_migrated_snapshots
from manila_lite.states.share_instance import SHARE_INSTANCE
from manila_lite.states.share_server import SHARE_SERVER, SHARE_SERVER_TASK, TaskState
from manila_lite.states.snapshot_instance import SNAPSHOT_INSTANCE
from manila_lite.work import table
from manila_lite.work.notify import displayed_resource

_END_STATES = {'cancelled': TaskState.CANCELLED, 'failed': TaskState.ERROR}

_CONTINUE = 'server_migration.continue_server_migration'


@dataclasses.dataclass(eq=False)
class ServerMigrationPhases:
    """Writes the database changes of server migrations."""

    access_client: Client[AccessRpc]
    snapshot_access_client: Client[SnapshotAccessRpc]
    server_client: Client[ShareServersRpc]
    message_ttl: Annotated[int, Option('message_ttl')]

    # The destination

    def create_destination(
        self,
        session: Session,
        loaded: LoadedMigration,
        values: Mapping[str, typing.Any],
        subnet_ids: Collection[str],
    ) -> None:
        """Insert the destination server.

        `values` are the initial columns of a server of the back end.
        """
        source = loaded.source.row
        insert_row(
            session,
            SHARE_SERVER,
            'migrate_here',
            **{
                **values,
                'source_share_server_id': source.id,
                'is_auto_deletable': source.is_auto_deletable,
                'encryption_key_ref': source.encryption_key_ref,
            },
        )
        share_servers.add_subnets(session, values['id'], subnet_ids)
        server_migrations.update(
            session,
            loaded.migration.id,
            made_destination=True,
            destination_server_id=values['id'],
        )

    def adopt_destination(
        self, session: Session, loaded: LoadedMigration, server_id: str
    ) -> None:
        """Use an existing server as the destination."""
        fire(session, SHARE_SERVER, server_id, 'adopt')
        server_migrations.update(
            session,
            loaded.migration.id,
            is_set_up=True,
            destination_server_id=server_id,
        )

    def _release_destination(self, session: Session, migration: MigrationRow) -> None:
        """Release an adopted destination; delete one that was created."""
        id = migration.destination_server_id
        if id is None:
            return
        if not migration.made_destination:
            fire_matching(session, SHARE_SERVER, 'let_go', {'id': id})
            return
        fire_matching(session, SHARE_SERVER, 'migration_withdrawn', {'id': id})
        share_servers.lock(session, id)
        self._remove(session, migration, id, migration.destination_host)

    def _remove(
        self, session: Session, migration: MigrationRow, server_id: str, host: str
    ) -> None:
        """Request the deletion of a server, whose row is locked.

        Its status may have been reset, and then something placed on it.
        """
        if share_servers.is_used(session, server_id) or not (
            fire_matching(session, SHARE_SERVER, 'delete', {'id': server_id})
        ):
            return
        self.server_client.on(host).delete_share_server(
            session, owner_context(migration), share_server_id=server_id
        )

    # Rules

    def cast_rules(self, session: Session, loaded: LoadedMigration) -> None:
        """Cast all rules to read-only while the shares are copied."""
        server_migrations.update(session, loaded.migration.id, casts_rules=True)
        ids = [one.row.id for one in loaded.shares]
        self._resync_rules(
            session,
            loaded.migration,
            loaded.source.row.host,
            server_relocation.list_instances_with_rules(session, ids),
            lambda: server_migrations.set_rules_readonly(
                session, loaded.source.row.id, True
            ),
        )

    def _restore_rules(
        self,
        session: Session,
        migration: MigrationRow | None,
        host: str | None,
        ids: Collection[str],
    ) -> None:
        """Undo the cast to read-only, if there was one."""
        if migration is None or not migration.casts_rules or host is None:
            return
        self._resync_rules(
            session,
            migration,
            host,
            server_relocation.list_instances_with_rules(session, ids),
            lambda: server_migrations.set_rules_readonly(
                session, migration.source_server_id, False
            ),
        )

    def _resync_rules(
        self,
        session: Session,
        migration: MigrationRow,
        host: str,
        ids: Collection[str],
        change: typing.Callable[[], object],
    ) -> None:
        """Run `change` and send all rules of these shares to a back end."""
        # Same lock order as in requests: the work, then the instances.
        for id in ids:
            self.access_client.on(host).sync_access(
                session, owner_context(migration), instance_id=id
            )
        change()
        mark_for_resync(session, ids)

    # The outcomes

    def complete(
        self,
        session: Session,
        loaded: LoadedMigration,
        reply: base.ServerMigrationCompleteReply,
    ) -> None:
        """Move all rows to the destination, and delete the source."""
        migration, source = loaded.migration, loaded.source.row
        destination = loaded.chosen_destination.row
        share_servers.lock(session, source.id)
        ids = [one.row.id for one in loaded.shares]
        snapshot_ids = [one.row.id for one in loaded.snapshots]
        self._resync_rules(
            session,
            migration,
            destination.host,
            server_relocation.list_instances_with_rules(session, ids),
            lambda: server_migrations.set_rules_readonly(session, source.id, False),
        )
        by_host = self._relocate(session, loaded, reply.get('share_updates') or {})
        self._move(session, 'server_migrated', ids, snapshot_ids)
        self._update_snapshots(session, loaded, reply.get('snapshot_updates') or {})
        if migration.nondisruptive:
            server_relocation.transfer_addresses(session, source.id, destination.id)
        store_details(session, destination.id, reply.get('backend_details') or {})
        share_servers.update(
            session, destination.id, idle_since=None, source_share_server_id=source.id
        )
        for machine in (SHARE_SERVER, SHARE_SERVER_TASK):
            fire_matching(session, machine, 'arrived', {'id': destination.id})
        self._end_task(session, source.id, 'completed')
        fire_matching(session, SHARE_SERVER, 'migrated_away', {'id': source.id})
        self._remove(session, migration, source.id, source.host)
        reserved = server_migrations.close(session, migration, TaskState.COMPLETED)
        _move_allocation(session, loaded, by_host, reserved)

    def _relocate(
        self,
        session: Session,
        loaded: LoadedMigration,
        updates: Mapping[str, base.MigratedShare],
    ) -> dict[str, list[InstanceRow]]:
        """Move the shares to the pools returned."""
        destination = loaded.chosen_destination.row
        service = services.get(session, destination.host, BINARY)
        by_host: dict[str, list[InstanceRow]] = {}
        for instance in loaded.shares:
            pool = (
                updates.get(instance.row.id, {}).get('pool_name')
                or loaded.migration.destination_pool
                or Host.parse(instance.row.host).pool
            )
            by_host.setdefault(str(Host(destination.host, pool)), []).append(
                instance.row
            )
        for host, rows in sorted(by_host.items()):
            server_relocation.move_instances(
                session,
                [row.id for row in rows],
                host=host,
                share_server_id=destination.id,
                share_network_id=destination.share_network_id,
                availability_zone_id=service.availability_zone_id,
            )
        server_relocation.replace_exports(
            session,
            {
                id: base.normalise_export_locations(update['export_locations'])
                for id, update in updates.items()
                if update.get('export_locations') is not None
            },
        )
        return by_host

    def _update_snapshots(
        self,
        session: Session,
        loaded: LoadedMigration,
        updates: Mapping[str, base.MigratedSnapshot],
    ) -> None:
        """Store the new locations of snapshots, and resync their rules."""
        known = {one.row.id: one.row for one in loaded.snapshots}
        store_migrated_snapshots(session, updates, known)
        ids_with_rules = server_relocation.list_snapshots_with_rules(
            session, list(known)
        )
        for id in ids_with_rules:
            self.snapshot_access_client.on(
                loaded.migration.destination_host
            ).sync_snapshot_access(
                session, owner_context(loaded.migration), snapshot_instance_id=id
            )
        server_relocation.mark_snapshot_rules_stale(session, ids_with_rules)

    def fail(self, session: Session, source_id: str, reason: str) -> None:
        """Fail a migration.

        In the first phase it is rolled back. In the second phase the state
        of the back ends is unknown, and all rows are put into error.
        """
        migration = server_migrations.find_open(session, source_id)
        if migration is not None and migration.phase == 2:
            self._give_up(session, source_id, migration, reason)
        else:
            self.roll_back(session, source_id, 'failed', reason)

    def roll_back(
        self, session: Session, source_id: str, event: str, reason: str | None = None
    ) -> None:
        """Restore the state before the migration; idempotent.

        `event` is 'cancelled' or 'failed'.
        """
        migration = server_migrations.find_open(session, source_id)
        share_servers.lock(session, source_id)
        self._end_on_source(session, source_id, migration, 'server_returned')
        fire_matching(session, SHARE_SERVER, 'migrate_returned', {'id': source_id})
        self._end_task(session, source_id, event)
        if migration is not None:
            self._release_destination(session, migration)
            end_migration(session, migration, _END_STATES[event], reason)
        table.withdraw(session, SHARE_SERVER_TASK.resource, source_id, _CONTINUE)

    def _end_task(self, session: Session, source_id: str, event: str) -> None:
        """Fire the last event of the task; one that was reset fails.

        Without the migration nothing would continue it.
        """
        for name in (event, 'failed'):
            if fire_matching(session, SHARE_SERVER_TASK, name, {'id': source_id}):
                return

    def _give_up(
        self, session: Session, source_id: str, migration: MigrationRow, reason: str
    ) -> None:
        """Put everything into error for an administrator to check."""
        share_servers.lock(session, source_id)
        for row in self._end_on_source(
            session, source_id, migration, 'server_migration_failed'
        ):
            messages.record(
                session,
                row.project_id,
                Action.UPDATE,
                displayed_resource(row.instance_id, row.share_id, row.replica_state),
                self.message_ttl,
                explanation=reason,
            )
        for id in (source_id, migration.destination_server_id):
            fire_matching(session, SHARE_SERVER, 'migration_failed', {'id': id})
        fire_matching(session, SHARE_SERVER_TASK, 'failed', {'id': source_id})
        end_migration(session, migration, TaskState.ERROR, reason)

    def _end_on_source(
        self,
        session: Session,
        source_id: str,
        migration: MigrationRow | None,
        event: str,
    ) -> list[ServerShareRow]:
        """Move all that is on the source; return the rows of its shares."""
        rows = [
            row
            for row in server_migrations.list_server_with_shares(session, source_id)
            if row.instance_id
        ]
        ids = [row.instance_id for row in rows]
        if rows:
            self._restore_rules(session, migration, rows[0].host, ids)
        self._move(
            session,
            event,
            ids,
            [
                row.id
                for row in server_migrations.list_snapshot_instances(session, source_id)
            ],
        )
        return rows

    def _move(
        self,
        session: Session,
        event: str,
        ids: Collection[str],
        snapshot_ids: Collection[str],
    ) -> None:
        if ids:
            fire_matching(session, SHARE_INSTANCE, event, {'id': sorted(ids)})
        if snapshot_ids:
            fire_matching(
                session, SNAPSHOT_INSTANCE, event, {'id': sorted(snapshot_ids)}
            )


def store_details(
    session: Session, server_id: str, details: Mapping[str, typing.Any]
) -> None:
    """Store the details and the identifier reported for a server."""
    share_servers.merge_details(session, server_id, details)
    if details.get('identifier'):
        share_servers.update(
            session, server_id, identifier=str(details['identifier'])[:255]
        )


def _move_allocation(
    session: Session,
    loaded: LoadedMigration,
    by_host: Mapping[str, list[InstanceRow]],
    reserved: Mapping[str, int],
) -> None:
    """Move the allocated capacity from the old pools to the new ones.

    What is reserved there is replaced by the shares. The driver may have
    chosen other pools, and the sizes may have changed after a reset.
    """
    changes = {host: -gb for host, gb in reserved.items()}
    for instance in loaded.shares:
        changes[instance.row.host] = (
            changes.get(instance.row.host, 0) - instance.row.size
        )
    for host, rows in by_host.items():
        changes[host] = changes.get(host, 0) + sum(row.size for row in rows)
    for host, gb in sorted(changes.items()):
        # The copy exists already and is part of the next pool report.
        if gb > 0:
            pools.add_preexisting(session, host, gb)
        else:
            pools.adjust_allocated(session, host, gb)
