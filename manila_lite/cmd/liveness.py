"""Liveness locks: find dead processes of a service on this machine.

An expired lease shows it too, but later. Each process locks a file named
after its incarnation, and the kernel releases the lock however the
process ends. Files of other machines that share the directory are left
alone: file locks may not work between machines.
"""

from collections.abc import Callable
import contextlib
import fcntl
import functools
import logging
import os
import pathlib
import socket
import typing

LOG = logging.getLogger(__name__)


def hold_lock(folder: pathlib.Path, id: str) -> Callable[[], None]:
    """Hold the liveness lock of this process until it has ended.

    The file then shows that it is dead, unless the result is called: that it
    holds no work any more.
    """
    path = folder / f'{_machine()}{id}'
    try:
        folder.mkdir(parents=True, exist_ok=True)
        file = os.open(path, os.O_WRONLY | os.O_CREAT, 0o644)
        fcntl.flock(file, fcntl.LOCK_EX)
    except OSError as error:
        LOG.warning(
            'Cannot create the liveness lock; takeover waits for the '
            'lease to expire: %s',
            error,
        )
        return lambda: None
    return functools.partial(path.unlink, missing_ok=True)


def reap_dead(folder: pathlib.Path, take_over: Callable[[str], typing.Any]) -> None:
    """Call `take_over` with the id of each dead process; remove its file.

    After a crash in between, the next start calls it again.
    """
    machine = _machine()
    for path in sorted(folder.glob(f'{machine}*')):
        with contextlib.suppress(OSError), path.open() as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            take_over(path.name.removeprefix(machine))
            path.unlink(missing_ok=True)


def _machine() -> str:
    return f'{socket.gethostname()}_'
