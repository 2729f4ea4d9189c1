"""Real files are unmanaged, managed again and copied without loss.

All requests use the official command line, over HTTP.
"""

import pathlib
import typing

import pytest

from tests.drivers import content
from tests.functional.stories import suites
from tests.functional.stories.conftest import local_installation
from tests.support.cli import Cli
from tests.support.installation import Installation
from tests.support.processes import wait_until

pytestmark = suites.several_backends


class Deployment(typing.NamedTuple):
    """An installation on real directories, and its command line."""

    installation: Installation
    root: pathlib.Path
    cli: Cli

    def wait_idle(self):
        wait_until(lambda: not self.installation.pending_work(), 'no work is pending')

    def share(self, name):
        """Wait for a share; return it and the folder of its files."""
        self.wait_idle()
        share = self.cli('share show', name)
        assert share['status'] == 'available', share
        paths = [
            pathlib.Path(one['Path'])
            for one in self.cli('share export location list', share['id'])
        ]
        (folder,) = (path for path in paths if path.is_dir())
        return share, folder

    def snapshot(self, name):
        self.wait_idle()
        snapshot = self.cli('share snapshot show', name)
        assert snapshot['status'] == 'available', snapshot
        return snapshot

    def used(self):
        """Return number and GiB of shares and of snapshots, as charged."""
        limits = {
            one['Name']: one['Value']
            for one in self.cli('share limits show', '--absolute')
        }
        return tuple(
            limits[f'total{name}Used']
            for name in (
                'Shares',
                'ShareGigabytes',
                'ShareSnapshots',
                'SnapshotGigabytes',
            )
        )


@pytest.fixture(scope='module')
def deployment(tmp_path_factory):
    with local_installation(
        tmp_path_factory.mktemp('managing'), 'snapshot', 'create-share-from-snapshot'
    ) as parts:
        yield Deployment(*parts)


def test_files_are_unchanged_by_unmanage_and_manage(deployment):
    cli = deployment.cli
    cli('share create', 'NFS', '2', '--name', 'mine')
    share, folder = deployment.share('mine')
    content.populate(folder)
    before = content.describe(folder)
    cli('share snapshot create', 'mine', '--name', 'kept')
    location = deployment.snapshot('kept')['provider_location']

    cli('share snapshot abandon', 'kept')
    deployment.wait_idle()
    cli('share abandon', 'mine')
    deployment.wait_idle()
    assert cli('share list') == []
    assert deployment.used() == (0, 0, 0, 0)
    assert content.describe(folder) == before

    cli('share adopt', share['host'], 'NFS', folder, '--name', 'again')
    adopted, path = deployment.share('again')
    assert (adopted['size'], path) == (2, folder)
    assert '__managed_at' in adopted['properties']
    assert content.describe(folder) == before
    cli('share snapshot adopt', 'again', location, '--name', 'kept')
    assert deployment.snapshot('kept')['size'] == 2
    assert deployment.used() == (1, 2, 1, 2)

    content.damage(folder)
    copied = cli(
        'share create',
        'NFS',
        '3',
        '--snapshot-id',
        cli('share snapshot show', 'kept')['id'],
        '--name',
        'copy',
    )
    assert copied['snapshot_id']
    _, path = deployment.share('copy')
    assert path != folder
    assert content.describe(path) == before
    assert deployment.used() == (2, 5, 1, 2)


def test_nothing_is_left_behind(deployment):
    """After all of the above."""
    for kind in ('share snapshot', 'share'):
        for one in deployment.cli(f'{kind} list'):
            deployment.cli(f'{kind} delete', one['ID'])
        deployment.wait_idle()
    assert deployment.used() == (0, 0, 0, 0)
    # Only directories may stay; tokens and names with a dot are the driver's.
    assert [
        path
        for path in deployment.root.rglob('*')
        if not path.name.startswith('.')
        and not path.is_dir()
        and path.parent.name != 'fencing'
    ] == []
