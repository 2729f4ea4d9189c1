"""One btrfs file system and the subvolumes of shares and snapshots in it.

    top/shares/<volume>         what users see and use
    top/snapshots/<volume>      read-only
    top/{shares,snapshots}/.new-<volume>     being created
    top/{shares,snapshots}/.trash-<id>       being removed
    top/records/                what they are, see `catalog`
    top/limits/                 their sizes, see `limits`
    top/copies/                 what is sent to other pools, see `copies`
    top/owner.json              whose they are, see `pool_disks`
    top/identity                which disk it is, see `pool_disks`

A volume appears and disappears by one rename. Its size is the limit of its
quota group. Snapshots are read-only and cannot be moved to another directory,
so that both kinds are created and removed beside the others.
"""

from collections.abc import Iterator
import contextlib
import os
import pathlib
import stat
import time

from manila_lite import exception
from manila_lite.share.drivers import records
from manila_lite.share.drivers.btrfs import kernel
from manila_lite.share.drivers.btrfs.catalog import Catalog, Kind
from manila_lite.share.drivers.btrfs.volumes import trash
from manila_lite.share.drivers.btrfs.volumes.limits import Limits, Volume
from manila_lite.share.drivers.space import GIB


def mounted_pool(source: pathlib.Path, target: pathlib.Path) -> pathlib.Path:
    """Mount a device or an image; return the top of the file system.

    The source may also be a directory where the file system is mounted
    already. Raises BadConfiguration if there is no btrfs, and
    StorageUnavailable if it cannot be mounted. The last part of the target is
    the name of the pool.
    """
    try:
        mode = source.stat().st_mode
    except OSError as error:
        raise exception.BadConfiguration(
            reason=f'pool {target.name}: {source}: {error.strerror}'
        ) from error
    if stat.S_ISDIR(mode):
        top = source
    else:
        top = target
        if not is_mounted(target):
            _mount(source, target, loop=stat.S_ISREG(mode))
    if not (is_mounted(top) and kernel.is_subvolume(top)):
        raise exception.BadConfiguration(
            reason=f'pool {target.name}: {top} is not the top of a mounted btrfs'
        )
    return top


def is_mounted(path: pathlib.Path) -> bool:
    """Return whether a path is a mount point."""
    return os.path.ismount(path)


def _mount(source: pathlib.Path, target: pathlib.Path, loop: bool) -> None:
    target.mkdir(parents=True, exist_ok=True)
    try:
        with (
            kernel.loop_device(source) if loop else contextlib.nullcontext(source)
        ) as device:
            kernel.mount(device, target)
    except OSError as error:
        raise exception.StorageUnavailable(
            reason=f'pool {target.name}: {source} cannot be mounted: '
            f'{error.strerror}; the log of the kernel may say more'
        ) from error


_NEW = '.new-'
FREED_WITHIN = 5.0  # seconds
_FREEING_PAUSE = 0.1  # seconds


