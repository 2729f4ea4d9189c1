"""Plain directories of this machine as shares: no root, nothing to set up.

    root/shares/<share>/data            what users see and use
    root/shares/<share>/share.json      size and protocol, beside the data
    root/snapshots/<snapshot>/data, snapshot.json
    root/work/<share or snapshot>/      being made, or being removed

A share or snapshot appears and disappears by one rename from or to
`work`, so at any moment it is there in full or not at all. What a killed
process left in `work` goes with the next verb on the same name. Sizes are
promises: plain directories have no quota. A snapshot of a share in use
holds each file as it was when its turn came.
"""

from collections.abc import Iterable, Iterator, Mapping
import contextlib
import fcntl
import os
import pathlib
import tempfile
from typing import Any

from manila_lite import exception
from manila_lite.context import RequestContext
from manila_lite.share.drivers import base
from manila_lite.share.drivers import records
from manila_lite.share.drivers import trees

GIB = 1024 ** 3


class LocalDriver(base.ShareDriver, base.CreateFromSnapshotSupport,
                  base.RevertSupport):

    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__(False, *args, **kwargs)
        self._root = pathlib.Path(self.configuration.local_root)
        self._capacity_gb: float | None = self.configuration.local_capacity_gb

    # Start

    def check_for_setup_error(self) -> None:
        """Refuse a root that is not an absolute path of ours to write."""
        if not self._root.is_absolute():
            raise self._bad_root('is not an absolute path')
        try:
            for part in ('shares', 'snapshots', 'work'):
                (self._root / part).mkdir(parents=True, exist_ok=True)
                tempfile.TemporaryFile(dir=self._root / part).close()
            # Trees that are no longer anybody's are handled in there.
            (self._root / 'work').chmod(0o700)
        except OSError as error:
            raise self._bad_root(f'cannot be used: {error}') from error

    def _bad_root(self, reason: str) -> exception.BadConfiguration:
        return exception.BadConfiguration(
            reason=f'back end "{self.configuration.config_group}": '
                   f'local_root {self._root} {reason}')

    def get_backend_info(self, context: RequestContext) -> dict[str, str]:
        return {'root': str(self._root)}

    def ensure_shares(self, context: RequestContext,
                      shares: Iterable[base.ShareForDriver],
                      ) -> dict[str, base.EnsureAnswer]:
        return {share['id']: self._ensured(share) for share in shares}

    def _ensured(self, share: base.ShareForDriver) -> base.EnsureAnswer:
        try:
            status = self.get_share_status(share)
        except exception.ShareResourceNotFound:
            return {'status': 'error'}
        return {'status': status['status'],
                'export_locations': status['export_locations']}

    def ensure_share(self, context: RequestContext,
                     share: base.ShareForDriver,
                     share_server: base.ShareServer | None = None,
                     ) -> base.ExportLocationsAnswer:
        return self.get_share_status(share)['export_locations']

    def get_pool(self, share: base.ShareForDriver) -> str:
        return self.backend_name

    # Shares

    def create_share(self, context: RequestContext,
                     share: base.ShareForDriver,
                     share_server: base.ShareServer | None = None,
                     ) -> base.ExportLocationsAnswer:
        place = self._share(share['name'])
        with self._work(share['name']) as work:
            if not place.exists():
                (work / 'data').mkdir()
                self._publish_share(work, place, share)
        return _export_locations(place)

    def create_share_from_snapshot(
            self, context: RequestContext, share: base.ShareForDriver,
            snapshot: base.SnapshotForDriver,
            share_server: base.ShareServer | None = None,
            parent_share: base.ShareForDriver | None = None,
            ) -> base.ExportLocationsAnswer:
        place = self._share(share['name'])
        with self._work(share['name']) as work:
            if not place.exists():
                saved, _ = self._saved(snapshot)
                trees.copy_tree(saved, work / 'data')
                self._publish_share(work, place, share)
        return _export_locations(place)

    def _publish_share(self, work: pathlib.Path, place: pathlib.Path,
                       share: base.ShareForDriver) -> None:
        records.write(work / 'share.json', {
            'size': share['size'], 'share_proto': share['share_proto']},
            durable=True)
        _publish(work, place)

    def delete_share(self, context: RequestContext,
                     share: base.ShareForDriver,
                     share_server: base.ShareServer | None = None) -> None:
        self._remove(self._share(share['name']))

    def extend_share(self, share: base.ShareForDriver, new_size: int,
                     share_server: base.ShareServer | None = None) -> None:
        record = self._record(share['name'])
        if record['size'] < new_size:
            self._note(share['name'], record | {'size': new_size})

    def shrink_share(self, share: base.ShareForDriver, new_size: int,
                     share_server: base.ShareServer | None = None) -> None:
        record = self._record(share['name'])
        if record['size'] <= new_size:
            return
        used = trees.used_bytes(self._share(share['name']) / 'data')
        if used > new_size * GIB:
            raise exception.ShareShrinkingPossibleDataLoss(
                share_id=share['id'])
        self._note(share['name'], record | {'size': new_size})

    def get_share_status(self, share: base.ShareForDriver,
                         share_server: base.ShareServer | None = None,
                         ) -> base.StatusAnswer:
        record = self._record(share['name'])
        place = self._share(share['name'])
        whole = 'reverting_to' not in record and (place / 'data').is_dir()
        return {'status': 'available' if whole else 'error',
                'size': record['size'],
                'share_proto': record['share_proto'],
                'export_locations': _export_locations(place)}

    # Snapshots

    def create_snapshot(self, context: RequestContext,
                        snapshot: base.SnapshotForDriver,
                        share_server: base.ShareServer | None = None,
                        ) -> base.SnapshotAnswer:
        place = self._snapshot(snapshot['name'])
        with self._work(snapshot['name']) as work:
            if not place.exists():
                record = self._record(snapshot['share_name'])
                trees.copy_tree(self._share(snapshot['share_name']) / 'data',
                                work / 'data')
                records.write(work / 'snapshot.json',
                              {'size': record['size']}, durable=True)
                _publish(work, place)
        _, size = self._saved(snapshot)
        return {'provider_location': snapshot['name'], 'size': size}

    def delete_snapshot(self, context: RequestContext,
                        snapshot: base.SnapshotForDriver,
                        share_server: base.ShareServer | None = None,
                        ) -> None:
        self._remove(self._snapshot(snapshot['name']))

    def get_snapshot_status(self, snapshot: base.SnapshotForDriver,
                            share_server: base.ShareServer | None = None,
                            ) -> base.StatusAnswer:
        _, size = self._saved(snapshot)
        return {'status': 'available', 'size': size}

    def revert_to_snapshot(self, context: RequestContext,
                           snapshot: base.SnapshotForDriver,
                           share_access_rules: list[Mapping[str, Any]],
                           snapshot_access_rules: list[Mapping[str, Any]],
                           share_server: base.ShareServer | None = None,
                           ) -> int:
        """Put the content of the snapshot into the directory of the share.

        The copy is made first: when there is no room for it, nothing has
        changed yet. Until the last file is in place the share says error.
        """
        name = snapshot['share_name']
        record = self._record(name)
        data = self._share(name) / 'data'
        saved, size = self._saved(snapshot)
        with self._work(name) as work:
            trees.copy_tree(saved, work / 'data')
            (work / 'old').mkdir()
            self._note(name, record | {'reverting_to': snapshot['name']})
            trees.move_content(data, work / 'old')
            trees.move_content(work / 'data', data)
            trees.copy_attributes(saved, data)
            self._note(name, {'size': size,
                              'share_proto': record['share_proto']})
        return size

    # Statistics

    def _update_share_stats(self, data: base.Stats | None = None) -> None:
        disk = os.statvfs(self._root)
        total = disk.f_blocks * disk.f_frsize / GIB
        free = disk.f_bavail * disk.f_frsize / GIB
        if self._capacity_gb is not None:
            total = min(total, self._capacity_gb)
        promised = sum(self._promised())
        pool = self.capacity_rules() | {
            'pool_name': self.backend_name,
            'total_capacity_gb': round(total, 2),
            'free_capacity_gb': round(min(free, total), 2),
            'allocated_capacity_gb': promised,
            'provisioned_capacity_gb': promised,
            'thin_provisioning': True,
        }
        super()._update_share_stats({
            'vendor_name': 'manila_lite',
            'storage_protocol': 'NFS_CIFS',
            'pools': [pool],
            **(data or {}),
        })

    def _promised(self) -> Iterator[int]:
        for name in os.listdir(self._root / 'shares'):
            record = records.find(self._root / 'shares' / name
                                  / 'share.json')
            if record is not None:  # not deleted meanwhile
                yield record['size']

    # Files

    def _share(self, name: str) -> pathlib.Path:
        return self._root / 'shares' / records.safe(name)

    def _snapshot(self, name: str) -> pathlib.Path:
        return self._root / 'snapshots' / records.safe(name)

    def _record(self, share_name: str) -> records.Record:
        record = records.find(self._share(share_name) / 'share.json')
        if record is None:
            raise exception.ShareResourceNotFound(share_id=share_name)
        return record

    def _note(self, share_name: str, record: records.Record) -> None:
        records.write(self._share(share_name) / 'share.json', record,
                      durable=True)

    def _saved(self, snapshot: base.SnapshotForDriver
               ) -> tuple[pathlib.Path, int]:
        """The content of a snapshot, and the size of the share then."""
        place = self._snapshot(snapshot['name'])
        record = records.find(place / 'snapshot.json')
        if record is None:
            raise exception.ShareBackendException(
                msg=f'there is no snapshot {snapshot["name"]}')
        return place / 'data', record['size']

    @contextlib.contextmanager
    def _work(self, name: str) -> Iterator[pathlib.Path]:
        """A directory to work on that name in, alone and from scratch."""
        top = self._root / 'work' / records.safe(name)
        with _only_one_at_work(top):
            for left_behind in top.iterdir():
                trees.remove_tree(left_behind)
            try:
                work = top / 'new'
                work.mkdir()
                yield work
            finally:
                trees.remove_tree(top)

    def _remove(self, place: pathlib.Path) -> None:
        with (self._work(place.name) as work,
              contextlib.suppress(FileNotFoundError)):
            place.rename(work / 'removed')


