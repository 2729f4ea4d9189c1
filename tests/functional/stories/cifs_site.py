"""A CIFS share that users of an installation have access to."""

import pytest

from tests.support.cli import Cli
from tests.support.installation import Installation
from tests.support.processes import wait_until
from tests.support.smb_client import SmbError

NEWEST = '2.95'  # known to the client for share migration
MIGRATION_OPTIONS = (
    *('--writable', 'True', '--nondisruptive', 'False'),
    *('--preserve-metadata', 'True', '--preserve-snapshots', 'False'),
)
LOST = 'NETWORK_NAME_DELETED|FILE_CLOSED|USER_SESSION_DELETED'


class CifsSite:
    """The share, and requests for it with the official command line."""

    id: str

    def __init__(self, installation: Installation):
        self.installation = installation
        self.rest = installation.rest('admin')
        self.cli = Cli(
            *('--os-auth-type', 'none', '--os-endpoint', installation.url),
            version=NEWEST,
        )

    def create_type(self, *values: str) -> None:
        self.cli('share type create', 'cifs', *values)

    def create(self, *values: str) -> None:
        self.id = self.cli('share create', 'CIFS', '1', *values)['id']
        self.wait()

    def wait(self) -> None:
        wait_until(lambda: not self.installation.pending_work(), 'no work left')

    def allow(self, user: str, level: str = 'rw') -> str:
        rule = self.cli(
            *('share access create', self.id, 'user', user), *('--access-level', level)
        )
        self.wait()
        return rule['id']

    def deny(self, rule: str) -> None:
        self.cli('share access delete', self.id, rule)
        self.wait()

    def show(self) -> dict:
        return self.rest.get(f'/shares/{self.id}')['share']

    @property
    def backend(self) -> str:
        return self.show()['host'].partition('@')[2].partition('#')[0]

    def location(self) -> tuple[str, str]:
        """Return the address and the name by which clients use the share."""
        found = self.rest.get(f'/shares/{self.id}/export_locations')
        return location_in(found['export_locations'])

    def start_migration(self, backend: str, *options: str) -> None:
        """Let all be copied to the pool of another back end."""
        host = f'{self.installation.service_host(backend)}#pool'
        self.cli(
            *('share migration start', self.id, host), *(*MIGRATION_OPTIONS, *options)
        )
        self.wait_for('migration_driver_phase1_done')
        self.wait()

    def complete_migration(self) -> None:
        self.cli('share migration complete', self.id)
        self.wait_for('migration_success')

    def wait_for(self, state: str) -> None:
        def has_come() -> bool:
            found = self.show()['task_state']
            assert found != 'migration_error'
            return found == state

        wait_until(has_come, state)


def location_in(locations: list[dict]) -> tuple[str, str]:
    """Return the address and the name in the only location."""
    (location,) = locations
    address, name = location['path'].removeprefix('\\\\').split('\\')
    return address, name


def refused(status: str):
    return pytest.raises(SmbError, match=f'NT_STATUS_({status})')
