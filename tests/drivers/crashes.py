"""Kill processes at a chosen step of their changes to the disk."""

from collections.abc import Callable
import os
import signal
import sys

STEPS = frozenset(
    {
        'open',
        'os.rename',
        'os.remove',
        'os.mkdir',
        'os.rmdir',
        'os.link',
        'os.symlink',
        'os.chmod',
        'os.chown',
        'os.utime',
        'os.setxattr',
        'os.listdir',
        'os.scandir',
        'fcntl.ioctl',
        'fcntl.flock',
    }
)


def changes(event: str, args: tuple) -> bool:
    """Return whether a step leaves a trace; others need no kill."""
    if event == 'open':
        return bool(args[2] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT))
    return event not in ('os.listdir', 'os.scandir')


def killed_at(
    step: int,
    act: Callable[[], object],
    counts: Callable[[str, tuple], bool] = lambda *step: True,
) -> bool:
    """Act in another process and kill it just before the given step.

    Only the steps selected by `counts` are counted. Returns False if the
    process finished earlier.
    """
    process = os.fork()
    if process == 0:
        _act_and_exit(step, act, counts)
    _, status = os.waitpid(process, 0)
    if os.WIFSIGNALED(status):
        return True
    assert os.waitstatus_to_exitcode(status) == 0, 'the act itself failed'
    return False


def _act_and_exit(
    step: int, act: Callable[[], object], counts: Callable[[str, tuple], bool]
) -> None:
    taken = 0

    def watch(event: str, args: tuple) -> None:
        nonlocal taken
        if event in STEPS and counts(event, args):
            taken += 1
            if taken == step:
                os.kill(os.getpid(), signal.SIGKILL)

    code = 1
    try:
        sys.addaudithook(watch)
        act()
        code = 0
    finally:
        os._exit(code)  # the child must not run any more of the tests
