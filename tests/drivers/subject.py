"""The driver under test, to be started as often as a test likes."""

from collections.abc import Callable
import contextlib
import dataclasses
import os
import pathlib
import uuid

from manila_lite import context
from manila_lite import exception
from manila_lite.share.drivers import registry
from manila_lite.share.drivers.base import ShareDriver
from manila_lite.share.drivers.base import ShareForDriver
from manila_lite.share.drivers.base import SnapshotForDriver
from manila_lite.share.drivers.base import SnapshotSupport
from manila_lite.share.drivers.base import export_locations
from manila_lite.share.drivers.configuration import Configuration

CTX = context.RequestContext(user_id='user', project_id='project')
GIB = 1024 ** 3


class DirectoryUsers:
    """Users of a share that is a directory of this machine."""

    def __init__(self, path: str):
        self.path = pathlib.Path(path)

    def write(self, text: str) -> None:
        (self.path / 'notes').write_text(text)

    def read(self) -> str:
        notes = self.path / 'notes'
        return notes.read_text() if notes.exists() else ''

    def fill(self, gib: float) -> None:
        """Take up room without writing all of it."""
        with (self.path / 'filling').open('wb') as file:
            os.posix_fallocate(file.fileno(), 0, int(gib * GIB))


class RememberedUsers:
    """Users of a share that the dummy driver only remembers."""

    def __init__(self, driver: ShareDriver, share: ShareForDriver):
        self.driver = driver
        self.share_id = share.id

    def write(self, text: str) -> None:
        self.driver.write(self.share_id, text)

    def read(self) -> str:
        return self.driver.read(self.share_id)

    def fill(self, gib: float) -> None:
        self.driver.write(self.share_id, 'filling', used_gb=gib)


@dataclasses.dataclass
class Subject:
    """A driver by name, the options it gets, and what was made with it."""

    driver: str
    configure: Callable[[], Configuration]
    shares: list[ShareForDriver] = dataclasses.field(default_factory=list)
    snapshots: list[SnapshotForDriver] = dataclasses.field(
        default_factory=list)

    def start(self) -> ShareDriver:
        """The driver as a new process would have it."""
        driver = registry.load(self.driver)(configuration=self.configure(),
                                            private_storage=None)
        driver.do_setup(CTX)
        driver.check_for_setup_error()
        return driver

    def share(self, **values) -> ShareForDriver:
        """A share to be made; nothing has been done about it."""
        share_id = str(uuid.uuid4())
        share = ShareForDriver(**{
            'id': share_id, 'share_id': str(uuid.uuid4()),
            'name': f'share-{share_id}', 'size': 1, 'share_proto': 'NFS',
            'project_id': CTX.project_id, 'host': 'host@backend', **values})
        self.shares.append(share)
        return share

    def snapshot(self, share: ShareForDriver, **values) -> SnapshotForDriver:
        """A snapshot to be taken; nothing has been done about it."""
        snapshot_id = str(uuid.uuid4())
        snapshot = SnapshotForDriver(**{
            'id': snapshot_id, 'snapshot_id': str(uuid.uuid4()),
            'name': f'snapshot-{snapshot_id}', 'size': share.size,
            'share': share, **values})
        self.snapshots.append(snapshot)
        return snapshot

    def users(self, driver: ShareDriver, share: ShareForDriver):
        """Those who write to a share; None if a test cannot play them."""
        location = export_locations(driver.create_share(CTX, share))[0]
        if os.path.isdir(location['path']):
            return DirectoryUsers(location['path'])
        if hasattr(driver, 'write') and hasattr(driver, 'read'):
            return RememberedUsers(driver, share)
        return None

    def clean_up(self) -> None:
        """Remove whatever tests have made."""
        driver = self.start()
        if isinstance(driver, SnapshotSupport):
            for snapshot in self.snapshots:
                driver.delete_snapshot(CTX, snapshot)
        for share in self.shares:
            with contextlib.suppress(exception.ShareResourceNotFound):
                driver.delete_share(CTX, share)
