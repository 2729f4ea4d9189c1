"""Which earlier starts of a service on this machine are over.

A lease tells it too, but late. Each process holds a file with its
incarnation id locked, and the kernel lets go of it however the process
ends. Files of other machines, should they have the directory too, are
left alone: a lock may not reach from one to the other.
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
    """Have others know, inside the block, that this process lives."""
    with contextlib.ExitStack() as stack:
        try:
            folder.mkdir(parents=True, exist_ok=True)
            mine = folder / f'{_machine()}{id}'
            held = stack.enter_context(mine.open('w'))
            fcntl.flock(held, fcntl.LOCK_EX)
            stack.callback(mine.unlink, missing_ok=True)
        except OSError as error:
            LOG.warning(
                'Nobody can be told that this process lives; when '
                'it dies, its work is taken over after the lease: '
                '%s',
                error,
            )
        yield


def reap_dead(
    folder: pathlib.Path, taken_over: Callable[[str], typing.Any]
) -> None:
    """Call with the id of each that is over, and forget it then.

    Dying in between does no harm: the next start calls again.
    """
    machine = _machine()
    for file in sorted(folder.glob(f'{machine}*')):
        with contextlib.suppress(OSError), file.open() as held:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
            taken_over(file.name.removeprefix(machine))
            file.unlink(missing_ok=True)


def _machine() -> str:
    return f'{socket.gethostname()}_'
