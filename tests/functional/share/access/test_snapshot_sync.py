"""Sync of the access rules of snapshots with the back end."""

import pytest

from manila_lite import exception
from tests.support.snapshot_access import (
    create_mountable_snapshot,
    enable_snapshot_mounts,
)

METHOD = 'snapshot_update_access'


@pytest.fixture
def cloud(build_cloud):
    cloud = build_cloud()
    enable_snapshot_mounts(cloud)
    return cloud


@pytest.fixture
def mount(cloud):
    return create_mountable_snapshot(cloud)


def test_requests_during_a_driver_call_take_one_call(cloud, mount):
    mount.allow('10.0.1.0')

    def request_more():
        for number in range(1, 6):
            mount.allow(f'10.0.1.{number}')

    cloud.pause_at(f'before {METHOD}', request_more)
    cloud.settle()
    assert [len(call.added) for call in mount.calls] == [1, 5]
    assert mount.clients == {f'10.0.1.{number}' for number in range(6)}
    cloud.check_invariants()


def test_rule_denied_while_applying_is_not_shown_active(cloud, mount):
    rule = mount.allow()['id']
    cloud.pause_at(f'after {METHOD}', lambda: mount.deny(rule))
    cloud.settle()
    first, second = mount.calls
    assert (first.added, second.deleted) == ([rule], [rule])
    assert (mount.rules, mount.clients) == ([], set())
    cloud.check_invariants()


def test_request_without_changes_calls_no_driver(cloud, mount):
    rule = mount.allow()['id']
    mount.deny(rule)
    mount.deny(rule)
    cloud.settle()
    assert len(mount.calls) == 1
    assert mount.rules == []


@pytest.mark.facts('LP1660425')
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
    assert mount.clients == {'10.0.0.1'}  # the resync has corrected it
    cloud.check_invariants()
    mount.allow('10.0.0.4')  # errors do not block other rules
    for rule in mount.rules:
        if rule['id'] != kept:
            mount.deny(rule['id'])
    cloud.settle()
    assert mount.states == {'10.0.0.1': 'active'}
    messages = cloud.api.get('/messages')['messages']
    for message in messages:
        assert message['resource_type'] == 'SHARE_SNAPSHOT'
        assert message['resource_id'] == mount.snapshot_id
    # Of the rule that was not denied, and of the one that was not applied.
    assert sorted(one['action_id'] for one in messages) == ['003', '010']


def test_back_end_may_refuse_single_rules(cloud, mount):
    denied = mount.allow('10.0.0.3')['id']
    cloud.settle()
    mount.driver.refuse_rules(lambda verb, rule: rule['access_to'] == '10.0.0.2')
    mount.allow('10.0.0.1')
    mount.allow('10.0.0.2')
    mount.deny(denied)
    cloud.settle()
    assert mount.states == {'10.0.0.1': 'active', '10.0.0.2': 'error'}
    (message,) = cloud.api.get('/messages')['messages']
    assert message['resource_id'] == mount.snapshot_id
    assert 'ip 10.0.0.2' in message['user_message']
    cloud.check_invariants()


def test_refused_denial_is_resynced(cloud, mount):
    rule = mount.allow()['id']
    cloud.settle()
    mount.driver.refuse_rules(lambda verb, rule: verb == 'deny')
    mount.deny(rule)
    cloud.settle()
    assert mount.states == {'10.0.0.1': 'error'}
    assert mount.clients == set()
    cloud.check_invariants()


def test_full_set_is_sent_after_a_lost_call(cloud, mount):
    mount.allow('10.0.0.1')
    cloud.settle()
    mount.driver.lose_reply_next(METHOD, error=exception.ServiceUnavailable())
    mount.allow('10.0.0.2')
    cloud.settle()
    last = mount.calls[-1]
    assert (last.rules, last.added, last.deleted) == (2, [], [])
    assert mount.states == {'10.0.0.1': 'active', '10.0.0.2': 'active'}
    cloud.check_invariants()


def test_driver_without_support_leaves_the_rule_in_error(cloud, mount):
    for backend in cloud.share.backends:
        backend.endpoints.snapshot_access.driver = object.__new__(_Without)
    mount.allow()
    cloud.settle()
    assert mount.states == {'10.0.0.1': 'error'}


class _Without:
    """A driver without support for snapshot access rules."""

    ipv6_implemented = False


# Rules and other changes of a snapshot


def test_rules_are_removed_before_the_snapshot(cloud, mount):
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


def test_rules_of_a_snapshot_that_could_not_be_deleted_are_in_error(cloud, mount):
    mount.allow()
    cloud.settle()
    mount.driver.fail_next('delete_snapshot')
    cloud.api.request('DELETE', mount.path, expect=202)
    cloud.settle()
    assert cloud.api.get(mount.path)['snapshot']['status'] == ('error_deleting')
    assert mount.states == {'10.0.0.1': 'error'}
    assert mount.clients == set()
    cloud.check_invariants()


@pytest.mark.parametrize('method', [METHOD, 'delete_snapshot'])
def test_force_delete_of_a_snapshot_ignores_driver_errors(cloud, mount, method):
    mount.allow()
    cloud.settle()
    mount.driver.fail_next(method)
    mount.act('force_delete', None)
    cloud.settle()
    cloud.api.get(mount.path, expect=404)


def test_rules_are_removed_when_a_snapshot_is_unmanaged(cloud, mount):
    mount.allow()
    cloud.settle()
    driver, instance_id = mount.driver, mount.instance_id
    mount.act('unmanage', None)
    cloud.settle()
    cloud.api.get(mount.path, expect=404)
    assert instance_id not in driver.snapshot_access_inventory()


def test_revert_is_refused_while_rules_are_in_transit(cloud, mount):
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


def test_lost_work_is_submitted_by_a_pass(cloud, mount):
    mount.allow()
    cloud.db.write(
        lambda session: session.connection.exec_driver_sql('DELETE FROM work')
    )
    cloud.settle()
    assert mount.states == {'10.0.0.1': 'active'}
    cloud.check_invariants()
