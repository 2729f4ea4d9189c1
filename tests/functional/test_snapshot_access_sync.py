"""How the rules of a snapshot reach its back end: in rounds, all at once."""

import pytest

from manila_lite import exception
from tests.support.cloud import Cloud
from tests.support.snapshot_access import create_mountable_snapshot
from tests.support.snapshot_access import enable_snapshot_mounts

METHOD = 'snapshot_update_access'


@pytest.fixture
def cloud(tmp_path):
    cloud = Cloud(tmp_path)
    enable_snapshot_mounts(cloud)
    yield cloud
    cloud.db.dispose()


@pytest.fixture
def mount(cloud):
    return create_mountable_snapshot(cloud)


def test_requests_that_arrive_meanwhile_are_one_call(cloud, mount):
    mount.allow('10.0.1.0')

    def meanwhile():
        for number in range(1, 6):
            mount.allow(f'10.0.1.{number}')

    cloud.pause_at(f'before {METHOD}', meanwhile)
    cloud.settle()
    assert [len(call.added) for call in mount.calls] == [1, 5]
    assert mount.clients == {f'10.0.1.{number}' for number in range(6)}
    cloud.check_invariants()


def test_rule_denied_on_its_way_is_not_said_to_be_active(cloud, mount):
    rule = mount.allow()['id']
    cloud.pause_at(f'after {METHOD}', lambda: mount.deny(rule))
    cloud.settle()
    first, second = mount.calls
    assert (first.added, second.deleted) == ([rule], [rule])
    assert (mount.rules, mount.clients) == ([], set())
    cloud.check_invariants()


def test_request_for_nothing_new_calls_nobody(cloud, mount):
    rule = mount.allow()['id']
    mount.deny(rule)
    mount.deny(rule)
    cloud.settle()
    assert len(mount.calls) == 1
    assert mount.rules == []


def test_error_puts_exactly_what_was_in_transit_into_error(cloud, mount):
    kept, denied = (mount.allow(to)['id'] for to in ('10.0.0.1', '10.0.0.2'))
    cloud.settle()
    mount.driver.fail_next(METHOD)
    mount.deny(denied)
    mount.allow('10.0.0.3')
    cloud.settle()
    assert mount.states == {
        '10.0.0.1': 'active',
        '10.0.0.2': 'error',
        '10.0.0.3': 'error',
    }
    assert mount.clients == {'10.0.0.1'}  # it was put right
    cloud.check_invariants()
    mount.allow('10.0.0.4')  # errors block nobody
    for rule in mount.rules:
        if rule['id'] != kept:
            mount.deny(rule['id'])
    cloud.settle()
    assert mount.states == {'10.0.0.1': 'active'}
    message = cloud.api.get('/messages')['messages'][0]
    assert message['resource_type'] == 'SHARE_SNAPSHOT'
    assert message['resource_id'] == mount.snapshot_id
    assert message['action_id'] == '010'


def test_back_end_may_refuse_single_rules(cloud, mount):
    denied = mount.allow('10.0.0.3')['id']
    cloud.settle()
    mount.driver.refuse_rules(
        lambda verb, rule: rule['access_to'] == '10.0.0.2'
    )
    mount.allow('10.0.0.1')
    mount.allow('10.0.0.2')
    mount.deny(denied)
    cloud.settle()
    assert mount.states == {'10.0.0.1': 'active', '10.0.0.2': 'error'}
    cloud.check_invariants()


def test_denial_that_is_refused_is_put_right(cloud, mount):
    rule = mount.allow()['id']
    cloud.settle()
    mount.driver.refuse_rules(lambda verb, rule: verb == 'deny')
    mount.deny(rule)
    cloud.settle()
    assert mount.states == {'10.0.0.1': 'error'}
    assert mount.clients == set()
    cloud.check_invariants()


def test_whole_set_is_told_after_a_lost_call(cloud, mount):
    mount.allow('10.0.0.1')
    cloud.settle()
    mount.driver.lose_reply_next(METHOD, error=exception.ServiceUnavailable())
    mount.allow('10.0.0.2')
    cloud.settle()
    last = mount.calls[-1]
    assert (last.rules, last.added, last.deleted) == (2, [], [])
    assert mount.states == {'10.0.0.1': 'active', '10.0.0.2': 'active'}
    cloud.check_invariants()


def test_drivers_without_it_leave_the_rule_in_error(cloud, mount):
    for backend in cloud.share.backends:
        backend.endpoints.snapshot_access.driver = object.__new__(_Without)
    mount.allow()
    cloud.settle()
    assert mount.states == {'10.0.0.1': 'error'}


class _Without:
    """A driver that has no way to let anybody mount a snapshot."""

    ipv6_implemented = False


# Rules and what else happens to a snapshot


def test_rules_go_before_the_snapshot(cloud, mount):
    rule = mount.allow()['id']
    cloud.settle()
    instance_id = mount.instance_id
    backend = mount.driver
    cloud.api.request('DELETE', mount.path, expect=202)
    cloud.settle()
    call = backend.access_calls[-1]
    assert (call.method, call.subject_id) == (METHOD, instance_id)
    assert (call.rules, call.deleted) == (0, [rule])
    methods = [
        call.method
        for call in backend.calls
        if call.method in (METHOD, 'delete_snapshot')
    ]
    assert methods[-2:] == [METHOD, 'delete_snapshot']
    cloud.api.get(mount.path, expect=404)
    cloud.check_invariants()


def test_rules_of_a_snapshot_that_stays_are_in_error(cloud, mount):
    mount.allow()
    cloud.settle()
    mount.driver.fail_next('delete_snapshot')
    cloud.api.request('DELETE', mount.path, expect=202)
    cloud.settle()
    assert cloud.api.get(mount.path)['snapshot']['status'] == (
        'error_deleting'
    )
    assert mount.states == {'10.0.0.1': 'error'}
    assert mount.clients == set()
    cloud.check_invariants()


@pytest.mark.parametrize('method', [METHOD, 'delete_snapshot'])
def test_forced_deletion_bears_with_the_back_end(cloud, mount, method):
    mount.allow()
    cloud.settle()
    mount.driver.fail_next(method)
    mount.act('force_delete', None)
    cloud.settle()
    cloud.api.get(mount.path, expect=404)


def test_rules_go_when_a_snapshot_is_let_go(cloud, mount):
    mount.allow()
    cloud.settle()
    driver, instance_id = mount.driver, mount.instance_id
    mount.act('unmanage', None)
    cloud.settle()
    cloud.api.get(mount.path, expect=404)
    assert instance_id not in driver.snapshot_access_inventory()


def test_revert_waits_for_nobody_and_is_refused_meanwhile(cloud, mount):
    share_id = cloud.api.get(mount.path)['snapshot']['share_id']
    revert = {'snapshot_id': mount.snapshot_id}
    mount.allow()
    cloud.api.act(share_id, 'revert', revert, expect=409)
    cloud.settle()
    cloud.api.act(share_id, 'revert', revert)
    mount.allow('10.0.0.2', expect=400)
    cloud.settle()
    assert mount.states == {'10.0.0.1': 'active'}
    assert cloud.api.show(share_id)['status'] == 'available'
    cloud.check_invariants()


def test_lost_work_is_found_by_a_look(cloud, mount):
    mount.allow()
    cloud.db.write(
        lambda session: session.connection.exec_driver_sql('DELETE FROM work')
    )
    cloud.settle()
    assert mount.states == {'10.0.0.1': 'active'}
    cloud.check_invariants()
