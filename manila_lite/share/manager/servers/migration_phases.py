"""What is written down when a share server has moved, or has not.

Each method belongs into a transaction of the caller. Rows that are not
as they should be, after an administrator's decree say, are left alone:
they keep nothing else from coming to rest.
"""

from collections.abc import Collection, Mapping
import typing

from manila_lite.context import RequestContext
from manila_lite.db.queries.admin import pools
from manila_lite.db.queries.admin import services
from manila_lite.db.queries.servers import migrations as server_migrations
from manila_lite.db.queries.servers import relocation as server_relocation
from manila_lite.db.queries.servers import share_servers
from manila_lite.db.session import Session
from manila_lite.db.transitions import fire
from manila_lite.db.transitions import fire_matching
from manila_lite.db.transitions import insert_row
from manila_lite.rpc.contract import Client
from manila_lite.rpc.share import BINARY
from manila_lite.share.drivers.base import normalise_export_locations
from manila_lite.share.manager.driver_view.migration_view import (
    LoadedMigration,
)
from manila_lite.states.access_rule import SHARE_INSTANCE_ACCESS
from manila_lite.states.share_instance import SHARE_INSTANCE
from manila_lite.states.share_server import SHARE_SERVER
from manila_lite.states.share_server import SHARE_SERVER_TASK
from manila_lite.states.share_server import ServerStatus
from manila_lite.states.share_server import TaskState
from manila_lite.states.snapshot_instance import SNAPSHOT_INSTANCE
from manila_lite.work import table

_ENDS = {'cancelled': TaskState.CANCELLED, 'failed': TaskState.ERROR}

_LATER = 'server_migration.continue_server_migration'


