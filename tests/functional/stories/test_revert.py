"""A share of real files goes back to what a snapshot of it holds.

Everything is asked for with the official command line, over HTTP. How it
goes on is looked up without it, since the client waits in steps of seconds.
"""

import os
import pathlib
import typing

import pytest

from tests.drivers import content
from tests.functional.stories.conftest import new_installation
from tests.support.cli import Cli
from tests.support.installation import Installation
from tests.support.processes import wait_until
from tests.support.rest_client import RestClient

TYPE = (
    'files',
    'false',
    '--snapshot-support',
    'true',
    '--revert-to-snapshot-support',
    'true',
)
OTHERS = 65534
"""An owner that is not the one of the service."""


class Place(typing.NamedTuple):
    """An installation on real directories, and who uses it."""

    installation: Installation
    root: pathlib.Path
    cli: Cli
    rest: RestClient


class Share(typing.NamedTuple):
    id: str
    folder: pathlib.Path


@pytest.fixture(scope='module')
def place(tmp_path_factory):
    root = tmp_path_factory.mktemp('root')
    with new_installation(
        tmp_path_factory.mktemp('revert') / 'installation',
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
        yield Place(installation, root, cli, installation.rest('admin'))


@pytest.fixture
def cli(place):
    return place.cli


@pytest.fixture
def make_share(place):
    """Makes a share that holds something of every kind."""

    def make(size):
        made = place.cli('share create', 'NFS', size)
        assert at_rest(place, 'share', made['id'])['status'] == 'available'
        paths = {
            pathlib.Path(one['path'])
            for one in place.rest.get(
                f'/shares/{made["id"]}/export_locations'
            )['export_locations']
        }
        (folder,) = (path for path in paths if path.is_dir())
        content.populate(folder)
        if os.geteuid() == 0:  # who else may give files away
            os.chown(folder / 'one' / 'two', OTHERS, OTHERS)
            os.lchown(folder / 'dangling', OTHERS, OTHERS)
        return Share(made['id'], folder)

    return make


def at_rest(place, kind, id):
    """A share or snapshot as soon as nothing is being done with it."""

    def check():
        found = place.rest.get(f'/{kind}s/{id}')[kind]
        return None if found['status'].endswith('ing') else found

    return wait_until(check, f'{kind} {id} is at rest')


def picture(place, share):
    """A snapshot of the share; it is there when this returns."""
    made = place.cli('share snapshot create', share.id)
    assert at_rest(place, 'snapshot', made['id'])['status'] == 'available'
    at_rest(place, 'share', share.id)
    return made['id']


def revert(place, share, snapshot_id):
    """Go back; the share as it is after that."""
    place.cli('share revert', snapshot_id)
    found = at_rest(place, 'share', share.id)
    assert found['status'] == 'available'
    return found


def used(place):
    """GiB of shares that the project is charged with."""
    return place.rest.get('/limits')['limits']['absolute'][
        'totalShareGigabytesUsed'
    ]


def test_every_byte_owner_and_mode_is_back(place, make_share):
    share = make_share(1)
    before = content.describe(share.folder)
    snapshot = picture(place, share)
    content.damage(share.folder)
    (share.folder / 'one-more').write_text('x' * 100_000)
    assert content.describe(share.folder) != before
    place.cli('share revert', snapshot, '--wait')
    assert content.describe(share.folder) == before
    # The share goes on, and the snapshot is still good.
    content.damage(share.folder)
    revert(place, share, snapshot)
    assert content.describe(share.folder) == before


@pytest.mark.parametrize('before, now', [(1, 3), (3, 1)])
def test_size_and_quota_go_back_with_the_content(
    place, make_share, before, now
):
    share = make_share(before)
    held = content.describe(share.folder)
    others = used(place) - before
    snapshot = picture(place, share)
    place.cli('share resize', share.id, now)
    assert at_rest(place, 'share', share.id)['size'] == now
    assert used(place) == others + now
    content.damage(share.folder)
    assert revert(place, share, snapshot)['size'] == before
    assert content.describe(share.folder) == held
    assert used(place) == others + before


def test_user_goes_back_step_by_step(place, make_share):
    """As the design has it: delete the newest, revert to the next."""
    share = make_share(1)
    good = content.describe(share.folder)
    older = picture(place, share)
    content.damage(share.folder)
    bad = content.describe(share.folder)
    newer = picture(place, share)
    (share.folder / 'note').write_text('worse and worse')
    assert 'newest' in place.cli('share revert', older, code=1)
    revert(place, share, newer)
    assert content.describe(share.folder) == bad
    place.cli('share snapshot delete', newer)
    wait_until(
        lambda: not place.installation.pending_work(), 'the newer one is gone'
    )
    revert(place, share, older)
    assert content.describe(share.folder) == good


def test_nothing_is_left_behind(place):
    """After all of the above."""
    for kind in ('snapshot', 'share'):
        for one in place.rest.get(f'/{kind}s')[f'{kind}s']:
            place.rest.request('DELETE', f'/{kind}s/{one["id"]}', expect=202)
        wait_until(
            lambda: not place.installation.pending_work(), f'{kind}s are gone'
        )
    assert used(place) == 0
    # Directories alone may stay; what begins with a dot is the driver's.
    assert [
        path
        for path in place.root.rglob('*')
        if not path.name.startswith('.') and not path.is_dir()
    ] == []
