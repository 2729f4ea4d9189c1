from concurrent import futures
import configparser
import os
import pathlib
import shutil
import tempfile

import pytest

from manila_lite import exception
from manila_lite.share.drivers.contract.configuration import Configuration
from manila_lite.share.drivers.local.driver import LocalDriver
from tests.drivers import content
from tests.drivers.driver_harness import CTX
from tests.drivers.driver_harness import DirectoryUsers
from tests.drivers.driver_harness import DriverHarness

make = DriverHarness('local', configure=lambda: None)
NOBODY = 65534


def start(root, **options):
    driver = LocalDriver(
        configuration=Configuration.from_values(
            {
                'driver_handles_share_servers': False,
                'local_root': str(root),
                **options,
            }
        )
    )
    driver.do_setup(CTX)
    driver.check_for_setup_error()
    return driver


def directory(driver, share):
    (location,) = driver.create_share(CTX, share)
    return pathlib.Path(location['path'])


@pytest.fixture
def root(tmp_path):
    return tmp_path / 'root'


@pytest.fixture
def driver(root):
    return start(root)


@pytest.fixture
def share(driver):
    share = make.share(size=2)
    driver.create_share(CTX, share)
    return share


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
        assert not any(path.is_file() for path in root.rglob('*'))
        assert os.listdir(root / 'work') == []

    def test_share_without_its_directory_is_an_error(self, driver, share):
        shutil.rmtree(directory(driver, share))
        assert driver.get_share_status(share)['status'] == 'error'
        driver.delete_share(CTX, share)
        with pytest.raises(exception.ShareResourceNotFound):
            driver.get_share_status(share)

    def test_what_fills_the_share_is_counted_not_its_holes(
        self, driver, share
    ):
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


