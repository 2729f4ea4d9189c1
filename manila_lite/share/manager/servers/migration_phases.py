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
from manila_lite.db.queries.servers import migrations
from manila_lite.db.queries.servers import relocation as arrivals
from manila_lite.db.queries.servers import share_servers
from manila_lite.db.session import Session
from manila_lite.db.transitions import born
from manila_lite.db.transitions import fire
from manila_lite.db.transitions import fire_matching
from manila_lite.rpc.contract import Client
from manila_lite.rpc.share import BINARY
from manila_lite.share.drivers.base import export_locations
from manila_lite.share.manager.driver_view.migration_view import Moving
from manila_lite.states.access_rule import STATUS_MACHINE as ACCESS_STATUS
from manila_lite.states.share_instance import MACHINE as SHARE_INSTANCE
from manila_lite.states.share_server import MACHINE
from manila_lite.states.share_server import TASK_MACHINE
from manila_lite.states.share_server import S
from manila_lite.states.share_server import T
from manila_lite.states.snapshot_instance import MACHINE as SNAPSHOT_INSTANCE
from manila_lite.work import table

_ENDS = {'cancelled': T.CANCELLED, 'failed': T.ERROR}

_LATER = 'server_migration.continue_server_migration'


class Phases:
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
        moving: Moving,
        values: Mapping[str, typing.Any],
        subnet_ids: Collection[str],
    ) -> None:
        """Have a server that everything is to move to.

        `values` are what a server of the back end is born with.
        """
        source = moving.source.row
        born(
            session,
            MACHINE,
            'migrate_here',
            **{
                **values,
                'source_share_server_id': source.id,
                'is_auto_deletable': source.is_auto_deletable,
                'encryption_key_ref': source.encryption_key_ref,
            },
        )
        share_servers.add_subnets(session, values['id'], subnet_ids)
        migrations.note(
            session,
            moving.migration.id,
            made_destination=True,
            destination_server_id=values['id'],
        )

    def adopt_destination(
        self, session: Session, moving: Moving, server_id: str
    ) -> None:
        """Have everything move to a server that is there."""
        fire(session, MACHINE, server_id, 'adopt')
        migrations.note(
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
            fire_matching(session, MACHINE, 'let_go', {'id': id})
        elif fire_matching(
            session, MACHINE, 'migration_withdrawn', {'id': id}
        ):
            self._remove(session, migration, id, migration.destination_host)

    def _remove(
        self,
        session: Session,
        migration: typing.Any,
        server_id: str,
        host: str,
    ) -> None:
        fire(session, MACHINE, server_id, 'delete', updated_at=session.now)
        self.servers.on(host).delete_share_server(
            session, _owner(migration), share_server_id=server_id
        )

    # Rules

    def cast_rules(self, session: Session, moving: Moving) -> None:
        """Have clients only read while the shares are copied."""
        migrations.note(session, moving.migration.id, casts_rules=True)
        ids = [found.row.id for found in moving.shares]
        self._tell_rules(
            session,
            moving.migration,
            moving.source.row.host,
            arrivals.with_rules(session, ids),
            lambda: migrations.cast_rules(session, moving.source.row.id, True),
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
            arrivals.with_rules(session, ids),
            lambda: migrations.cast_rules(
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
            arrivals.doubt_rules(session, ids)
            fire_matching(
                session, ACCESS_STATUS, 'change', {'id': sorted(ids)}
            )

    # The ends

    def complete(
        self,
        session: Session,
        moving: Moving,
        answer: Mapping[str, typing.Any],
    ) -> None:
        """Everything is where it was to go; the source is removed."""
        migration, source = moving.migration, moving.source.row
        destination = typing.cast('typing.Any', moving.destination).row
        share_servers.hold(session, source.id)
        ids = [found.row.id for found in moving.shares]
        snapshot_ids = [found.row.id for found in moving.snapshots]
        self._tell_rules(
            session,
            migration,
            destination.host,
            arrivals.with_rules(session, ids),
            lambda: migrations.cast_rules(session, source.id, False),
        )
        self._relocate(session, moving, answer.get('share_updates') or {})
        self._move(session, 'server_migrated', ids, snapshot_ids)
        self._note_snapshots(
            session, moving, answer.get('snapshot_updates') or {}
        )
        if migration.nondisruptive:
            arrivals.hand_on_addresses(session, source.id, destination.id)
        note_details(
            session, destination.id, answer.get('backend_details') or {}
        )
        share_servers.update(
            session,
            destination.id,
            idle_since=None,
            source_share_server_id=source.id,
        )
        for machine in (MACHINE, TASK_MACHINE):
            fire_matching(session, machine, 'arrived', {'id': destination.id})
        fire_matching(session, TASK_MACHINE, 'completed', {'id': source.id})
        if fire_matching(session, MACHINE, 'migrated_away', {'id': source.id}):
            self._remove(session, migration, source.id, source.host)
        migrations.close(session, migration.id, T.COMPLETED)

    def _relocate(
        self,
        session: Session,
        moving: Moving,
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
            arrivals.relocate(
                session,
                [row.id for row in rows],
                host=host,
                share_server_id=destination.id,
                share_network_id=destination.share_network_id,
                availability_zone_id=service.availability_zone_id,
            )
        arrivals.replace_exports(
            session,
            {
                id: export_locations(update['export_locations'])
                for id, update in updates.items()
                if update.get('export_locations') is not None
            },
        )
        _count(session, moving, by_host)

    def _note_snapshots(
        self,
        session: Session,
        moving: Moving,
        updates: Mapping[str, typing.Any],
    ) -> None:
        """Where they are now, and who may mount them there."""
        known = {found.row.id: found.row for found in moving.snapshots}
        told = {id: update for id, update in updates.items() if id in known}
        arrivals.locate_snapshots(
            session,
            {
                id: update['provider_location']
                for id, update in told.items()
                if update.get('provider_location')
            },
        )
        arrivals.replace_snapshot_exports(
            session,
            {
                id: export_locations(update['export_locations'])
                for id, update in told.items()
                if update.get('export_locations') is not None
                and known[id].mount_snapshot_support
            },
        )
        ruled = arrivals.snapshots_with_rules(session, list(known))
        for id in ruled:
            self.snapshot_access.on(
                moving.migration.destination_host
            ).sync_snapshot_access(
                session, _owner(moving.migration), snapshot_instance_id=id
            )
        arrivals.doubt_snapshot_rules(session, ruled)

    def fail(self, session: Session, source_id: str, reason: str) -> None:
        """The end of what cannot go on.

        After the first phase everything is what it was before; in the
        second nobody can tell, and everything is in error.
        """
        migration = migrations.find_open(session, source_id)
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
        migration = migrations.find_open(session, source_id)
        share_servers.hold(session, source_id)
        self._end_on_source(session, source_id, migration, 'server_returned')
        fire_matching(session, MACHINE, 'migrate_returned', {'id': source_id})
        fire_matching(session, TASK_MACHINE, event, {'id': source_id})
        if migration is not None:
            self._let_destination_go(session, migration)
            migrations.close(session, migration.id, _ENDS[event], reason)
        table.withdraw(session, TASK_MACHINE.resource, source_id, _LATER)

    def _give_up(
        self,
        session: Session,
        source_id: str,
        migration: typing.Any,
        reason: str,
    ) -> None:
        """Nothing is removed: an administrator has to look at it."""
        share_servers.hold(session, source_id)
        self._end_on_source(
            session, source_id, migration, 'server_migration_failed'
        )
        for id in (source_id, migration.destination_server_id):
            fire_matching(session, MACHINE, 'migration_failed', {'id': id})
        fire_matching(session, TASK_MACHINE, 'failed', {'id': source_id})
        migrations.close(session, migration.id, T.ERROR, reason)

    def _end_on_source(
        self,
        session: Session,
        source_id: str,
        migration: typing.Any,
        event: str,
    ) -> None:
        rows = [
            row
            for row in migrations.with_shares(session, source_id)
            if row.instance_id
        ]
        ids = [row.instance_id for row in rows]
        if rows:
            self._give_rules_back(session, migration, rows[0].host, ids)
        self._move(
            session,
            event,
            ids,
            [row.id for row in migrations.snapshots_on(session, source_id)],
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


def is_astray(server: typing.Any, migration: typing.Any) -> bool:
    """Whether a server that migrates has nobody to go on with it."""
    return server.status == S.SERVER_MIGRATING and not (
        migration is not None
        and (
            server.task_state in TASK_MACHINE.in_flight
            or server.task_state == T.PHASE1_DONE
        )
    )


def note_details(
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
    session: Session, moving: Moving, by_host: Mapping[str, list[typing.Any]]
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
            pools.count_found(session, host, gb)
        else:
            pools.change_allocated(session, host, gb)
