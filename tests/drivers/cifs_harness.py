"""The driver btrfs with CIFS shares, whose clients are users."""

import dataclasses
import itertools
import re
import typing

from manila_lite.share.drivers import base
from manila_lite.share.drivers.btrfs.driver import BtrfsDriver
from manila_lite.share.drivers.btrfs.exports.smb.smb_users import SmbUsers
from tests.drivers.driver_harness import DriverHarness
from tests.drivers.served_harness import ServedHarness
from tests.support.smb_client import PASSWORD, SmbClient, SmbError
from tests.support.tenant_network import TenantClient

_serial = itertools.count()

Client = tuple[str, str, str]
Item = base.ShareForDriver | base.SnapshotForDriver


@dataclasses.dataclass
class CifsHarness(DriverHarness):
    """Rules for an address become rules for a user of that name."""

    client: TenantClient | None = None
    named: dict[str, set[str]] = dataclasses.field(default_factory=dict)
    """The users of all rules that there ever were, by share."""

    def share(self, **values: typing.Any) -> base.ShareForDriver:
        return super().share(**{'share_proto': 'CIFS', **values})

    def rule(
        self, share: base.ShareForDriver, access_to: str, **values: typing.Any
    ) -> base.AccessRuleForDriver:
        values = {'access_type': 'user', **values}
        if values['access_type'] == 'user':
            access_to = access_to.replace('/', '_')
            users = self.users_at_server()
            if access_to not in users.names():
                users.add(access_to, PASSWORD)
            self.named.setdefault(share.share_id, set()).add(access_to)
        return super().rule(share, access_to, **values)

    def users_at_server(self) -> SmbUsers:
        return SmbUsers(self.folder(self.start()))

    def folder(self, driver: BtrfsDriver):
        return driver.backend.root / 'smb'

    def clients(self, driver: BtrfsDriver, item: Item) -> set[Client]:
        """Return the users that smbd lets in, and those that it will."""
        if not driver.backend.root.exists():
            return set()
        is_snapshot = isinstance(item, base.SnapshotForDriver)
        share = item.share if is_snapshot else item
        names = self.named.get(share.share_id, set())
        levels = {
            name: level_of(
                self.user(driver, name),
                f'snapshots.{item.name}' if is_snapshot else item.name,
            )
            for name in names
        }
        kind = 'snapshots' if is_snapshot else 'shares'
        return {
            ('user', name, level) for name, level in levels.items() if level
        } | self._configured(driver, f'{kind}.{item.name}')

    def _configured(self, driver: BtrfsDriver, name: str) -> set[Client]:
        file = self.folder(driver) / 'shares' / f'{name}.conf'
        if not file.exists():
            return set()
        text = file.read_text()
        writers = _names_in(text, 'write list')
        return {
            ('user', user, 'rw' if user in writers else 'ro')
            for user in _names_in(text, 'valid users')
        }

    def user(self, driver: BtrfsDriver, name: str) -> SmbClient:
        return SmbClient(name, driver.configuration.btrfs_smb_port)


@dataclasses.dataclass
class CifsOnServerHarness(CifsHarness):
    """The same on a share server."""

    served_by: base.ShareServerForDriver | None = None

    def folder(self, driver: BtrfsDriver):
        return self._server(driver).smb_folder

    def user(self, driver: BtrfsDriver, name: str) -> SmbClient:
        (link,) = self._server(driver).links()
        assert self.client
        return self.client.smb(name, link.host, driver.configuration.btrfs_smb_port)

    def _server(self, driver: BtrfsDriver):
        assert self.served_by
        return driver.backend.servers.get(self.served_by.id)


@dataclasses.dataclass
class ServedCifsHarness(CifsOnServerHarness, ServedHarness):
    """The same with all shares on one share server."""

    def set_up_server(
        self, driver: base.ShareDriver, *addresses: str
    ) -> base.ShareServerForDriver:
        """Create a server that clients reach while others are there."""
        return super().set_up_server(
            driver, *(addresses or (f'10.20.0.{100 + next(_serial) % 100}',))
        )

    def users_at_server(self) -> SmbUsers:
        return self._server(DriverHarness.start(self)).users


def _names_in(text: str, option: str) -> set[str]:
    lines = re.findall(f'{option} = (.*)', text)
    return {name for line in lines for name in re.findall('"([^"]*)"', line)}


def level_of(user: SmbClient, share: str) -> str | None:
    """Return the level at which a user may use a share, if at all.

    Nothing is written: what is opened for that is the directory itself.
    """
    try:
        user(share, 'put /etc/hostname ""')
    except SmbError as error:
        if 'FILE_IS_A_DIRECTORY' in str(error):
            return 'rw'
        if 'opening remote file' in str(error):
            return 'ro'
        if 'tree connect failed' in str(error):
            return None
        raise
    raise AssertionError('a directory has been written')