class ServerMigrationPhases:
    """`access`, `snapshot_access` and `servers` are clients of contracts."""

    def __init__(
        self, access: Client, snapshot_access: Client, servers: Client
    ):
        self.access = access
        self.snapshot_access = snapshot_access
        self.servers = servers

    # The destination

    def make_destination(
        self,
        session: Session,
        moving: LoadedMigration,
        values: Mapping[str, typing.Any],
        subnet_ids: Collection[str],
    ) -> None:
        """Have a server that everything is to move to.

        `values` are what a server of the back end is born with.
        """
        source = moving.source.row
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
            moving.migration.id,
            made_destination=True,
            destination_server_id=values['id'],
        )

    def adopt_destination(
        self, session: Session, moving: LoadedMigration, server_id: str
    ) -> None:
        """Have everything move to a server that is there."""
        fire(session, SHARE_SERVER, server_id, 'adopt')
        server_migrations.update(
            session,
            moving.migration.id,
            is_set_up=True,
            destination_server_id=server_id,
        )

    def _let_destination_go(
        self, session: Session, migration: typing.Any
    ) -> None:
        """Nothing has come of it: what was made for it is removed."""
        id = migration.destination_server_id
        if id is None:
            return
        if not migration.made_destination:
            fire_matching(session, SHARE_SERVER, 'let_go', {'id': id})
        elif fire_matching(
            session, SHARE_SERVER, 'migration_withdrawn', {'id': id}
        ):
            self._remove(session, migration, id, migration.destination_host)

    def _remove(
        self,
        session: Session,
        migration: typing.Any,
        server_id: str,
        host: str,
    ) -> None:
        fire(
            session, SHARE_SERVER, server_id, 'delete', updated_at=session.now
        )
        self.servers.on(host).delete_share_server(
            session, _owner(migration), share_server_id=server_id
        )

    # Rules

    def cast_rules(self, session: Session, moving: LoadedMigration) -> None:
        """Have clients only read while the shares are copied."""
        server_migrations.update(
            session, moving.migration.id, casts_rules=True
        )
        ids = [found.row.id for found in moving.shares]
        self._tell_rules(
            session,
            moving.migration,
            moving.source.row.host,
            server_relocation.list_instances_with_rules(session, ids),
            lambda: server_migrations.set_rules_readonly(
                session, moving.source.row.id, True
            ),
        )

    def _give_rules_back(
        self,
        session: Session,
        migration: typing.Any,
        host: str | None,
        ids: Collection[str],
    ) -> None:
        """Have clients write again, if they could not."""
        if migration is None or not migration.casts_rules or host is None:
            return
        self._tell_rules(
            session,
            migration,
            host,
            server_relocation.list_instances_with_rules(session, ids),
            lambda: server_migrations.set_rules_readonly(
                session, migration.source_server_id, False
            ),
        )

    def _tell_rules(
        self,
        session: Session,
        migration: typing.Any,
        host: str,
        ids: Collection[str],
        change: typing.Callable[[], object],
    ) -> None:
        """Have a back end told all the rules of these shares."""
        # In the order of requests: the work first, then the instances.
        for id in ids:
            self.access.on(host).sync_access(
                session, _owner(migration), instance_id=id
            )
        change()
        if ids:
            server_relocation.mark_rules_stale(session, ids)
            fire_matching(
                session, SHARE_INSTANCE_ACCESS, 'change', {'id': sorted(ids)}
            )

    # The ends

    def complete(
        self,
        session: Session,
        moving: LoadedMigration,
        answer: Mapping[str, typing.Any],
    ) -> None:
        """Everything is where it was to go; the source is removed."""
        migration, source = moving.migration, moving.source.row
        destination = typing.cast('typing.Any', moving.destination).row
        share_servers.lock(session, source.id)
        ids = [found.row.id for found in moving.shares]
        snapshot_ids = [found.row.id for found in moving.snapshots]
        self._tell_rules(
            session,
            migration,
            destination.host,
            server_relocation.list_instances_with_rules(session, ids),
            lambda: server_migrations.set_rules_readonly(
                session, source.id, False
            ),
        )
        self._relocate(session, moving, answer.get('share_updates') or {})
        self._move(session, 'server_migrated', ids, snapshot_ids)
        self._note_snapshots(
            session, moving, answer.get('snapshot_updates') or {}
        )
        if migration.nondisruptive:
            server_relocation.transfer_addresses(
                session, source.id, destination.id
            )
        store_details(
            session, destination.id, answer.get('backend_details') or {}
        )
        share_servers.update(
            session,
            destination.id,
            idle_since=None,
            source_share_server_id=source.id,
        )
        for machine in (SHARE_SERVER, SHARE_SERVER_TASK):
            fire_matching(session, machine, 'arrived', {'id': destination.id})
        fire_matching(
            session, SHARE_SERVER_TASK, 'completed', {'id': source.id}
        )
        if fire_matching(
            session, SHARE_SERVER, 'migrated_away', {'id': source.id}
        ):
            self._remove(session, migration, source.id, source.host)
        server_migrations.close(session, migration.id, TaskState.COMPLETED)

    def _relocate(
        self,
        session: Session,
        moving: LoadedMigration,
        updates: Mapping[str, typing.Any],
    ) -> None:
        destination = typing.cast('typing.Any', moving.destination).row
        service = services.get(session, destination.host, BINARY)
        by_host: dict[str, list[typing.Any]] = {}
        for found in moving.shares:
            pool = (
                updates.get(found.row.id, {}).get('pool_name')
                or moving.migration.destination_pool
                or found.row.host.partition('#')[2]
            )
            by_host.setdefault(f'{destination.host}#{pool}', []).append(
                found.row
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
                id: normalise_export_locations(update['export_locations'])
                for id, update in updates.items()
                if update.get('export_locations') is not None
            },
        )
        _count(session, moving, by_host)

    def _note_snapshots(
        self,
        session: Session,
        moving: LoadedMigration,
        updates: Mapping[str, typing.Any],
    ) -> None:
        """Where they are now, and who may mount them there."""
        known = {found.row.id: found.row for found in moving.snapshots}
        told = {id: update for id, update in updates.items() if id in known}
        server_relocation.set_snapshot_locations(
            session,
            {
                id: update['provider_location']
                for id, update in told.items()
                if update.get('provider_location')
            },
        )
        server_relocation.replace_snapshot_exports(
            session,
            {
                id: normalise_export_locations(update['export_locations'])
                for id, update in told.items()
                if update.get('export_locations') is not None
                and known[id].mount_snapshot_support
            },
        )
        ruled = server_relocation.list_snapshots_with_rules(
            session, list(known)
        )
        for id in ruled:
            self.snapshot_access.on(
                moving.migration.destination_host
            ).sync_snapshot_access(
                session, _owner(moving.migration), snapshot_instance_id=id
            )
        server_relocation.mark_snapshot_rules_stale(session, ruled)

    def fail(self, session: Session, source_id: str, reason: str) -> None:
        """The end of what cannot go on.

        After the first phase everything is what it was before; in the
        second nobody can tell, and everything is in error.
        """
        migration = server_migrations.find_open(session, source_id)
        if migration is not None and migration.phase == 2:
            self._give_up(session, source_id, migration, reason)
        else:
            self.put_back(session, source_id, 'failed', reason)

    def put_back(
        self,
        session: Session,
        source_id: str,
        event: str,
        reason: str | None = None,
    ) -> None:
        """Have everything be what it was before the migration.

        `event` is cancelled or failed. Once more changes nothing.
        """
        migration = server_migrations.find_open(session, source_id)
        share_servers.lock(session, source_id)
        self._end_on_source(session, source_id, migration, 'server_returned')
        fire_matching(
            session, SHARE_SERVER, 'migrate_returned', {'id': source_id}
        )
        fire_matching(session, SHARE_SERVER_TASK, event, {'id': source_id})
        if migration is not None:
            self._let_destination_go(session, migration)
            server_migrations.close(
                session, migration.id, _ENDS[event], reason
            )
        table.withdraw(session, SHARE_SERVER_TASK.resource, source_id, _LATER)

    def _give_up(
        self,
        session: Session,
        source_id: str,
        migration: typing.Any,
        reason: str,
    ) -> None:
        """Nothing is removed: an administrator has to look at it."""
        share_servers.lock(session, source_id)
        self._end_on_source(
            session, source_id, migration, 'server_migration_failed'
        )
        for id in (source_id, migration.destination_server_id):
            fire_matching(
                session, SHARE_SERVER, 'migration_failed', {'id': id}
            )
        fire_matching(session, SHARE_SERVER_TASK, 'failed', {'id': source_id})
        server_migrations.close(session, migration.id, TaskState.ERROR, reason)

    def _end_on_source(
        self,
        session: Session,
        source_id: str,
        migration: typing.Any,
        event: str,
    ) -> None:
        rows = [
            row
            for row in server_migrations.list_server_with_shares(
                session, source_id
            )
            if row.instance_id
        ]
        ids = [row.instance_id for row in rows]
        if rows:
            self._give_rules_back(session, migration, rows[0].host, ids)
        self._move(
            session,
            event,
            ids,
            [
                row.id
                for row in server_migrations.list_snapshot_instances(
                    session, source_id
                )
            ],
        )

    def _move(
        self,
        session: Session,
        event: str,
        ids: Collection[str],
        snapshot_ids: Collection[str],
    ) -> None:
        if ids:
            fire_matching(
                session,
                SHARE_INSTANCE,
                event,
                {'id': sorted(ids)},
                updated_at=session.now,
            )
        if snapshot_ids:
            fire_matching(
                session,
                SNAPSHOT_INSTANCE,
                event,
                {'id': sorted(snapshot_ids)},
                updated_at=session.now,
            )


