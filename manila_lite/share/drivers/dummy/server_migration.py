"""Share servers of the dummy back end that come from another one.

The state of the source is found by the section of its back end, which
stands in the configuration of every share service. While it is copied
everything lies apart, where no inventory shows it.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from manila_lite import exception
from manila_lite.context import RequestContext
from manila_lite.share.drivers import base
from manila_lite.share.drivers import records
from manila_lite.share.drivers.contract.server_migrations import (
    ServerMigrationCompatibility,
)
from manila_lite.share.drivers.contract.server_migrations import (
    ServerMigrationCompleteReply,
)
from manila_lite.share.drivers.contract.server_migrations import (
    ServerMigrationStartReply,
)
from manila_lite.share.drivers.dummy import faults
from manila_lite.share.drivers.dummy import state as remembered
from manila_lite.share.drivers.dummy.instrumentation import InstrumentedDriver
from manila_lite.share.drivers.dummy.instrumentation import export_locations

_CAPABILITIES = (
    'writable',
    'nondisruptive',
    'preserve_snapshots',
    'migration_cancel',
    'migration_get_progress',
)

ShareList = Sequence[base.ShareForDriver]
SnapshotList = Sequence[base.SnapshotForDriver]


class DummyServerMigration(InstrumentedDriver):
    _adopted: str | None = None
    _offered: Iterable[str] | None = None

    # What tests do

    def set_migration_target(self, server_id: str | None) -> None:
        """Have migrations go to this server, if it is offered."""
        self._adopted = server_id

    def set_migration_capabilities(self, names: Iterable[str] | None) -> None:
        """Be capable of these only; None: of what the options say."""
        self._offered = names

    def incoming(self) -> set[str]:
        """The ids of shares and snapshots that are being copied here."""
        return {name for name, _ in self._state.incoming.records()}

    # The first phase

    @faults.instrumented
    def choose_share_server_compatible_for_migration(
        self,
        context: RequestContext,
        share_servers: Sequence[base.ShareServerMapping],
        src_share_server: base.ShareServerMapping,
        shares: ShareList,
        snapshots: SnapshotList,
    ) -> base.ShareServerMapping | None:
        return next(
            (
                server
                for server in share_servers
                if server['id'] == self._adopted
            ),
            None,
        )

    @faults.instrumented
    def share_server_migration_check_compatibility(
        self,
        context: RequestContext,
        share_server: base.ShareServerMapping,
        dest_host: str,
        old_share_network: Mapping[str, Any],
        new_share_network: Mapping[str, Any],
        shares_request_spec: Mapping[str, Any],
    ) -> ServerMigrationCompatibility:
        option = self.configuration.dummy_driver_server_migration_offers
        offered = set(option if self._offered is None else self._offered)
        source = self._source_state(share_server)
        compatible = (
            source is not None
            and 'compatible' in offered
            and self.driver_handles_share_servers
            and source.servers.find(share_server['id']) is not None
        )
        pool = dest_host.partition('#')[2]
        if pool and pool not in self.configuration.dummy_driver_pools:
            compatible = False
        return ServerMigrationCompatibility(
            compatible=compatible,
            writable=compatible and 'writable' in offered,
            nondisruptive=compatible and 'nondisruptive' in offered,
            preserve_snapshots=compatible and 'preserve_snapshots' in offered,
            migration_cancel=compatible and 'migration_cancel' in offered,
            migration_get_progress=compatible
            and 'migration_get_progress' in offered,
        )

    @faults.instrumented
    def share_server_migration_start(
        self,
        context: RequestContext,
        src_share_server: base.ShareServerMapping,
        dest_share_server: base.ShareServerMapping,
        shares: ShareList,
        snapshots: SnapshotList,
    ) -> ServerMigrationStartReply:
        source = self._source(src_share_server)
        here = dest_share_server['id']
        with self._lock:
            server = self._state.servers.find(here)
            if server is None:
                # Without addresses of its own it takes over those there.
                server = _record_of(source.servers, src_share_server['id'])
                self._state.servers.put(here, server)
            if self._state.migrations.find(here) is None:
                self.faults.midway()
                self._state.migrations.put(here, {'done': 0})
        return {
            'backend_details': {
                'server_id': here,
                'identifier': server['identifier'],
                'primary_public_ip': ','.join(server['addresses']),
            }
        }

    @faults.instrumented
    def share_server_migration_continue(
        self,
        context: RequestContext,
        src_share_server: base.ShareServerMapping,
        dest_share_server: base.ShareServerMapping,
        shares: ShareList,
        snapshots: SnapshotList,
    ) -> bool:
        source = self._source(src_share_server)
        here = dest_share_server['id']
        steps = self.configuration.dummy_driver_server_migration_steps
        with self._lock:
            done = _record_of(self._state.migrations, here)['done'] + 1
            for share in shares:
                self._state.incoming.put(
                    share['id'],
                    _record_of(source.shares, share['id']) | {'to': here},
                )
            self.faults.midway()
            for snapshot in snapshots:
                self._state.incoming.put(
                    snapshot['id'],
                    _record_of(source.snapshots, snapshot['id'])
                    | {'to': here},
                )
            self._state.migrations.put(here, {'done': min(done, steps)})
        return done >= steps

    @faults.instrumented
    def share_server_migration_get_progress(
        self,
        context: RequestContext,
        src_share_server: base.ShareServerMapping,
        dest_share_server: base.ShareServerMapping,
        shares: ShareList,
        snapshots: SnapshotList,
    ) -> dict[str, int]:
        steps = self.configuration.dummy_driver_server_migration_steps
        done = _record_of(self._state.migrations, dest_share_server['id'])[
            'done'
        ]
        return {'total_progress': 100 * done // steps}

    @faults.instrumented
    def share_server_migration_cancel(
        self,
        context: RequestContext,
        src_share_server: base.ShareServerMapping,
        dest_share_server: base.ShareServerMapping,
        shares: ShareList,
        snapshots: SnapshotList,
    ) -> None:
        with self._lock:
            self._forget(dest_share_server['id'], shares, snapshots)

    # The second phase

    @faults.instrumented
    def share_server_migration_complete(
        self,
        context: RequestContext,
        src_share_server: base.ShareServerMapping,
        dest_share_server: base.ShareServerMapping,
        shares: ShareList,
        snapshots: SnapshotList,
        new_network_info: Sequence[base.NetworkInfo],
    ) -> ServerMigrationCompleteReply:
        source = self._source(src_share_server)
        server = _record_of(self._state.servers, dest_share_server['id'])
        with self._lock:
            share_updates = {
                share['id']: self._take_share(
                    source, share, dest_share_server, server
                )
                for share in shares
            }
            self.faults.midway()
            snapshot_updates = {
                snapshot['id']: self._take_snapshot(source, snapshot, server)
                for snapshot in snapshots
            }
            self._forget(dest_share_server['id'], shares, snapshots)
            # All is here: from now on the source may go.
            for share in shares:
                source.shares.drop(share['id'])
                source.access.forget(share['id'])
            for snapshot in snapshots:
                source.snapshots.drop(snapshot['id'])
                source.snapshot_access.forget(snapshot['id'])
        return {
            'share_updates': share_updates,
            'snapshot_updates': snapshot_updates,
        }

    def _take_share(
        self,
        source: remembered.DummyState,
        share: base.ShareForDriver,
        here: base.ShareServerMapping,
        server: records.Record,
    ) -> Any:
        record = source.shares.find(share['id'])
        if record is not None:  # or a call before this one has taken it
            self._state.access.take(share['id'], source.access)
            self._state.shares.put(
                share['id'],
                record
                | {
                    'server': here['id'],
                    'addresses': server['addresses'],
                    'admin_addresses': server['admin_addresses'],
                    'pool': self._pool_of(here, record['pool']),
                },
            )
        record = _record_of(self._state.shares, share['id'])
        return {
            'export_locations': export_locations(record, 'shares'),
            'pool_name': record['pool'],
        }

    def _pool_of(self, here: base.ShareServerMapping, before: str) -> str:
        """The pool that was asked for, one of the same name, or any."""
        pools = self.configuration.dummy_driver_pools
        wanted = here['host'].partition('#')[2] or before
        return wanted if wanted in pools else pools[0]

    def _take_snapshot(
        self,
        source: remembered.DummyState,
        snapshot: base.SnapshotForDriver,
        server: records.Record,
    ) -> Any:
        record = source.snapshots.find(snapshot['id'])
        if record is not None:
            self._state.snapshot_access.take(
                snapshot['id'], source.snapshot_access
            )
            self._state.snapshots.put(
                snapshot['id'],
                record
                | {
                    'addresses': server['addresses'],
                    'admin_addresses': server['admin_addresses'],
                },
            )
        record = _record_of(self._state.snapshots, snapshot['id'])
        return {
            'provider_location': record['export'],
            'export_locations': export_locations(record, 'snapshots'),
        }

    # Both

    def _forget(
        self, here: str, shares: ShareList, snapshots: SnapshotList
    ) -> None:
        for one in (*shares, *snapshots):
            self._state.incoming.drop(one['id'])
        self._state.migrations.drop(here)

    def _source(
        self, server: base.ShareServerMapping
    ) -> remembered.DummyState:
        state = self._source_state(server)
        if state is None:
            raise exception.ShareBackendException(
                msg=f'{server["host"]} is no dummy back end that is known here'
            )
        return state

    def _source_state(
        self, server: base.ShareServerMapping
    ) -> remembered.DummyState | None:
        """What the other back end remembers; None when it is no dummy."""
        there = self.configuration.for_backend(
            server['host'].partition('@')[2]
        )
        if there is None or there.share_driver != 'dummy':
            return None
        return remembered.DummyState(there.dummy_driver_state_path)


def _record_of(folder: records.RecordFolder, name: str) -> records.Record:
    record = folder.find(name)
    if record is None:
        raise exception.ShareBackendException(msg=f'there is no {name}')
    return record
