"""The fencing tokens that a dummy back end has seen."""

from collections.abc import Iterator
import contextlib
import pathlib
import threading
from typing import NamedTuple

from manila_lite import exception
from manila_lite.context import FencingToken
from manila_lite.share.drivers import records


class Overlap(NamedTuple):
    """Two calls that ran at the same time for different work."""

    resource: str
    method: str
    during: str


class _Running(NamedTuple):
    method: str
    value: int


# Of all back ends in this process, so that two services on one are seen.
_lock = threading.Lock()
_running: dict[tuple[pathlib.Path, str], list[_Running]] = {}
_overlaps: dict[pathlib.Path, list[Overlap]] = {}


class FencingGate:
    """Refuses calls of workers that have lost their claim.

    Tokens are kept with the state of the back end. When `is_strict` is
    false it accepts every call, like a back end that ignores tokens.
    """

    def __init__(self, path: pathlib.Path, is_strict: bool = True):
        self.path = path
        self.is_strict = is_strict
        self.refused: list[tuple[str, FencingToken]] = []
        self._seen = records.RecordFolder(path / 'fencing')

    @property
    def overlaps(self) -> list[Overlap]:
        """Return the overlapping calls of all services on this back end."""
        with _lock:
            return list(_overlaps.get(self.path, ()))

    @contextlib.contextmanager
    def admitted(self, method: str, token: FencingToken) -> Iterator[None]:
        """Run a call; raise StaleFencingToken after one with a later token.

        A call that runs beside one for other work is an overlap.
        """
        call = _Running(method, token.value)
        with _lock:
            self._check(method, token)
            running = _running.setdefault((self.path, token.resource), [])
            for other in running:
                if other.value != token.value:
                    _overlaps.setdefault(self.path, []).append(
                        Overlap(token.resource, method, other.method)
                    )
            running.append(call)
        try:
            yield
        finally:
            with _lock:
                running.remove(call)
                if not running:
                    _running.pop((self.path, token.resource), None)

    def _check(self, method: str, token: FencingToken) -> None:
        name = token.resource.replace(':', '.')
        seen = (self._seen.find(name) or {'value': 0})['value']
        if token.value > seen:
            self._seen.put(name, {'value': token.value})
        elif token.value < seen and self.is_strict:
            self.refused.append((method, token))
            raise exception.StaleFencingToken(
                resource=token.resource, seen=seen
            )
