"""Replicas on CephFS: what is copied, and what a promotion leaves at both sides.

What all drivers have in common is in the contract of replicating drivers.
"""

import contextlib
import sys

import pytest

from manila_lite import exception
from manila_lite.context import FencingToken, fenced
from manila_lite.share.drivers.cephfs.users import INTERNAL
from tests.drivers.ceph_harness import CephNfsHarness
from tests.drivers.ceph_replication_sites import CephSites
from tests.drivers.crashes import interrupted_at, killed_at
from tests.support import ceph as ceph_support
from tests.unit.share.drivers.cephfs.test_shares import calls_of
from tests.unit.share.drivers.cephfs.test_snapshots import CHANGE, MAKE, SHOW

pytestmark = [ceph_support.limited, ceph_support.on_cluster]


@pytest.fixture(params=['dr', 'readable'])
def sites(request, ceph, ceph_root, tmp_path):
    sites = CephSites(
        tmp_path,
        'cephfs',
        request.param,
        cluster=ceph,
        client=ceph_root,
        names=('here', 'there'),
        more=f'cephfs_python = {ceph_support.PYTHON}\n'
        f'cephfs_command_timeout = {ceph_support.LIMIT}',
    )
    yield sites
    sites.clean_up()


only_dr = pytest.mark.parametrize('sites', ['dr'], indirect=True)


def run(sites, site, script):
    """Run a script in the folder of a replica, as an administrator."""
    users = site.users(sites.share_for(site))
    command = f'cd {users.path}; {sys.executable} -I -; sync -f .'
    return users.client.run(command, script.encode()).decode()


def snapshots_of(sites, site):
    """Return the snapshots that Ceph has of a replica."""
    subvolume = sites.share_for(site).name
    found = site.driver.backend.ask('subvolume snapshot ls', sub_name=subvolume)
    return {one['name'] for one in found}


def internal_users(sites, site):
    found = site.driver.backend.ask(
        'subvolume authorized_list', sub_name=sites.share_for(site).name
    )
    return [name for one in found for name in one if name.startswith(INTERNAL)]


def is_copy(event, args):
    return event == 'manila_lite.ceph' and args == ('copy',)


def state_of(sites, site):
    return site.driver.peers.own_replica(sites.share_for(site)).state()


def step_seconds(sites, seconds):
    for site in sites.sites:
        site.driver.copies.step_seconds = seconds


@only_dr
def test_replica_has_all_that_the_active_one_has(sites):
    run(sites, sites.here, MAKE)
    sites.create_in_sync()
    assert run(sites, sites.there, SHOW) == run(sites, sites.here, SHOW)
    run(sites, sites.here, CHANGE)
    assert sites.update() == 'in_sync'
    assert run(sites, sites.there, SHOW) == run(sites, sites.here, SHOW)
    assert internal_users(sites, sites.here) == internal_users(sites, sites.there) == []
    (copy,) = snapshots_of(sites, sites.there)
    assert snapshots_of(sites, sites.here) == {copy}


@only_dr
def test_files_that_have_not_changed_are_not_copied_again(sites):
    """One that was spoiled behind the driver's back stays so."""
    run(sites, sites.here, "open('same', 'w').write('same'); open('new', 'w')")
    sites.create_in_sync()
    spoil = "import os; a = os.stat('same'); open('same', 'w').write('SAME'); "
    times = "os.utime('same', ns=(a.st_atime_ns, a.st_mtime_ns))"
    run(sites, sites.there, spoil + times)
    run(sites, sites.here, "open('new', 'w').write('new')")
    sites.update()
    show = "print(open('same').read(), open('new').read())"
    assert run(sites, sites.there, show) == 'SAME new\n'
    # Without a common snapshot all content is compared.
    here = sites.here.driver.peers.own_replica(sites.share_for(sites.here))
    here.discard(here.snapshots())
    sites.update()
    assert run(sites, sites.there, show) == 'same new\n'


def test_replica_that_is_promoted_during_a_copy_goes_back_to_the_last_one(sites):
    run(sites, sites.here, MAKE)
    sites.create_in_sync()
    then = run(sites, sites.there, SHOW)
    run(sites, sites.here, CHANGE)
    step_seconds(sites, 0)
    assert killed_at(90, sites.update, is_copy)
    assert run(sites, sites.there, SHOW) != then
    sites.there.restart()
    sites.here.make_unreachable()
    sites.promote()
    assert run(sites, sites.there, SHOW) == then


