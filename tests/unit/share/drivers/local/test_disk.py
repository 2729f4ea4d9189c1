"""The file that marks the root, and what happens without it."""

import shutil

import pytest

from manila_lite import exception
from manila_lite.share.drivers.local.disk import MARKER
from tests.drivers.driver_harness import CTX
from tests.unit.share.drivers.local.local_driver import make, start


@pytest.fixture
def mount(root):
    """Pretend that the file system of the root is mounted or not."""
    away = root.with_name('unmounted')

    def mount(yes):
        if yes:
            shutil.rmtree(root)
            away.rename(root)
        else:
            root.rename(away)
            root.mkdir()

    return mount


@pytest.mark.parametrize('has_shares', [False, True])
def test_root_is_marked_at_the_first_start(root, has_shares):
    """An upgraded one has the directories of an earlier release."""
    if has_shares:
        start(root)
        (root / MARKER).unlink()
    start(root, has_shares=has_shares)
    assert (root / MARKER).is_file()


def test_empty_root_is_refused_if_there_are_shares(root, driver, mount):
    driver.create_share(CTX, make.share())
    mount(False)
    with pytest.raises(exception.StorageUnavailable, match='mounted'):
        start(root, has_shares=True)
    assert list(root.iterdir()) == []
    mount(True)
    start(root, has_shares=True).check_health()


def test_lost_shares_are_given_up_by_marking_the_root(root, driver, mount):
    mount(False)
    (root / MARKER).touch()
    start(root, has_shares=True).check_health()


def test_nothing_is_done_on_the_wrong_disk(root, driver, share, mount):
    (location,) = driver.create_share(CTX, share)
    mount(False)
    for call in (
        driver.check_health,
        lambda: driver.create_share(CTX, make.share()),
        lambda: driver.delete_share(CTX, share),
        lambda: driver.get_share_status(share),
        lambda: driver.update_access(CTX, share, [], [], [], []),
    ):
        with pytest.raises(exception.StorageUnavailable, match=MARKER):
            call()
    assert list(root.iterdir()) == []
    mount(True)
    driver.check_health()
    assert driver.get_share_status(share)['status'] == 'available'


def test_root_was_deleted(root, driver, share):
    """Nothing is left to delete, and nothing can be created."""
    driver.create_share(CTX, share)
    shutil.rmtree(root)
    with pytest.raises(exception.StorageUnavailable):
        driver.check_health()
    with pytest.raises(exception.StorageUnavailable):
        driver.create_share(CTX, make.share())
    driver.update_access(CTX, share, [], [], [], [])
    driver.delete_share(CTX, share)
    driver.delete_snapshot(CTX, make.snapshot(share))
    start(root).check_health()


@pytest.mark.parametrize('part', [MARKER, f'{MARKER}/below'])
def test_marker_cannot_be_managed(root, driver, part):
    (root / MARKER).unlink()
    (root / part).mkdir(parents=True)
    share = make.at(str(root / part))
    with pytest.raises(exception.ManageInvalidShare):
        driver.manage_existing(share, {})
