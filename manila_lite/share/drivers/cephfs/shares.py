"""Shares of the CephFS driver: subvolumes, and clones of snapshots."""

from collections.abc import Callable, Iterable, Mapping
import contextlib
import errno
from typing import Any

from oslo_log import log
from oslo_utils import timeutils

from manila_lite import exception
from manila_lite.share.drivers import base
from manila_lite.share.drivers.cephfs.backend import (
    MISSING,
    NFS,
    CephfsBackend,
    State,
    owner_key,
    quota_gib,
    removing_orphan,
    require,
)
from manila_lite.share.drivers.cephfs.cluster import CommandFailed, ignoring
from manila_lite.share.drivers.cephfs.copies import CephfsCopies, Snapshot
from manila_lite.share.drivers.cephfs.exports import CephfsExports
from manila_lite.share.drivers.cephfs.records import REPLICA, SHARE, Record, Values
from manila_lite.share.drivers.cephfs.replicas import CephfsPeers
from manila_lite.share.drivers.cephfs.snapshots import SYNC, list_snapshots
from manila_lite.share.drivers.cephfs.users import CEPHX, revoke_all
from manila_lite.share.drivers.space import GIB

LOG = log.getLogger(__name__)

CREATING_FROM_SNAPSHOT = 'creating_from_snapshot'
CLONE_SECONDS = 2.0
"""A call waits so long for a clone; others are polled."""

_CLONE_INTERVAL = 0.1


