"""What users put into a share leads the driver, which is root, nowhere."""

import pathlib

import pytest

from manila_lite.share.drivers.btrfs.driver import BtrfsDriver
from tests.drivers import content
from tests.drivers.driver_harness import CTX
from tests.drivers.swapping import Swapper
from tests.support import storage
from tests.unit.share.drivers.btrfs.migration_sites import MIB, Site


@pytest.fixture(scope='module')
def site():
    storage.require()
    with storage.folder() as folder:
        yield Site(folder)


@pytest.fixture
def swapper(site, tmp_path):
    return Swapper(tmp_path)


@pytest.fixture
def share(site, swapper):
    """A share with traps that lead to files beside the pool."""
    share = site.create(size=2)
    content.set_traps(site.volume(site.near, share), swapper.outside)
    return share


def revert(mode):
    def act(site, share, swapper):
        snapshot = site.made['near'].snapshot(share)
        site.near.create_snapshot(CTX, snapshot)
        volume = site.volume(site.near, share)
        swapper.swap(volume / 'traps')
        swapper.swap(volume)
        configuration = site.made['near'].configure()
        configuration.override({'btrfs_revert_mode': mode})
        driver = BtrfsDriver(configuration=configuration)
        driver.check_for_setup_error()
        driver.revert_to_snapshot(CTX, snapshot, [], [])
        return site.volume(site.near, share)

    return act


def migrate(to):
    def act(site, share, swapper):
        moved = site.share(f'host@{to}', size=2)
        site.copy(share, moved)
        site.complete(share, moved)
        return site.volume(site.far if 'far' in to else site.near, moved)

    return act


def clone(site, share, swapper):
    snapshot = site.made['near'].snapshot(share)
    site.near.create_snapshot(CTX, snapshot)
    copy = site.share('host@near#small', size=2)
    site.near.create_share_from_snapshot(CTX, copy, snapshot)
    return site.volume(site.near, copy)


def measure(site, share, swapper):
    volume = site.volume(site.near, share)
    (volume / 'traps/directory/large').write_bytes(bytes(20 * MIB))
    site.near.shrink_share(share, 1)
    (usage,) = site.near.update_share_usage_size(CTX, [share])
    assert usage['used_size'] == 0.02
    (volume / 'traps/directory/large').unlink()
    return volume


@pytest.mark.parametrize(
    'act',
    [
        *(pytest.param(revert(mode), id=mode) for mode in ('swap', 'rewrite')),
        *(pytest.param(migrate(to), id=to) for to in ('near#small', 'far#spare')),
        clone,
    ],
)
def test_copy_has_the_links_and_devices_and_not_what_they_lead_to(
    site, share, swapper, act
):
    before = content.describe(site.volume(site.near, share))
    assert content.describe(act(site, share, swapper)) == before
    assert swapper.is_unharmed()


def test_what_links_lead_to_does_not_count(site, share, swapper):
    (swapper.outside / 'large').write_bytes(bytes(20 * MIB))
    measure(site, share, swapper)
    site.near.delete_share(CTX, share)
    assert (swapper.outside / 'large').stat().st_size == 20 * MIB


@pytest.mark.parametrize('name', ['null', 'disk'])
def test_devices_in_a_share_cannot_be_opened(site, share, name):
    root = pathlib.Path(site.made['near'].configure().btrfs_root)
    for top in (
        site.volume(site.near, share),
        root / f'exports/mounts/shares.{share.name}',
    ):
        path = top / 'traps' / name
        assert path.lstat().st_rdev
        with pytest.raises(PermissionError):
            path.open('rb')
