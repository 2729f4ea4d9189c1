"""A small NFS 4.0 client, which sends from a given address.

Kernels without an NFS client cannot mount, and other clients do not let a
test choose the address. It has what tests of shares need: it looks paths up,
and opens, reads, writes, lists and removes files. Errors have the name of
the status, such as NFS4ERR_ROFS.
"""

from collections.abc import Callable
import itertools
import os
import socket
import struct
from typing import Any, NamedTuple

STATUSES = {
    1: 'PERM',
    2: 'NOENT',
    5: 'IO',
    13: 'ACCESS',
    17: 'EXIST',
    20: 'NOTDIR',
    21: 'ISDIR',
    22: 'INVAL',
    28: 'NOSPC',
    30: 'ROFS',
    69: 'DQUOT',
    70: 'STALE',
    10001: 'BADHANDLE',
    10008: 'DELAY',
    10013: 'GRACE',
    10022: 'STALE_CLIENTID',
    10023: 'STALE_STATEID',
    10025: 'BAD_STATEID',
}
_PROGRAM, _COMPOUND = 100003, 1
_CLOSE, _GETATTR, _GETFH, _LOOKUP, _LOOKUPP = 4, 9, 10, 15, 16
_OPEN, _OPEN_CONFIRM = 18, 20
_PUTFH, _PUTROOTFH, _READ, _READDIR, _REMOVE = 22, 24, 25, 26, 28
_SETCLIENTID, _SETCLIENTID_CONFIRM, _WRITE = 35, 36, 38
_CHUNK = 1 << 18
_LAST_FRAGMENT = 1 << 31

_serial = itertools.count(1)


class NfsError(Exception):
    """The server has refused an operation."""


def _u32(*numbers: int) -> bytes:
    return struct.pack(f'>{len(numbers)}I', *numbers)


def _u64(number: int) -> bytes:
    return struct.pack('>Q', number)


def _opaque(data: bytes) -> bytes:
    return _u32(len(data)) + data + bytes(-len(data) % 4)


class _Reader:
    """The parts of a reply."""

    def __init__(self, data: bytes):
        self._data = data
        self._place = 0

    def raw(self, length: int) -> bytes:
        self._place += length
        return self._data[self._place - length : self._place]

    def u32(self) -> int:
        return struct.unpack('>I', self.raw(4))[0]

    def u64(self) -> int:
        return struct.unpack('>Q', self.raw(8))[0]

    def opaque(self) -> bytes:
        data = self.raw(self.u32())
        self.raw(-len(data) % 4)
        return data

    def bitmap(self) -> list[int]:
        return [self.u32() for _ in range(self.u32())]


class _Operation(NamedTuple):
    number: int
    arguments: bytes = b''
    result: Callable[[_Reader], Any] = lambda reply: None


class OpenFile(NamedTuple):
    """What the server has given for an open file."""

    handle: bytes
    state: bytes


def _handle(handle: bytes) -> _Operation:
    return _Operation(_PUTFH, _opaque(handle))


def _change_info(reply: _Reader) -> None:
    reply.raw(20)


