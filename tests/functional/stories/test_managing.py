"""Real files change hands and are copied, without a byte being lost.

Everything is asked for with the official command line, over HTTP.
"""

import pathlib
import typing

import pytest

from tests.drivers import content
from tests.functional.stories.conftest import new_installation
from tests.support.cli import Cli
from tests.support.installation import Installation
from tests.support.processes import wait_until

TYPE = (
    'files',
    'false',
    '--snapshot-support',
    'true',
    '--create-share-from-snapshot-support',
    'true',
)


class Place(typing.NamedTuple):
    """An installation on real directories, and who uses it."""

    installation: Installation
    root: pathlib.Path
    cli: Cli

    def quiet(self):
        wait_until(
            lambda: not self.installation.pending_work(), 'nothing is owed'
        )

    def share(self, name):
        """A share that is available, and where its files are."""
        self.quiet()
        share = self.cli('share show', name)
        assert share['status'] == 'available', share
        paths = [
            pathlib.Path(one['Path'])
            for one in self.cli('share export location list', share['id'])
        ]
        (folder,) = (path for path in paths if path.is_dir())
        return share, folder

    def snapshot(self, name):
        self.quiet()
        snapshot = self.cli('share snapshot show', name)
        assert snapshot['status'] == 'available', snapshot
        return snapshot

    def used(self):
        """Number and GiB of shares and of snapshots, as charged."""
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
def place(tmp_path_factory):
    root = tmp_path_factory.mktemp('root')
    with new_installation(
        tmp_path_factory.mktemp('managing') / 'installation',
        options='default_share_type = files',
        backends={
            'local': {
                'share_driver': 'local',
                'local_root': root,
                'local_capacity_gb': 100,
                'max_over_subscription_ratio': 1,
            }
        },
    ) as installation:
        installation.start()
        cli = Cli('--os-auth-type', 'none', '--os-endpoint', installation.url)
        cli('share type create', *TYPE)
        yield Place(installation, root, cli)


def test_files_change_hands_and_stay_as_they_are(place):
    cli = place.cli
    cli('share create', 'NFS', '2', '--name', 'mine')
    share, folder = place.share('mine')
    content.populate(folder)
    before = content.describe(folder)
    cli('share snapshot create', 'mine', '--name', 'kept')
    location = place.snapshot('kept')['provider_location']

    cli('share snapshot abandon', 'kept')
    place.quiet()
    cli('share abandon', 'mine')
    place.quiet()
    assert cli('share list') == []
    assert place.used() == (0, 0, 0, 0)
    assert content.describe(folder) == before

    cli('share adopt', share['host'], 'NFS', folder, '--name', 'again')
    adopted, where = place.share('again')
    assert (adopted['size'], where) == (2, folder)
    assert '__managed_at' in adopted['properties']
    assert content.describe(folder) == before
    cli('share snapshot adopt', 'again', location, '--name', 'kept')
    assert place.snapshot('kept')['size'] == 2
    assert place.used() == (1, 2, 1, 2)

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
    _, where = place.share('copy')
    assert where != folder
    assert content.describe(where) == before
    assert place.used() == (2, 5, 1, 2)


def test_nothing_is_left_behind(place):
    """After all of the above."""
    for kind in ('share snapshot', 'share'):
        for one in place.cli(f'{kind} list'):
            place.cli(f'{kind} delete', one['ID'])
        place.quiet()
    assert place.used() == (0, 0, 0, 0)
    # Directories alone may stay; what begins with a dot is the driver's.
    assert [
        path
        for path in place.root.rglob('*')
        if not path.name.startswith('.') and not path.is_dir()
    ] == []
