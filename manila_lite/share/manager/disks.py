"""The disks of one back end, in the database."""

import dataclasses
import logging

from manila_lite import exception
from manila_lite.db.queries.services import disks
from manila_lite.db.rows import DiskRow
from manila_lite.db.session import Database, Session
from manila_lite.host import Host
from manila_lite.share.drivers.base import Disk, Holds

LOG = logging.getLogger(__name__)

SAMPLE = 1000
"""How many shares are looked for on a disk that is not recorded yet."""


@dataclasses.dataclass(eq=False)
class DatabaseDisks:
    """Implements `DiskRegistry` for the driver of one back end.

    A name has one disk and a disk one name. Another disk replaces the
    recorded one only if the recorded one has no known shares and no other
    process of the back end is alive, which might use it.
    """

    db: Database
    service_host: str
    incarnation: str
    down_time: float
    name_template: str

    def check(self, disk: Disk, holds: Holds) -> None:
        row = self.db.read(disks.find_at, self._name(disk))
        if row is None:
            self._require_shares(disk, holds)
        self.db.read(self._find_place, disk)

    def claim(self, disk: Disk, holds: Holds) -> None:
        row = self.db.read(disks.find_at, self._name(disk))
        if row is None:
            self._require_shares(disk, holds)
        elif not _differs(disk, row):
            return
        self.db.write(self._record, disk)

    def _name(self, disk: Disk) -> str:
        if disk.pool is None:
            return self.service_host
        return str(Host(self.service_host, disk.pool))

    def _require_shares(self, disk: Disk, holds: Holds) -> None:
        """Require some of the expected shares where no disk is recorded.

        An earlier release recorded none. The disk is asked outside of
        transactions: if shares are made meanwhile, so is a record.
        """
        name = self._name(disk)
        expected = self.db.read(disks.list_expected, name, SAMPLE)
        if not expected:
            return
        missing = [one for one in expected if not holds(one, self.name_template % one)]
        if len(missing) == len(expected):
            raise exception.StorageUnavailable(
                reason=f'{name}: the disk at {disk.location} is new or '
                f'another one, since it has none of the {len(expected)} '
                'shares that are known there. Put the right disk in place. '
                f'{_if_lost(name)}'
            )
        if missing:
            LOG.warning(
                'The disk of %s lacks %d of %d shares that are known there, '
                'among them %s',
                name,
                len(missing),
                len(expected),
                ', '.join(missing[:5]),
            )

    def _record(self, session: Session, disk: Disk) -> None:
        row = self._find_place(session, disk)
        name = self._name(disk)
        assert disk.identity is not None
        if row is None:
            disks.insert(session, name, disk.identity, disk.file_system, disk.location)
            LOG.info('%s is disk %s from now on', name, disk.identity)
        else:
            replaced = disks.replace(
                session,
                name,
                row.identity,
                disk.identity,
                disk.file_system or row.file_system,
                disk.location,
            )
            if not replaced:
                raise exception.StorageUnavailable(
                    reason=f'{name}: its disk is being replaced'
                )

    def _find_place(self, session: Session, disk: Disk) -> DiskRow | None:
        """Return the row of the name of a disk, if it may have the disk."""
        name = self._name(disk)
        row = disks.find_at(session, name)
        home = disk.identity and disks.find_of(session, disk.identity)
        if home and home.host != name:
            raise exception.StorageUnavailable(
                reason=f'{name}: the disk at {disk.location} belongs to '
                f'{home.host}{_own(row)}. Put the disks where they belong, '
                'or, if this is meant to be, run "manila-lite-manage storage '
                f'move-disk {home.host} {name}"'
            )
        if row is None or row.identity is None:
            return row
        if row.identity == disk.identity:
            self._require_original(disk, row)
        elif disks.has_shares(session, name) or disks.is_served_by_others(
            session, self.service_host, self.incarnation, self.down_time
        ):
            raise exception.StorageUnavailable(
                reason=f'{name}: the disk at {disk.location} is new or '
                f'another one{_own(row)}. Put the right disk in place; two '
                'nodes with disks of their own need a "host" each. '
                f'{_if_lost(name)}'
            )
        return row

    def _require_original(self, disk: Disk, row: DiskRow) -> None:
        if disk.file_system and row.file_system and disk.file_system != row.file_system:
            raise exception.StorageUnavailable(
                reason=f'{row.host}: the disk at {disk.location} is a copy: '
                f'it has file system {disk.file_system}, and the original '
                f'has {row.file_system}{_own(row)}. If the copy is to be used '
                'from now on, declare the original lost with '
                f'"manila-lite-manage storage declare-lost {row.host}"'
            )


def _differs(disk: Disk, row: DiskRow) -> bool:
    return (row.identity, row.file_system, row.location) != disk[1:]


def _own(row: DiskRow | None) -> str:
    if row is None or row.identity is None:
        return ''
    return f'; its own is {row.identity}, seen last at {row.location}'


def _if_lost(name: str) -> str:
    return (
        'If it is lost for good, "manila-lite-manage storage declare-lost '
        f'{name}" says what that costs'
    )
