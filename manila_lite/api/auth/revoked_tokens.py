"""Tokens that were revoked before they expired.

They are in a file, a line `id:end` each, with the end of the token in seconds
since 1970. All API processes with this file refuse them.
"""

from collections.abc import Callable, Mapping
import contextlib
import os
import time

from oslo_log import log

from manila_lite.api.auth import line_file

LOG = log.getLogger(__name__)


class RevokedTokens:
    """The ids in the file; a change takes effect with the next look-up."""

    def __init__(self, path: str, clock: Callable[[], float] = time.time):
        self._path = path
        self._clock = clock
        # The state of the file and its content, replaced as one value, so
        # that a thread that reads slowly cannot hide a later change.
        self._loaded: tuple[object, Mapping[str, int]] = (None, {})

    def __contains__(self, id: str) -> bool:
        old_state, ends = self._loaded
        state = line_file.state(self._path)
        if state != old_state:
            try:
                ends = _parse(line_file.read(self._path)) if state else {}
                self._loaded = (state, ends)
            except OSError as error:
                LOG.error('Cannot read the revoked tokens: %s', error)
        return id in ends

    def add(self, id: str, end: int) -> None:
        """Revoke a token; drop those that have expired. Raises OSError."""
        folder = os.path.dirname(os.path.abspath(self._path))
        os.makedirs(folder, mode=0o700, exist_ok=True)
        now = self._clock()
        with line_file.edited(self._path) as lines:
            ends = {**_parse(lines), id: end}
            lines[:] = [f'{one}:{end}' for one, end in ends.items() if end >= now]


def _parse(lines: list[str]) -> dict[str, int]:
    ends = {}
    for line in lines:
        id, _, end = line.partition(':')
        with contextlib.suppress(ValueError):
            ends[id] = int(end)
    return ends
