"""Liveness locks: find dead processes of a service on this machine.

An expired lease shows it too, but later. Each process locks a file named
after its incarnation, and the kernel releases the lock however the
process ends. Files of other machines that share the directory are left
alone: file locks may not work between machines.
"""

from collections.abc import Callable, Iterator
import contextlib
import fcntl
import logging
import pathlib
import socket
import typing

LOG = logging.getLogger(__name__)


@contextlib.contextmanager
def hold_lock(folder: pathlib.Path, id: str) -> Iterator[None]:
    """Hold the liveness lock of this process inside the block."""
    with contextlib.ExitStack() as stack:
        try:
            folder.mkdir(parents=True, exist_ok=True)
            path = folder / f'{_machine()}{id}'
            file = stack.enter_context(path.open('w'))
            fcntl.flock(file, fcntl.LOCK_EX)
            stack.callback(path.unlink, missing_ok=True)
        except OSError as error:
            LOG.warning(
                'Cannot create the liveness lock; takeover waits for the '
                'lease to expire: %s',
                error,
            )
        yield


def reap_dead(
    folder: pathlib.Path, take_over: Callable[[str], typing.Any]
) -> None:
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
