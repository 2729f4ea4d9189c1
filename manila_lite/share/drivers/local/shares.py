"""Shares of the local driver."""

from collections.abc import Iterable, Iterator
import contextlib

from manila_lite import exception
from manila_lite.share.drivers import base, records, trees
from manila_lite.share.drivers.contract.connections import identity_of
from manila_lite.share.drivers.local.backend import LocalBackend
from manila_lite.share.drivers.local.peers import LocalPeers
from manila_lite.share.drivers.local.store import SHARES, LocalItem, LocalStore
from manila_lite.share.drivers.space import GIB


class LocalShares:
    """Directories below the root, each with its record."""

    def __init__(self, backend: LocalBackend, peers: LocalPeers):
        self._backend = backend
        self._peers = peers

    # No information about the back end says whether directories are still
    # there, so shares are ensured at every start.
    def ensure_shares(
        self, shares: Iterable[base.ShareForDriver]
    ) -> dict[str, base.EnsureReply]:
        return {share['id']: self._ensure_reply(share) for share in shares}

    def _ensure_reply(self, share: base.ShareForDriver) -> base.EnsureReply:
        try:
            status = self.get_share_status(share)
        except exception.ShareResourceNotFound:
            return {'status': 'error'}
        # The export files may have been written for other paths.
        return {
            'status': status['status'],
            'reapply_access_rules': True,
            'export_locations': status['export_locations'],
        }

    def ensure_share(self, share: base.ShareForDriver) -> base.ExportLocationsReply:
        return self.get_share_status(share)['export_locations']

    def create_share(self, share: base.ShareForDriver) -> base.ExportLocationsReply:
        item = self._backend.store.share(share['name'])
        with self._backend.store.locked_work_directory(item.name) as work:
            record = item.find()
            if record is None:
                self._backend.create_data(work / 'data')
                record = _share_record(share)
                item.publish(work, record)
        return self._backend.export_locations(item, record)

    def create_share_from_snapshot(
        self, share: base.ShareForDriver, snapshot: base.SnapshotForDriver
    ) -> base.ExportLocationsReply:
        item = self._backend.store.share(share['name'])
        with self._backend.store.locked_work_directory(item.name) as work:
            record = item.find()
            if record is None:
                source_item, source_record = self._peers.find_snapshot(snapshot)
                trees.copy_tree(source_item.data_path(source_record), work / 'data')
                record = _share_record(share)
                item.publish(work, record)
        return self._backend.export_locations(item, record)

    def delete_share(self, share: base.ShareForDriver) -> None:
        item = self._backend.store.share(share['name'])
        if not self._backend.store.remove(item):
            raise exception.ShareResourceNotFound(share_id=share['id'])

    def extend_share(self, share: base.ShareForDriver, new_size: int) -> None:
        with self._changing(share) as (item, record):
            if record['size'] < new_size:
                item.write_record(record | {'size': new_size})

    def shrink_share(self, share: base.ShareForDriver, new_size: int) -> None:
        with self._changing(share) as (item, record):
            if record['size'] <= new_size:
                return
            if trees.used_bytes(item.data_path(record)) > new_size * GIB:
                raise exception.ShareShrinkingPossibleDataLoss(share_id=share['id'])
            self._backend.store.fencing.check_call()  # counting takes long
            item.write_record(record | {'size': new_size})

    @contextlib.contextmanager
    def _changing(
        self, share: base.ShareForDriver
    ) -> Iterator[tuple[LocalItem, records.Record]]:
        with self._backend.store.locked(share['name']):
            yield self._backend.get_share(share['name'])

    def get_share_status(self, share: base.ShareForDriver) -> base.StatusReply:
        item, record = self._backend.get_share(share['name'])
        data = item.data_path(record)
        is_complete = 'reverting_to' not in record and data.is_dir()
        return {
            'status': 'available' if is_complete else 'error',
            'size': record['size'],
            'share_proto': record['share_proto'],
            'export_locations': self._backend.export_locations(item, record),
        }

    def connection_get_info(self, share: base.ShareForDriver) -> base.ConnectionInfo:
        item, record = self._backend.get_share(share['name'])
        return {'directory': identity_of(item.data_path(record))}

    def provisioned_gb(self) -> int:
        """Return the size of all shares in GiB."""
        return _provisioned_gb(self._backend.store)

    def provisioned_by_others_gb(self) -> int:
        """Return the size of the shares of others on the same file system."""
        device = self._backend.root.stat().st_dev
        return sum(
            _provisioned_gb(store)
            for store in self._peers.other_stores()
            if store.is_on(device)
        )


def _provisioned_gb(store: LocalStore) -> int:
    found = (item.find() for item in store.list_items(SHARES))
    # None if it was deleted meanwhile, or is unmanaged.
    return sum(record['size'] for record in found if record is not None)


def _share_record(share: base.ShareForDriver) -> records.Record:
    return {'size': share['size'], 'share_proto': share['share_proto']}
