"""What the dummy driver does beyond the replication contract."""

import concurrent.futures
import uuid

import pytest

from manila_lite import exception
import manila_lite.conf
from manila_lite.share.drivers.contract.configuration import Configuration
from manila_lite.share.drivers.dummy import driver as dummy
from manila_lite.share.drivers.dummy.driver import DummyDriver
from manila_lite.share.drivers.dummy.replication_domain import DummyReplica
from tests.drivers.driver_harness import CTX
from tests.drivers.replication_sites import Sites

PROMOTABLE = ('readable', 'dr')
STYLES = ('writable', *PROMOTABLE)
FAULTS = ('fail_next', 'half_fail_next', 'lose_reply_next')


def state_of(site):
    return site.driver.configuration.dummy_driver_state_path


class TestOperations:
    """Operations that fail before, half-way or after can be repeated."""

    def each(self, sites, verb):
        """Return the back end that runs the operation, and the call."""
        if verb == 'create_replica':
            return sites.there, sites.create
        sites.write('one')
        sites.create_in_sync()
        id = sites.snapshot()
        sites.write('two')
        return {
            'delete_replica': (sites.there, sites.delete),
            'promote_replica': (sites.there, sites.promote),
            'update_replica_state': (sites.there, sites.update),
            'create_replicated_snapshot': (sites.here, lambda: sites.take_snapshot(id)),
            'update_replicated_snapshot': (
                sites.there,
                lambda: sites.update_snapshot(id),
            ),
            'delete_replicated_snapshot': (
                sites.here,
                lambda: sites.delete_snapshot(id),
            ),
            'revert_to_replicated_snapshot': (sites.here, lambda: sites.revert(id)),
        }[verb]

    def everything(self, sites):
        return [
            (
                site.driver.inventory(),
                site.driver.snapshot_inventory(),
                site.driver.access_inventory(),
                {
                    id: (replica.role, replica.synced, sites.read(site))
                    for id, replica in site.driver.replica_inventory().items()
                },
            )
            for site in sites.sites
        ]

    @pytest.mark.parametrize('fault', FAULTS)
    @pytest.mark.parametrize('style', STYLES)
    @pytest.mark.parametrize(
        'verb',
        [
            'create_replica',
            'delete_replica',
            'promote_replica',
            'update_replica_state',
            'create_replicated_snapshot',
            'update_replicated_snapshot',
            'delete_replicated_snapshot',
            'revert_to_replicated_snapshot',
        ],
    )
    def test_repeated_after_a_fault_it_ends_right(self, make_sites, verb, style, fault):
        if style == 'writable' and verb == 'promote_replica':
            style = 'readable'
        sites = make_sites(style)
        site, call = self.each(sites, verb)
        getattr(site.driver, fault)(verb)
        with pytest.raises(exception.ShareBackendException):
            call()
        site.restart()
        call()
        ended = self.everything(sites)
        site.restart()
        call()
        assert self.everything(sites) == ended

    def test_a_half_made_replica_is_in_error(self, make_sites):
        sites = make_sites()
        sites.there.driver.half_fail_next('create_replica')
        with pytest.raises(exception.ShareBackendException):
            sites.create()
        assert sites.update() == 'error'
        assert sites.status()['status'] == 'error'
        with pytest.raises(exception.ShareBackendException):
            sites.promote()

    def test_failed_replica_is_in_error(self, make_sites):
        sites = make_sites().create_in_sync()
        sites.there.driver.set_error(sites.there.id)
        assert sites.update() == 'error'

    def test_operations_can_hang(self, make_sites):
        sites = make_sites().create_in_sync()
        hang = sites.there.driver.hang_next('update_replica_state')
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            asked = pool.submit(sites.update)
            assert hang.wait_reached()
            # Other calls are not delayed.
            sites.write('one')
            hang.release()
            assert asked.result() == 'in_sync'

    def test_quiesce_wait_time_is_recorded(self, make_sites):
        sites = make_sites().create_in_sync()
        sites.promote(quiesce_wait_time=7)
        assert sites.there.driver.last_quiesce_wait == 7


