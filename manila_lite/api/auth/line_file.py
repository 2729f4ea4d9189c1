"""Files of lines that several processes read and change."""

from collections.abc import Iterator
import contextlib
import fcntl
import os
import tempfile


def read(path: str) -> list[str]:
    """Return the lines of a file; raises OSError."""
    # Invalid bytes are replaced here; who parses their line refuses it.
    with open(path, encoding='utf-8', errors='replace') as file:
        return file.read().splitlines()


def state(path: str) -> tuple[int, int, int] | None:
    """Return what differs after each change; None without a file."""
    try:
        stat = os.stat(path)
    except OSError:
        return None
    return stat.st_ino, stat.st_mtime_ns, stat.st_size


@contextlib.contextmanager
def edited(path: str) -> Iterator[list[str]]:
    """Yield the lines of the file, which then atomically replace it."""
    folder = os.path.dirname(os.path.abspath(path))
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        # Without the lock one of two concurrent changes would be lost.
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        lines = read(path) if os.path.exists(path) else []
        yield lines
        _replace(path, folder, lines)
    finally:
        os.close(descriptor)


def _replace(path: str, folder: str, lines: list[str]) -> None:
    owner = os.stat(path if os.path.exists(path) else folder)
    # mkstemp creates files that only their owner can read.
    descriptor, temporary = tempfile.mkstemp(
        dir=folder, prefix=f'.{os.path.basename(path)}-'
    )
    try:
        with open(descriptor, 'w', encoding='utf-8') as file:
            if os.geteuid() == 0:  # the service must still be able to read it
                os.fchown(descriptor, owner.st_uid, owner.st_gid)
            file.writelines(f'{line}\n' for line in lines)
            file.flush()
            os.fsync(descriptor)
        os.replace(temporary, path)
    except OSError:
        os.unlink(temporary)
        raise
