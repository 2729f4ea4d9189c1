"""Processes that outlive the one that started them, found by their records.

A record has the pid and when the process started, so that another process
that has the same pid later is never taken for it.
"""

from collections.abc import Iterable
import contextlib
import errno
import json
import os
import pathlib
import re
import resource
import select
import signal
import time
from typing import NamedTuple

from manila_lite.share.drivers import records

_BOOT_ID = pathlib.Path('/proc/sys/kernel/random/boot_id')
_INTERVAL = 0.005
_LONGEST_WAIT = 1.0
# The last two: it is the id of a thread now, as older and newer kernels say.
_NO_PROCESS = (errno.ESRCH, errno.EINVAL, errno.ENOENT)


class ProcessRecord(NamedTuple):
    """Which process it is: the time is in ticks since the machine's start."""

    pid: int
    started: int
    boot: str


def this_process() -> ProcessRecord:
    pid = os.getpid()
    started = _started(pid)
    assert started is not None
    return ProcessRecord(pid, started, _boot())


def write(path: pathlib.Path, record: ProcessRecord) -> None:
    # It need not survive a power failure: the process does not.
    records.write(path, record._asdict())


def find_running(path: pathlib.Path) -> int | None:
    """Return a pidfd of the recorded process, or None if it has ended."""
    record = _find(path)
    return None if record is None else _opened(record)


def _opened(record: ProcessRecord) -> int | None:
    try:
        descriptor = os.pidfd_open(record.pid)
    except OSError as error:
        # Other errors do not mean that it has ended.
        if error.errno not in _NO_PROCESS:
            raise
        return None
    is_found = False
    try:
        # The descriptor pins the process: what is read now belongs to it.
        is_found = _started(record.pid) == record.started
    finally:
        if not is_found:
            os.close(descriptor)
    return descriptor if is_found else None


def _find(path: pathlib.Path) -> ProcessRecord | None:
    """Return a record since the machine's start.

    One that was being written when the power failed may be damaged.
    """
    try:
        record = ProcessRecord(**json.loads(path.read_bytes()))
    except (FileNotFoundError, ValueError, TypeError):
        return None
    return record if record.boot == _boot() else None


def find_pid(path: pathlib.Path) -> int | None:
    """Return the pid of the recorded process, or None if it has ended."""
    record = _find(path) if is_running(path) else None
    return record.pid if record else None


class Activity(NamedTuple):
    """A process, and how often it has waited so far.

    The number does not change while the process is stopped or blocked.
    """

    process: ProcessRecord
    waits: int


def find_activity(path: pathlib.Path) -> Activity | None:
    """Return the activity of the recorded process; None if it has ended."""
    record = _find(path)
    descriptor = None if record is None else _opened(record)
    if record is None or descriptor is None:
        return None
    try:
        status = pathlib.Path(f'/proc/{record.pid}/status').read_text()
    except (FileNotFoundError, ProcessLookupError):
        return None
    finally:
        os.close(descriptor)
    found = re.search(r'^voluntary_ctxt_switches:\s*([0-9]+)', status, re.M)
    return Activity(record, int(found[1])) if found else None


def find_processor_time(path: pathlib.Path) -> int | None:
    """Return the ticks that the recorded process has used, if it runs."""
    record = _find(path)
    fields = None if record is None else _fields_of(record.pid)
    if record is None or fields is None or int(fields[19]) != record.started:
        return None
    return int(fields[11]) + int(fields[12])


class OpenFiles(NamedTuple):
    """How many files a process has open, and how many it may have."""

    used: int
    most: int


def open_files(pid: int) -> OpenFiles | None:
    """Return the open files of a process, or None if it has ended."""
    folder = pathlib.Path(f'/proc/{pid}')
    try:
        # Before Linux 6.2 the size is 0.
        used = (folder / 'fd').stat().st_size or len(os.listdir(folder / 'fd'))
        limits = (folder / 'limits').read_text()
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return None
    found = re.search(r'^Max open files +([0-9]+)', limits, re.M)
    return OpenFiles(used, int(found[1])) if found else None


def allow_open_files(wanted: int) -> None:
    """Raise the limit of open files of this process and its children.

    If that is not allowed, it becomes the highest that is.
    """
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    for limit in (max(most, wanted), most):
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))
            return


def is_running(path: pathlib.Path) -> bool:
    descriptor = find_running(path)
    if descriptor is None:
        return False
    os.close(descriptor)
    return True


def wait(descriptors: Iterable[int], seconds: float) -> bool:
    """Return whether a process has ended, at the latest after this time.

    `descriptors` are pidfds. They may be any numbers: a process with many
    files open has some that `select` does not take. This process wakes up
    meanwhile, see `Activity`.
    """
    poll = select.poll()
    for descriptor in descriptors:
        poll.register(descriptor, select.POLLIN)
    deadline = time.monotonic() + seconds
    while True:
        left = max(deadline - time.monotonic(), 0)
        if poll.poll(min(left, _LONGEST_WAIT) * 1000):
            return True
        if left <= _LONGEST_WAIT:
            return False


def end(path: pathlib.Path, number: signal.Signals, seconds: float) -> bool:
    """Signal the recorded process; return whether it has ended."""
    record = _find(path)
    return record is None or end_process(record, number, seconds)


def end_process(record: ProcessRecord, number: signal.Signals, seconds: float) -> bool:
    """Signal this process even if another one is recorded now."""
    descriptor = _opened(record)
    if descriptor is None:
        return True
    try:
        signal.pidfd_send_signal(descriptor, number)
        return wait([descriptor], seconds)
    except ProcessLookupError:
        return True
    finally:
        os.close(descriptor)


def stop(path: pathlib.Path, seconds: float) -> None:
    """End the recorded process; kill it if that takes too long."""
    if not end(path, signal.SIGTERM, seconds):
        end(path, signal.SIGKILL, seconds)


def end_orphans(record: pathlib.Path) -> None:
    """End what the recorded process has left behind when it was killed.

    These are the other processes of its session.
    """
    found = _find(record)
    if found is None or is_running(record):
        return
    for pid in _members(found.pid):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def end_session(record: pathlib.Path, seconds: float) -> bool:
    """Kill the recorded process and all of its session.

    Returns whether they have ended, and so have closed their files.
    """
    deadline = time.monotonic() + seconds
    if not end(record, signal.SIGKILL, seconds):
        return False
    found = _find(record)
    while found and _members(found.pid):
        if time.monotonic() > deadline:
            return False
        end_orphans(record)
        time.sleep(_INTERVAL)
    return True


def _members(session: int) -> list[int]:
    """Return the processes of a session whose first one has ended."""
    members = []
    for path in pathlib.Path('/proc').glob('[0-9]*/stat'):
        try:
            fields = path.read_text().rpartition(')')[2].split()
        except (FileNotFoundError, ProcessLookupError):
            continue
        if int(fields[3]) == session and fields[0] not in 'ZX':
            pid = int(path.parent.name)
            if pid == session:
                return []  # another process has the number now
            members.append(pid)
    return members


def _started(pid: int) -> int | None:
    """Return when a process started; None if it has ended."""
    fields = _fields_of(pid)
    return None if fields is None or fields[0] in 'ZX' else int(fields[19])


def _fields_of(pid: int) -> list[str] | None:
    """Return what the kernel says of a process, from its state on."""
    try:
        text = pathlib.Path(f'/proc/{pid}/stat').read_text()
    except (FileNotFoundError, ProcessLookupError):
        return None
    # The second field is a name, which may contain anything.
    return text.rpartition(')')[2].split()


def _boot() -> str:
    return _BOOT_ID.read_text().strip()
