"""How the data service reaches the content of a share."""

import os
import pathlib
from typing import TypedDict

from manila_lite.context import RequestContext
from manila_lite.share.drivers.contract import interfaces
from manila_lite.share.drivers.contract.values import ShareForDriver

_BOOT_ID = pathlib.Path('/proc/sys/kernel/random/boot_id')


class DirectoryIdentity(TypedDict):
    """A directory of one machine, as it is known since its last start."""

    path: str
    boot_id: str
    device: int
    inode: int


class CephLocation(TypedDict):
    """A directory of a Ceph file system, and the Ceph user that may mount it."""

    monitors: str
    filesystem: str
    path: str
    user: str
    key: str


class ConnectionInfo(TypedDict, total=False):
    """How to reach a share.

    Shares that are directories of a machine have a `directory`, which the
    data service opens there. It mounts those that have `ceph`. The other keys
    are the published ones: how clients mount the share.
    """

    directory: DirectoryIdentity
    ceph: CephLocation
    mount: str
    unmount: str
    access_mapping: dict[str, list[str]]


class ConnectionDefaults:
    """Defaults that every driver inherits: shares cannot be reached."""

    def connection_get_info(
        self,
        context: RequestContext,
        share: ShareForDriver,
        share_server: interfaces.ShareServerMapping | None = None,
    ) -> ConnectionInfo:
        """Return how to reach the content of a share.

        What an earlier call has returned can no longer be used then.
        """
        raise NotImplementedError

    def connection_end(
        self,
        context: RequestContext,
        share: ShareForDriver,
        share_server: interfaces.ShareServerMapping | None = None,
    ) -> None:
        """Revoke what `connection_get_info` returned.

        Called again and again, also if it was not called at all. There is
        nothing to do for directories.
        """


@interfaces.requires('connection_get_info')
class ConnectionSupport(ConnectionDefaults, interfaces.DefaultedInterface):
    """Shares whose content the data service can reach."""


def identity_of(path: pathlib.Path) -> DirectoryIdentity:
    """Return the identity of a directory of this machine.

    Raises OSError if it is missing or a link.
    """
    directory = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        status = os.fstat(directory)
    finally:
        os.close(directory)
    return {
        'path': str(path),
        'boot_id': _BOOT_ID.read_text(encoding='ascii').strip(),
        'device': status.st_dev,
        'inode': status.st_ino,
    }


def open_directory(identity: DirectoryIdentity) -> int | None:
    """Open the directory; return None if this machine does not have it.

    Another machine, or a container with files of its own, may have another
    directory at the same path.
    """
    boot_id = _BOOT_ID.read_text(encoding='ascii').strip()
    if boot_id != identity['boot_id']:
        return None
    try:
        directory = os.open(
            identity['path'], os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW
        )
    except (FileNotFoundError, NotADirectoryError):
        return None
    status = os.fstat(directory)
    if (status.st_dev, status.st_ino) != (identity['device'], identity['inode']):
        os.close(directory)
        return None
    return directory
