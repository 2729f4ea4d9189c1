"""The identity of a disk: a random id in a file that is written once.

The file is created by a link, which only one of several processes can make,
also on network file systems.
"""

from collections.abc import Callable
import contextlib
import os
import pathlib
import socket
import uuid

from manila_lite import exception
from manila_lite.share.drivers import records
from manila_lite.share.drivers.contract.statistics import Disk, DiskRegistry, Holds

_BY_UUID = pathlib.Path('/dev/disk/by-uuid')


def find(file: pathlib.Path) -> str | None:
    """Return the identity in a file; None if there is no file.

    Raises StorageUnavailable if the file has none.
    """
    try:
        text = file.read_text(encoding='ascii').strip()
        return str(uuid.UUID(text))
    except FileNotFoundError:
        return None
    except ValueError as error:
        raise exception.StorageUnavailable(
            reason=f'{file} does not have the identity of the disk'
        ) from error


def create(file: pathlib.Path) -> str:
    """Write a new identity, unless there is one; return what is there."""
    new = file.with_name(f'{file.name}.{uuid.uuid4().hex}')
    records.write_text(new, f'{uuid.uuid4()}\n', durable=True)
    try:
        with contextlib.suppress(FileExistsError):
            os.link(new, file)
            records.sync_directory(file.parent)
    finally:
        new.unlink(missing_ok=True)
    found = find(file)
    assert found is not None
    return found


def claim(registry: DiskRegistry, disk: Disk, file: pathlib.Path, holds: Holds) -> str:
    """Use a disk whose identity is in a file; return the identity.

    Raises StorageUnavailable if it belongs elsewhere. Nothing is written to
    a disk that is refused.
    """
    return claim_with(registry, disk, lambda: create(file), holds)


def claim_with(
    registry: DiskRegistry, disk: Disk, create: Callable[[], str], holds: Holds
) -> str:
    """Do the same with an identity that is kept elsewhere than in a file."""
    if disk.identity is None:
        registry.check(disk, holds)
        disk = disk._replace(identity=create())
    registry.claim(disk, holds)
    assert disk.identity is not None
    return disk.identity


def location(path: pathlib.Path, source: object = None) -> str:
    """Return words for where a disk is."""
    where = f'{source} at {path}' if source else str(path)
    return f'{where} on {socket.gethostname()}'


def find_file_system(path: pathlib.Path) -> str | None:
    """Return the UUID of the file system of a path, if udev knows it.

    A copy of a directory has another one. What is not on a block device of
    its own has none.
    """
    with contextlib.suppress(OSError):
        device = path.stat().st_dev
        for link in _BY_UUID.iterdir():
            with contextlib.suppress(OSError):
                if link.stat().st_rdev == device:
                    return link.name
    return None
