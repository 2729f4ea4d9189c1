"""The dummy driver: a back end without data, made for tests.

Its state is on disk and survives the end of the process. Any method can be
delayed, made to fail before, half-way through or after its work, or made to
hang: by options or with the `…_next` methods.
"""

from collections.abc import Iterable
import pathlib

from manila_lite import exception
from manila_lite.context import RequestContext
from manila_lite.share.drivers import base
from manila_lite.share.drivers import records
from manila_lite.share.drivers.dummy import faults
from manila_lite.share.drivers.dummy import replication_domain
from manila_lite.share.drivers.dummy.managing import share_exports
from manila_lite.share.drivers.dummy.replication import DummyReplication
from manila_lite.share.drivers.dummy.server_migration import (
    DummyServerMigration,
)
from manila_lite.share.drivers.dummy.state import Clients
from manila_lite.share.drivers.dummy.state import DummyState

# Key of the metadata item that sets how full a share is.
USED_GB_KEY = 'dummy_used_gb'
CREATING_FROM_SNAPSHOT = 'creating_from_snapshot'


def inventory(state_path: str | pathlib.Path) -> dict[str, int]:
    """Return the sizes of a back end's shares, by share instance id.

    It reads the state from outside, whether or not the driver is running.
    """
    return _sizes(DummyState(state_path).shares)


def snapshot_inventory(state_path: str | pathlib.Path) -> dict[str, int]:
    """Return the sizes of snapshots, by snapshot instance id."""
    return _sizes(DummyState(state_path).snapshots)


def replica_inventory(
    state_path: str | pathlib.Path,
) -> dict[str, replication_domain.DummyReplica]:
    """Return role, version and sync state of replicas by their ids."""
    return replication_domain.list_replicas(DummyState(state_path))


def access_inventory(state_path: str | pathlib.Path) -> Clients:
    """Return the clients that have access, by share instance id.

    A client is its type, its name as given, and its level. Shares without
    clients are left out, as are replicas that deny all clients. Read-only
    replicas have no other level.
    """
    state = DummyState(state_path)
    return replication_domain.effective_clients(
        state, state.access.inventory()
    )


def snapshot_access_inventory(state_path: str | pathlib.Path) -> Clients:
    """Return the clients that have access, by snapshot instance id."""
    state = DummyState(state_path)
    return replication_domain.effective_snapshot_clients(
        state, state.snapshot_access.inventory()
    )


def server_inventory(state_path: str | pathlib.Path) -> dict[str, list[str]]:
    """Return the addresses of its share servers, by share server id."""
    return {
        name: [*record['addresses'], *record['admin_addresses']]
        for name, record in DummyState(state_path).servers.records()
    }


def servers_of_shares(state_path: str | pathlib.Path) -> dict[str, str]:
    """Return the share server of each share, by share instance id."""
    return {
        name: record['server']
        for name, record in DummyState(state_path).shares.records()
        if record.get('server')
    }


def _sizes(folder: records.RecordFolder) -> dict[str, int]:
    return {name: record['size'] for name, record in folder.records()}


