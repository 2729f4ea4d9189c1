"""The CephFS driver under test, and users of its shares."""

import dataclasses
import functools
import re
import uuid

from manila_lite import exception
from manila_lite.share.drivers.base import AccessRuleForDriver, ShareForDriver
from manila_lite.share.drivers.cephfs.users import list_users
from tests.drivers.driver_harness import GIB, DriverHarness, displayed_clients
from tests.support.processes import wait_until

LEVELS = {'rw': 'rw', 'r': 'ro'}


class CephHarness(DriverHarness):
    """Shares that are mounted natively; `client` is a mount of all of them."""

    client = None

    @functools.cached_property
    def _suffix(self) -> str:
        return uuid.uuid4().hex[:8]

    def share(self, **values) -> ShareForDriver:
        return super().share(**{'share_proto': 'CEPHFS', **values})

    def rule(self, share, access_to: str, **values) -> AccessRuleForDriver:
        """Return a rule for a user whose name is made of an address.

        No other test has this user, whatever it leaves in the cluster.
        """
        user = re.sub(r'[^a-z0-9]', '-', f'{access_to}-{self._suffix}')
        return super().rule(share, user, **{'access_type': 'cephx', **values})

    def clients(self, driver, item):
        try:
            record = driver.backend.get_share(item)
        except exception.ShareResourceNotFound:
            return set()
        found = list_users(driver.backend, record['subvolume'])
        return {('cephx', user, LEVELS[level]) for user, level in found.items()}

    def users(self, driver, share):
        driver.create_share(None, share)
        return self.users_of(driver, share)

    def users_of(self, driver, share):
        record = driver.backend.get_share(share)
        return CephUsers(driver, share, self.client, record['path'].lstrip('/'))


class CephNfsHarness(CephHarness):
    """Shares that gateways serve by NFS."""

    gateways = None

    def share(self, **values) -> ShareForDriver:
        return DriverHarness.share(self, **values)

    def rule(self, share, access_to: str, **values) -> AccessRuleForDriver:
        return DriverHarness.rule(self, share, access_to, **values)

    def clients(self, driver, item):
        """Return the clients that the gateways let in, which is the same at each."""
        number = self.gateways.number(driver, item)
        one, *others = (_clients_at(each, number) for each in self.gateways.each)
        assert all(other == one for other in others)
        return one


def _clients_at(gateway, number: int | None) -> set[tuple[str, str, str]]:
    if number not in gateway.server.numbers():
        return set()
    return displayed_clients(gateway.folder / 'bus.sock', number)


@dataclasses.dataclass
class CephUsers:
    """Users of a share, by a mount of the whole file system."""

    driver: object
    share: ShareForDriver
    client: object
    path: str

    def write(self, text: str) -> None:
        self.client.write(f'{self.path}/notes', text.encode())

    def read(self) -> str:
        return self.client.run(f'cat {self.path}/notes 2>&- || true').decode()

    def fill(self, gib: float) -> None:
        """Use up space without writing it; Ceph counts it a little later."""
        self.client.run(f'truncate -s {int(gib * GIB)} {self.path}/filling; sync')
        wait_until(lambda: self._used() >= gib * GIB, 'the space is counted')

    def _used(self) -> int:
        backend = self.driver.backend
        subvolume = backend.get_share(self.share)['subvolume']
        return backend.get_info(self.share.id, subvolume)['bytes_used']
