"""What the instrument of tests does beyond the contract of replication."""

import concurrent.futures
import itertools
import os
import uuid

import pytest

from manila_lite import exception
import manila_lite.conf
from manila_lite.share.drivers.contract.configuration import Configuration
from manila_lite.share.drivers.dummy import driver as dummy
from manila_lite.share.drivers.dummy.driver import DummyDriver
from manila_lite.share.drivers.dummy.replication_domain import DummyReplica
from tests.drivers.crashes import changes
from tests.drivers.crashes import killed_at
from tests.drivers.driver_harness import CTX
from tests.drivers.replication_contract import Sites

PROMOTABLE = ('readable', 'dr')
STYLES = ('writable', *PROMOTABLE)
FAULTS = ('fail_next', 'half_fail_next', 'lose_reply_next')


@pytest.fixture
def make(tmp_path):
    """A share on the first of three back ends, of any style."""

    def make(style='dr', **kwargs):
        return Sites(tmp_path, 'dummy', style, **kwargs)

    return make


def state_of(site):
    return site.driver.configuration.dummy_driver_state_path


class TestVerbs:
    """Failed before, half-way or after their work they can be repeated."""

    def each(self, sites, verb):
        """The back end whose driver a verb is called of, and the call."""
        if verb == 'create_replica':
            return sites.there, sites.create
        sites.write('one')
        sites.made()
        id = sites.snapshot()
        sites.write('two')
        return {
            'delete_replica': (sites.there, sites.delete),
            'promote_replica': (sites.there, sites.promote),
            'update_replica_state': (sites.there, sites.update),
            'create_replicated_snapshot': (sites.here, lambda: sites.take(id)),
            'update_replicated_snapshot': (
                sites.there,
                lambda: sites.poll(id),
            ),
            'delete_replicated_snapshot': (sites.here, lambda: sites.drop(id)),
            'revert_to_replicated_snapshot': (
                sites.here,
                lambda: sites.revert(id),
            ),
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
    def test_repeated_after_a_fault_it_ends_right(
        self, make, verb, style, fault
    ):
        if style == 'writable' and verb == 'promote_replica':
            style = 'readable'
        sites = make(style)
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

    def test_a_half_made_replica_is_in_error(self, make):
        sites = make()
        sites.there.driver.half_fail_next('create_replica')
        with pytest.raises(exception.ShareBackendException):
            sites.create()
        assert sites.update() == 'error'
        assert sites.status()['status'] == 'error'
        with pytest.raises(exception.ShareBackendException):
            sites.promote()

    def test_a_spoiled_replica_is_in_error(self, make):
        sites = make().made()
        sites.there.driver.set_error(sites.there.id)
        assert sites.update() == 'error'

    def test_they_can_be_had_to_hang(self, make):
        sites = make().made()
        hang = sites.there.driver.hang_next('update_replica_state')
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            asked = pool.submit(sites.update)
            assert hang.wait_reached()
            # It holds up nobody else.
            sites.write('one')
            hang.release()
            assert asked.result() == 'in_sync'

    def test_how_long_clients_were_given_is_told(self, make):
        sites = make().made()
        sites.promote(quiesce_wait_time=7)
        assert sites.there.driver.last_quiesce_wait == 7


class TestPromotion:
    def half_promoted(self, sites):
        sites.write('one')
        sites.made()
        sites.there.driver.half_fail_next('promote_replica')
        with pytest.raises(exception.ShareBackendException):
            sites.promote()

    @pytest.mark.parametrize('style', PROMOTABLE)
    def test_broken_half_way_none_is_active(self, make, style):
        sites = make(style)
        self.half_promoted(sites)
        for site in (sites.here, sites.there):
            with pytest.raises(exception.ShareBackendException):
                sites.write('lost', site)
            assert 'rw' not in sites.levels(site)
            assert [
                one.role for one in site.driver.replica_inventory().values()
            ] == ['passive']

    @pytest.mark.parametrize('question', ['status', 'update'])
    def test_broken_half_way_it_is_taken_back_when_asked(self, make, question):
        sites = make()
        self.half_promoted(sites)
        if question == 'update':
            assert sites.update() == 'in_sync'
        assert sites.status(sites.here)['status'] == 'available'
        sites.write('two', sites.here)
        assert sites.update() == 'in_sync'
        assert sites.read() == 'two'

    def test_broken_half_way_only_the_last_active_is_put_back(self, make):
        sites = make()
        sites.made(sites.beyond)
        sites.made()
        before = sites.list
        sites.promote()
        sites.write('two')
        after = sites.list
        sites.beyond.driver.half_fail_next('promote_replica')
        with pytest.raises(exception.ShareBackendException):
            sites.promote(sites.beyond)
        for question, active in ((before, []), (after, [sites.there.id])):
            sites.beyond.driver.update_replica_state(
                CTX, question, question[2], [], []
            )
            assert [
                id
                for site in sites.sites
                for id, replica in site.driver.replica_inventory().items()
                if replica.role == 'active'
            ] == active
        assert sites.read(sites.beyond) == 'two'

    def test_broken_half_way_another_can_be_promoted(self, make):
        sites = make()
        sites.made(sites.beyond)
        self.half_promoted(sites)
        sites.promote(sites.beyond)
        assert sites.read(sites.beyond) == 'one'
        assert sites.update() == 'in_sync'

    def test_done_and_not_answered_it_is_not_taken_back(self, make):
        sites = make().made()
        sites.there.driver.lose_reply_next('promote_replica')
        with pytest.raises(exception.ShareBackendException):
            sites.promote()
        sites.write('two', sites.there)
        assert sites.status(sites.here)['status'] == 'error'
        assert sites.update() == 'error'
        sites.promote()
        assert sites.read() == 'two'
        assert sites.update(sites.here) == 'in_sync'

    def test_question_from_before_changes_nothing(self, make):
        sites = make().made()
        before = sites.list
        sites.promote()
        sites.write('two')
        sites.there.driver.update_replica_state(CTX, before, before[1], [], [])
        sites.here.driver.get_replica_status(before[0])
        assert (
            sites.there.driver.replica_inventory()[sites.there.id].role
            == 'active'
        )
        assert sites.read() == 'two'

    def test_promoting_again_lets_nobody_in_who_was_shut_out(self, make):
        sites = make('readable').made()
        before, rules = sites.list, sites.rules
        sites.promote()
        sites.rules = []
        sites.tell_rules(sites.there)
        sites.there.driver.promote_replica(CTX, before, before[1], rules)
        sites.there.driver.create_replica(CTX, before, before[1], rules, [])
        assert sites.levels() == set()

    def test_only_who_followed_since_is_synced(self, make):
        sites = make().made()
        sites.made(sites.beyond)
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
        assert sites.made().read() == 'one'
        sites.promote()
        sites.write('two')
        assert sites.update(sites.here) == 'in_sync'
        assert sites.read(sites.here) == 'two'

    def test_back_ends_of_other_domains_are_not_found(self, tmp_path, make):
        sites = make()
        file = tmp_path / 'sites.conf'
        head, name, rest = file.read_text().partition('[there]')
        file.write_text(head + name + rest.replace('= domain', '= other', 1))
        sites.there.subject.configure = lambda: Configuration(
            manila_lite.conf.new(files=[str(file)]), 'there'
        )
        sites.there.restart()
        sites.create()
        assert sites.there.state == 'out_of_sync'

    def test_two_replicas_may_lie_on_one_back_end(self, make):
        sites = make(more='dummy_driver_pools = one, two')
        sites.there.driver = sites.here.driver
        sites.there.host = 'host@here#two'
        sites.write('one')
        assert sites.made().read() == 'one'
        assert {
            pool['pool_name']: pool['allocated_capacity_gb']
            for pool in sites.here.driver.get_share_stats(refresh=True)[
                'pools'
            ]
        } == {'one': 1, 'two': 1}
        sites.promote()
        sites.write('two')
        assert sites.update(sites.here) == 'in_sync'

    def test_nobody_reaches_one_that_is_away(self, make):
        sites = make().made()
        sites.here.lose()
        for call in (
            lambda: sites.status(sites.here),
            lambda: sites.tell_rules(sites.here),
            lambda: sites.here.driver.get_share_stats(refresh=True),
            lambda: sites.write('two'),
        ):
            with pytest.raises(exception.ShareBackendException):
                call()
        assert dummy.replica_inventory(state_of(sites.here))
        sites.here.bring_back()
        sites.write('two')
        assert sites.update() == 'in_sync'

    def test_without_a_style_it_does_not_replicate(self, tmp_path):
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
    def test_inventory_is_read_from_outside(self, make):
        sites = make()
        sites.write('one')
        sites.made()
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
    def test_copy_can_take_its_time(self, make, style):
        sites = make(style, more='dummy_driver_replica_steps = 2')
        sites.write('one')
        sites.create()
        assert sites.there.state == 'out_of_sync'
        assert sites.update() == 'out_of_sync'
        assert sites.read() == ''
        assert not sites.there.driver.replica_inventory()[
            sites.there.id
        ].synced
        assert sites.update() == (
            'active' if style == 'writable' else 'in_sync'
        )
        assert sites.read() == 'one'

    @pytest.mark.parametrize('style', PROMOTABLE)
    def test_users_cannot_write_to_a_passive_one(self, make, style):
        sites = make(style).made()
        with pytest.raises(exception.ShareBackendException):
            sites.write('two', sites.there)

    def test_unchanged_replica_is_left_alone(self, make, tmp_path):
        sites = make().made()
        sites.update()
        before = _stamps(tmp_path)
        assert sites.update() == 'in_sync'
        assert _stamps(tmp_path) == before

    def test_share_that_was_managed_has_replicas_like_any(self, make):
        sites = make()
        driver = sites.here.driver
        path = driver.add_unmanaged_share('found', content='found')
        found = sites.here.subject.at(path, host=sites.here.host)
        driver.manage_existing(found, {})
        sites.here.id, sites.share_id = found.id, found.share_id
        assert sites.made().read() == 'found'
        sites.promote()
        with pytest.raises(exception.ShareBackendException):
            sites.write('lost', sites.here)

    def test_share_let_go_is_no_replica_when_it_is_found(self, make):
        sites = make().made()
        sites.delete()
        sites.there.state = None
        driver, share = sites.here.driver, sites.of(sites.here)
        path = share['export_location']
        driver.unmanage(share)
        found = sites.here.subject.at(path, host=sites.here.host)
        driver.manage_existing(found, {})
        assert driver.replica_inventory() == {}
        driver.write(found.id, 'again')

    def test_snapshots_of_a_replica_out_of_use_are_too(self, make):
        sites = make()
        id = sites.snapshot()
        sites.made()
        for site in (sites.here, sites.there):
            site.driver.snapshot_update_access(
                CTX,
                sites.instance(id, site),
                [sites.rule('10.0.0.1', 'ro')],
                [],
                [],
            )
        there = sites.there.driver
        assert there.snapshot_access_inventory() == {}
        assert sites.here.driver.snapshot_access_inventory()
        sites.promote()
        assert there.snapshot_access_inventory() == {
            sites.instance(id, sites.there).id: {('ip', '10.0.0.1', 'ro')}
        }

    def test_rule_that_is_refused_is_told(self, make):
        sites = make('readable')
        sites.there.driver.refuse_rules(lambda verb, rule: True)
        answer = sites.create()
        assert answer['access_rules_status'] == 'error'
        assert answer['share_access_rules'] == {
            sites.rules[0].id: {'state': 'error'}
        }


class TestWritable:
    def test_snapshot_is_had_by_all_or_none(self, make):
        sites = make('writable').made()
        sites.there.lose()
        with pytest.raises(exception.ShareBackendException):
            sites.snapshot()
        assert sites.here.driver.snapshot_inventory() == {}

    def test_snapshot_stays_while_one_is_out_of_reach(self, make):
        sites = make('writable').made()
        id = sites.snapshot()
        sites.there.lose()
        with pytest.raises(exception.ShareBackendException):
            sites.drop(id)
        assert len(sites.here.driver.snapshot_inventory()) == 1

    def test_promotion_is_none_of_its_verbs(self, make):
        sites = make('writable').made()
        with pytest.raises(NotImplementedError):
            sites.promote()

    def test_who_was_away_is_behind_until_it_is_looked_at(self, make):
        sites = make('writable').made()
        sites.there.lose()
        sites.write('two', sites.here)
        sites.there.bring_back()
        assert not sites.there.driver.replica_inventory()[
            sites.there.id
        ].synced
        assert sites.status()['status'] == 'available'
        assert sites.there.driver.replica_inventory()[sites.there.id].synced
        assert sites.read() == 'two'

    def test_nothing_is_changed_on_one_that_is_behind(self, make):
        sites = make('writable').made()
        sites.there.lose()
        sites.write('two', sites.here)
        sites.here.lose()
        sites.there.bring_back()
        there = sites.of(sites.there)
        for change in (
            lambda: sites.write('old', sites.there),
            lambda: sites.there.driver.extend_share(there, 3),
            lambda: sites.there.driver.shrink_share(there, 1),
        ):
            with pytest.raises(exception.ShareBackendException):
                change()
        sites.here.bring_back()
        sites.write('three', sites.there)
        assert sites.read(sites.here) == 'three'

    def test_nobody_goes_on_from_those_that_are_behind(self, make):
        sites = make('writable').made()
        sites.made(sites.beyond)
        for site in (sites.there, sites.beyond):
            site.lose()
        sites.write('two', sites.here)
        sites.here.lose()
        for site in (sites.there, sites.beyond):
            site.bring_back()
            assert not site.driver.replica_inventory()[site.id].synced
        for site in (sites.there, sites.beyond):
            assert sites.status(site)['status'] == 'error'
            with pytest.raises(exception.ShareBackendException):
                sites.write('old', site)
        sites.here.bring_back()
        assert {sites.read(site) for site in sites.sites} == {'two'}

    def test_replica_is_not_made_of_one_that_is_behind(self, make):
        sites = make('writable').made()
        sites.there.lose()
        sites.write('two', sites.here)
        sites.here.lose()
        sites.there.bring_back()
        sites.create(sites.beyond)
        assert sites.beyond.state == 'out_of_sync'
        sites.here.bring_back()
        assert sites.update(sites.beyond) == 'active'
        assert sites.read(sites.beyond) == 'two'

    def test_the_only_one_goes_on_after_a_kill(self, make, tmp_path):
        for step in itertools.count(1):
            (tmp_path / str(step)).mkdir()
            sites = Sites(tmp_path / str(step), 'dummy', 'writable')
            if not killed_at(step, lambda s=sites: s.write('one'), changes):
                break
            sites.write('two')
            assert sites.read(sites.here) == 'two'

    def test_what_a_killed_process_wrote_is_on_all_or_none(
        self, make, tmp_path
    ):
        for step in itertools.count(1):
            (tmp_path / str(step)).mkdir()
            sites = Sites(tmp_path / str(step), 'dummy', 'writable')
            sites.made()
            sites.write('one')
            sites.made(sites.beyond)
            killed = killed_at(step, lambda s=sites: s.write('two'), changes)
            found = {sites.read(site) for site in sites.sites}
            assert found in ({'one'}, {'two'})
            sites.write('three', sites.there)
            assert {sites.read(site) for site in sites.sites} == {'three'}
            if not killed:
                break
        assert found == {'two'}

    def test_what_was_written_alone_outlives_a_killed_process(
        self, make, tmp_path
    ):
        for step in itertools.count(1):
            (tmp_path / str(step)).mkdir()
            sites = Sites(tmp_path / str(step), 'dummy', 'writable')
            sites.write('one')
            sites.made()
            sites.there.lose()
            sites.write('two', sites.here)
            sites.there.bring_back()
            killed = killed_at(step, lambda s=sites: s.write('three'), changes)
            found = {sites.read(site) for site in sites.sites[:2]}
            assert found in ({'two'}, {'three'})
            if not killed:
                break

    def test_processes_lose_nothing_of_each_other(self, make):
        sites = make('writable').made()
        children = [
            _child(
                lambda site=site: [
                    sites.write(f'{site.name} {number}', site)
                    for number in range(20)
                ]
            )
            for site in (sites.here, sites.there)
        ]
        assert [os.waitpid(child, 0)[1] for child in children] == [0, 0]
        here, there = (
            {*site.driver.replica_inventory().values()}
            for site in (sites.here, sites.there)
        )
        assert here == there == {DummyReplica('active', 40, True)}
        assert sites.read(sites.here) == sites.read()


def test_no_record_is_made_by_questions_about_what_is_not_there(
    make, tmp_path
):
    sites = make()
    sites.there.state = 'out_of_sync'
    before = _stamps(tmp_path)
    id = str(uuid.uuid4())
    sites.snapshots[id] = ({'here': 'available', 'there': 'creating'}, 1)
    for question in (sites.update, sites.status, lambda: sites.poll(id)):
        with pytest.raises(exception.ManilaLiteError):
            question()
    assert _stamps(tmp_path) == before


def _stamps(folder):
    return {path: path.stat().st_mtime_ns for path in folder.rglob('*.json')}


def _child(act):
    """Another process that does it; its id."""
    process = os.fork()
    if process == 0:
        code = 1
        try:
            act()
            code = 0
        finally:
            os._exit(code)
    return process