class NfsClient:
    """One connection, as the user with the given id."""

    def __init__(self, host: str, port: int, source: str | None = None, uid: int = 0):
        self._socket = socket.create_connection(
            (host, port), timeout=60, source_address=(source or '', 0)
        )
        self._uid = uid
        self._id = b''

    def close(self) -> None:
        self._socket.close()

    # Paths

    def look_up(self, path: str) -> bytes:
        """Return the handle of a path."""
        names = [name for name in path.split('/') if name]
        return self._compound(
            _Operation(_PUTROOTFH),
            *(_Operation(_LOOKUP, _opaque(name.encode())) for name in names),
            _Operation(_GETFH, result=_Reader.opaque),
        )[-1]

    def look_up_below(self, handle: bytes, name: str) -> bytes:
        """Return the handle of a name in a directory, whatever the name."""
        return self._compound(
            _handle(handle),
            _Operation(_LOOKUP, _opaque(name.encode())),
            _Operation(_GETFH, result=_Reader.opaque),
        )[-1]

    def look_up_parent(self, handle: bytes) -> bytes:
        return self._compound(
            _handle(handle),
            _Operation(_LOOKUPP),
            _Operation(_GETFH, result=_Reader.opaque),
        )[-1]

    def size_of(self, handle: bytes) -> int:
        """Return the size of what a handle names."""

        def size(reply: _Reader) -> int:
            reply.bitmap()
            return struct.unpack('>Q', reply.opaque())[0]

        return self._compound(
            _handle(handle), _Operation(_GETATTR, _u32(1, 1 << 4), size)
        )[-1]

    def names_in(self, path: str) -> set[str]:
        """Return the names in a directory."""
        return self.names_below(self.look_up(path))

    def names_below(self, handle: bytes) -> set[str]:
        """Do the same for a directory that was looked up before."""

        def entries(reply: _Reader) -> bool:
            nonlocal cookie, verifier
            verifier = reply.raw(8)
            while reply.u32():
                cookie = reply.u64()
                names.add(reply.opaque().decode())
                reply.bitmap()
                reply.opaque()
            return bool(reply.u32())

        names: set[str] = set()
        cookie, verifier, is_complete = 0, bytes(8), False
        while not is_complete:
            arguments = _u64(cookie) + verifier + _u32(8192, 32768, 0)
            _, is_complete = self._compound(
                _handle(handle), _Operation(_READDIR, arguments, entries)
            )
        return names

    def remove(self, path: str, name: str) -> None:
        self._compound(
            _handle(self.look_up(path)),
            _Operation(_REMOVE, _opaque(name.encode()), _change_info),
        )

    # Files

    def write(self, path: str, name: str, data: bytes) -> None:
        """Create a file, or write over its beginning."""
        file = self.open(path, name, create=True)
        try:
            for start in range(0, len(data), _CHUNK):
                self.write_at(file, start, data[start : start + _CHUNK])
        finally:
            self.close_file(file)

    def read(self, path: str, name: str) -> bytes:
        file = self.open(path, name)
        try:
            data = b''
            while chunk := self.read_at(file, len(data), _CHUNK):
                data += chunk
            return data
        finally:
            self.close_file(file)

    def open(self, path: str, name: str, create: bool = False) -> OpenFile:
        """Open a file to read it, or create it to write it, too."""
        return self.open_below(self.look_up(path), name, create)

    def open_below(self, folder: bytes, name: str, create: bool = False) -> OpenFile:
        """Do the same in a directory that was looked up before."""

        def opened(reply: _Reader) -> tuple[bytes, bool]:
            state = reply.raw(16)
            reply.raw(20)
            flags = reply.u32()
            reply.bitmap()
            reply.u32()
            return state, bool(flags & 2)

        how = _u32(1, 0, 2, 0, 1 << 1) + _opaque(_u32(0o644)) if create else _u32(0)
        arguments = (
            _u32(1, 3 if create else 1, 0)
            + self._client_id()
            + _opaque(b'owner-%d' % next(_serial))
            + how
            + _u32(0)
            + _opaque(name.encode())
        )
        _, (state, must_confirm), handle = self._compound(
            _handle(folder),
            _Operation(_OPEN, arguments, opened),
            _Operation(_GETFH, result=_Reader.opaque),
        )
        if must_confirm:
            confirm = _Operation(
                _OPEN_CONFIRM, state + _u32(2), lambda reply: reply.raw(16)
            )
            _, state = self._compound(_handle(handle), confirm)
        return OpenFile(handle, state)

    def write_at(self, file: OpenFile, start: int, data: bytes) -> None:
        """Write data so that it is on disk when the call returns."""
        arguments = file.state + _u64(start) + _u32(2) + _opaque(data)
        self._compound(
            _handle(file.handle),
            _Operation(_WRITE, arguments, lambda reply: reply.raw(16)),
        )

    def read_at(self, file: OpenFile, start: int, length: int) -> bytes:
        def content(reply: _Reader) -> bytes:
            reply.u32()
            return reply.opaque()

        arguments = file.state + _u64(start) + _u32(length)
        return self._compound(
            _handle(file.handle), _Operation(_READ, arguments, content)
        )[1]

    def close_file(self, file: OpenFile) -> None:
        self._compound(
            _handle(file.handle),
            _Operation(_CLOSE, _u32(3) + file.state, lambda reply: reply.raw(16)),
        )

    # Calls

    def _client_id(self) -> bytes:
        if not self._id:
            name = b'test-%d-%d' % (os.getpid(), next(_serial))
            arguments = (
                os.urandom(8)
                + _opaque(name)
                + _u32(0)
                + _opaque(b'tcp')
                + _opaque(b'0.0.0.0.0.0')
                + _u32(0)
            )
            ((given, verifier),) = self._compound(
                _Operation(
                    _SETCLIENTID, arguments, lambda reply: (reply.raw(8), reply.raw(8))
                )
            )
            self._compound(_Operation(_SETCLIENTID_CONFIRM, given + verifier))
            self._id = given
        return self._id

    def _compound(self, *operations: _Operation) -> list[Any]:
        """Return the result of each operation."""
        reply = self._call(
            _opaque(b'')
            + _u32(0, len(operations))
            + b''.join(_u32(each[0]) + each[1] for each in operations)
        )
        reply.u32()
        reply.opaque()
        results = []
        for operation, _ in zip(operations, range(reply.u32()), strict=False):
            number, status = reply.u32(), reply.u32()
            if status:
                name = STATUSES.get(status, str(status))
                raise NfsError(f'NFS4ERR_{name} in operation {number}')
            results.append(operation.result(reply))
        return results

    def _call(self, body: bytes) -> _Reader:
        number = next(_serial)
        credential = _u32(0) + _opaque(b'test') + _u32(self._uid, self._uid, 0)
        message = (
            _u32(number, 0, 2, _PROGRAM, 4, _COMPOUND, 1)
            + _opaque(credential)
            + _u32(0, 0)
            + body
        )
        self._socket.sendall(_u32(_LAST_FRAGMENT | len(message)) + message)
        reply = _Reader(self._receive())
        assert reply.u32() == number
        assert reply.u32() == 1  # a reply
        if reply.u32():
            raise NfsError('the server has denied the call')
        reply.u32()
        reply.opaque()
        if reply.u32():
            raise NfsError('the server has not accepted the call')
        return reply

    def _receive(self) -> bytes:
        data, is_last = b'', False
        while not is_last:
            (head,) = struct.unpack('>I', self._receive_exactly(4))
            is_last = bool(head & _LAST_FRAGMENT)
            data += self._receive_exactly(head & ~_LAST_FRAGMENT)
        return data

    def _receive_exactly(self, length: int) -> bytes:
        data = b''
        while len(data) < length:
            chunk = self._socket.recv(length - len(data))
            if not chunk:
                raise ConnectionError('the server has closed the connection')
            data += chunk
        return data
