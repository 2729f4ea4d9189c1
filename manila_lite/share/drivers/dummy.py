"""A back end that is only remembered: the instrument of tests.

What it made is kept on disk, so that it survives the end of the process.
Any method can be told to take its time, to fail before, half-way through
or after its work, or to hang: by options, or by the `…_next` methods.
"""

from collections.abc import Callable, Iterable, Mapping
import pathlib
import threading
import time
from typing import Any

from manila_lite import exception
from manila_lite.context import RequestContext
from manila_lite.share.drivers import base
from manila_lite.share.drivers import faults
from manila_lite.share.drivers import records

_ADDRESS = '10.0.0.10'
_ADMIN_ADDRESS = '10.0.0.20'
# Name of a metadata item with which a share tells how full it is.
USED_GB = 'dummy_used_gb'


def inventory(state_path: str | pathlib.Path) -> dict[str, int]:
    """Sizes by share instance id of what a dummy back end holds.

    It is read from outside, whether the driver is running or not.
    """
    return {share_id: record['size'] for share_id, record
            in _shares(state_path).records()}


def _shares(state_path: str | pathlib.Path) -> records.Folder:
    return records.Folder(pathlib.Path(state_path, 'shares'))


class DummyDriver(base.ShareDriver, base.CreateFromSnapshotSupport,
                  base.RevertSupport):

    def __init__(self, *args: Any,
                 sleep: Callable[[float], object] = time.sleep,
                 **kwargs: Any):
        super().__init__((True, False), *args, **kwargs)
        option = self.configuration
        self._state_path = pathlib.Path(option.dummy_driver_state_path)
        self._shares = _shares(self._state_path)
        self._snapshots = records.Folder(self._state_path / 'snapshots')
        self._pools: list[str] = option.dummy_driver_pools
        self._lock = threading.RLock()  # read, change and write a record
        self.faults = faults.Faults(
            faults.observed_methods(type(self)),
            delay=option.dummy_driver_default_driver_method_delay,
            delays={method: float(delay) for method, delay in
                    option.dummy_driver_driver_methods_delays.items()},
            sleep=sleep)
        self.fail_next = self.faults.fail_next
        self.half_fail_next = self.faults.half_fail_next
        self.lose_answer_next = self.faults.lose_answer_next
        self.hang_next = self.faults.hang_next
        self._order_configured_faults()

    def _order_configured_faults(self) -> None:
        option = self.configuration
        try:
            for method, times in option.dummy_driver_fail_methods.items():
                self.fail_next(method,
                               None if times == 'always' else int(times))
            for method in option.dummy_driver_hang_methods:
                self.hang_next(method, times=None)
            for method in option.dummy_driver_answer_lost_methods:
                self.lose_answer_next(method, times=None)
        except ValueError as error:
            raise exception.BadConfiguration(
                reason=f'back end "{option.config_group}": a '
                       f'dummy_driver_*_methods option: {error}') from error

    # What tests look at

    @property
    def calls(self) -> list[faults.Call]:
        """The last calls, oldest first."""
        return self.faults.calls

    def inventory(self) -> dict[str, int]:
        """Sizes by share instance id of what is really there."""
        return inventory(self._state_path)

    def write(self, share_id: str, content: str, used_gb: float = 0) -> None:
        """Put content into a share, as its users do."""
        with self._lock:
            record = self._record(share_id)
            self._shares.put(share_id, record | {'content': content,
                                                 'used_gb': used_gb})

    def read(self, share_id: str) -> str:
        """The content of a share."""
        return self._record(share_id)['content']

    # Start

    @faults.observed
    def do_setup(self, context: RequestContext) -> None:
        self._state_path.mkdir(parents=True, exist_ok=True)

    @faults.observed
    def check_for_setup_error(self) -> None:
        if not self._pools:
            raise exception.BadConfiguration(
                reason='dummy_driver_pools names no pool')

    @faults.observed
    def get_backend_info(self, context: RequestContext) -> dict[str, str]:
        return {'state_path': str(self._state_path)}

    @faults.observed
    def ensure_shares(self, context: RequestContext,
                      shares: Iterable[base.ShareForDriver],
                      ) -> dict[str, base.EnsureAnswer]:
        return {share['id']: self._ensured(share) for share in shares}

    def _ensured(self, share: base.ShareForDriver) -> base.EnsureAnswer:
        if self._shares.find(share['id']) is None:
            return {'status': 'error'}
        return {'export_locations': _export_locations(share)}

    @faults.observed
    def ensure_share(self, context: RequestContext,
                     share: base.ShareForDriver,
                     share_server: base.ShareServer | None = None,
                     ) -> base.ExportLocationsAnswer:
        self._record(share['id'])
        return _export_locations(share)

    @faults.observed
    def get_pool(self, share: base.ShareForDriver) -> str:
        record = self._shares.find(share['id'])
        return record['pool'] if record else self._pool_for(share)

    def _pool_for(self, share: base.ShareForDriver) -> str:
        _, _, pool = (share['host'] or '').partition('#')
        return pool or self._pools[0]

    # Shares

    @faults.observed
    def create_share(self, context: RequestContext,
                     share: base.ShareForDriver,
                     share_server: base.ShareServer | None = None,
                     ) -> base.ExportLocationsAnswer:
        return self._make(share, content='', used_gb=0)

    @faults.observed
    def create_share_from_snapshot(
            self, context: RequestContext, share: base.ShareForDriver,
            snapshot: base.SnapshotForDriver,
            share_server: base.ShareServer | None = None,
            parent_share: base.ShareForDriver | None = None,
            ) -> base.ExportLocationsAnswer:
        source = self._snapshot_record(snapshot)
        return self._make(share, content=source['content'],
                          used_gb=source['used_gb'])

    def _make(self, share: base.ShareForDriver, content: str,
              used_gb: float) -> base.ExportLocationsAnswer:
        with self._lock:
            record = self._shares.find(share['id'])
            if record is None or record['status'] == 'error':
                record = {'size': share['size'],
                          'share_proto': share['share_proto'],
                          'pool': self._pool_for(share),
                          'content': content, 'used_gb': used_gb}
                self._shares.put(share['id'], record | {'status': 'error'})
                self.faults.midway()
                self._shares.put(share['id'],
                                 record | {'status': 'available'})
        return _export_locations(share)

    @faults.observed
    def delete_share(self, context: RequestContext,
                     share: base.ShareForDriver,
                     share_server: base.ShareServer | None = None) -> None:
        with self._lock:
            record = self._shares.find(share['id'])
            if record is not None:
                self._shares.put(share['id'], record | {'status': 'error'})
                self.faults.midway()
                self._shares.drop(share['id'])

    @faults.observed
    def extend_share(self, share: base.ShareForDriver, new_size: int,
                     share_server: base.ShareServer | None = None) -> None:
        with self._lock:
            record = self._record(share['id'])
            if record['size'] < new_size:
                self._shares.put(share['id'], record | {'size': new_size})

    @faults.observed
    def shrink_share(self, share: base.ShareForDriver, new_size: int,
                     share_server: base.ShareServer | None = None) -> None:
        with self._lock:
            record = self._record(share['id'])
            if record['size'] <= new_size:
                return
            if new_size < max(record['used_gb'],
                              float(share['metadata'].get(USED_GB, 0))):
                raise exception.ShareShrinkingPossibleDataLoss(
                    share_id=share['id'])
            self._shares.put(share['id'], record | {'size': new_size})

    @faults.observed
    def get_share_status(self, share: base.ShareForDriver,
                         share_server: base.ShareServer | None = None,
                         ) -> base.StatusAnswer:
        record = self._record(share['id'])
        return {'status': record['status'], 'size': record['size'],
                'share_proto': record['share_proto'],
                'export_locations': _export_locations(share)}

    def _record(self, share_id: str) -> records.Record:
        record = self._shares.find(share_id)
        if record is None:
            raise exception.ShareResourceNotFound(share_id=share_id)
        return record

    # Snapshots

    @faults.observed
    def create_snapshot(self, context: RequestContext,
                        snapshot: base.SnapshotForDriver,
                        share_server: base.ShareServer | None = None,
                        ) -> base.SnapshotAnswer:
        with self._lock:
            record = self._snapshots.find(snapshot['id'])
            if record is None:
                record = self._record(snapshot['share_instance_id'])
                self._snapshots.put(snapshot['id'], record)
        return {'provider_location': snapshot['name'],
                'size': record['size']}

    @faults.observed
    def delete_snapshot(self, context: RequestContext,
                        snapshot: base.SnapshotForDriver,
                        share_server: base.ShareServer | None = None,
                        ) -> None:
        self._snapshots.drop(snapshot['id'])

    @faults.observed
    def get_snapshot_status(self, snapshot: base.SnapshotForDriver,
                            share_server: base.ShareServer | None = None,
                            ) -> base.StatusAnswer:
        record = self._snapshot_record(snapshot)
        return {'status': 'available', 'size': record['size']}

    @faults.observed
    def revert_to_snapshot(self, context: RequestContext,
                           snapshot: base.SnapshotForDriver,
                           share_access_rules: list[Mapping[str, Any]],
                           snapshot_access_rules: list[Mapping[str, Any]],
                           share_server: base.ShareServer | None = None,
                           ) -> int:
        with self._lock:
            self._record(snapshot['share_instance_id'])
            saved = self._snapshot_record(snapshot)
            self._shares.put(snapshot['share_instance_id'],
                             saved | {'status': 'error'})
            self.faults.midway()
            self._shares.put(snapshot['share_instance_id'], saved)
        return saved['size']

    def _snapshot_record(self, snapshot: base.SnapshotForDriver
                         ) -> records.Record:
        record = self._snapshots.find(snapshot['id'])
        if record is None:
            raise exception.ShareBackendException(
                msg=f'there is no snapshot {snapshot["id"]}')
        return record

    # Statistics

    @faults.observed
    def _update_share_stats(self, data: base.Stats | None = None) -> None:
        super()._update_share_stats({
            'vendor_name': 'manila_lite',
            'storage_protocol': 'NFS_CIFS',
            'pools': self._get_pools_info(),
            **(data or {}),
        })

    @faults.observed
    def _get_pools_info(self) -> list[base.Stats]:
        allocated = dict.fromkeys(self._pools, 0)
        for _, record in self._shares.records():
            # A pool may have been taken out of the configuration.
            allocated[record['pool']] = (
                allocated.get(record['pool'], 0) + record['size'])
        return [self._pool_stats(pool, allocated[pool])
                for pool in self._pools]

    def _pool_stats(self, pool: str, allocated: int) -> base.Stats:
        total = self.configuration.dummy_driver_capacity_gb
        free = self.configuration.dummy_driver_free_gb
        return self.capacity_rules() | {
            'pool_name': pool,
            'total_capacity_gb': total,
            'free_capacity_gb':
                max(0, total - allocated) if free is None else free,
            'allocated_capacity_gb': allocated,
            'provisioned_capacity_gb': allocated,
            'thin_provisioning': True,
        }


def _export_locations(share: base.ShareForDriver
                      ) -> list[base.ExportLocation]:
    return [_export_location(share, _ADDRESS, is_admin_only=False),
            _export_location(share, _ADMIN_ADDRESS, is_admin_only=True)]


def _export_location(share: base.ShareForDriver, address: str,
                     is_admin_only: bool) -> base.ExportLocation:
    path = (f'\\\\{address}\\{share["name"]}'
            if share['share_proto'] == 'CIFS'
            else f'{address}:/shares/{share["name"]}')
    return {'path': path, 'is_admin_only': is_admin_only,
            'metadata': {'preferred': str(not is_admin_only)}}
