"""Migration of share servers to a dummy back end.

The state of the source is found by its back end section, which is in the
configuration of every share service. Incoming copies are kept apart, where
no inventory includes them.
"""

from collections.abc import Iterable, Sequence
from typing import Any

from manila_lite import exception
from manila_lite.host import Host
from manila_lite.share.drivers import base, records
from manila_lite.share.drivers.contract.migrations import (
    ServerMigration,
    ServerMigrationCompatibility,
    ServerMigrationCompleteReply,
    ServerMigrationStartReply,
)
from manila_lite.share.drivers.dummy.backend import DummyBackend
from manila_lite.share.drivers.dummy.state import (
    DummyState,
    share_exports,
    snapshot_exports,
)

_CAPABILITIES = (
    'writable',
    'nondisruptive',
    'preserve_snapshots',
    'migration_cancel',
    'migration_get_progress',
)

ShareList = Sequence[base.ShareForDriver]
SnapshotList = Sequence[base.SnapshotForDriver]


class DummyServerMigration:
    def __init__(self, backend: DummyBackend):
        self._backend = backend
        self._target: str | None = None
        self._capabilities: Iterable[str] | None = None

    # Controls for tests

    def set_target(self, server_id: str | None) -> None:
        """Migrate to this server if it is offered."""
        self._target = server_id

    def set_capabilities(self, names: Iterable[str] | None) -> None:
        """Set the capabilities; None restores those of the options."""
        self._capabilities = names

    def incoming(self) -> set[str]:
        """Return the ids of shares and snapshots being copied here."""
        return {name for name, _ in self._backend.state.incoming.records()}

    # The first phase

    def choose_share_server_compatible_for_migration(
        self, share_servers: Sequence[base.ShareServerMapping]
    ) -> base.ShareServerMapping | None:
        return next(
            (server for server in share_servers if server['id'] == self._target), None
        )

    def share_server_migration_check_compatibility(
        self, share_server: base.ShareServerMapping, dest_host: str
    ) -> ServerMigrationCompatibility:
        options = self._backend.options.dummy_driver_server_migration_offers
        offered = set(options if self._capabilities is None else self._capabilities)
        source = self._source_state(share_server)
        compatible = (
            source is not None
            and 'compatible' in offered
            and self._backend.options.driver_handles_share_servers
            and source.servers.find(share_server['id']) is not None
            and self._reaches_replicas(source, share_server['id'])
        )
        pool = Host.parse(dest_host).pool
        if pool and pool not in self._backend.options.dummy_driver_pools:
            compatible = False
        return ServerMigrationCompatibility(
            compatible=compatible,
            writable=compatible and 'writable' in offered,
            nondisruptive=compatible and 'nondisruptive' in offered,
            preserve_snapshots=compatible and 'preserve_snapshots' in offered,
            migration_cancel=compatible and 'migration_cancel' in offered,
            migration_get_progress=compatible and 'migration_get_progress' in offered,
        )

    def share_server_migration_start(
        self,
        src_share_server: base.ShareServerMapping,
        dest_share_server: base.ShareServerMapping,
    ) -> ServerMigrationStartReply:
        source = self._source(src_share_server)
        server_id = dest_share_server['id']
        with self._backend.lock:
            server = self._backend.state.servers.find(server_id)
            if server is None:
                # Without addresses of its own it takes over the source's.
                server = _record_of(source.servers, src_share_server['id'])
                self._backend.state.servers.put(server_id, server)
            if self._backend.state.migrations.find(server_id) is None:
                self._backend.faults.midway()
                self._backend.state.migrations.put(server_id, {'done': 0})
        return {
            'backend_details': {
                'server_id': server_id,
                'identifier': server['identifier'],
                'primary_public_ip': ','.join(server['addresses']),
            }
        }

    def share_server_migration_continue(self, migration: ServerMigration) -> bool:
        source = self._source(migration.src_share_server)
        server_id = migration.dest_share_server['id']
        steps = self._backend.options.dummy_driver_server_migration_steps
        with self._backend.lock:
            done = _record_of(self._backend.state.migrations, server_id)['done'] + 1
            for share in migration.shares:
                self._backend.state.incoming.put(
                    share['id'],
                    _record_of(source.shares, share['id']) | {'to': server_id},
                )
            self._backend.faults.midway()
            for snapshot in migration.snapshots:
                self._backend.state.incoming.put(
                    snapshot['id'],
                    _record_of(source.snapshots, snapshot['id']) | {'to': server_id},
                )
            self._backend.state.migrations.put(server_id, {'done': min(done, steps)})
        return done >= steps

    def share_server_migration_get_progress(
        self, dest_share_server: base.ShareServerMapping
    ) -> dict[str, int]:
        steps = self._backend.options.dummy_driver_server_migration_steps
        done = _record_of(self._backend.state.migrations, dest_share_server['id'])[
            'done'
        ]
        return {'total_progress': 100 * done // steps}

    def share_server_migration_cancel(self, migration: ServerMigration) -> None:
        with self._backend.lock:
            self._discard_copies(
                migration.dest_share_server['id'], migration.shares, migration.snapshots
            )

    # The second phase

    def share_server_migration_complete(
        self, migration: ServerMigration
    ) -> ServerMigrationCompleteReply:
        source = self._source(migration.src_share_server)
        server = _record_of(
            self._backend.state.servers, migration.dest_share_server['id']
        )
        with self._backend.lock:
            share_updates = {
                share['id']: self._move_share(
                    source, share, migration.dest_share_server, server
                )
                for share in migration.shares
            }
            self._backend.faults.midway()
            snapshot_updates = {
                snapshot['id']: self._move_snapshot(source, snapshot, server)
                for snapshot in migration.snapshots
            }
            self._discard_copies(
                migration.dest_share_server['id'], migration.shares, migration.snapshots
            )
            # Everything is here: the source can be removed.
            for share in migration.shares:
                source.shares.drop(share['id'])
                source.access.remove(share['id'])
            for snapshot in migration.snapshots:
                source.snapshots.drop(snapshot['id'])
                source.snapshot_access.remove(snapshot['id'])
        return {'share_updates': share_updates, 'snapshot_updates': snapshot_updates}

    def _move_share(
        self,
        source: DummyState,
        share: base.ShareForDriver,
        destination: base.ShareServerMapping,
        server: records.Record,
    ) -> Any:
        record = source.shares.find(share['id'])
        if record is not None:  # else an earlier call has moved it
            self._backend.state.access.copy_from(share['id'], source.access)
            self._backend.state.shares.put(
                share['id'],
                record
                | {
                    'server': destination['id'],
                    'addresses': server['addresses'],
                    'admin_addresses': server['admin_addresses'],
                    'pool': self._pool_of(destination, record['pool']),
                },
            )
        record = _record_of(self._backend.state.shares, share['id'])
        return {'export_locations': share_exports(record), 'pool_name': record['pool']}

    def _pool_of(self, destination: base.ShareServerMapping, current: str) -> str:
        """Return the requested pool, one of the same name, or any pool."""
        pools = self._backend.options.dummy_driver_pools
        wanted = Host.parse(destination['host']).pool or current
        return wanted if wanted in pools else pools[0]

    def _move_snapshot(
        self,
        source: DummyState,
        snapshot: base.SnapshotForDriver,
        server: records.Record,
    ) -> Any:
        record = source.snapshots.find(snapshot['id'])
        if record is not None:
            self._backend.state.snapshot_access.copy_from(
                snapshot['id'], source.snapshot_access
            )
            self._backend.state.snapshots.put(
                snapshot['id'],
                record
                | {
                    'addresses': server['addresses'],
                    'admin_addresses': server['admin_addresses'],
                },
            )
        record = _record_of(self._backend.state.snapshots, snapshot['id'])
        return {
            'provider_location': record['export'],
            'export_locations': snapshot_exports(record),
        }

    # Both phases

    def _reaches_replicas(self, source: DummyState, server_id: str) -> bool:
        """Whether replicas on the server stay in their replication domain."""
        domain = self._backend.domain
        membership = domain and {
            'path': str(domain.path),
            'style': self._backend.replication_type,
        }
        return source.domain() == membership or not any(
            record.get('server') == server_id and 'replica_of' in record
            for _, record in source.shares.records()
        )

    def _discard_copies(
        self, server_id: str, shares: ShareList, snapshots: SnapshotList
    ) -> None:
        for each in (*shares, *snapshots):
            record = self._backend.state.incoming.find(each['id'])
            if record is not None and record['to'] == server_id:
                self._backend.state.incoming.drop(each['id'])
        self._backend.state.migrations.drop(server_id)

    def _source(self, server: base.ShareServerMapping) -> DummyState:
        state = self._source_state(server)
        if state is None:
            raise exception.ShareBackendException(
                msg=f'{server["host"]} is not a known dummy back end'
            )
        return state

    def _source_state(self, server: base.ShareServerMapping) -> DummyState | None:
        """Return the state of the source, or None if it is not a dummy."""
        configuration = self._backend.options.for_backend(
            Host.parse(server['host']).backend
        )
        if configuration is None or configuration.share_driver != 'dummy':
            return None
        return DummyState(configuration.dummy_driver_state_path)


def _record_of(folder: records.RecordFolder, name: str) -> records.Record:
    record = folder.find(name)
    if record is None:
        raise exception.ShareBackendException(msg=f'{name} does not exist')
    return record