class DummyDriver(
    DummyReplication, DummyServerMigration, base.CreateFromSnapshotSupport
):
    # Inspection by tests

    def inventory(self) -> dict[str, int]:
        """Return the sizes of existing shares, by share instance id."""
        return inventory(self._state.path)

    def snapshot_inventory(self) -> dict[str, int]:
        """Return the sizes of existing snapshots, by snapshot instance id."""
        return snapshot_inventory(self._state.path)

    def access_inventory(self) -> Clients:
        """Return the effective clients, by share instance id."""
        return access_inventory(self._state.path)

    def snapshot_access_inventory(self) -> Clients:
        """Return the effective clients, by snapshot instance id."""
        return snapshot_access_inventory(self._state.path)

    def replica_inventory(self) -> dict[str, replication_domain.DummyReplica]:
        """Return the existing replicas, by share instance id."""
        return replica_inventory(self._state.path)

    def server_inventory(self) -> dict[str, list[str]]:
        """Return the addresses of servers, by share server id."""
        return server_inventory(self._state.path)

    def write(self, share_id: str, content: str, used_gb: float = 0) -> None:
        """Write content to a share, as its users do."""
        with self._lock:
            self._change_content(share_id, content, used_gb)

    def read(self, share_id: str) -> str:
        """Return the content of a share, visible to its users or not."""
        with self._lock:
            self._catch_up(share_id)
            return self._record(share_id)['content']

    def set_error(self, share_id: str) -> None:
        """Put a share into error, even while it is being created."""
        with self._lock:
            self._state.shares.put(
                share_id, self._record(share_id) | {'status': 'error'}
            )

    # Start

    @faults.instrumented
    def do_setup(self, context: RequestContext) -> None:
        self._state.path.mkdir(parents=True, exist_ok=True)
        self._register_backend()

    @faults.instrumented
    def check_for_setup_error(self) -> None:
        if not self.configuration.dummy_driver_pools:
            raise exception.BadConfiguration(
                reason='dummy_driver_pools is empty'
            )

    @faults.instrumented
    def get_backend_info(self, context: RequestContext) -> dict[str, str]:
        return {'state_path': str(self._state.path)}

    @faults.instrumented
    def ensure_shares(
        self, context: RequestContext, shares: Iterable[base.ShareForDriver]
    ) -> dict[str, base.EnsureReply]:
        return {share['id']: self._ensure_reply(share) for share in shares}

    def _ensure_reply(self, share: base.ShareForDriver) -> base.EnsureReply:
        record = self._state.shares.find(share['id'])
        if record is None:
            return {'status': 'error'}
        return {'export_locations': share_exports(record)}

    @faults.instrumented
    def ensure_share(
        self,
        context: RequestContext,
        share: base.ShareForDriver,
        share_server: base.ShareServerMapping | None = None,
    ) -> base.ExportLocationsReply:
        return share_exports(self._record(share['id']))

    @faults.instrumented
    def get_pool(self, share: base.ShareForDriver) -> str:
        record = self._state.shares.find(share['id'])
        return record['pool'] if record else self._pool_for(share)

    # Shares

    @faults.instrumented
    def create_share(
        self,
        context: RequestContext,
        share: base.ShareForDriver,
        share_server: base.ShareServerMapping | None = None,
    ) -> base.ExportLocationsReply:
        return share_exports(
            self._create(share, share_server, content='', used_gb=0)
        )

    @faults.instrumented
    def create_share_from_snapshot(
        self,
        context: RequestContext,
        share: base.ShareForDriver,
        snapshot: base.SnapshotForDriver,
        share_server: base.ShareServerMapping | None = None,
        parent_share: base.ShareForDriver | None = None,
    ) -> base.ExportLocationsReply | base.NewShareReply:
        source = self._snapshot_record(snapshot['id'])
        record = self._create(
            share,
            share_server,
            content=source['content'],
            used_gb=source['used_gb'],
            steps=self.configuration.dummy_driver_from_snapshot_steps,
        )
        if record['status'] == CREATING_FROM_SNAPSHOT:
            return {
                'status': CREATING_FROM_SNAPSHOT,
                'export_locations': share_exports(record),
            }
        return share_exports(record)

    def _create(
        self,
        share: base.ShareForDriver,
        share_server: base.ShareServerMapping | None,
        content: str,
        used_gb: float,
        steps: int = 0,
    ) -> records.Record:
        with self._lock:
            record = self._state.shares.find(share['id'])
            if record is None or record['status'] == 'error':
                record = self._new_record(
                    share, share_server, content, used_gb
                ) | self._replica_fields(share)
                self._state.shares.put(share['id'], record)
                self.faults.midway()
                record |= (
                    {
                        'status': CREATING_FROM_SNAPSHOT,
                        'steps': steps,
                        'done': 0,
                    }
                    if steps
                    else {'status': 'available'}
                )
                self._state.shares.put(share['id'], record)
        return record

    @faults.instrumented
    def delete_share(
        self,
        context: RequestContext,
        share: base.ShareForDriver,
        share_server: base.ShareServerMapping | None = None,
    ) -> None:
        with self._lock:
            record = self._state.shares.find(share['id'])
            if record is not None:
                self._state.shares.put(
                    share['id'], record | {'status': 'error'}
                )
                self.faults.midway()
            self._state.access.remove(share['id'])
            self._state.shares.drop(share['id'])
            self._leave_domain(share)

    @faults.instrumented
    def extend_share(
        self,
        share: base.ShareForDriver,
        new_size: int,
        share_server: base.ShareServerMapping | None = None,
    ) -> None:
        with self._lock:
            record = self._current_record(share['id'])
            self._put_replicated(
                share['id'], record | {'size': max(record['size'], new_size)}
            )

    @faults.instrumented
    def shrink_share(
        self,
        share: base.ShareForDriver,
        new_size: int,
        share_server: base.ShareServerMapping | None = None,
    ) -> None:
        with self._lock:
            record = self._current_record(share['id'])
            used_gb = max(
                record['used_gb'], float(share['metadata'].get(USED_GB_KEY, 0))
            )
            if new_size < min(record['size'], used_gb):
                raise exception.ShareShrinkingPossibleDataLoss(
                    share_id=share['id']
                )
            self._put_replicated(
                share['id'], record | {'size': min(record['size'], new_size)}
            )

    @faults.instrumented
    def get_share_status(
        self,
        share: base.ShareForDriver,
        share_server: base.ShareServerMapping | None = None,
    ) -> base.StatusReply:
        with self._lock:
            record = self._record(share['id'])
            if record['status'] == CREATING_FROM_SNAPSHOT:
                record = _advance(record)
                self._state.shares.put(share['id'], record)
        reply: base.StatusReply = {
            'status': record['status'],
            'size': record['size'],
            'share_proto': record['share_proto'],
            'export_locations': share_exports(record),
        }
        if record['status'] == CREATING_FROM_SNAPSHOT:
            reply['progress'] = f'{100 * record["done"] // record["steps"]}%'
        return reply

    @faults.instrumented
    def update_access(
        self,
        context: RequestContext,
        share: base.ShareForDriver,
        access_rules: list[base.AccessRuleForDriver],
        add_rules: list[base.AccessRuleForDriver],
        delete_rules: list[base.AccessRuleForDriver],
        update_rules: list[base.AccessRuleForDriver],
        share_server: base.ShareServerMapping | None = None,
    ) -> base.AccessReplies:
        with self._lock:
            if access_rules:
                self._record(share['id'])
            return self._change_access(
                'update_access',
                self._state.access,
                share['id'],
                access_rules,
                add=add_rules,
                delete=delete_rules,
                update=update_rules,
            )

    # Statistics

    @faults.instrumented
    def _update_share_stats(self, data: base.Stats | None = None) -> None:
        super()._update_share_stats(
            {
                'vendor_name': 'manila_lite',
                'storage_protocol': 'NFS_CIFS',
                'pools': self._get_pools_info(),
                **(
                    {'replication_type': self._replication_type}
                    if self._replication_type
                    else {}
                ),
                'share_server_multiple_subnet_support': (
                    self.driver_handles_share_servers
                ),
                **(data or {}),
            }
        )

    @faults.instrumented
    def _get_pools_info(self) -> list[base.Stats]:
        allocated = dict.fromkeys(self.configuration.dummy_driver_pools, 0)
        for _, record in self._state.shares.records():
            # A pool may have been removed from the configuration.
            allocated[record['pool']] = (
                allocated.get(record['pool'], 0) + record['size']
            )
        return [
            self._pool_stats(pool, allocated[pool])
            for pool in self.configuration.dummy_driver_pools
        ]

    def _pool_stats(self, pool: str, allocated: int) -> base.Stats:
        total = self.configuration.dummy_driver_capacity_gb
        free = self.configuration.dummy_driver_free_gb
        return self.capacity_options() | {
            'pool_name': pool,
            'total_capacity_gb': total,
            'free_capacity_gb': max(0, total - allocated)
            if free is None
            else free,
            'allocated_capacity_gb': allocated,
            'provisioned_capacity_gb': allocated,
            'thin_provisioning': True,
        }


def _advance(record: records.Record) -> records.Record:
    """Return the record after one more step of creation."""
    done = record['done'] + 1
    return record | {
        'done': done,
        'status': (
            CREATING_FROM_SNAPSHOT if done < record['steps'] else 'available'
        ),
    }
