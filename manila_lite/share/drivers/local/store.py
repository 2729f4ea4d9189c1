"""Where the local driver keeps what, and who may work on it.

    root/shares/<share>/data            what users see and use
    root/shares/<share>/share.json      size and protocol, beside the data
    root/snapshots/<snapshot>/data, snapshot.json
    root/exports/<share or snapshot>.exports     for an NFS server
    root/exports/<share or snapshot>.smb         for Samba
    root/exports/smb.conf                        names those for Samba
    root/work/<share or snapshot>/      being made, or being removed

What is kept of a replica besides is told in `local_replicas`.

A share or snapshot appears and disappears by one rename from or to
`work`, so at any moment it is there in full or not at all. What a killed
process left in `work` goes with the next verb on the same name.

A share that was there before lies where it lay: its record names the
directory. Of one that was let go, `unmanaged.json` keeps the record.
"""

from collections.abc import Iterator
import contextlib
import fcntl
import os
import pathlib
import re

from manila_lite.share.drivers import records
from manila_lite.share.drivers.local import samba
from manila_lite.share.drivers.local import trees

SHARES, SNAPSHOTS = 'shares', 'snapshots'
REPLICA, KNOWN, FOLLOWER = 'replica.json', 'known.json', 'follower-'

_PARTS = (SHARES, SNAPSHOTS, 'exports', 'work')
_RECORDS = {SHARES: 'share.json', SNAPSHOTS: 'snapshot.json'}
_UNMANAGED = 'unmanaged.json'
_LOCK = '.managing'  # no share has such a name
_SAMBA_LOCK = '.samba'
_SIZE = re.compile(r'[1-9][0-9]{0,8}')


class LocalItem:
    """The place of one share or snapshot, whether it is there or not."""

    def __init__(self, root: pathlib.Path, kind: str, name: str):
        self._root = root
        self.kind = kind
        self.name = records.checked_file_name(name)
        self.path = root / kind / self.name
        self.exports = root / 'exports' / f'{self.name}.exports'
        self.samba = root / 'exports' / f'{self.name}.smb'

    def find(self) -> records.Record | None:
        """The record of what is here and managed."""
        return records.find(self.path / _RECORDS[self.kind])

    def find_unmanaged(self) -> records.Record | None:
        """The record of what was let go."""
        return records.find(self.path / _UNMANAGED)

    def note(self, record: records.Record) -> None:
        """Change the record, for good."""
        records.write(self.path / _RECORDS[self.kind], record, durable=True)

    def publish(self, work: pathlib.Path, record: records.Record) -> None:
        """Have the work appear here, for good."""
        records.write(work / _RECORDS[self.kind], record, durable=True)
        work.rename(self.path)
        records.sync_directory(self.path.parent)

    def directory(self, record: records.Record) -> str:
        """The way to the data from the root."""
        return record.get('directory') or f'{self.kind}/{self.name}/data'

    def data(self, record: records.Record) -> pathlib.Path:
        return self._root / self.directory(record)

    def let_go(self) -> None:
        """Manage it no longer; the data stays where it is."""
        with contextlib.suppress(FileNotFoundError):
            (self.path / _RECORDS[self.kind]).rename(self.path / _UNMANAGED)
            records.sync_directory(self.path)

    def forget(self) -> None:
        """It was let go, and is another's now: so is who may use it."""
        self.exports.unlink(missing_ok=True)
        self.samba.unlink(missing_ok=True)
        for path in (
            self.path / _UNMANAGED,
            self.path / REPLICA,
            self.path / KNOWN,
            *self.path.glob(f'{FOLLOWER}*'),
        ):
            path.unlink(missing_ok=True)
        with contextlib.suppress(OSError):  # there may be data in it
            self.path.rmdir()


