"""What a process has flushed to disk, and so survives a power failure."""

import os
import pathlib

import pytest


class Flushes:
    """The files and directories that were flushed since the start."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch):
        self._flushed: set[tuple[int, int]] = set()
        fsync = os.fsync

        def recorded(descriptor: int) -> None:
            fsync(descriptor)
            status = os.fstat(descriptor)
            self._flushed.add((status.st_dev, status.st_ino))

        monkeypatch.setattr(os, 'fsync', recorded)

    def include(self, *paths: pathlib.Path) -> bool:
        """Return whether the content of all paths was flushed."""
        return all(
            (path.stat().st_dev, path.stat().st_ino) in self._flushed for path in paths
        )
