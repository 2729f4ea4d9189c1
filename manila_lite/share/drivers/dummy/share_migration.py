"""Migration of shares from a dummy back end to another one.

The state of the destination is found by its back end section, which is in
the configuration of every share service.
"""

from collections.abc import Iterable
from typing import Any

from oslo_config import cfg

from manila_lite import exception
from manila_lite.host import Host
from manila_lite.share.drivers import base, records
from manila_lite.share.drivers.contract import migrations
from manila_lite.share.drivers.dummy.backend import DummyBackend
from manila_lite.share.drivers.dummy.share_servers import SERVER_FIELDS, server_fields
from manila_lite.share.drivers.dummy.state import (
    INCOMING,
    DummyState,
    share_exports,
    snapshot_exports,
)

_ADDRESSES = ('addresses', 'admin_addresses')
"""What the record of a snapshot says about the share server."""

_CAPABILITIES = ('writable', 'preserve_metadata', 'nondisruptive', 'preserve_snapshots')


class DummyShareMigration:
    def __init__(self, backend: DummyBackend):
        self._backend = backend
        self._capabilities: Iterable[str] | None = None

    # Controls for tests

    def set_capabilities(self, names: Iterable[str] | None) -> None:
        """Set the capabilities; None restores those of the options."""
        self._capabilities = names

    # The first phase

    def migration_check_compatibility(
        self, migration: migrations.ShareMigration
    ) -> migrations.ShareMigrationCompatibility:
        options = self._backend.options.dummy_driver_share_migration_offers
        offered = set(options if self._capabilities is None else self._capabilities)
        compatible = (
            'compatible' in offered
            and self._can_reach(
                migration.destination_share, migration.destination_share_server
            )
            and self._backend.state.shares.find(migration.source_share['id'])
            is not None
        )
        reply: Any = {name: compatible and name in offered for name in _CAPABILITIES}
        return {'compatible': compatible, **reply}

    def migration_start(self, migration: migrations.ShareMigration) -> None:
        target = self._target(migration.destination_share)
        with self._backend.lock:
            source = self._backend.get_share(migration.source_share['id'])
            if target.shares.find(migration.destination_share['id']) is None:
                self._backend.faults.midway()
                target.shares.put(
                    migration.destination_share['id'],
                    _without_server(source)
                    | server_fields(target, migration.destination_share_server)
                    | {
                        'export': migration.destination_share['name'],
                        'pool': Host.parse(migration.destination_share['host']).pool,
                        'content': '',
                        INCOMING: migration.source_share['id'],
                        'copied': 0,
                    },
                )
            for snapshot, copy in migration.snapshot_pairs:
                if target.snapshots.find(copy['id']) is None:
                    target.snapshots.put(
                        copy['id'],
                        self._backend.get_snapshot(snapshot['id'])
                        | {
                            'share': migration.destination_share['name'],
                            'export': copy['name'],
                            'replica': migration.destination_share['id'],
                            'status': 'error',
                        },
                    )
                    self._backend.faults.midway()

    def migration_continue(self, destination_share: base.ShareForDriver) -> bool:
        target = self._target(destination_share)
        steps = self._backend.options.dummy_driver_share_migration_steps
        with self._backend.lock:
            copy = _copy_in(target, destination_share)
            if INCOMING not in copy:
                return True
            copied = min(copy['copied'] + 1, steps)
            target.shares.put(destination_share['id'], copy | {'copied': copied})
        return copied >= steps

    def migration_get_progress(
        self, destination_share: base.ShareForDriver
    ) -> dict[str, int]:
        copy = _copy_in(self._target(destination_share), destination_share)
        steps = self._backend.options.dummy_driver_share_migration_steps
        copied = copy.get('copied', steps)
        return {'total_progress': 100 * copied // steps, 'copied': copied}

    def migration_cancel(self, migration: migrations.ShareMigration) -> None:
        target = self._target(migration.destination_share)
        with self._backend.lock:
            copy = target.shares.find(migration.destination_share['id'])
            if copy is None or INCOMING in copy:
                for _, snapshot in migration.snapshot_pairs:
                    target.snapshots.drop(snapshot['id'])
                    self._backend.faults.midway()
                target.shares.drop(migration.destination_share['id'])

    # The second phase

    def migration_complete(
        self, migration: migrations.ShareMigration
    ) -> migrations.ShareMigrationCompleteReply:
        target = self._target(migration.destination_share)
        with self._backend.lock:
            copy = _copy_in(target, migration.destination_share)
            source = self._backend.state.shares.find(migration.source_share['id'])
            if source is not None:  # else an earlier call has moved it
                copy = (
                    _without_server(source)
                    | server_fields(target, migration.destination_share_server)
                    | {'export': copy['export'], 'pool': copy['pool']}
                )
                target.shares.put(migration.destination_share['id'], copy)
                self._backend.faults.midway()
                self._move_snapshots(
                    target,
                    migration.snapshot_pairs,
                    server_fields(target, migration.destination_share_server),
                )
                self._backend.state.access.remove(migration.source_share['id'])
                self._backend.state.shares.drop(migration.source_share['id'])
            updates = {
                one['id']: _snapshot_update(target, one)
                for one in migration.snapshot_mappings.values()
            }
        return {'export_locations': share_exports(copy), 'snapshot_updates': updates}

    def _move_snapshots(
        self,
        target: DummyState,
        pairs: Iterable[tuple[base.SnapshotForDriver, base.SnapshotForDriver]],
        server: records.Record,
    ) -> None:
        where = {name: server[name] for name in _ADDRESSES if name in server}
        state = self._backend.state
        for snapshot, copy in pairs:
            record = target.snapshots.find(copy['id'])
            if record is not None:
                target.snapshots.put(
                    copy['id'],
                    _without_server(record) | where | {'status': 'available'},
                )
            self._backend.faults.midway()
            state.snapshot_access.remove(snapshot['id'])
            state.snapshots.drop(snapshot['id'])

    def _can_reach(
        self,
        destination_share: base.ShareForDriver,
        server: base.ShareServerMapping | None,
    ) -> bool:
        options = self._find_options(destination_share)
        if options is None:
            return False
        if not options.driver_handles_share_servers:
            return server is None
        return (
            server is not None
            and self._state_of(options).servers.find(server['id']) is not None
        )

    def _target(self, destination_share: base.ShareForDriver) -> DummyState:
        options = self._find_options(destination_share)
        if options is None:
            raise exception.ShareBackendException(
                msg=f'{destination_share["host"]} is not a pool of a dummy back end'
            )
        return self._state_of(options)

    def _find_options(self, destination_share: base.ShareForDriver) -> Any:
        """Return the options of the destination, None if it is no dummy."""
        host = Host.parse(destination_share['host'])
        options = self._backend.options.for_backend(host.backend)
        if (
            options is None
            or options.share_driver != 'dummy'
            or host.pool not in options.dummy_driver_pools
        ):
            return None
        return options

    def _state_of(self, options: cfg.ConfigOpts.GroupAttr) -> DummyState:
        if options.dummy_driver_state_path == (
            self._backend.options.dummy_driver_state_path
        ):
            return self._backend.state
        return DummyState(options.dummy_driver_state_path)


def _without_server(share: records.Record) -> records.Record:
    return {name: value for name, value in share.items() if name not in SERVER_FIELDS}


def _copy_in(
    target: DummyState, destination_share: base.ShareForDriver
) -> records.Record:
    copy = target.shares.find(destination_share['id'])
    if copy is None:
        raise exception.ShareResourceNotFound(share_id=destination_share['id'])
    return copy


def _snapshot_update(
    target: DummyState, snapshot: base.SnapshotForDriver
) -> dict[str, Any]:
    record = target.snapshots.find(snapshot['id'])
    if record is None:
        raise exception.SnapshotResourceNotFound(snapshot_id=snapshot['id'])
    return {
        'provider_location': record['export'],
        'export_locations': snapshot_exports(record),
    }
