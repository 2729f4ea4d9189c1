"""What all parts of the local driver use."""

from collections.abc import Callable
import grp
import os
import pathlib
import pwd

from oslo_utils import netutils

from manila_lite import exception
from manila_lite.share.drivers import base, records
from manila_lite.share.drivers.contract.configuration import Configuration
from manila_lite.share.drivers.local.store import LocalItem, LocalStore


class LocalBackend:
    """The root, the options and the clock of one back end."""

    def __init__(
        self,
        configuration: Configuration,
        replication_domain: str | None,
        clock: Callable[[], float],
        sleep: Callable[[float], object],
    ):
        self.configuration = configuration
        self.replication_domain = replication_domain
        self.clock = clock
        self.sleep = sleep
        self.root = pathlib.Path(configuration.local_root)
        self.store = LocalStore(self.root)

    @property
    def replication_type(self) -> str | None:
        return self.configuration.local_replication_type

    def require_replication(self) -> None:
        """Raise NotImplementedError without a replication type."""
        if not self.replication_type:
            raise NotImplementedError

    def get_share(self, name: str) -> tuple[LocalItem, records.Record]:
        """Return a share and its record."""
        item = self.store.share(name)
        record = item.find()
        if record is None:
            raise exception.ShareResourceNotFound(share_id=name)
        return item, record

    def get_snapshot(
        self, snapshot: base.SnapshotForDriver
    ) -> tuple[LocalItem, records.Record]:
        """Return a snapshot and its record."""
        item = self.store.snapshot(snapshot['name'])
        record = item.find()
        if record is None:
            raise exception.SnapshotResourceNotFound(snapshot_id=snapshot['id'])
        return item, record

    def create_data(self, path: pathlib.Path) -> None:
        """Create the directory of a share as its clients need it."""
        path.mkdir()
        if self.owner is not None:
            os.chown(path, *self.owner)
        path.chmod(self.mode)

    @property
    def mode(self) -> int:
        return int(self.configuration.local_share_mode, 8)

    @property
    def owner(self) -> tuple[int, int] | None:
        """The ids of user and group of new shares; None for ours.

        Raises LookupError for an unknown name.
        """
        given = self.configuration.local_share_owner
        if not given:
            return None
        user, _, group = given.partition(':')
        return (
            int(user) if user.isdecimal() else pwd.getpwnam(user).pw_uid,
            -1
            if not group
            else int(group)
            if group.isdecimal()
            else grp.getgrnam(group).gr_gid,
        )

    def export_locations(
        self, item: LocalItem, record: records.Record
    ) -> list[base.ExportLocation]:
        """Return where clients find the data of a share or snapshot.

        Without a host that exports it, it is the directory.
        """
        return [
            {
                'path': self._location(item, record),
                'is_admin_only': False,
                'metadata': {'preferred': 'True'},
            }
        ]

    def _location(self, item: LocalItem, record: records.Record) -> str:
        data = item.data_path(record)
        host = self.configuration.local_export_host
        if not host:
            return str(data)
        if record.get('share_proto') == 'CIFS':
            return f'\\\\{host}\\{item.name}'
        return f'{netutils.escape_ipv6(host)}:{data}'

    def local_path(self, kind: str, location: str) -> str:
        """Return the directory of an export location; others unchanged."""
        host = self.configuration.local_export_host
        if not host:
            return location
        name = location.removeprefix(f'\\\\{host}\\')
        if name != location:
            return str(self.root / kind / name / 'data')
        return location.removeprefix(f'{netutils.escape_ipv6(host)}:')