class CephfsShares:
    """A subvolume each, in the group of the back end."""

    def __init__(
        self,
        backend: CephfsBackend,
        exports: CephfsExports,
        peers: CephfsPeers,
        copies: CephfsCopies,
    ):
        self._backend, self._exports = backend, exports
        self._peers, self._copies = peers, copies

    # Creation

    def create_share(self, share: base.ShareForDriver) -> base.ExportLocationsReply:
        record = self._begin(share)
        if record['state'] == State.CREATING:
            self._backend.order('subvolume create', **self._new_subvolume(share))
            record = self._finish(share, record)
        return self._backend.export_locations(share['share_proto'], record['path'])

    def create_share_from_snapshot(
        self, share: base.ShareForDriver, snapshot: base.SnapshotForDriver
    ) -> base.ExportLocationsReply | base.NewShareReply:
        there = self._peers.at(snapshot.share.host)
        if there is not None and there[0] is not self._backend:
            return self._copy_from(share, snapshot, there[0])
        source = self._backend.get_snapshot(snapshot)
        record = self._begin(share, {'clone': True})
        if record['state'] == State.CREATING:
            self._start_clone(share, record, source)
            if not self._wait_for_clone(record):
                return {'status': CREATING_FROM_SNAPSHOT}
            record = self._finish(share, record)
        return self._backend.export_locations(share['share_proto'], record['path'])

    def _copy_from(
        self,
        share: base.ShareForDriver,
        snapshot: base.SnapshotForDriver,
        there: CephfsBackend,
    ) -> list[base.ExportLocation]:
        """Create a share from a snapshot of another back end."""
        source = there.get_snapshot(snapshot)
        origin = require(
            snapshot['share_id'], there.records.get(SHARE + snapshot['share_name'])
        )
        record = self._begin(share)
        if record['state'] == State.CREATING:
            self._backend.order('subvolume create', **self._new_subvolume(share))
            wanted = Snapshot(there, origin, source['snapshot'])
            with self._removing_orphan(record):
                path = self._backend.find_path(record['subvolume'])
                if path is None:
                    raise exception.ShareResourceNotFound(share_id=share['id'])
                with self._copies.prepared(record | {'path': path}, wanted) as copy:
                    copy.run()
            record = self._finish(share, record)
        return self._backend.export_locations(share['share_proto'], record['path'])

    def _begin(self, share: base.ShareForDriver, more: Record | None = None) -> Record:
        """Record that a share is being created, and return the record.

        The share owns the subvolume before that exists, so that
        another call finds what an interrupted call has left.
        """
        protocols = self._backend.protocols
        if share['share_proto'].upper() not in protocols:
            raise exception.ShareRefused(
                reason=f'it has shares of {" and ".join(protocols)}, not of '
                f'{share["share_proto"]}'
            )
        key, owner = SHARE + share['name'], owner_key(share['name'])

        def decide(values: Values) -> Values:
            if values[key] is not None:
                return {}
            if values[owner] is not None:
                raise exception.ShareBackendException(
                    msg=f'subvolume {share["name"]} belongs to {values[owner]}'
                )
            new = {
                'state': State.CREATING,
                'subvolume': share['name'],
                'size': share['size'],
            }
            return {key: new | (more or {}), owner: share['name']}

        values = self._backend.records.change(key, owner, decide=decide, are_new=True)
        record = values[key]
        if record['state'] in (State.CREATING, State.AVAILABLE):
            return record
        raise exception.ShareBackendException(
            msg=f'share {share["name"]} is {record["state"]}'
        )

    def _new_subvolume(self, share: base.ShareForDriver) -> dict[str, Any]:
        options = self._backend.configuration
        return self._layout() | {
            'sub_name': share['name'],
            'size': share['size'] * GIB,
            'mode': options.cephfs_share_mode,
            'namespace_isolated': True,
        }

    def _layout(self) -> dict[str, Any]:
        pool = self._backend.configuration.cephfs_data_pool
        return {'pool_layout': pool} if pool else {}

    def _start_clone(
        self, share: base.ShareForDriver, record: Record, source: Record
    ) -> None:
        try:
            self._backend.order(
                'subvolume snapshot clone',
                sub_name=source['subvolume'],
                snap_name=source['snapshot'],
                target_sub_name=record['subvolume'],
                target_group_name=self._backend.group,
                **self._layout(),
            )
        except CommandFailed as error:
            if error.errno != errno.EEXIST:  # an earlier call has started it
                self._forget(share)
                raise
        with self._removing_orphan(record):
            self._set_size(share['id'], share['name'], record['size'])

    def _forget(self, share: base.ShareForDriver) -> None:
        """Remove the record of a share of which nothing was created."""
        key, owner = SHARE + share['name'], owner_key(share['name'])

        def decide(values: Values) -> Values:
            record = values[key]
            if record is None or record['state'] != State.CREATING:
                return {}
            return {key: None, owner: None}

        self._backend.records.change(key, owner, decide=decide)

    def _wait_for_clone(self, record: Record) -> bool:
        """Return whether a clone is complete, after a short time."""
        waited = 0.0
        while (state := self._clone(record)['state']) != 'complete':
            if state in ('failed', 'canceled'):
                raise exception.ShareBackendException(
                    msg=f'the clone {record["subvolume"]} is {state}'
                )
            if waited >= CLONE_SECONDS:
                return False
            self._backend.sleep(_CLONE_INTERVAL)
            waited += _CLONE_INTERVAL
        return True

    def _clone(self, record: Record) -> dict[str, Any]:
        """Return the status of a clone as Ceph has it."""
        return self._backend.ask('clone status', clone_name=record['subvolume'])[
            'status'
        ]

    def _finish(self, share: base.ShareForDriver, record: Record) -> Record:
        """Record that a share is complete, and return the record."""
        key = SHARE + share['name']
        with self._removing_orphan(record):
            if 'clone' in record:
                self._backend.resize(record['subvolume'], record['size'])
            path = self._backend.find_path(record['subvolume'])

            def decide(values: Values) -> Values:
                present = require(share['id'], values[key])
                if present['state'] != State.CREATING:
                    return {}
                if path is None:
                    raise exception.ShareResourceNotFound(share_id=share['id'])
                return {
                    key: {
                        'state': State.AVAILABLE,
                        'subvolume': present['subvolume'],
                        'size': present['size'],
                        'path': path,
                    }
                }

            return self._backend.records.change(key, decide=decide)[key]

    def _removing_orphan(
        self, record: Record
    ) -> contextlib.AbstractContextManager[None]:
        name = record['subvolume']
        return removing_orphan(
            self._backend,
            owner_key(name),
            lambda: _remove(self._backend, self._backend.run, name),
        )

    # Deletion

    def delete_share(self, share: base.ShareForDriver) -> None:
        """Remove a subvolume; its data are removed later, by Ceph."""
        key = SHARE + share['name']
        deleting = {'state': State.DELETING}
        record = self._backend.records.update(
            key, lambda record: require(share['id'], record) | deleting
        )
        subvolume = record['subvolume']
        if share['share_proto'].upper() == NFS:
            self._exports.withdraw(subvolume)
        if 'clone' not in record:
            revoke_all(self._backend, subvolume)
        _remove(self._backend, self._backend.order, subvolume)
        ended = key, owner_key(subvolume), REPLICA + share['name']
        self._backend.records.change(*ended, decide=lambda values: dict.fromkeys(ended))

    # Size

    def extend_share(self, share: base.ShareForDriver, new_size: int) -> None:
        record = self._backend.get_share(share)
        info = self._backend.get_info(share['id'], record['subvolume'])
        if (quota_gib(info) or 0) < new_size:
            self._backend.resize(record['subvolume'], new_size)
        self._set_size(share['id'], share['name'], max(quota_gib(info) or 0, new_size))

    def shrink_share(self, share: base.ShareForDriver, new_size: int) -> None:
        """Shrink the quota; Ceph refuses it below what is used.

        What clients have written reaches its count within seconds.
        """
        record = self._backend.get_share(share)
        info = self._backend.get_info(share['id'], record['subvolume'])
        present = quota_gib(info)
        if present is None or present > new_size:
            try:
                self._backend.resize(record['subvolume'], new_size, no_shrink=True)
            except CommandFailed as error:
                if error.errno != errno.EINVAL:
                    raise
                raise exception.ShareShrinkingPossibleDataLoss(
                    share_id=share['id']
                ) from error
            present = new_size
        self._set_size(share['id'], share['name'], present)

    def set_size(self, name: str, size: int) -> None:
        """Give a share a size in GiB that its content fits into."""
        record = self._backend.records.get(SHARE + name)
        if record is not None and record['size'] != size:
            self._backend.resize(record['subvolume'], size)
            self._set_size(name, name, size)

    def _set_size(self, share_id: str, name: str, size: int) -> None:
        self._backend.records.update(
            SHARE + name, lambda record: require(share_id, record) | {'size': size}
        )

    # State

    def get_share_status(self, share: base.ShareForDriver) -> base.StatusReply:
        record = self._backend.get_share(share)
        if record['state'] == State.CREATING and 'clone' in record:
            return self._clone_status(share, record)
        if record['state'] != State.AVAILABLE:
            return {'status': 'error'}
        return self._status(share, record)

    def _status(self, share: base.ShareForDriver, record: Record) -> base.StatusReply:
        info = self._backend.get_info(share['id'], record['subvolume'])
        return {
            'status': 'available',
            'size': quota_gib(info) or record['size'],
            'share_proto': share['share_proto'],
            'export_locations': self._backend.export_locations(
                share['share_proto'], record['path']
            ),
        }

    def _clone_status(
        self, share: base.ShareForDriver, record: Record
    ) -> base.StatusReply:
        """Return the progress of a clone; complete the share when it is done."""
        clone: dict[str, Any] = {'state': 'not started'}
        with ignoring(MISSING):
            clone = self._clone(record)
        if clone['state'] == 'complete':
            return self._status(share, self._finish(share, record))
        if clone['state'] not in ('pending', 'in-progress'):
            LOG.error('Clone %s is %s', record['subvolume'], clone)
            return {'status': 'error'}
        reply: base.StatusReply = {'status': CREATING_FROM_SNAPSHOT}
        # Ceph reports it from release 19 on.
        if percentage := clone.get('progress_report', {}).get('percentage cloned'):
            reply['progress'] = f'{float(str(percentage).rstrip("%")):.0f}%'
        return reply

    def update_share_usage_size(
        self, shares: Iterable[base.ShareForDriver]
    ) -> list[dict[str, Any]]:
        """Return what the shares hold in GiB, as Ceph has counted it.

        With a call for each: Ceph has none for several, and a session of our own
        that could read all counts would hold the group while it is not closed.
        """
        replies = []
        for share in shares:
            with contextlib.suppress(exception.ShareResourceNotFound):
                record = self._backend.get_share(share)
                info = self._backend.get_info(share['id'], record['subvolume'])
                replies.append(
                    {
                        'id': share['id'],
                        'used_size': round(info['bytes_used'] / GIB, 2),
                        'gathered_at': timeutils.utcnow(),
                    }
                )
        return replies

    def get_backend_info(self) -> dict[str, str]:
        options = self._backend.configuration
        return {
            'filesystem': self._backend.filesystem,
            'group': self._backend.group,
            'monitors': self._backend.monitors(),
            'nfs_gateways': ' '.join(options.cephfs_nfs_gateways),
            'nfs_virtual_addresses': ' '.join(options.cephfs_nfs_virtual_addresses),
        }

    def ensure_shares(
        self, shares: Iterable[base.ShareForDriver]
    ) -> dict[str, base.EnsureReply]:
        """Ensure all shares with three calls, whatever their number."""
        records = self._backend.records.get_all(SHARE)
        present = {one['name'] for one in self._backend.ask('subvolume ls')}
        monitors = self._backend.monitors()
        return {
            share['id']: self._ensured(share, records, present, monitors)
            for share in shares
        }

    def _ensured(
        self,
        share: base.ShareForDriver,
        records: Mapping[str, Record],
        present: set[str],
        monitors: str,
    ) -> base.EnsureReply:
        record = records.get(share['name'])
        if (
            record is None
            or record['state'] != State.AVAILABLE
            or record['subvolume'] not in present
        ):
            return {'status': 'error'}
        return {
            'status': 'available',
            'reapply_access_rules': True,
            'export_locations': self._backend.export_locations(
                share['share_proto'], record['path'], monitors
            ),
        }

    def ensure_share(self, share: base.ShareForDriver) -> base.ExportLocationsReply:
        return self.get_share_status(share).get('export_locations')

    def transfer_accept(self, access_rules: base.AccessRules | None = None) -> None:
        """Refuse to give away Ceph users: each belongs to one project."""
        if any(rule['access_type'] == CEPHX for rule in access_rules or ()):
            raise exception.DriverCannotTransferShareWithRules()


