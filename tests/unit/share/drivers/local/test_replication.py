"""Replicas of directories on several back ends of one machine.

Rules that hold for any driver are in the contract suite.
"""

from concurrent import futures
import contextlib
import errno
import itertools
import json
import os
import pathlib
import re
import shutil
import threading

import pytest

from manila_lite import exception
import manila_lite.conf
from manila_lite.share.drivers.contract.configuration import Configuration
from manila_lite.share.drivers.local.driver import LocalDriver
from manila_lite.share.drivers.local.store import LocalStore
from tests.drivers import content
from tests.drivers.driver_harness import CTX, exported_clients
from tests.drivers.replication_sites import Sites
from tests.unit.share.drivers.local.local_driver import data, start

NOW = 1_700_000_000.0


pytestmark = pytest.mark.usefixtures('no_power_failures')


@pytest.fixture(params=['readable', 'dr'])
def style(request):
    return request.param


@pytest.fixture
def sites(tmp_path, style):
    return Sites(tmp_path, 'local', style, names=('here', 'there'))


def root(site):
    return pathlib.Path(site.driver.configuration.local_root)


def marker(site):
    """Return the content of `replica.json`."""
    return json.loads((data(site).parent / 'replica.json').read_text())


def at(site, now, **options):
    """Start the site's driver at a given time with these options."""
    configuration = site.harness.configure()
    configuration.override(options)
    site.driver = LocalDriver(configuration=configuration, clock=lambda: now)
    site.driver.check_for_setup_error()


def _configure(site, file):
    """Restart the site with another configuration file."""
    site.harness.configure = lambda: Configuration(
        manila_lite.conf.new(files=[str(file)]), site.name
    )
    site.restart()


class TestOptions:
    def test_replication_type_without_a_domain_is_refused(self, tmp_path, style):
        driver = LocalDriver(
            configuration=Configuration.from_values(
                {
                    'driver_handles_share_servers': False,
                    'local_root': str(tmp_path / 'root'),
                    'local_replication_type': style,
                }
            )
        )
        with pytest.raises(exception.BadConfiguration, match='domain'):
            driver.check_for_setup_error()

    def test_replica_of_another_domain_is_refused(self, sites, tmp_path):
        file = tmp_path / 'sites.conf'
        file.write_text(
            file.read_text().replace(
                'replication_domain = domain', 'replication_domain = other', 1
            )
        )
        _configure(sites.there, file)
        with pytest.raises(exception.ShareBackendException, match='out of reach'):
            sites.create()

    def test_back_end_of_another_service_is_named_by_an_option(self, sites, tmp_path):
        """Its section is not in the file, as on another machine."""
        whole = (tmp_path / 'sites.conf').read_text()
        here, there = re.split(r'(?=\[there\])', whole)
        for name, own in (('here', here), ('there', f'[DEFAULT]\n{there}')):
            file = tmp_path / f'{name}.conf'
            peers = ','.join(
                f'host@{other}:{tmp_path}/{other}'
                for other in ('here', 'there')
                if other != name
            )
            file.write_text(f'{own}local_replication_peers = {peers}\n')
            _configure(getattr(sites, name), file)
        sites.write('one')
        assert sites.create_in_sync().read() == 'one'
        sites.promote()
        sites.write('two')
        assert sites.update(sites.here) == 'in_sync'
        assert sites.read(sites.here) == 'two'