class TestPromotion:
    def half_promoted(self, sites):
        sites.write('one')
        sites.create_in_sync()
        sites.there.driver.half_fail_next('promote_replica')
        with pytest.raises(exception.ShareBackendException):
            sites.promote()

    @pytest.mark.parametrize('style', PROMOTABLE)
    def test_interrupted_promotion_leaves_none_active(self, make_sites, style):
        sites = make_sites(style)
        self.half_promoted(sites)
        for site in (sites.here, sites.there):
            with pytest.raises(exception.ShareBackendException):
                sites.write('lost', site)
            assert 'rw' not in sites.levels(site)
            assert [one.role for one in site.driver.replica_inventory().values()] == [
                'passive'
            ]

    @pytest.mark.parametrize('question', ['status', 'update'])
    def test_interrupted_promotion_is_undone_at_the_next_update(
        self, make_sites, question
    ):
        sites = make_sites()
        self.half_promoted(sites)
        if question == 'update':
            assert sites.update() == 'in_sync'
        assert sites.status(sites.here)['status'] == 'available'
        sites.write('two', sites.here)
        assert sites.update() == 'in_sync'
        assert sites.read() == 'two'

    def test_interrupted_promotion_restores_only_the_last_active(self, make_sites):
        sites = make_sites()
        sites.create_in_sync(sites.beyond)
        sites.create_in_sync()
        before = sites.replica_list
        sites.promote()
        sites.write('two')
        after = sites.replica_list
        sites.beyond.driver.half_fail_next('promote_replica')
        with pytest.raises(exception.ShareBackendException):
            sites.promote(sites.beyond)
        for question, active in ((before, []), (after, [sites.there.id])):
            sites.beyond.driver.update_replica_state(CTX, question, question[2], [], [])
            assert [
                id
                for site in sites.sites
                for id, replica in site.driver.replica_inventory().items()
                if replica.role == 'active'
            ] == active
        assert sites.read(sites.beyond) == 'two'

    def test_another_can_be_promoted_after_an_interrupted_promotion(self, make_sites):
        sites = make_sites()
        sites.create_in_sync(sites.beyond)
        self.half_promoted(sites)
        sites.promote(sites.beyond)
        assert sites.read(sites.beyond) == 'one'
        assert sites.update() == 'in_sync'

    def test_promotion_with_a_lost_reply_is_not_undone(self, make_sites):
        sites = make_sites().create_in_sync()
        sites.there.driver.lose_reply_next('promote_replica')
        with pytest.raises(exception.ShareBackendException):
            sites.promote()
        sites.write('two', sites.there)
        status = sites.status(sites.here)
        assert (status['status'], status['replica_state']) == ('error', 'out_of_sync')
        assert sites.update(took_over=True) == 'active'
        sites.promote()
        assert sites.read() == 'two'
        assert sites.update(sites.here) == 'in_sync'

    def test_outdated_update_changes_nothing(self, make_sites):
        sites = make_sites().create_in_sync()
        before = sites.replica_list
        sites.promote()
        sites.write('two')
        sites.there.driver.update_replica_state(CTX, before, before[1], [], [])
        sites.here.driver.get_replica_status(before[0])
        assert sites.there.driver.replica_inventory()[sites.there.id].role == 'active'
        assert sites.read() == 'two'

    def test_promoting_again_restores_no_denied_client(self, make_sites):
        sites = make_sites('readable').create_in_sync()
        before, rules = sites.replica_list, sites.rules
        sites.promote()
        sites.rules = []
        sites.apply_rules(sites.there)
        sites.there.driver.promote_replica(CTX, before, before[1], rules)
        sites.there.driver.create_replica(CTX, before, before[1], rules, [])
        assert sites.levels() == set()

    def test_only_replicas_updated_since_are_synced(self, make_sites):
        sites = make_sites().create_in_sync()
        sites.create_in_sync(sites.beyond)
        sites.promote()
        assert not sites.here.driver.replica_inventory()[sites.here.id].synced
        sites.update(sites.beyond)
        assert sites.beyond.driver.replica_inventory()[sites.beyond.id].synced