@contextlib.contextmanager
def _only_one_at_work(top: pathlib.Path) -> Iterator[None]:
    """Make a directory and hold it, against other processes as well.

    The kernel lets go of it when the process is killed.
    """
    held = None
    while held is None:
        held = _try_to_hold(top)
    try:
        yield
    finally:
        os.close(held)


def _try_to_hold(top: pathlib.Path) -> int | None:
    """The directory, open and locked; None if it went meanwhile."""
    with contextlib.suppress(FileExistsError):
        top.mkdir()  # exist_ok would look twice and stumble over the gap
    try:
        held = os.open(top, os.O_RDONLY)
    except FileNotFoundError:
        return None
    fcntl.flock(held, fcntl.LOCK_EX)
    # The one before us removes the directory when it is done.
    with contextlib.suppress(FileNotFoundError):
        if os.path.samestat(os.fstat(held), os.stat(top)):
            return held
    os.close(held)
    return None


def _publish(work: pathlib.Path, place: pathlib.Path) -> None:
    """Have the work appear in its place, for good."""
    work.rename(place)
    records.sync_directory(place.parent)


def _export_locations(place: pathlib.Path) -> list[base.ExportLocation]:
    return [{'path': str(place / 'data'), 'is_admin_only': False,
             'metadata': {'preferred': 'True'}}]