class TestAccess:
    def exports(self, root, thing):
        file = root / 'exports' / f'{thing.name}.exports'
        return file.read_text() if file.exists() else None

    def let_in(self, driver, share, *rules):
        return driver.update_access(CTX, share, list(rules), [], [], [])

    def test_file_is_for_an_nfs_server(self, root, driver, share):
        self.let_in(
            driver,
            share,
            make.rule(share, '10.0.0.0/24'),
            make.rule(share, '10.0.0.9', access_level='ro'),
        )
        _, line = self.exports(root, share).splitlines()
        assert line == (
            f'{directory(driver, share)} '
            '10.0.0.9(ro,sync,no_subtree_check) '
            '10.0.0.0/24(rw,sync,no_subtree_check)'
        )
        assert sorted(os.listdir(root / 'exports')) == [
            f'{share.name}.exports'
        ]

    def test_share_without_clients_has_no_export_file(
        self, root, driver, share
    ):
        rule = make.rule(share, '10.0.0.1')
        self.let_in(driver, share, rule)
        self.let_in(driver, share)
        assert self.exports(root, share) is None
        self.let_in(driver, share, rule)
        driver.delete_share(CTX, share)
        assert os.listdir(root / 'exports') == []

    def test_export_options_are_configurable(self, root, share):
        driver = start(root, local_export_options='async,no_root_squash')
        self.let_in(driver, share, make.rule(share, '10.0.0.1'))
        assert ' 10.0.0.1(rw,async,no_root_squash)\n' in self.exports(
            root, share
        )

    @pytest.mark.parametrize('options', ['', 'sync rw', 'sync) *(rw', '#'])
    def test_options_that_break_the_line_are_refused(self, root, options):
        with pytest.raises(exception.BadConfiguration, match='bracket'):
            start(root, local_export_options=options)

    def samba(self, root):
        """Return the parameters of every section that the index includes."""
        index = root / 'exports' / 'smb.conf'
        if not index.exists():
            return {}
        found = configparser.RawConfigParser(delimiters=['='])
        for line in index.read_text().splitlines()[1:]:
            assert line.startswith('include = ')
            found.read_string(
                pathlib.Path(line.partition('= ')[2]).read_text()
            )
        return {name: dict(found[name]) for name in found.sections()}

    def windows(self, driver):
        share = make.share(share_proto='CIFS')
        driver.create_share(CTX, share)
        return share

    def test_file_is_for_samba_where_the_protocol_is_cifs(self, root, driver):
        first, second = self.windows(driver), self.windows(driver)
        self.let_in(
            driver,
            first,
            make.rule(first, 'bob smith', access_type='user'),
            make.rule(first, 'alice', access_type='user', access_level='ro'),
        )
        self.let_in(
            driver,
            second,
            make.rule(second, 'carol', access_type='user', access_level='ro'),
        )
        same = {'guest ok': 'no', 'read only': 'yes'}
        assert self.samba(root) == {
            first.name: same
            | {
                'path': str(directory(driver, first)),
                'valid users': '"alice" "bob smith"',
                'write list': '"bob smith"',
            },
            second.name: same
            | {
                'path': str(directory(driver, second)),
                'valid users': '"carol"',
            },
        }
        assert self.exports(root, first) is None
        self.let_in(driver, first)
        assert list(self.samba(root)) == [second.name]
        driver.delete_share(CTX, second)
        assert os.listdir(root / 'exports') == []

    def test_samba_section_has_only_users(self, root, driver):
        share = self.windows(driver)
        address = make.rule(share, '10.0.0.1')
        user = make.rule(share, 'alice', access_type='user')
        assert self.let_in(driver, share, address, user) == {
            address.id: {'state': 'error'},
            user.id: {'state': 'active'},
        }
        assert self.samba(root)[share.name]['valid users'] == '"alice"'
        self.let_in(driver, share, address)
        assert self.samba(root) == {}

    def test_samba_exports_snapshots_read_only(self, root, driver):
        share = self.windows(driver)
        snapshot = make.snapshot(share)
        driver.create_snapshot(CTX, snapshot)
        rule = make.rule(share, 'alice', access_type='user')
        driver.snapshot_update_access(CTX, snapshot, [rule], [rule], [])
        assert 'write list' not in self.samba(root)[snapshot.name]
        driver.delete_snapshot(CTX, snapshot)
        assert self.samba(root) == {}

    def test_samba_index_has_every_file_written_concurrently(
        self, root, driver
    ):
        shares = [self.windows(driver) for _ in range(12)]

        def let_in(share):
            self.let_in(
                driver, share, make.rule(share, 'alice', access_type='user')
            )

        with futures.ThreadPoolExecutor(len(shares)) as pool:
            list(pool.map(let_in, shares))
        assert self.samba(root).keys() == {share.name for share in shares}

    def test_snapshot_is_exported_read_only(self, root, driver, share):
        snapshot = make.snapshot(share)
        answer = driver.create_snapshot(CTX, snapshot)
        rule = make.rule(share, '10.0.0.1')
        driver.snapshot_update_access(CTX, snapshot, [rule], [rule], [])
        path = answer['export_locations'][0]['path']
        assert f'{path} 10.0.0.1(ro,' in self.exports(root, snapshot)
        driver.delete_snapshot(CTX, snapshot)
        assert os.listdir(root / 'exports') == []

    def test_both_ip_versions_are_served(self, driver):
        stats = driver.get_share_stats(refresh=True)
        assert stats['ipv4_support'] is True
        assert stats['ipv6_support'] is True


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

    def test_deleting_a_managed_share_removes_its_directory(
        self, root, driver, old
    ):
        share, _ = self.manage(driver, old)
        driver.delete_share(CTX, share)
        assert not old.exists()
        assert os.listdir(root / 'imported') == []
        assert os.listdir(root / 'shares') == []

    def test_unmanaged_and_managed_again_leaves_no_trace(
        self, root, driver, share
    ):
        top = directory(driver, share)
        driver.update_access(
            CTX, share, [make.rule(share, '10.0.0.1')], [], [], []
        )
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
    assert not any(path.is_file() for path in root.rglob('*'))
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
