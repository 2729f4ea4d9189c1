"""What a test run may leave behind: nothing, outside its temporary folder.

All temporary files are in one folder, in memory if there is enough. It is
removed after a run without failures; those of failed tests stay until the
next run. A worker may not hold more open files than the budget, so that runs
pass with the usual limit of 1,024.
"""

import contextlib
import fcntl
import itertools
from multiprocessing import util
import os
import pathlib
import shutil
import tempfile

import pytest

MEMORY = pathlib.Path('/dev/shm')
REQUIRED_SPACE = 4 << 30  # bytes; a test run needs far less
PREFIX = 'ml-'
MOST_LINES = 10
OPEN_FILES = 300
"""The budget of a worker."""

CLONE = pathlib.Path(__file__).resolve().parents[2]
GENERATED = {'build', 'dist', 'state', '.hypothesis', '.pytest_cache'}
"""What the clone may contain after a run."""

OUTSIDE = (pathlib.Path('/var/lib/manila'), pathlib.Path('/var/log/manila'))
"""Folders of a real installation on this machine."""

at_end = contextlib.ExitStack()
"""What this process releases after its last test."""

_folder = pytest.StashKey[pathlib.Path]()
_before = pytest.StashKey[set[pathlib.Path]]()
_problems = pytest.StashKey[list[str]]()
_most = pytest.StashKey[tuple[int, str]]()


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config):
    """Choose the folder, before pytest does; workers get it from us."""
    config.stash[_most] = 0, 'no test'
    config.stash[_problems] = []
    if hasattr(config, 'workerinput') or config.option.basetemp:
        return
    parent = _parent()
    _remove_those_of_ended_runs(parent)
    folder = _new_folder(parent)
    os.environ['TMPDIR'] = str(folder)
    tempfile.tempdir = None
    config.option.basetemp = str(folder / 'tests')
    config.stash[_folder] = folder
    config.stash[_before] = _entries()


def _parent():
    """SQLite waits for a disk at every commit, so memory is better."""
    if os.access(MEMORY, os.W_OK) and shutil.disk_usage(MEMORY).free >= REQUIRED_SPACE:
        return MEMORY
    return pathlib.Path(tempfile.gettempdir())


def _new_folder(parent):
    """Make a folder; a short path leaves room for those of sockets."""
    for number in itertools.count():
        path = parent / f'{PREFIX}{os.getpid() + number}'
        with contextlib.suppress(FileExistsError):
            path.mkdir()
            # Tests act for other users, too.
            path.chmod(0o1777)
            _lock(path)
            return path


def _lock(path):
    """Lock a folder as long as this process lives, or raise OSError."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


def _remove_those_of_ended_runs(parent):
    for path in parent.glob(f'{PREFIX}*'):
        with contextlib.suppress(OSError):
            if path.stat().st_uid == os.getuid():
                descriptor = _lock(path)
                shutil.rmtree(path, ignore_errors=True)
                os.close(descriptor)


def _entries():
    found = {CLONE / name for name in os.listdir(CLONE)}
    for folder in OUTSIDE:
        with contextlib.suppress(OSError):
            found.update(folder.iterdir())
    return found


def pytest_runtest_makereport(item, call):
    """Count what is open between tests."""
    if call.when != 'teardown':
        return
    most = item.config.stash[_most]
    # The list itself is one of them.
    held = len(os.listdir('/proc/self/fd')) - 1
    if held > most[0]:
        item.config.stash[_most] = held, item.nodeid


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node):
    reported = getattr(node, 'workeroutput', {}).get('open_files')
    if reported:
        most = node.config.stash[_most]
        node.config.stash[_most] = max(most, tuple(reported))


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_sessionfinish(session):
    """Fail a run that left something behind; pytest reports after this."""
    config = session.config
    at_end.close()
    if hasattr(config, 'workeroutput'):
        config.workeroutput['open_files'] = config.stash[_most]
        return (yield)
    problems = config.stash[_problems]
    held, test = config.stash[_most]
    # A test that kills a driver at hundreds of steps keeps what each one held.
    if held > OPEN_FILES and not config.option.exhaust:
        problems.append(
            f'a worker held {held} open files, the budget is {OPEN_FILES}; '
            f'most in {test}'
        )
    if _folder in config.stash:
        problems += _leftovers(config)
    if problems and session.exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
    return (yield)


def _leftovers(config):
    new = {
        path
        for path in _entries() - config.stash[_before]
        if path.name not in GENERATED and not path.name.startswith('.')
    }
    new.update(
        path
        for path in config.stash[_folder].iterdir()
        # Workers of pytest-xdist end without removing those of
        # multiprocessing.
        if path.name != 'tests' and not path.name.startswith('pymp-')
    )
    return [f'{path} was left behind' for path in sorted(new)]


@pytest.hookimpl(trylast=True)
def pytest_unconfigure(config):
    folder = config.stash.get(_folder, None)
    if folder and not config.stash.get(_failed, True):
        # After multiprocessing, which complains if its files are gone.
        util.Finalize(
            None,
            shutil.rmtree,
            args=(folder,),
            kwargs={'ignore_errors': True},
            exitpriority=-1000,
        )


_failed = pytest.StashKey[bool]()


def pytest_terminal_summary(terminalreporter, exitstatus, config):
    config.stash[_failed] = exitstatus != pytest.ExitCode.OK
    held, _ = config.stash[_most]
    terminalreporter.write_line(
        f'open files: a worker held {held} at most, of {OPEN_FILES}'
    )
    for problem in config.stash[_problems][:MOST_LINES]:
        terminalreporter.write_line(f'FAILED {problem}', red=True)
    if config.stash[_failed] and _folder in config.stash:
        terminalreporter.write_line(f'files of failed tests: {config.option.basetemp}')