@only_dr
def test_replica_that_was_active_returns_to_where_both_were_the_same(sites):
    run(sites, sites.here, MAKE)
    sites.create_in_sync()
    sites.promote()
    run(sites, sites.there, CHANGE)
    run(sites, sites.here, "open('notes', 'w').write('lost')")
    spoil = "import os; a = os.stat('same'); open('same', 'w').write('SAME'); "
    times = "os.utime('same', ns=(a.st_atime_ns, a.st_mtime_ns))"
    assert sites.update(sites.here) == 'in_sync'
    assert run(sites, sites.here, SHOW) == run(sites, sites.there, SHOW)
    # The way back is a difference, too.
    run(sites, sites.here, spoil + times)
    sites.update(sites.here)
    assert run(sites, sites.here, "print(open('same').read())") == 'SAME\n'


@only_dr
def test_reply_to_a_promotion_asks_nothing_of_the_manager(sites):
    sites.create()
    with calls_of(sites.there.driver) as calls:
        sites.promote()
    assert sites.there.state == 'active'
    assert 'fs subvolume info' not in calls


@only_dr
def test_copies_for_a_replica_end_with_it(sites):
    sites.create_in_sync()
    assert snapshots_of(sites, sites.here)
    sites.delete()
    assert snapshots_of(sites, sites.here) == set()
    assert sites.there.driver.backend.records.get_all('replica:') == {}


@only_dr
def test_share_that_has_copies_is_deleted_with_them(sites):
    sites.create_in_sync()
    sites.promote()
    sites.delete(sites.here)
    sites.here.state = None
    driver, share = sites.there.driver, sites.share_for(sites.there)
    driver.delete_share(None, share)
    assert driver.backend.ask('subvolume ls') == []
    assert driver.backend.records.get_all('replica:') == {}
    driver.create_share(None, share)


# Promotions that fail or come late


def test_active_replica_has_its_clients_again_if_it_cannot_be_copied(sites):
    """The promotion goes on with the content of the last copy, or fails."""
    sites.create_in_sync()
    assert sites.levels(sites.here) == {'rw'}
    share = sites.share_for(sites.there)
    own = sites.there.driver.peers.own_replica(share)
    here = sites.here.driver.peers.own_replica(sites.share_for(sites.here))
    here.retire(own, 5 * 10**9)
    assert 'rw' not in sites.levels(sites.here)
    reply = sites.status(sites.here)
    assert (reply['status'], 'replica_state' in reply) == ('available', False)
    assert sites.levels(sites.here) == {'rw'}
    assert state_of(sites, sites.here).role == 'active'
    assert state_of(sites, sites.there).barred == 5 * 10**9
    with pytest.raises(exception.ShareBackendException, match='given up'):
        sites.there.driver.replicas._make_active(own, 5 * 10**9)
    sites.promote()
    assert sites.levels() == {'rw'}
    assert 'rw' not in sites.levels(sites.here)


def test_copies_that_fail_leave_few_snapshots(sites):
    """Each begins with a snapshot of its own."""
    run(sites, sites.here, MAKE)
    sites.create_in_sync()
    own = sites.there.driver.peers.own_replica(sites.share_for(sites.there))
    for number in range(8):
        run(sites, sites.here, f"open('new', 'w').write('{number}')")
        assert killed_at(1, sites.update, is_copy)
    assert len(snapshots_of(sites, sites.here)) <= 6
    assert sites.update() == 'in_sync'
    assert run(sites, sites.there, SHOW) == run(sites, sites.here, SHOW)
    assert snapshots_of(sites, sites.here) == {own.state().copy}


@only_dr
def test_replica_whose_revert_was_not_completed_follows_its_successor(sites):
    run(sites, sites.here, MAKE)
    id = sites.snapshot()
    run(sites, sites.here, CHANGE)
    sites.create_in_sync()
    step_seconds(sites, 0)
    assert killed_at(60, lambda: sites.revert(id), is_copy)
    sites.here.restart()
    assert sites.status(sites.here)['status'] == 'error'
    sites.promote()
    assert sites.levels() == {'rw'}
    assert sites.levels(sites.here) == set()
    assert sites.update(sites.here) == 'in_sync'
    assert run(sites, sites.here, SHOW) == run(sites, sites.there, SHOW)


@only_dr
def test_active_replica_is_never_replaced_by_what_another_one_has(sites):
    """Even if the database says that it is passive."""
    sites.create_in_sync()
    id = sites.snapshot()
    sites.promote()
    sites.write('new')
    sites.there.state, sites.here.state = 'in_sync', 'active'
    assert sites.update() == 'out_of_sync'
    sites.update_snapshot(id)
    assert sites.snapshots[id][0]['there'] == 'creating'
    assert sites.read() == 'new'


