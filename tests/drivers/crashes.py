"""Kill processes at a chosen step of their changes to the disk."""

from collections.abc import Callable, Iterator
import contextlib
import os
import pathlib
import random
import signal
import sys
import tempfile
import threading
import typing

from manila_lite import exception
from manila_lite.share.drivers.btrfs.daemons import processes
from tests.support import sampling, storage

Scene = typing.TypeVar('Scene')

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
        'subprocess.Popen',
        'manila_lite.exchange',
        'manila_lite.mount',
        'manila_lite.unmount',
        'manila_lite.nfs',
        'manila_lite.smb',
        'manila_lite.ceph',
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

    def on_step(taken: int) -> None:
        if taken == step:
            os.kill(os.getpid(), signal.SIGKILL)

    return _act_in_child(act, counts, on_step)


def killed_at_steps(
    build: Callable[[str], Scene],
    act: Callable[[Scene], object],
    counts: Callable[[str, tuple], bool] = lambda *step: True,
    most: int = 1,
    least: int = 1,
    limit: int | None = None,
) -> Iterator[Scene]:
    """Yield scenes in which a process acted and was killed, each at a step.

    A sample of all steps is tried, and no more than `limit` where all cases
    are. In the last scene the process finished; it takes at least so many
    steps.
    """
    whole = build('whole')
    steps = _steps_of(lambda: act(whole), counts)
    assert steps >= least, f'there are only {steps} steps to be killed at'
    chosen = sampling.sample(range(1, steps + 1), most)
    if limit is not None and limit < len(chosen):
        chosen = random.Random(sampling.seed()).sample(chosen, limit)
    for step in chosen:
        scene = build(str(step))
        killed_at(step, lambda scene=scene: act(scene), counts)
        yield scene
        _end_servers(scene)
    yield whole


def _end_servers(scene: object) -> None:
    """Remove the back ends that a scene has for itself, with their servers.

    Those of all steps together would take more memory than a machine has.
    """
    folder = getattr(scene, 'folder', None)
    # Others share their back end, and find the folder of a share by this name.
    if isinstance(folder, pathlib.Path) and any(folder.glob('*/nfs')):
        storage.remove(folder)


def interrupted_at(
    step: int,
    act: Callable[[], object],
    interrupt: Callable[[], object],
    counts: Callable[[str, tuple], bool] = lambda *step: True,
) -> bool:
    """Act in another process, and do something just before the given step.

    Returns False if the process finished earlier.
    """
    with tempfile.TemporaryFile() as file:

        def on_step(taken: int) -> None:
            if taken == step:
                os.write(file.fileno(), b'.')
                interrupt()
                os.write(file.fileno(), b'.')

        _act_in_child(act, counts, on_step)
        reached = os.fstat(file.fileno()).st_size
        # The act might catch the error of an interruption.
        assert reached != 1, 'the interruption itself failed'
        return reached > 0


@contextlib.contextmanager
def nfs_servers_killed(folder: pathlib.Path) -> Iterator[None]:
    """Kill the NFS servers of all back ends below a folder in the block."""
    records = [
        *folder.glob('*/nfs/server.json'),
        *folder.glob('*/servers/*/nfs/server.json'),
    ]
    assert records

    def kill() -> None:
        for record in records:
            processes.end(record, signal.SIGKILL, 60)

    killing = threading.Timer(random.uniform(0, 0.1), kill)
    killing.start()
    yield
    killing.join()


def failed_at(step: int, act: Callable[[], object], error: Exception) -> bool:
    """Act in another process, in which the given step raises an error.

    Returns False if the process finished earlier.
    """
    with tempfile.TemporaryFile() as file:

        def on_step(taken: int) -> None:
            if taken == step:
                os.write(file.fileno(), b'.')
                raise error

        def attempt() -> None:
            with contextlib.suppress(exception.DriverError):
                act()

        _act_in_child(attempt, changes, on_step)
        return os.fstat(file.fileno()).st_size > 0


def _steps_of(act: Callable[[], object], counts: Callable[[str, tuple], bool]) -> int:
    """Act in another process; return the number of its steps."""
    with tempfile.TemporaryFile() as file:
        _act_in_child(act, counts, lambda taken: os.pwrite(file.fileno(), b'.', taken))
        return max(0, os.fstat(file.fileno()).st_size - 1)


def _act_in_child(
    act: Callable[[], object],
    counts: Callable[[str, tuple], bool],
    on_step: Callable[[int], object],
) -> bool:
    """Act in another process; return whether it was killed."""
    process = os.fork()
    if process == 0:
        _act_and_exit(act, counts, on_step)
    _, status = os.waitpid(process, 0)
    if os.WIFSIGNALED(status):
        return True
    assert os.waitstatus_to_exitcode(status) == 0, 'the act itself failed'
    return False


def _act_and_exit(
    act: Callable[[], object],
    counts: Callable[[str, tuple], bool],
    on_step: Callable[[int], object],
) -> None:
    taken = 0

    def watch(event: str, args: tuple) -> None:
        nonlocal taken
        if event in STEPS and counts(event, args):
            taken += 1
            on_step(taken)

    code = 1
    try:
        sys.addaudithook(watch)
        act()
        code = 0
    finally:
        os._exit(code)  # the child must not run any more of the tests
