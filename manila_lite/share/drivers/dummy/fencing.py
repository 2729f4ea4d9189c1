"""The fencing tokens that a dummy back end has seen, and calls that overlap.

All of it is in files, since several services may serve one back end.
"""

from collections.abc import Iterator
import contextlib
import fcntl
import json
import os
import pathlib
from typing import NamedTuple
import uuid

from manila_lite import exception
from manila_lite.context import FencingToken
from manila_lite.share.drivers import file_locks, records


class Overlap(NamedTuple):
    """Two calls that ran at the same time for different work.

    `pid` is the process of the later call, `during_pid` that of the other.
    """

    resource: str
    method: str
    during: str
    pid: int
    during_pid: int


class RunningCall(NamedTuple):
    method: str
    pid: int


class FencingGate:
    """Refuses calls of workers that have lost their claim.

    Tokens are kept with the state of the back end. When `is_strict` is
    false it accepts every call, like a back end that ignores tokens.
    """

    def __init__(self, path: pathlib.Path, is_strict: bool = True):
        self.path = path
        self.is_strict = is_strict
        self.refused: list[tuple[str, FencingToken]] = []
        self._folder = path / 'fencing'
        self._calls = self._folder / 'calls'
        self._seen = records.RecordFolder(self._folder)

    @property
    def overlaps(self) -> list[Overlap]:
        """Return the overlapping calls of all services on this back end."""
        with contextlib.suppress(FileNotFoundError):
            lines = self._overlaps.read_text().splitlines()
            return [Overlap(*json.loads(line)) for line in lines]
        return []

    def running(self) -> list[RunningCall]:
        """Return the calls that run now, those of stopped processes too."""
        with self._locked():
            found = [
                _find_running(self._calls / name) for name in os.listdir(self._calls)
            ]
        return [
            RunningCall(call['method'], call['pid'])
            for call in found
            if call is not None
        ]

    @property
    def _overlaps(self) -> pathlib.Path:
        return self._folder / 'overlaps'

    @contextlib.contextmanager
    def admitted(self, method: str, token: FencingToken) -> Iterator[None]:
        """Run a call; raise StaleFencingToken after one with a later token.

        A call that runs beside one for other work is an overlap.
        """
        with self._locked():
            self._check(method, token)
            self._note_overlaps(method, token)
            file = self._calls / f'{_name(token)}.{uuid.uuid4().hex}'
            call = _begin(file, method, token)
        try:
            yield
        finally:
            file.unlink(missing_ok=True)
            os.close(call)

    def check(self, method: str, token: FencingToken) -> None:
        """Raise StaleFencingToken if a later call came during this one."""
        with self._locked():
            self._check(method, token)

    def _locked(self) -> contextlib.AbstractContextManager[int]:
        self._calls.mkdir(parents=True, exist_ok=True)
        return file_locks.locked(self._folder / 'lock', file_locks.opened_file)

    def _check(self, method: str, token: FencingToken) -> None:
        seen = (self._seen.find(_name(token)) or {'value': 0})['value']
        if token.value > seen:
            self._seen.put(_name(token), {'value': token.value})
        elif token.value < seen and self.is_strict:
            self.refused.append((method, token))
            raise exception.StaleFencingToken(resource=token.resource, seen=seen)

    def _note_overlaps(self, method: str, token: FencingToken) -> None:
        for name in os.listdir(self._calls):
            if name.rpartition('.')[0] != _name(token):
                continue
            other = _find_running(self._calls / name)
            if other is None or other['value'] == token.value:
                continue
            overlap = Overlap(
                token.resource, method, other['method'], os.getpid(), other['pid']
            )
            with self._overlaps.open('a') as file:
                file.write(json.dumps(overlap) + '\n')


def _name(token: FencingToken) -> str:
    return token.resource.replace(':', '.')


def _begin(file: pathlib.Path, method: str, token: FencingToken) -> int:
    """Write what runs; the lock on the file ends with the process."""
    descriptor = os.open(file, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    call = {'method': method, 'value': token.value, 'pid': os.getpid()}
    os.write(descriptor, json.dumps(call).encode())
    return descriptor


def _find_running(file: pathlib.Path) -> records.Record | None:
    """Return a call that runs; remove what a killed process has left."""
    try:
        descriptor = os.open(file, os.O_RDONLY)
    except FileNotFoundError:  # it has just ended
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return json.loads(os.read(descriptor, 4096))
    else:
        file.unlink(missing_ok=True)
        return None
    finally:
        os.close(descriptor)