def _remove(backend: CephfsBackend, run: Callable[..., str], subvolume: str) -> None:
    """Remove a subvolume if it is there; snapshots that are left are kept.

    `run` sends the commands, of late calls, too, or of no late call.
    """
    with ignoring(MISSING):
        try:
            run('subvolume rm', sub_name=subvolume)
        except CommandFailed as error:
            if error.errno == errno.ENOTEMPTY:
                _remove_with_snapshots(backend, run, subvolume)
            elif error.errno == errno.EAGAIN:
                _remove_clone(run, subvolume)
            else:
                raise


def _remove_with_snapshots(
    backend: CephfsBackend, run: Callable[..., str], subvolume: str
) -> None:
    """Remove it with what synchronisation has made; others are kept."""
    names = {'sub_name': subvolume}
    for name in list_snapshots(backend, subvolume):
        if name.startswith(SYNC):
            run('subvolume snapshot rm', snap_name=name, force=True, **names)
    run('subvolume rm', retain_snapshots=True, **names)


def _remove_clone(run: Callable[..., str], subvolume: str) -> None:
    """Remove a clone that is incomplete, or was when the caller looked."""
    with ignoring(errno.EINVAL, errno.EOPNOTSUPP):
        run('clone cancel', clone_name=subvolume)
    run('subvolume rm', sub_name=subvolume, force=True)