class Pool:
    """The volumes of one file system, and the catalog of what they are.

    Callers lock the name of a volume before they change it.
    """

    def __init__(self, name: str, top: pathlib.Path):
        self.name = name
        self.top = top
        self.catalog = Catalog(top / 'records')
        self._limits = Limits(top, self.catalog)

    def prepare(self) -> None:
        """Create what is missing of the layout, and count sizes.

        What exists is not written again: the pool may be full.
        """
        for folder in self.folders:
            folder.mkdir(mode=stat.S_IRWXU, exist_ok=True)
        self.protect()
        kernel.enable_quota(self.top)
        kernel.wait_for_sizes(self.top)

    def protect(self) -> bool:
        """Let only root enter the pool; return whether others could."""
        opened = [
            folder
            for folder in (self.top, *self.folders)
            if stat.S_IMODE(folder.stat().st_mode) != stat.S_IRWXU
        ]
        for folder in opened:
            folder.chmod(stat.S_IRWXU)
        return bool(opened)

    @property
    def folders(self) -> list[pathlib.Path]:
        """The directories of volumes, each with its trash."""
        return [self.top / kind for kind in Kind]

    def is_new(self) -> bool:
        """Return whether no driver has used the file system yet."""
        return not (self.top / Kind.SHARE).is_dir()

    def is_read_only(self) -> bool:
        """Return whether it cannot be changed, as after errors of a disk."""
        return bool(os.statvfs(self.top).f_flag & os.ST_RDONLY)

    def free_removed(self, deadline: float) -> bool:
        """Let the kernel free removed volumes; return whether there are any.

        By itself it begins with the next commit, up to 30 s later, and what
        it has freed can be used after another one. `deadline` is one of
        `time.monotonic`.
        """
        try:
            if not self._is_freeing():
                return False
            while self._is_freeing() and time.monotonic() < deadline:
                kernel.commit(self.top)
                time.sleep(_FREEING_PAUSE)
            kernel.commit(self.top)
        except OSError:  # it is not mounted, or fails: the first error says so
            return False
        return True

    def _is_freeing(self) -> bool:
        return trash.has_any(self.folders) or kernel.has_removed(self.top)

    def count_again(self) -> bool:
        """Begin to count sizes that are wrong; return whether they are."""
        if not kernel.has_wrong_sizes(self.top):
            return False
        kernel.count_sizes(self.top)
        return True

    def read(self) -> None:
        """Raise OSError if what is in it cannot be found."""
        for folder in self.folders:
            os.listdir(folder)

    def path(self, kind: Kind, volume: str) -> pathlib.Path:
        return self.top / kind / volume

    def has(self, kind: Kind, volume: str) -> bool:
        """Return whether a volume exists."""
        return kernel.is_subvolume(self.path(kind, volume))

    # Volumes

    def create(self, volume: str, size: int) -> None:
        """Create an empty volume with a size in GiB; keep an existing one."""
        with self._new(Kind.SHARE, volume, size * GIB) as new:
            if new is not None:
                kernel.create_subvolume(new)
                # A share is root's, whichever user the share service is.
                os.chown(new, 0, 0)
                new.chmod(stat.S_IRWXU | stat.S_IRWXG | stat.S_IRWXO)

    def clone(self, snapshot: str, volume: str, size: int) -> None:
        """Create a volume with the content of a snapshot."""
        self.clone_from(self.path(Kind.SNAPSHOT, snapshot), volume, size)

    def clone_from(self, source: pathlib.Path, volume: str, size: int) -> None:
        """Do the same for a snapshot anywhere in the pool."""
        with self._new(Kind.SHARE, volume, size * GIB) as new:
            if new is not None:
                kernel.create_snapshot(source, new, read_only=False)

    def take_snapshot(self, volume: str, snapshot: str) -> None:
        """Create a snapshot, which has the size that the volume has now."""
        source = self.path(Kind.SHARE, volume)
        limit = self.limit_bytes(Kind.SHARE, volume)
        with self._new(Kind.SNAPSHOT, snapshot, limit) as new:
            if new is not None:
                kernel.create_snapshot(source, new, read_only=True)

    def replace(self, volume: str, snapshot: str) -> None:
        """Replace a volume by one with the content and size of a snapshot.

        Clients see it happen in one step. What is open in the old one remains
        usable, but leads nowhere.
        """
        source = self.path(Kind.SNAPSHOT, snapshot)
        new = self.path(Kind.SHARE, _NEW + volume)
        trash.discard(new)
        limit = self.limit_bytes(Kind.SNAPSHOT, snapshot)
        with self._limits.putting(Kind.SHARE, volume, limit):
            kernel.create_snapshot(source, new, read_only=False)
            self._limit(new, limit)
            kernel.exchange(new, self.path(Kind.SHARE, volume))
        trash.discard(new)

    def show(self, volume: str, copy: pathlib.Path, limit: int) -> None:
        """Replace a volume by a read-only one with the content of a copy.

        It has a limit in bytes. Unlike a read-only snapshot of the copy, it
        is not taken for the copy itself by what is received later.
        """
        new = self.path(Kind.SHARE, _NEW + volume)
        trash.discard(new)
        with self._limits.putting(Kind.SHARE, volume, limit):
            kernel.create_snapshot(copy, new, read_only=False)
            self._limit(new, limit)
            kernel.set_read_only(new, True)
            kernel.exchange(new, self.path(Kind.SHARE, volume))
        trash.discard(new)

    def add_snapshot(self, snapshot: str, copy: pathlib.Path, limit: int) -> None:
        """Create a snapshot with the content of a copy."""
        with self._new(Kind.SNAPSHOT, snapshot, limit) as new:
            if new is not None:
                kernel.create_snapshot(copy, new, read_only=False)
                kernel.set_read_only(new, True)

    def discard(self, kind: Kind, volume: str) -> None:
        """Move a volume to the trash; a missing one is success."""
        self.discard_unfinished(kind, volume)
        trash.discard(self.path(kind, volume))
        self._limits.drop(kind, volume)

    @contextlib.contextmanager
    def _new(
        self, kind: Kind, volume: str, limit: int
    ) -> Iterator[pathlib.Path | None]:
        """Provide a path that becomes the volume; None if there is one."""
        if self.has(kind, volume):
            yield None
            return
        new = self.path(kind, _NEW + volume)
        trash.discard(new)  # left behind by a process that was killed
        try:
            with self._limits.putting(kind, volume, limit):
                yield new
                self._limit(new, limit)
                new.rename(self.path(kind, volume))
        except OSError:
            trash.discard(new)
            raise

    # Sizes

    def size_gib(self, kind: Kind, volume: str) -> int:
        """Return the size of a volume in whole GiB, 0 without a limit."""
        return -(-self.limit_bytes(kind, volume) // GIB)

    def used_bytes(self, kind: Kind, volume: str) -> int:
        """Return the bytes of a volume, including the latest writes."""
        kernel.flush(self.top)
        return self._size(self.path(kind, volume)).used

    def limit_bytes(self, kind: Kind, volume: str) -> int:
        """Return the size of a volume, 0 without a limit.

        That of one which has lost its limit is the recorded one.
        """
        limit = self._size(self.path(kind, volume)).limit
        return limit or self._limits.find(kind, volume) or 0

    def set_limit_bytes(self, volume: str, limit: int) -> None:
        self._set_limit(Kind.SHARE, volume, limit)

    def adopt_size(self, volume: str, snapshot: str) -> None:
        """Give a snapshot the size of its volume."""
        self._set_limit(Kind.SNAPSHOT, snapshot, self.limit_bytes(Kind.SHARE, volume))

    def resize(self, volume: str, size: int) -> None:
        self._set_limit(Kind.SHARE, volume, size * GIB)

    def enable_quota(self) -> bool:
        """Count sizes if that was disabled; return whether it was.

        Then there are no limits before they are restored.
        """
        if kernel.has_quota(self.top):
            return False
        kernel.enable_quota(self.top)
        return True

    def differing_limits(self) -> list[Volume]:
        """Return the managed volumes whose limit is not the recorded one."""
        return self._limits.differing()

    def restore_limit(
        self, kind: Kind, volume: str, *, is_trusted: bool
    ) -> kernel.Size | None:
        """Give a volume its recorded limit; return its size then.

        A limit that was not recorded is recorded, and so is another one if
        the records are not trusted. Without a change, the result is None.
        """
        size = self._size(self.path(kind, volume))
        limit = self._limits.find(kind, volume)
        if limit is None or (size.limit and not is_trusted):
            with self._limits.putting(kind, volume, size.limit):
                return None
        if size.limit == limit:
            return None
        self._limit(self.path(kind, volume), limit)
        return kernel.Size(size.used, limit)

    def differing_flags(self) -> list[Volume]:
        """Return writable snapshots, and shares that cannot be written.

        Among these are replicas that follow others.
        """
        read_only = kernel.read_only_subvolumes(self.top)
        return [
            volume
            for subvolume, volume in self._limits.managed().items()
            if (subvolume in read_only) != (volume.kind is Kind.SNAPSHOT)
        ]

    def names_with_nested(self) -> set[str]:
        """Return the names of volumes that have other subvolumes in them."""
        found = kernel.subvolumes_with_nested(self.top)
        managed = self._limits.managed() if found else {}
        return {managed[one].name for one in found & managed.keys()}

    def restore_flag(self, kind: Kind, volume: str, read_only: bool) -> bool:
        """Make a volume read-only or writable; return whether that was a change."""
        path = self.path(kind, volume)
        if kernel.is_read_only(path) is read_only:
            return False
        kernel.set_read_only(path, read_only)
        return True

    def share_sizes(self) -> dict[str, kernel.Size]:
        """Return the sizes of all managed shares by name.

        What was written since the last commit, that is in the last 30
        seconds, may not be counted.
        """
        sizes = kernel.sizes(self.top)
        found = {}
        for name, record in self.catalog.records(Kind.SHARE):
            with contextlib.suppress(FileNotFoundError, KeyError):
                path = self.path(Kind.SHARE, record['volume'])
                found[name] = sizes[kernel.subvolume_id(path)]
        return found

    def capacity_bytes(self) -> tuple[int, int]:
        """Return the size of the file system, and what is free."""
        disk = os.statvfs(self.top)
        return disk.f_blocks * disk.f_frsize, disk.f_bavail * disk.f_frsize

    def free_bytes(self, needed: int) -> int:
        """Return what is free; if that is too little, free what was removed first."""
        _, free = self.capacity_bytes()
        if free < needed and self.free_removed(time.monotonic() + FREED_WITHIN):
            _, free = self.capacity_bytes()
        return free

    def commit(self) -> None:
        """Make what was changed durable."""
        kernel.commit(self.top)

    def commit_new(self, kind: Kind) -> None:
        """Make volumes that were created durable, with limits and records.

        To flush a directory with a new subvolume is to commit the file
        system, since its log cannot have subvolumes. This thread does so,
        while `commit` waits for one of the kernel, which takes longer on a
        busy machine.
        """
        records.sync_directory(self.top / kind)
        # If another commit came between, the record is not in it.
        self.catalog.flush(kind)

    def _size(self, path: pathlib.Path) -> kernel.Size:
        subvolume = kernel.subvolume_id(path)
        return kernel.sizes(self.top, subvolume)[subvolume]

    def _set_limit(self, kind: Kind, volume: str, limit: int) -> None:
        with self._limits.putting(kind, volume, limit):
            self._limit(self.path(kind, volume), limit)

    def _limit(self, path: pathlib.Path, limit: int) -> None:
        kernel.set_limit(self.top, kernel.subvolume_id(path), limit)

    # Leftovers

    def unfinished(self) -> list[tuple[Kind, str]]:
        """Return the volumes whose creation has begun and not ended."""
        return [
            (kind, entry.removeprefix(_NEW))
            for kind in Kind
            for entry in os.listdir(self.top / kind)
            if entry.startswith(_NEW)
        ]

    def discard_unfinished(self, kind: Kind, volume: str) -> None:
        trash.discard(self.path(kind, _NEW + volume))