class TestBeingInSync:
    def test_time_of_the_last_copy_is_on_disk(self, sites):
        sites.create_in_sync()
        for now in (NOW, NOW + 300):
            at(sites.there, now)
            sites.update()
            assert marker(sites.there)['synced_at'] == now
            assert marker(sites.there)['source'] == (sites.share_for(sites.here).name)

    @pytest.mark.parametrize('age, state', [(60, 'in_sync'), (61, 'out_of_sync')])
    def test_replica_is_out_of_sync_after_the_recovery_point(self, sites, age, state):
        sites.create_in_sync()
        at(sites.there, NOW)
        sites.update()
        sites.here.make_unreachable()
        at(sites.there, NOW + age, local_replication_recovery_point=60)
        assert sites.update() == state

    def test_update_does_not_wait_for_another_one(self, sites):
        sites.create_in_sync()
        at(sites.there, NOW)
        sites.update()
        sites.write('two')
        at(sites.there, NOW + 60, local_replication_recovery_point=60)
        with LocalStore(root(sites.there)).locked_work_directory(
            sites.share_for(sites.there).name
        ):
            assert sites.update() == 'in_sync'
        assert sites.read() == ''
        assert sites.update() == 'in_sync'
        assert sites.read() == 'two'

    def test_replica_of_another_active_one_is_not_in_sync(self, sites):
        """The time of its last copy is irrelevant then."""
        sites.create_in_sync()
        sites.here.make_unreachable()
        stranger = sites.share_for(sites.here)
        sites.here.id = sites.share_id
        at(sites.there, NOW, local_replication_recovery_point=10**9)
        assert sites.share_for(sites.here).name != stranger.name
        assert sites.update() == 'out_of_sync'

    def test_without_a_snapshot_it_is_not_in_sync(self, sites):
        sites.create_in_sync()
        id = sites.snapshot()
        sites.snapshots[id][0]['there'] = 'available'
        sites.here.make_unreachable()
        at(sites.there, NOW, local_replication_recovery_point=10**12)
        assert sites.update() == 'out_of_sync'
        sites.here.make_reachable()
        assert sites.update() == 'in_sync'
        assert (
            sites.there.driver.get_snapshot_status(sites.instance(id, sites.there))[
                'status'
            ]
            == 'available'
        )

    def test_nothing_is_copied_during_an_interrupted_revert(self, sites):
        sites.write('one')
        sites.create_in_sync()
        record = data(sites.here).parent / 'share.json'
        whole = json.loads(record.read_text())
        sites.write('half of two')
        record.write_text(json.dumps(whole | {'reverting_to': 'snapshot'}))
        assert sites.update() == 'out_of_sync'
        assert sites.read() == 'one'
        record.write_text(json.dumps(whole))
        assert sites.update() == 'in_sync'


class TestContent:
    def test_all_kinds_of_files_are_copied(self, sites):
        content.populate(data(sites.here))
        sites.create_in_sync()
        assert content.describe(data(sites.there)) == content.describe(data(sites.here))
        content.damage(data(sites.here))
        sites.update()
        assert content.describe(data(sites.there)) == content.describe(data(sites.here))

    def test_recovered_replica_loses_its_own_changes(self, sites):
        content.populate(data(sites.here))
        sites.create_in_sync()
        sites.here.make_unreachable()
        sites.promote()
        content.damage(data(sites.there))
        sites.here.make_reachable()
        (data(sites.here) / 'only here').write_text('lost')
        assert sites.update(sites.here) == 'in_sync'
        assert content.describe(data(sites.here)) == content.describe(data(sites.there))

    def test_managed_share_is_replicated_in_place(self, sites):
        folder = root(sites.here) / 'old' / 'files'
        folder.mkdir(parents=True)
        (folder / 'notes').write_text('from before')
        driver = sites.here.driver
        driver.delete_share(CTX, sites.share_for(sites.here))
        sites.here.locations = [
            {'path': str(folder), 'metadata': {}, 'is_admin_only': False}
        ]
        driver.manage_existing(sites.share_for(sites.here), {})
        assert sites.create_in_sync().read() == 'from before'
        sites.promote()
        sites.write('since')
        assert sites.update(sites.here) == 'in_sync'
        assert (folder / 'notes').read_text() == 'since'

    def test_full_disk_leaves_the_replica_unchanged(self, sites, full_disk):
        sites.write('one')
        sites.create_in_sync()
        before = content.describe(data(sites.there))
        sites.write('two')
        full_disk()
        assert sites.update() == 'out_of_sync'
        assert content.describe(data(sites.there)) == before

    def test_snapshot_without_space_is_copied_later(self, sites):
        sites.create_in_sync()
        sites.write('one')
        id = sites.snapshot()
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(os, 'sendfile', _no_room)
            patch.setattr('fcntl.ioctl', _no_room)
            assert sites.update_snapshot(id)[0]['status'] == 'creating'
        assert sites.update_snapshot(id)[0]['status'] == 'available'


