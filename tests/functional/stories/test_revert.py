"""A share of real files is reverted to the contents of a snapshot.

All requests use the official command line, over HTTP. The test polls without
it, since the client polls in intervals of seconds.
"""

import os
import pathlib
import typing

import pytest

from tests.drivers import content
from tests.functional.stories.conftest import local_installation
from tests.support.cli import Cli
from tests.support.installation import Installation
from tests.support.processes import wait_until
from tests.support.rest_client import RestClient

OTHER_UID = 65534
"""A user id other than that of the service."""


class Deployment(typing.NamedTuple):
    """An installation on real directories, with clients."""

    installation: Installation
    root: pathlib.Path
    cli: Cli
    rest: RestClient


class Share(typing.NamedTuple):
    id: str
    folder: pathlib.Path


@pytest.fixture(scope='module')
def deployment(tmp_path_factory):
    with local_installation(
        tmp_path_factory.mktemp('revert'), 'snapshot', 'revert-to-snapshot'
    ) as parts:
        yield Deployment(*parts, parts[0].rest('admin'))


@pytest.fixture
def cli(deployment):
    return deployment.cli


@pytest.fixture
def make_share(deployment):
    """Return a function that creates a share with files of every kind."""

    def make(size):
        created = deployment.cli('share create', 'NFS', size)
        assert wait_at_rest(deployment, 'share', created['id'])['status'] == 'available'
        paths = {
            pathlib.Path(one['path'])
            for one in deployment.rest.get(f'/shares/{created["id"]}/export_locations')[
                'export_locations'
            ]
        }
        (folder,) = (path for path in paths if path.is_dir())
        content.populate(folder)
        if os.geteuid() == 0:  # only root may change owners
            os.chown(folder / 'one' / 'two', OTHER_UID, OTHER_UID)
            os.lchown(folder / 'dangling', OTHER_UID, OTHER_UID)
        return Share(created['id'], folder)

    return make


def wait_at_rest(deployment, kind, id):
    """Wait until a share or snapshot is at rest; return it."""

    def check():
        found = deployment.rest.get(f'/{kind}s/{id}')[kind]
        return None if found['status'].endswith('ing') else found

    return wait_until(check, f'{kind} {id} is at rest')


def create_snapshot(deployment, share):
    """Create a snapshot of the share, wait for it and return its id."""
    created = deployment.cli('share snapshot create', share.id)
    assert wait_at_rest(deployment, 'snapshot', created['id'])['status'] == 'available'
    wait_at_rest(deployment, 'share', share.id)
    return created['id']


def revert(deployment, share, snapshot_id):
    """Revert the share, wait and return it."""
    deployment.cli('share revert', snapshot_id)
    found = wait_at_rest(deployment, 'share', share.id)
    assert found['status'] == 'available'
    return found


def used(deployment):
    """Return the GiB of shares charged to the project."""
    return deployment.rest.get('/limits')['limits']['absolute'][
        'totalShareGigabytesUsed'
    ]


def test_revert_restores_contents_owners_and_modes(deployment, make_share):
    share = make_share(1)
    before = content.describe(share.folder)
    snapshot = create_snapshot(deployment, share)
    content.damage(share.folder)
    (share.folder / 'one-more').write_text('x' * 100_000)
    assert content.describe(share.folder) != before
    deployment.cli('share revert', snapshot, '--wait')
    assert content.describe(share.folder) == before
    # The share can be used on, and the snapshot is unchanged.
    content.damage(share.folder)
    revert(deployment, share, snapshot)
    assert content.describe(share.folder) == before


@pytest.mark.parametrize('before, now', [(1, 3), (3, 1)])
def test_revert_restores_size_and_quota(deployment, make_share, before, now):
    share = make_share(before)
    original = content.describe(share.folder)
    others = used(deployment) - before
    snapshot = create_snapshot(deployment, share)
    deployment.cli('share resize', share.id, now)
    assert wait_at_rest(deployment, 'share', share.id)['size'] == now
    assert used(deployment) == others + now
    content.damage(share.folder)
    assert revert(deployment, share, snapshot)['size'] == before
    assert content.describe(share.folder) == original
    assert used(deployment) == others + before


def test_user_reverts_step_by_step(deployment, make_share):
    """As designed: delete the newest snapshot, revert to the next."""
    share = make_share(1)
    good = content.describe(share.folder)
    older = create_snapshot(deployment, share)
    content.damage(share.folder)
    bad = content.describe(share.folder)
    newer = create_snapshot(deployment, share)
    (share.folder / 'note').write_text('worse and worse')
    assert 'newest' in deployment.cli('share revert', older, code=1)
    revert(deployment, share, newer)
    assert content.describe(share.folder) == bad
    deployment.cli('share snapshot delete', newer)
    wait_until(
        lambda: not deployment.installation.pending_work(), 'the newer one is gone'
    )
    revert(deployment, share, older)
    assert content.describe(share.folder) == good


def test_nothing_is_left_behind(deployment):
    """After all of the above."""
    for kind in ('snapshot', 'share'):
        for one in deployment.rest.get(f'/{kind}s')[f'{kind}s']:
            deployment.rest.request('DELETE', f'/{kind}s/{one["id"]}', expect=202)
        wait_until(
            lambda: not deployment.installation.pending_work(), f'{kind}s are gone'
        )
    assert used(deployment) == 0
    # Only directories may stay; tokens and names with a dot are the driver's.
    assert [
        path
        for path in deployment.root.rglob('*')
        if not path.name.startswith('.')
        and not path.is_dir()
        and path.parent.name != 'fencing'
    ] == []