def is_abandoned(server: typing.Any, migration: typing.Any) -> bool:
    """Whether a server that migrates has nobody to go on with it."""
    return server.status == ServerStatus.SERVER_MIGRATING and not (
        migration is not None
        and (
            server.task_state in SHARE_SERVER_TASK.in_flight
            or server.task_state == TaskState.PHASE1_DONE
        )
    )


def store_details(
    session: Session, server_id: str, details: Mapping[str, typing.Any]
) -> None:
    """Remember what a driver says of a server, and what it calls it."""
    share_servers.merge_details(session, server_id, details)
    if details.get('identifier'):
        share_servers.update(
            session, server_id, identifier=str(details['identifier'])[:255]
        )


def _owner(migration: typing.Any) -> RequestContext:
    return RequestContext(
        project_id=migration.project_id, user_id=migration.user_id
    )


def _count(
    session: Session,
    moving: LoadedMigration,
    by_host: Mapping[str, list[typing.Any]],
) -> None:
    """Count on the new pools what was counted on the old ones."""
    changes: dict[str, int] = {}
    for found in moving.shares:
        changes[found.row.host] = (
            changes.get(found.row.host, 0) - found.row.size
        )
    for host, rows in by_host.items():
        changes[host] = changes.get(host, 0) + sum(row.size for row in rows)
    for host, gb in sorted(changes.items()):
        # What is copied is there already: a report will know of it.
        if gb > 0:
            pools.add_preexisting(session, host, gb)
        else:
            pools.adjust_allocated(session, host, gb)