def _no_room(*args):
    raise OSError(errno.ENOSPC, 'no room')


@pytest.fixture
def full_disk(monkeypatch):
    """Return a function that makes copying of files fail."""

    def fill(then=lambda: None):
        def full(*args):
            then()
            _no_room()

        monkeypatch.setattr(os, 'sendfile', full)
        monkeypatch.setattr('fcntl.ioctl', full)

    return fill


class TestPromotion:
    def test_last_writes_are_copied(self, sites):
        sites.create_in_sync()
        sites.write('at the last moment')
        sites.promote()
        assert sites.read() == 'at the last moment'

    def test_clients_may_write_until_the_wait_is_over(self, sites):
        sites.create_in_sync()
        waited = []
        sites.there.driver = LocalDriver(
            configuration=sites.there.harness.configure(),
            sleep=lambda seconds: waited.append((seconds, sites.levels(sites.here))),
        )
        sites.promote(quiesce_wait_time=7)
        assert waited == [(7, {'rw'})]

    def test_no_client_has_access_during_the_last_copy(self, sites, full_disk):
        sites.create_in_sync()
        sites.write('two')
        seen = []
        full_disk(lambda: seen.append(sites.levels(sites.here)))
        with pytest.raises(OSError, match='no room'):
            sites.promote()
        assert seen[0] == set()

    def test_failed_promotion_restores_access(self, sites, full_disk):
        sites.write('one')
        sites.create_in_sync()
        sites.write('two')
        full_disk()
        with pytest.raises(OSError, match='no room'):
            sites.promote()
        assert sites.levels(sites.here) == {'rw'}
        assert sites.status(sites.here)['status'] == 'available'
        sites.apply_rules(sites.here)
        assert sites.levels(sites.here) == {'rw'}
        assert sites.read() == 'one'

    def test_incomplete_replica_is_not_promoted(self, sites, full_disk):
        sites.write('one')
        full_disk()
        sites.create()
        assert sites.there.state == 'out_of_sync'
        sites.here.make_unreachable()
        with pytest.raises(exception.ShareBackendException, match='never been in sync'):
            sites.promote()

    def test_unchanged_files_are_not_copied_back(self, sites):
        """A demoted replica copies back only what has changed since."""
        content.populate(data(sites.here))
        sites.create_in_sync()
        sites.promote()
        inodes = _inodes(data(sites.here))
        sites.write('new')
        sites.update(sites.here)
        after = _inodes(data(sites.here))
        assert after.keys() - inodes.keys() == {'notes'}
        assert inodes.items() <= after.items()

    def test_rules_applied_during_promotion_grant_no_access(self, sites):
        """Rules may arrive before the manager has recorded the promotion."""
        sites.create_in_sync()
        late = sites.share_for(sites.here)
        sites.promote()
        sites.here.driver.apply_access(CTX, late, sites.rules)
        assert 'rw' not in sites.levels(sites.here)
        status = sites.here.driver.get_replica_status(late)
        assert status['status'] == 'error'
        assert status['replica_state'] == 'out_of_sync'

    def test_role_lost_to_another_replica_is_returned(self, sites):
        """As after a late promotion: the manager promotes it again."""
        sites.create_in_sync()
        sites.promote()
        sites.write('new')
        sites.promote(sites.here)
        assert sites.read(sites.here) == 'new'
        assert (
            sites.here.driver.get_replica_status(sites.share_for(sites.here))['status']
            == 'available'
        )

    def test_snapshot_access_depends_on_the_replication_type(self, sites):
        sites.create_in_sync()
        id = sites.snapshot()
        sites.update_snapshot(id)
        snapshot = sites.instance(id, sites.there)
        sites.there.driver.snapshot_update_access(CTX, snapshot, sites.rules, [], [])
        file = root(sites.there) / 'exports' / f'{snapshot.name}.exports'
        assert {level for _, _, level in exported_clients(file)} == (
            {'ro'} if sites.style == 'readable' else set()
        )

    def test_read_only_disk_of_the_active_one_is_copied(self, sites, monkeypatch):
        """It can neither be written to by clients nor be notified."""
        sites.create_in_sync()
        sites.write('two')
        top = root(sites.here)

        def refuse(real):
            def act(path, mode=0, *args, **kwargs):
                if mode not in ('r', 'rb') and pathlib.Path(path).is_relative_to(top):
                    raise OSError(errno.EROFS, 'read-only', str(path))
                return real(path, mode, *args, **kwargs)

            return act

        monkeypatch.setattr(os, 'mkdir', refuse(os.mkdir))
        monkeypatch.setattr(pathlib.Path, 'open', refuse(pathlib.Path.open))
        replies = sites.there.driver.promote_replica(
            CTX, sites.replica_list, sites.share_for(sites.there), sites.rules
        )
        assert {one['id']: one['replica_state'] for one in replies} == {
            sites.there.id: 'active',
            sites.here.id: 'out_of_sync',
        }
        assert sites.read() == 'two'


