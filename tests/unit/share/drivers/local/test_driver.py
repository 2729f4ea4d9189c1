import os
import pathlib
import shutil
import tempfile

import pytest

from manila_lite import conf as options, exception
from manila_lite.share.drivers.contract.configuration import Configuration
from manila_lite.share.drivers.local.disk import IDENTITY, MARKER
from manila_lite.share.drivers.local.driver import LocalDriver
from tests.drivers import content
from tests.drivers.driver_harness import CTX, DirectoryUsers
from tests.unit.share.drivers.local.local_driver import directory, make, start

NOBODY = 65534


class TestStart:
    def test_relative_root_is_refused(self):
        with pytest.raises(exception.BadConfiguration, match='absolute'):
            start('somewhere')

    def test_root_that_cannot_be_written_is_refused(self, tmp_path):
        (tmp_path / 'file').write_text('in the way')
        with pytest.raises(exception.BadConfiguration, match='cannot be us'):
            start(tmp_path / 'file' / 'root')

    def test_share_servers_are_refused(self, root):
        with pytest.raises(exception.BadConfiguration, match='LocalDriver'):
            start(root, driver_handles_share_servers=True)

    def test_work_directory_is_private(self, root, driver):
        assert (root / 'work').stat().st_mode & 0o077 == 0

    def test_restart_keeps_work_of_other_processes(self, root, driver):
        (root / 'work' / 'share-of-another-process').mkdir()
        start(root)
        assert (root / 'work' / 'share-of-another-process').exists()


class TestShares:
    def test_export_is_an_absolute_directory(self, driver, share):
        (location,) = driver.create_share(CTX, share)
        assert os.path.isabs(location['path'])
        assert os.path.isdir(location['path'])
        assert location['metadata'] == {'preferred': 'True'}

    @pytest.mark.parametrize('name', ['../escape', 'a/b', '', '.', '..'])
    def test_unsafe_name_is_refused(self, root, driver, name):
        share = make.share(name=name)
        for verb in (driver.create_share, driver.delete_share):
            with pytest.raises(exception.ShareBackendException):
                verb(CTX, share)
        assert sorted(os.listdir(root.parent)) == ['root']

    def test_deleting_leaves_nothing_of_any_content(self, root, driver, share):
        content.populate(directory(driver, share))
        driver.delete_share(CTX, share)
        assert {path for path in root.rglob('*') if path.is_file()} == {
            root / MARKER,
            root / IDENTITY,
        }
        assert os.listdir(root / 'work') == []

    def test_share_without_its_directory_is_an_error(self, driver, share):
        shutil.rmtree(directory(driver, share))
        assert driver.get_share_status(share)['status'] == 'error'
        driver.delete_share(CTX, share)
        with pytest.raises(exception.ShareResourceNotFound):
            driver.get_share_status(share)

    def test_what_fills_the_share_is_counted_not_its_holes(self, driver, share):
        users = DirectoryUsers(directory(driver, share))
        with (users.path / 'holes').open('wb') as file:
            file.truncate(10 * 1024**3)
        driver.shrink_share(share, 1)
        driver.extend_share(share, 2)
        users.fill(1.2)
        with pytest.raises(exception.ShareShrinkingPossibleDataLoss):
            driver.shrink_share(share, 1)


class TestRevert:
    def test_every_byte_and_attribute_is_back(self, driver, share):
        top = directory(driver, share)
        content.populate(top)
        then, snapshot = content.describe(top), make.snapshot(share)
        driver.create_snapshot(CTX, snapshot)
        content.damage(top)
        assert content.describe(top) != then
        driver.revert_to_snapshot(CTX, snapshot, [], [])
        assert content.describe(top) == then

    def test_the_directory_itself_stays(self, driver, share):
        top, snapshot = directory(driver, share), make.snapshot(share)
        driver.create_snapshot(CTX, snapshot)
        inside = os.open(top, os.O_RDONLY)  # as a client that mounted it
        (top / 'later').write_text('later')
        driver.revert_to_snapshot(CTX, snapshot, [], [])
        assert os.listdir(inside) == []
        os.close(inside)

    def test_snapshot_is_not_used_up(self, driver, share):
        top, snapshot = directory(driver, share), make.snapshot(share)
        (top / 'file').write_text('then')
        driver.create_snapshot(CTX, snapshot)
        for _ in range(2):
            (top / 'file').write_text('now')
            driver.revert_to_snapshot(CTX, snapshot, [], [])
            assert (top / 'file').read_text() == 'then'

    def test_failing_before_the_copy_is_whole_changes_nothing(
        self, root, driver, share
    ):
        top, snapshot = directory(driver, share), make.snapshot(share)
        (top / 'file').write_text('then')
        driver.create_snapshot(CTX, snapshot)
        (top / 'file').write_text('now')
        shutil.rmtree(root / 'snapshots' / snapshot.name / 'data')
        with pytest.raises(FileNotFoundError):
            driver.revert_to_snapshot(CTX, snapshot, [], [])
        assert (top / 'file').read_text() == 'now'
        assert driver.get_share_status(share)['status'] == 'available'
        assert os.listdir(root / 'work') == []

    def test_clone_is_like_the_snapshot(self, driver, share):
        top = directory(driver, share)
        content.populate(top)
        then, snapshot = content.describe(top), make.snapshot(share)
        driver.create_snapshot(CTX, snapshot)
        clone = make.share(size=5)
        driver.create_share_from_snapshot(CTX, clone, snapshot)
        assert content.describe(directory(driver, clone)) == then


