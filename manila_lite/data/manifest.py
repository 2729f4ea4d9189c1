"""What a directory holds, as numbers that tell whether it has changed."""

from collections.abc import Callable, Iterator
import hashlib
import os
import stat
import typing

from manila_lite.data.gate import Copying
from manila_lite.share.drivers import trees
from manila_lite.share.drivers.trees import PathParts

_PIECE = 1 << 20
_ZEROS = bytes(_PIECE)
_BLOCK = 512
_DIGEST_SIZE = 32
_UNSTABLE_XATTRS = 'security.'
"""Labels that each machine sets itself, such as those of SELinux."""


class Manifest(typing.NamedTuple):
    """The names below a directory, the sizes of its files, and a digest.

    The digest is of names, kinds, modes, owners, xattrs, links and content,
    but not of times.
    """

    entries: int
    bytes: int
    digest: str


def read(directory: int, how: Copying) -> Manifest:
    """Return the manifest of an open directory; it reads all of it."""
    return _Reading(how).run(directory)


class _Reading:
    def __init__(self, how: Copying):
        self._how = how
        self._entries = self._bytes = 0
        self._digest = hashlib.blake2b(digest_size=_DIGEST_SIZE)
        self._linked: dict[tuple[int, int], bytes] = {}

    def run(self, top: int) -> Manifest:
        for parts, directory, entries in trees.walk(top):
            self._add('/'.join(parts), directory_state(directory))
            for entry in entries:
                self._how.check()
                self._entries += 1
                self._entry(entry, parts, directory)
        return Manifest(self._entries, self._bytes, self._digest.hexdigest())

    def _entry(self, entry: os.DirEntry[str], parts: PathParts, directory: int) -> None:
        path = '/'.join((*parts, entry.name))
        status = entry.stat(follow_symlinks=False)
        if stat.S_ISDIR(status.st_mode):
            self._add(path, b'')
            return
        inode = status.st_dev, status.st_ino
        if status.st_nlink > 1 and inode in self._linked:
            self._add(path, self._linked[inode])
            return
        if stat.S_ISREG(status.st_mode):
            found = self._file(entry.name, directory)
            self._how.on_progress(status.st_blocks * _BLOCK)
        elif stat.S_ISLNK(status.st_mode):
            found = os.fsencode(trees.read_link(entry.name, directory))
        else:
            found = b'%d' % status.st_rdev
        self._add(path, _attributes(status) + found)
        if status.st_nlink > 1:
            self._linked[inode] = os.fsencode(path)

    def _add(self, path: str, state: bytes) -> None:
        for part in (os.fsencode(path), state):
            self._digest.update(b'%d:' % len(part))
            self._digest.update(part)

    def _file(self, name: str, directory: int) -> bytes:
        """Return a digest of the content and the xattrs of a file."""
        digest = hashlib.blake2b(digest_size=_DIGEST_SIZE)
        with trees.opened_file(name, directory) as file:
            size = os.fstat(file).st_size
            self._bytes += size
            digest.update(b'%d:' % size + _xattrs(file))
            for offset, piece in _pieces(file, size, self._how.check):
                digest.update(b'%d:' % offset)
                digest.update(piece)
        return digest.digest()


def directory_state(directory: int) -> bytes:
    """Return what the digest covers of a directory itself."""
    return _attributes(os.fstat(directory)) + _xattrs(directory)


def _attributes(status: os.stat_result) -> bytes:
    return b'%o %d %d ' % (status.st_mode, status.st_uid, status.st_gid)


def _xattrs(file: int) -> bytes:
    names = sorted(
        name
        for name in trees.xattr_names(file)
        if not name.startswith(_UNSTABLE_XATTRS)
    )
    return repr([(name, os.getxattr(file, name)) for name in names]).encode()


def _pieces(
    file: int, size: int, check: Callable[[], object]
) -> Iterator[tuple[int, bytes]]:
    """Yield the pieces of a file that are not all zero, with their offsets.

    Where its holes are makes no difference.
    """
    if size <= _PIECE:
        piece = os.pread(file, size, 0)
        if piece != _ZEROS[: len(piece)]:
            yield 0, piece
        return
    following = 0
    for start, end in trees.data_extents(file, size):
        first = max(start - start % _PIECE, following)
        for offset in range(first, end, _PIECE):
            check()
            piece = os.pread(file, _PIECE, offset)
            following = offset + _PIECE
            if piece != _ZEROS[: len(piece)]:
                yield offset, piece
