"""Managing existing directories."""

import os

import pytest

from manila_lite import exception
from tests.drivers import content
from tests.drivers.driver_harness import CTX, DirectoryUsers
from tests.unit.share.drivers.local.local_driver import directory, make, start


class TestManaging:
    @pytest.fixture
    def old(self, root, driver):
        old = root / 'imported' / 'old'
        old.mkdir(parents=True)
        content.populate(old)
        return old

    def manage(self, driver, path, **options):
        share = make.at(str(path))
        return share, driver.manage_existing(share, options)

    def test_any_directory_below_the_root_can_be_managed(self, driver, old):
        then = content.describe(old)
        share, answer = self.manage(driver, old)
        assert answer['size'] == 1
        assert answer['export_locations'][0]['path'] == str(old)
        assert content.describe(old) == then
        snapshot = make.snapshot(share)
        driver.create_snapshot(CTX, snapshot)
        content.damage(old)
        driver.revert_to_snapshot(CTX, snapshot, [], [])
        assert content.describe(old) == then
        driver.unmanage(share)
        assert content.describe(old) == then

    def test_deleting_a_managed_share_removes_its_directory(self, root, driver, old):
        share, _ = self.manage(driver, old)
        driver.delete_share(CTX, share)
        assert not old.exists()
        assert os.listdir(root / 'imported') == []
        assert os.listdir(root / 'shares') == []

    def test_unmanaged_and_managed_again_leaves_no_trace(self, root, driver, share):
        top = directory(driver, share)
        driver.update_access(CTX, share, [make.rule(share, '10.0.0.1')], [], [], [])
        driver.unmanage(share)
        assert os.listdir(root / 'exports')  # clients keep their access
        again, answer = self.manage(driver, top)
        assert answer['size'] == 2
        assert os.listdir(root / 'exports') == []
        driver.delete_share(CTX, again)
        assert os.listdir(root / 'shares') == []

    @pytest.mark.parametrize(
        'asked, size', [({'size': '7'}, 7), ({'size': 7}, 7), ({}, 2)]
    )
    def test_size_is_the_requested_one_or_that_of_the_content(
        self, driver, old, asked, size
    ):
        DirectoryUsers(old).fill(1.2)
        _, answer = self.manage(driver, old, **asked)
        assert answer['size'] == size

    @pytest.mark.parametrize('size', ['1', '0', '-3', 'big', '1.5', ''])
    def test_invalid_size_is_refused(self, driver, old, size):
        DirectoryUsers(old).fill(1.2)
        with pytest.raises(exception.ManageInvalidShare):
            self.manage(driver, old, size=size)

    @pytest.mark.parametrize(
        'path',
        [
            '/etc',
            '{root}',
            '{root}/shares',
            '{root}/work',
            '{root}/exports',
            '{root}/snapshots',
            '{root}/imported/../../elsewhere',
            '{root}/imported/none',
            '{root}/imported/old/script',
            '{root}/imported/old/link-to-directory',
            '{root}/way-out',
            '{root}/way-out/inside',
            '{root}/imported/new\nline',
            '{root}/shares/{share}',
            'imported/old',
        ],
    )
    def test_path_not_below_the_root_is_refused(
        self, root, driver, share, old, path, tmp_path
    ):
        (tmp_path / 'elsewhere' / 'inside').mkdir(parents=True)
        (root / 'way-out').symlink_to(tmp_path / 'elsewhere')
        (root / 'imported' / 'new\nline').mkdir()
        with pytest.raises(exception.ManageInvalidShare):
            self.manage(driver, path.format(root=root, share=share.name))

    def test_what_overlaps_a_share_is_refused(self, root, driver, share, old):
        (directory(driver, share) / 'inside').mkdir()
        self.manage(driver, old)
        for path in (
            old,
            old / 'one',
            old.parent,
            directory(driver, share),
            directory(driver, share) / 'inside',
        ):
            with pytest.raises(exception.ManageInvalidShare):
                self.manage(driver, path)

    def test_protocol_must_be_the_recorded_one(self, driver, share):
        other = make.at(str(directory(driver, share)), share_proto='CIFS')
        driver.unmanage(share)
        with pytest.raises(exception.ManageInvalidShare):
            driver.manage_existing(other, {})

    def test_any_directory_can_be_a_snapshot(self, root, driver, share):
        saved = root / 'imported' / 'saved'
        saved.mkdir(parents=True)
        (saved / 'file').write_text('then')
        snapshot = make.snapshot(share, provider_location=str(saved))
        assert driver.manage_existing_snapshot(snapshot, {})['size'] == 2
        driver.revert_to_snapshot(CTX, snapshot, [], [])
        assert (directory(driver, share) / 'file').read_text() == 'then'

    def test_unmanaged_shares_are_not_provisioned(self, driver, share):
        driver.unmanage(share)
        (pool,) = driver.get_share_stats(refresh=True)['pools']
        assert pool['allocated_capacity_gb'] == 0

    def test_root_may_be_a_link(self, tmp_path, root, driver, old):
        (tmp_path / 'link').symlink_to(root)
        linked = start(tmp_path / 'link')
        _, answer = self.manage(linked, tmp_path / 'link/imported/old')
        assert answer['size'] == 1