def _inodes(top):
    return {str(path.relative_to(top)): path.lstat().st_ino for path in top.rglob('*')}


class TestManyAtOnce:
    def test_concurrent_copies_and_promotions_lose_nothing(self, sites):
        content.populate(data(sites.here))
        sites.create_in_sync()
        began = sites.replica_list
        replica = began[1]

        def update(number):
            driver = sites.there.harness.start()
            return driver.update_replica_state(
                CTX, began, replica, sites.rules_for(sites.there), []
            )

        def promote(number):
            driver = sites.there.harness.start()
            return driver.promote_replica(CTX, began, replica, sites.rules)

        barrier = threading.Barrier(8)

        def act(number):
            barrier.wait()
            return (promote if number % 2 else update)(number)

        content.damage(data(sites.here))
        written = content.describe(data(sites.here))
        with futures.ThreadPoolExecutor(8) as pool:
            list(pool.map(act, range(8)))
        assert content.describe(data(sites.there)) == written
        assert marker(sites.there)['role'] == 'active'
        assert marker(sites.here)['role'] == 'passive'

    def test_users_may_change_anything_during_a_copy(self, sites):
        folder = data(sites.here)
        sites.create_in_sync()
        is_over = threading.Event()

        def use():
            for number in itertools.count():
                if is_over.is_set():
                    return
                for name in ('a', 'b'):
                    with contextlib.suppress(OSError):
                        _mess(folder, name, number)

        with futures.ThreadPoolExecutor(1) as pool:
            using = pool.submit(use)
            try:
                states = {sites.update() for _ in range(30)}
            finally:
                is_over.set()
            using.result()
        assert states == {'in_sync'}
        assert sites.update() == 'in_sync'
        assert content.describe(data(sites.there)) == content.describe(folder)
        assert (
            pathlib.Path('/etc/passwd').stat().st_nlink,
            pathlib.Path('/etc').is_symlink(),
        ) == (1, False)


def _mess(folder, name, number):
    """Make one name all kinds of entries in turn."""
    path = folder / name
    kind = number % 5
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
    if kind == 0:
        path.mkdir()
        (path / 'passwd').write_text('mine')
    elif kind == 1:
        path.symlink_to('/etc')
    elif kind == 2:
        path.write_text(str(number))
    elif kind == 3:
        os.mkfifo(path)
    else:
        (folder / f'moved-{number % 3}').unlink(missing_ok=True)
        path.write_text('there')
        path.rename(folder / f'moved-{number % 3}')


@pytest.mark.parametrize(
    'method, arguments',
    [
        ('promote_replica', ([], None, [])),
        ('create_replicated_snapshot', ([], [])),
        ('delete_replicated_snapshot', ([], [])),
        ('update_replicated_snapshot', ([], None, [], None)),
        ('revert_to_replicated_snapshot', (None, [], None, [], [], [])),
    ],
)
def test_back_end_without_a_replication_type_has_no_replicas(
    tmp_path, method, arguments
):
    with pytest.raises(NotImplementedError):
        getattr(start(tmp_path / 'root'), method)(CTX, *arguments)
