"""Which disk a driver serves shares from, and whether it may."""

from collections.abc import Callable
import typing
from typing import Protocol

Holds = Callable[[str, str], bool]
"""Whether a disk has the share with an id and a name."""


class Disk(typing.NamedTuple):
    """A disk as a driver has found it.

    `pool` is null if the back end has one root for all pools. `identity` is
    a UUID that the driver has written to the disk, null if there is none
    yet. `file_system` is an id that a copy of the files does not have, null
    where none is known. `location` says to a reader where the disk is.
    """

    pool: str | None
    identity: str | None
    file_system: str | None
    location: str


class DiskRegistry(Protocol):
    """The record of the disks of all back ends.

    It is kept by the service: what is configured, or mounted somewhere, does
    not say which disk it is.
    """

    def check(self, disk: Disk, holds: Holds) -> None:
        """Raise StorageUnavailable if shares must not be served from a disk.

        It belongs to another pool or back end, or another disk to this one.
        Or none is recorded for it, and it has none of the shares that it
        ought to have.
        """

    def claim(self, disk: Disk, holds: Holds) -> None:
        """Do the same, and record the disk, which has an identity."""


class AnyDisk:
    """Accepts every disk: for drivers that no service has."""

    def check(self, disk: Disk, holds: Holds) -> None:
        pass

    def claim(self, disk: Disk, holds: Holds) -> None:
        pass