class TestSites:
    def test_services_with_states_of_their_own_find_each_other(self, tmp_path):
        files = [tmp_path / name / 'manila.conf' for name in 'ab']
        for file in files:
            file.parent.mkdir()
            file.write_text(
                f'[DEFAULT]\nstate_path = {file.parent}\n[dummy]\n'
                'driver_handles_share_servers = false\n'
                'replication_domain = domain\n'
                f'dummy_driver_replication_path = {tmp_path}/domain\n'
                'dummy_driver_replication_type = readable\n'
                'dummy_driver_default_driver_method_delay = 0\n'
                'dummy_driver_driver_methods_delays =\n'
                # Both back ends have the same name.
                f'dummy_driver_state_path = {file.parent}/state\n'
            )
        sites = Sites.of_services('dummy', files, 'dummy')
        sites.write('one')
        assert sites.create_in_sync().read() == 'one'
        sites.promote()
        sites.write('two')
        assert sites.update(sites.here) == 'in_sync'
        assert sites.read(sites.here) == 'two'

    def test_back_ends_of_other_domains_are_not_found(self, tmp_path, make_sites):
        sites = make_sites()
        file = tmp_path / 'sites.conf'
        head, name, rest = file.read_text().partition('[there]')
        file.write_text(head + name + rest.replace('= domain', '= other', 1))
        sites.there.harness.configure = lambda: Configuration(
            manila_lite.conf.new(files=[str(file)]), 'there'
        )
        sites.there.restart()
        sites.create()
        assert sites.there.state == 'out_of_sync'

    def test_one_back_end_may_have_two_replicas(self, make_sites):
        sites = make_sites(more='dummy_driver_pools = one, two')
        sites.there.driver = sites.here.driver
        sites.there.host = 'host@here#two'
        sites.write('one')
        assert sites.create_in_sync().read() == 'one'
        assert {
            pool['pool_name']: pool['allocated_capacity_gb']
            for pool in sites.here.driver.get_share_stats(refresh=True)['pools']
        } == {'one': 1, 'two': 1}
        sites.promote()
        sites.write('two')
        assert sites.update(sites.here) == 'in_sync'

    def test_unreachable_back_end_serves_no_call(self, make_sites):
        sites = make_sites().create_in_sync()
        sites.here.make_unreachable()
        for call in (
            lambda: sites.status(sites.here),
            lambda: sites.apply_rules(sites.here),
            lambda: sites.here.driver.get_share_stats(refresh=True),
            lambda: sites.write('two'),
        ):
            with pytest.raises(exception.ShareBackendException):
                call()
        assert dummy.replica_inventory(state_of(sites.here))
        sites.here.make_reachable()
        sites.write('two')
        assert sites.update() == 'in_sync'

    def test_in_a_domain_shares_are_readable_replicas_by_default(self, tmp_path):
        driver = DummyDriver(
            configuration=Configuration.from_values(
                {
                    'replication_domain': 'domain',
                    'driver_handles_share_servers': False,
                    'dummy_driver_state_path': str(tmp_path),
                    'dummy_driver_replication_path': str(tmp_path / 'all'),
                    'dummy_driver_default_driver_method_delay': 0.0,
                    'dummy_driver_driver_methods_delays': {},
                }
            )
        )
        stats = driver.get_share_stats(refresh=True)
        assert stats['replication_type'] == 'readable'

    def test_without_a_replication_type_it_does_not_replicate(self, tmp_path):
        driver = DummyDriver(
            configuration=Configuration.from_values(
                {
                    'driver_handles_share_servers': False,
                    'dummy_driver_state_path': str(tmp_path),
                    'dummy_driver_default_driver_method_delay': 0.0,
                    'dummy_driver_driver_methods_delays': {},
                }
            )
        )
        assert 'replication_type' not in driver.get_share_stats(refresh=True)
        for method, given in (
            ('create_replica', 5),
            ('delete_replica', 4),
            ('promote_replica', 4),
            ('update_replica_state', 5),
            ('get_replica_status', 1),
            ('create_replicated_snapshot', 3),
            ('delete_replicated_snapshot', 3),
            ('update_replicated_snapshot', 5),
            ('revert_to_replicated_snapshot', 7),
        ):
            with pytest.raises(NotImplementedError):
                getattr(driver, method)(*([{'id': 'replica'}] * given))