@only_dr
def test_retiring_replica_is_promoted_again_with_all_that_it_has(sites):
    """The successor was lost in the middle of the promotion."""
    sites.create_in_sync()
    sites.promote()
    assert sites.update(sites.here) == 'in_sync'
    sites.promote(sites.here)
    sites.write('newer than its last copy')
    here, there = (
        site.driver.peers.own_replica(sites.share_for(site)) for site in sites.sites
    )
    here.retire(there, 1 << 40)
    sites.there.make_unreachable()
    assert sites.status(sites.here)['status'] == 'error'
    sites.promote(sites.here)
    assert sites.read(sites.here) == 'newer than its last copy'
    assert sites.levels(sites.here) == {'rw'}


@pytest.mark.parametrize('sites', ['readable'], indirect=True)
def test_clients_that_were_to_write_again_are_not_forgotten(sites):
    """The call that made the replica active again was killed then."""
    sites.create_in_sync()
    own, here = (
        site.driver.peers.own_replica(sites.share_for(site))
        for site in (sites.there, sites.here)
    )
    here.retire(own, 7)
    assert killed_at(
        1,
        lambda: sites.status(sites.here),
        lambda _, args: args == ('fs subvolume authorize',),
    )
    assert (here.state().role, sites.levels(sites.here)) == ('active', {'ro'})
    assert sites.status(sites.here)['status'] == 'available'
    assert sites.levels(sites.here) == {'rw'}
    assert here.state().suspended == []


def test_replica_that_was_demoted_half_way_is_demoted_again(sites):
    sites.create_in_sync()
    sites.here.make_unreachable()
    sites.promote()
    sites.here.is_unreachable = False
    conf = sites.here._ceph_conf
    conf.with_suffix('.away').rename(conf)
    deny = ('fs subvolume deauthorize',), ('fs subvolume authorize',)
    assert killed_at(1, sites.here.restart, lambda _, args: args in deny)
    sites.here.restart()
    assert 'rw' not in sites.levels(sites.here)
    assert state_of(sites, sites.here).role == 'passive'


@only_dr
def test_late_copy_to_a_share_that_was_deleted_leaves_nothing(sites):
    sites.write('one')
    snapshot = sites.instance(sites.snapshot(), sites.here)
    driver = sites.there.driver
    share = sites.there.harness.share(host=sites.there.host)

    def act():
        with (
            fenced(FencingToken('share', 1)),
            contextlib.suppress(exception.DriverError),
        ):
            driver.create_share_from_snapshot(None, share, snapshot)

    def delete():
        with fenced(FencingToken('share', 2)):
            driver.delete_share(None, share)

    create = ('fs subvolume create',)  # past the check for late calls
    assert interrupted_at(1, act, delete, lambda _, args: args == create)
    assert driver.backend.ask('subvolume ls') == []


# NFS


class NfsSites(CephSites):
    """The back end of the active replica has gateways that run."""

    share_proto = 'NFS'

    def __init__(self, *args, gateways, **values):
        self._gateways = gateways
        super().__init__(*args, **values)

    def new_harness(self, *values):
        harness = CephNfsHarness(*values)
        harness.client = self._client
        harness.gateways = self._gateways
        return harness


@pytest.fixture
def nfs_sites(ceph, ceph_root, gateways, tmp_path):
    addresses = ','.join(gateways.options['cephfs_nfs_gateways'])
    sites = NfsSites(
        tmp_path,
        'cephfs',
        'readable',
        cluster=ceph,
        client=ceph_root,
        gateways=gateways,
        names=('here', 'there'),
        more=f'cephfs_python = {ceph_support.PYTHON}\n'
        f'cephfs_command_timeout = {ceph_support.LIMIT}\n'
        f'cephfs_nfs_gateways = {addresses}',
        groups={'here': gateways.options['cephfs_volume_group']},
    )
    yield sites
    sites.clean_up()


def test_nfs_clients_lose_the_replica_that_retires_and_get_it_back(nfs_sites):
    sites = nfs_sites
    sites.create_in_sync()
    assert sites.levels(sites.here) == {'rw'}
    own, here = (
        site.driver.peers.own_replica(sites.share_for(site))
        for site in (sites.there, sites.here)
    )
    here.retire(own, 7)
    assert sites.levels(sites.here) == set()
    assert sites.status(sites.here)['status'] == 'available'
    assert sites.levels(sites.here) == {'rw'}
    sites.promote()
    assert sites.levels(sites.here) == {'ro'}
