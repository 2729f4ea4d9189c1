"""The file handles of NFS-Ganesha for a btrfs, taken apart and made up."""

from collections.abc import Callable, Iterable, Iterator
import random
import struct
from typing import NamedTuple, Self

from tests.support.nfs_client import NfsClient, NfsError, OpenFile

WITHOUT_PARENT, WITH_PARENT, WITH_PARENT_ROOT = 0x4D, 0x4E, 0x4F
KINDS = WITHOUT_PARENT, WITH_PARENT, WITH_PARENT_ROOT
TOP, FIRST = 5, 256
"""The subvolume at the top of a btrfs, and the first one of others."""

ROOT = 256
"""The inode of the root directory of each subvolume."""

NO_FILE = 0x20
"""The bit of a handle that names no file; see `handle_guard.c`."""

_ANONYMOUS = bytes(16)
_HEAD = struct.Struct('>BBHB')
_INODE, _PARENT = struct.Struct('<QQI'), struct.Struct('<QI')
_PARENT_ROOT = struct.Struct('<Q')
_LENGTHS = (0, 8, 8, 16, 8, 8)
"""The length of the file system's id, by its type."""

_TYPES = 0x1F


class Handle(NamedTuple):
    """What a handle says."""

    version: int
    flags: int
    export: int
    form: int
    file_system: bytes
    kind: int
    inode: int
    subvolume: int
    generation: int

    @classmethod
    def parse(cls, data: bytes) -> Self:
        version, flags, export, _ = _HEAD.unpack_from(data)
        form = data[_HEAD.size]
        start = _HEAD.size + 1
        end = start + _LENGTHS[form & _TYPES]
        numbers = _INODE.unpack_from(data, end + 1)
        return cls(version, flags, export, form, data[start:end], data[end], *numbers)

    def pack(self) -> bytes:
        content = bytes([self.form]) + self.file_system
        if not self.form & NO_FILE:
            content += bytes([self.kind])
            content += _INODE.pack(self.inode, self.subvolume, self.generation)
            if self.kind != WITHOUT_PARENT:
                content += _PARENT.pack(ROOT, 0)
            if self.kind == WITH_PARENT_ROOT:
                content += _PARENT_ROOT.pack(self.subvolume)
        head = _HEAD.pack(self.version, self.flags, self.export, len(content))
        return head + content


def in_subvolume(own: Handle, subvolume: int) -> Iterator[Handle]:
    """Yield handles of a subvolume that claim to be of the own export."""
    for inode in (ROOT, ROOT + 1):
        for kind in KINDS:
            for generation in (0, own.generation):
                yield own._replace(
                    inode=inode, kind=kind, subvolume=subvolume, generation=generation
                )


def of_export(own: Handle, other: Handle) -> Iterator[Handle]:
    """Yield mixtures of handles of two exports that lead to the other."""
    for export in (own.export, other.export, 0, 9999):
        for file_system in (own.file_system, other.file_system, bytes(8)):
            for subvolume in (own.subvolume, other.subvolume):
                mixed = other._replace(
                    export=export, file_system=file_system, subvolume=subvolume
                )
                if mixed[2:8] != own[2:8]:
                    yield mixed
    for flags in (1, 2, 4, 8, 0x80, 0xFF):
        yield other._replace(flags=flags, export=own.export)
    for form in range(0x100):
        kind = form & _TYPES
        if kind < len(_LENGTHS) and form != own.form:
            file_system = other.file_system[:8].ljust(_LENGTHS[kind], b'\0')
            yield other._replace(
                form=form, export=own.export, file_system=file_system[:16]
            )


def damaged(own: Handle, count: int) -> Iterator[bytes]:
    """Yield handles of any content and length, the same ones each time."""
    source = random.Random(count)
    for _ in range(count):
        data = bytearray(own.pack())
        for _ in range(source.randint(1, 4)):
            data[source.randrange(len(data))] = source.randrange(256)
        yield bytes(data[: source.choice((len(data), source.randint(1, 35)))])


def tries(client: NfsClient, handle: bytes) -> Iterator[Callable[[], object]]:
    """Yield all that a client may do with a handle."""
    file = OpenFile(handle, _ANONYMOUS)
    yield lambda: client.size_of(handle)
    yield lambda: client.names_below(handle)
    yield lambda: client.look_up_below(handle, 'owner.json')
    yield lambda: client.look_up_below(handle, 'notes')
    yield lambda: client.look_up_parent(handle)
    yield lambda: client.read_at(file, 0, 100)
    yield lambda: client.write_at(file, 0, b'forged')
    yield lambda: client.open_below(handle, 'notes')
    yield lambda: client.open_below(handle, 'forged', create=True)


def accepted(
    client: NfsClient, handles: Iterable[Handle], *, all_tries: bool = False
) -> list[Handle]:
    """Return the handles with which the server lets a client do something."""
    found = []
    for handle in handles:
        attempts = tries(client, handle.pack())
        for attempt in attempts if all_tries else [next(attempts)]:
            try:
                attempt()
            except NfsError as error:
                refusal = str(error).split()[0]
                assert refusal.removeprefix('NFS4ERR_') in (
                    'STALE',
                    'BADHANDLE',
                    'ACCESS',
                ), refusal
            else:
                found.append(handle)
    return found


def of_cephfs(own: bytes, other: bytes) -> Iterator[bytes]:
    """Yield handles of NFS-Ganesha for a CephFS that lead to another export.

    They have the number of the export, the inode and the snapshot, which is one of
    these numbers for what is no snapshot.
    """
    top = (1).to_bytes(8, 'little'), (1 << 40).to_bytes(8, 'little')
    for inode in (other[5:13], *top):
        for snapshot in (own[13:21], *_SNAPSHOTS):
            for export in (own[2:4], other[2:4]):
                yield own[:2] + export + own[4:5] + inode + snapshot + own[21:]


_SNAPSHOTS = [
    number.to_bytes(8, 'little')
    for number in (0, 1, 2, 3, 4, 5, (1 << 64) - 3, (1 << 64) - 2, (1 << 64) - 1)
]


def replies(client: NfsClient, handle: bytes) -> Iterator[str]:
    """Yield what a server lets a client do with a handle; nothing is right."""
    for attempt in tries(client, handle):
        found = refusal(attempt)
        if found not in ('STALE', 'BADHANDLE', 'ACCESS'):
            yield found or 'done'


def refusal(attempt: Callable[[], object]) -> str | None:
    """Return the name of the error with which a server refuses something."""
    try:
        attempt()
    except NfsError as error:
        return str(error).split()[0].removeprefix('NFS4ERR_')
    return None
