"""Commands forked from a server process that has imported them.

Importing takes a new process more than a second of CPU. The server is
started with the first command, runs no threads, and ends with the test
process. Commands that use eventlet cannot be forked: it patches modules
before they are imported.
"""

from collections.abc import Callable
import importlib
import multiprocessing
import os
import pathlib
import subprocess
import sys
import threading

_MODULES = {
    'manila-lite': 'manila_lite.cmd.serve',
    'manila-lite-api': 'manila_lite.cmd.api',
    'manila-lite-data': 'manila_lite.cmd.data',
    'manila-lite-manage': 'manila_lite.cmd.manage',
    'manila-lite-scheduler': 'manila_lite.cmd.scheduler',
    'manila-lite-share': 'manila_lite.cmd.share',
}
_context = multiprocessing.get_context('forkserver')
_context.set_forkserver_preload(list(_MODULES.values()))


class ForkedProcess:
    """A command in a forked process; what is used of `subprocess.Popen`."""

    def __init__(
        self,
        name: str,
        args: list[str],
        log: pathlib.Path,
        env: dict[str, str],
        enter: Callable[[], None] | None = None,
    ):
        self._process = _context.Process(
            target=_main, args=(name, args, str(log), env, enter), daemon=True
        )
        self._lock = threading.Lock()  # its exit code can be read only once
        self._process.start()

    @property
    def pid(self) -> int:
        return self._process.pid

    def poll(self) -> int | None:
        with self._lock:
            return self._process.exitcode

    def wait(self, timeout: float | None = None) -> int:
        with self._lock:
            self._process.join(timeout)
            if self._process.exitcode is None:
                raise subprocess.TimeoutExpired(self._process.name, timeout)
            return self._process.exitcode

    def terminate(self) -> None:
        with self._lock:
            self._process.terminate()

    def kill(self) -> None:
        with self._lock:
            self._process.kill()


def _main(
    name: str,
    args: list[str],
    log: str,
    env: dict[str, str],
    enter: Callable[[], None] | None,
) -> None:
    """Run the command as its installed script would, in this process."""
    output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    os.dup2(output, 1)
    os.dup2(output, 2)
    os.environ.clear()
    os.environ.update(env)
    sys.argv = [name, *args]
    if enter is not None:
        enter()
    importlib.import_module(_MODULES[name]).main()