class LocalStore:
    """All of it below one root."""

    def __init__(self, root: pathlib.Path):
        self.root = root

    def make(self) -> None:
        """Have every part there; raises OSError where one is of no use."""
        for part in _PARTS:
            (self.root / part).mkdir(parents=True, exist_ok=True)
            probe = self.root / part / f'.probe-{os.getpid()}'
            probe.touch()
            probe.unlink(missing_ok=True)
        # Trees that are no longer anybody's are handled in there.
        (self.root / 'work').chmod(0o700)

    def share(self, name: str) -> LocalItem:
        return LocalItem(self.root, SHARES, name)

    def snapshot(self, name: str) -> LocalItem:
        return LocalItem(self.root, SNAPSHOTS, name)

    def homes(self, kind: str) -> Iterator[LocalItem]:
        for name in sorted(os.listdir(self.root / kind)):
            if not name.startswith('.'):
                yield LocalItem(self.root, kind, name)

    # Work

    @contextlib.contextmanager
    def work(self, name: str) -> Iterator[pathlib.Path]:
        """A directory to work on that name in, alone and from scratch."""
        top = self.root / 'work' / records.checked_file_name(name)
        with _only_one_at_work(top), _from_scratch(top) as work:
            yield work

    @contextlib.contextmanager
    def work_if_free(self, name: str) -> Iterator[pathlib.Path | None]:
        """The same; None when somebody is at work on that name already."""
        top = self.root / 'work' / records.checked_file_name(name)
        try:
            held = _try_to_hold(top, fcntl.LOCK_NB)
        except BlockingIOError:
            held = None
        if held is None:
            yield None
            return
        try:
            with _from_scratch(top) as work:
                yield work
        finally:
            os.close(held)

    def is_at_work(self, name: str) -> bool:
        """Whether somebody works on that name, or was killed at it."""
        return (self.root / 'work' / records.checked_file_name(name)).exists()

    @contextlib.contextmanager
    def managing(self) -> Iterator[None]:
        """Be the only one who takes over what is there."""
        with self._alone(_LOCK):
            yield

    @contextlib.contextmanager
    def _alone(self, name: str) -> Iterator[None]:
        top = self.root / 'work' / name
        with _only_one_at_work(top):
            try:
                yield
            finally:
                top.rmdir()

    def remove(self, home: LocalItem) -> None:
        """Remove what is managed here; gone, or let go, is success."""
        with self.work(home.name) as work:
            record = home.find()
            if record is not None:
                if 'directory' in record:
                    with contextlib.suppress(FileNotFoundError):
                        trees.move(
                            self._all_of(record['directory']), work / 'data'
                        )
                home.path.rename(work / 'removed')
        self.shut(home)

    def _all_of(self, directory: str) -> pathlib.Path:
        """A directory, or the whole place that was made for it."""
        part, *_, last = pathlib.PurePath(directory).parts
        if part in _RECORDS and last == 'data':
            return (self.root / directory).parent
        return self.root / directory

    # Who comes in

    def shut(self, home: LocalItem) -> None:
        """Have servers let nobody in."""
        home.exports.unlink(missing_ok=True)
        if home.samba.exists():
            home.samba.unlink(missing_ok=True)
            self._name_for_samba()

    def open(self, home: LocalItem, file: pathlib.Path, text: str) -> None:
        """Have a server read this in a file of a share or snapshot."""
        records.write_text(file, text, durable=True, via=home.path)
        if file == home.samba:
            self._name_for_samba()

    def _name_for_samba(self) -> None:
        """Name every file: Samba includes no pattern, as others do."""
        folder = self.root / 'exports'
        with self._alone(_SAMBA_LOCK):
            files = sorted(folder.glob('*.smb'))
            if files:
                records.write_text(
                    folder / 'smb.conf',
                    samba.format_index(files),
                    durable=True,
                    via=self.root / 'work',
                )
            else:
                (folder / 'smb.conf').unlink(missing_ok=True)

    # What was there before

    def directory_at(self, kind: str, path: str) -> str:
        """The way from the root to a directory that may be taken over.

        Raises ValueError with the reason when there is none.
        """
        way = pathlib.PurePath(path)
        if not way.is_relative_to(self.root) or '..' in way.parts:
            raise ValueError(f'it is not within {self.root}')
        steps = way.relative_to(self.root).parts
        if any(ord(letter) < ord(' ') for letter in path):
            raise ValueError('its path has letters that cannot be printed')
        if steps[:1] == (kind,):
            if len(steps) != 3 or steps[2] != 'data':
                raise ValueError(f'only the data in {kind} can be managed')
        elif not steps or steps[0] in _PARTS:
            raise ValueError('it holds what the driver needs')
        try:
            one_piece = trees.is_one_file_system(self.root, steps)
        except OSError as error:
            raise ValueError(
                f'it cannot be reached without links: {error.strerror}'
            ) from error
        if not one_piece:
            raise ValueError(f'it is on another file system than {self.root}')
        directory = '/'.join(steps)
        self._check_overlap(directory)
        return directory

    def _check_overlap(self, directory: str) -> None:
        mine = pathlib.PurePath(directory)
        for kind in _RECORDS:
            for home in self.homes(kind):
                record = home.find()
                if record is None:
                    continue
                other = pathlib.PurePath(home.directory(record))
                if mine.is_relative_to(other) or other.is_relative_to(mine):
                    raise ValueError(f'{other} is managed already')

    def let_go(self, kind: str, directory: str) -> list[LocalItem]:
        """Where a directory was managed before."""
        found = []
        for home in self.homes(kind):
            record = home.find_unmanaged()
            if record is not None and home.directory(record) == directory:
                found.append(home)
        return found


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


@contextlib.contextmanager
def _from_scratch(top: pathlib.Path) -> Iterator[pathlib.Path]:
    """A new directory within one that is held; both go in the end."""
    for left_behind in top.iterdir():
        trees.remove_tree(left_behind)
    try:
        work = top / 'new'
        work.mkdir()
        yield work
    finally:
        trees.remove_tree(top)


def _try_to_hold(top: pathlib.Path, how: int = 0) -> int | None:
    """The directory, open and locked; None if it went meanwhile.

    Raises BlockingIOError if that is not to be waited for.
    """
    with contextlib.suppress(FileExistsError):
        top.mkdir()  # exist_ok would look twice and stumble over the gap
    try:
        held = os.open(top, os.O_RDONLY)
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(held, fcntl.LOCK_EX | how)
    except BaseException:
        os.close(held)
        raise
    # The one before us removes the directory when it is done.
    with contextlib.suppress(FileNotFoundError):
        if os.path.samestat(os.fstat(held), os.stat(top)):
            return held
    os.close(held)
    return None


def managed_size(size: int, used: int, asked: object | None) -> int:
    """The GiB something is taken over with: as asked, or as it was.

    Raises ValueError when it holds more, or the asked is no size.
    """
    gib = 1024**3
    needed = max(1, -(-used // gib))
    if asked is not None:
        if not _SIZE.fullmatch(str(asked)):
            raise ValueError(f'{asked!r} is no size in GiB')
        size = int(str(asked))
        if size < needed:
            raise ValueError(f'it holds {needed} GiB, not {size}')
    return max(size, needed)