class TestStatistics:
    def test_capacity_is_that_of_the_file_system(self, root, driver):
        disk = shutil.disk_usage(root)
        (pool,) = driver.get_share_stats(refresh=True)['pools']
        assert pool['total_capacity_gb'] == pytest.approx(
            disk.total / 1024**3, rel=0.01
        )
        assert 0 < pool['free_capacity_gb'] <= pool['total_capacity_gb']

    def test_capacity_can_be_limited(self, root):
        driver = start(root, local_capacity_gb=0.25)
        (pool,) = driver.get_share_stats()['pools']
        assert pool['total_capacity_gb'] == 0.25
        assert pool['free_capacity_gb'] <= 0.25

    def test_provisioned_capacity_is_the_size_of_shares(self, driver, share):
        driver.create_share(CTX, make.share(size=3))
        (pool,) = driver.get_share_stats(refresh=True)['pools']
        assert pool['allocated_capacity_gb'] == 5
        assert pool['provisioned_capacity_gb'] == 5
        assert pool['thin_provisioning'] is True
        assert pool['pool_name'] == driver.get_pool(share)


class TestOneDisk:
    """Several back ends promise the space of one file system once."""

    @pytest.fixture
    def backend(self, tmp_path):
        """Return a function that starts one of the three back ends."""
        file = tmp_path / 'manila.conf'
        names = ['one', 'two', 'part']
        file.write_text(
            '[DEFAULT]\nenabled_share_backends = one, two, part, kept, elsewhere\n'
            + ''.join(
                f'[{name}]\nshare_driver = local\nlocal_root = {tmp_path / name}\n'
                'driver_handles_share_servers = false\n'
                for name in names
            )
            + 'local_capacity_gb = 10\n[kept]\nshare_driver = dummy\n'
            '[elsewhere]\nshare_driver = local\nlocal_root = /proc\n'
        )
        conf = options.new(files=[str(file)])

        def start_one(name):
            driver = LocalDriver(configuration=Configuration(conf, name))
            driver.do_setup(CTX)
            driver.check_for_setup_error()
            return driver

        return start_one

    def test_shares_of_all_count_as_provisioned(self, backend):
        one = backend('one')
        one.create_share(CTX, make.share(size=2))
        assert provisioned(one) == (2, 2)
        two, part = backend('two'), backend('part')
        two.create_share(CTX, make.share(size=3))
        part.create_share(CTX, make.share(size=4))
        assert provisioned(one) == (2, 9)
        assert provisioned(two) == (3, 9)
        # It has been given a part, and promises no more than that.
        assert provisioned(part) == (4, 4)

    def test_other_file_systems_do_not_count(self, root, driver):
        assert driver.backend.store.is_on(root.stat().st_dev)
        assert not driver.backend.store.is_on(pathlib.Path('/proc').stat().st_dev)


def provisioned(driver):
    """Return what the shares of a back end have, and those of its disk."""
    (pool,) = driver.get_share_stats(refresh=True)['pools']
    return pool['allocated_capacity_gb'], pool['provisioned_capacity_gb']


def _in_another_process(act, user):
    """Act as that user in a child process; return its exit status."""
    process = os.fork()
    if process == 0:
        code = 1
        try:
            os.setgroups([])
            os.setgid(user)
            os.setuid(user)
            act()
            code = 0
        finally:
            os._exit(code)
    _, status = os.waitpid(process, 0)
    return os.waitstatus_to_exitcode(status)


def _whole_life(root):
    driver, share = start(root), make.share()
    top, snapshot = directory(driver, share), make.snapshot(share)
    content.populate(top)
    then = content.describe(top)
    driver.create_snapshot(CTX, snapshot)
    content.damage(top)
    driver.revert_to_snapshot(CTX, snapshot, [], [])
    assert content.describe(top) == then
    (top / 'shut').mkdir()
    (top / 'shut' / 'file').write_text('')
    (top / 'shut').chmod(0)
    driver.delete_share(CTX, share)
    driver.delete_snapshot(CTX, snapshot)
    assert {path for path in root.rglob('*') if path.is_file()} == {
        root / MARKER,
        root / IDENTITY,
    }
    assert os.listdir(root / 'work') == []


def test_life_cycle_needs_no_root(tmp_path):
    """Directory modes bind other users, unlike root."""
    if os.geteuid() != 0:
        _whole_life(tmp_path / 'root')
        return
    with tempfile.TemporaryDirectory() as folder:
        os.chown(folder, NOBODY, NOBODY)
        root = pathlib.Path(folder, 'root')
        assert _in_another_process(lambda: _whole_life(root), NOBODY) == 0