class TestReplicas:
    def test_inventory_is_read_from_outside(self, make_sites):
        sites = make_sites()
        sites.write('one')
        sites.create_in_sync()
        sites.write('two')
        assert dummy.replica_inventory(state_of(sites.here)) == {
            sites.here.id: DummyReplica('active', version=2, synced=True)
        }
        assert dummy.replica_inventory(state_of(sites.there)) == {
            sites.there.id: DummyReplica('passive', version=1, synced=True)
        }
        sites.delete()
        assert dummy.replica_inventory(state_of(sites.there)) == {}

    @pytest.mark.parametrize('style', STYLES)
    def test_copying_can_take_several_updates(self, make_sites, style):
        sites = make_sites(style, more='dummy_driver_replica_steps = 2')
        sites.write('one')
        sites.create()
        assert sites.there.state == 'out_of_sync'
        assert sites.update() == 'out_of_sync'
        assert sites.read() == ''
        assert not sites.there.driver.replica_inventory()[sites.there.id].synced
        assert sites.update() == ('active' if style == 'writable' else 'in_sync')
        assert sites.read() == 'one'

    @pytest.mark.parametrize('style', PROMOTABLE)
    def test_users_cannot_write_to_a_passive_one(self, make_sites, style):
        sites = make_sites(style).create_in_sync()
        with pytest.raises(exception.ShareBackendException):
            sites.write('two', sites.there)

    def test_unchanged_replica_is_left_alone(self, make_sites, tmp_path):
        sites = make_sites().create_in_sync()
        sites.update()
        before = _stamps(tmp_path)
        assert sites.update() == 'in_sync'
        assert _stamps(tmp_path) == before

    def test_managed_share_can_have_replicas(self, make_sites):
        sites = make_sites()
        driver = sites.here.driver
        path = driver.add_unmanaged_share('found', content='found')
        found = sites.here.harness.at(path, host=sites.here.host)
        driver.manage_existing(found, {})
        sites.here.id, sites.share_id = found.id, found.share_id
        assert sites.create_in_sync().read() == 'found'
        sites.promote()
        with pytest.raises(exception.ShareBackendException):
            sites.write('lost', sites.here)

    def test_unmanaged_share_is_no_longer_a_replica(self, make_sites):
        sites = make_sites().create_in_sync()
        sites.delete()
        sites.there.state = None
        driver, share = sites.here.driver, sites.share_for(sites.here)
        path = share['export_location']
        driver.unmanage(share)
        found = sites.here.harness.at(path, host=sites.here.host)
        driver.manage_existing(found, {})
        assert driver.replica_inventory() == {}
        driver.write(found.id, 'again')

    def test_snapshots_of_an_unusable_replica_are_unusable(self, make_sites):
        sites = make_sites()
        id = sites.snapshot()
        sites.create_in_sync()
        for site in (sites.here, sites.there):
            site.driver.snapshot_update_access(
                CTX, sites.instance(id, site), [sites.rule('10.0.0.1', 'ro')], [], []
            )
        there = sites.there.driver
        assert there.snapshot_access_inventory() == {}
        assert sites.here.driver.snapshot_access_inventory()
        sites.promote()
        assert there.snapshot_access_inventory() == {
            sites.instance(id, sites.there).id: {('ip', '10.0.0.1', 'ro')}
        }

    def test_refused_rule_is_reported(self, make_sites):
        sites = make_sites('readable')
        sites.there.driver.refuse_rules(lambda verb, rule: True)
        answer = sites.create()
        assert answer['access_rules_status'] == 'error'
        assert answer['share_access_rules'] == {sites.rules[0].id: {'state': 'error'}}


def test_queries_about_missing_shares_create_no_record(make_sites, tmp_path):
    sites = make_sites()
    sites.there.state = 'out_of_sync'
    before = _stamps(tmp_path)
    id = str(uuid.uuid4())
    sites.snapshots[id] = ({'here': 'available', 'there': 'creating'}, 1)
    for question in (sites.update, sites.status, lambda: sites.update_snapshot(id)):
        with pytest.raises(exception.ManilaLiteError):
            question()
    assert _stamps(tmp_path) == before


def _stamps(folder):
    return {path: path.stat().st_mtime_ns for path in folder.rglob('*.json')}
