"""Sync of access rules with the back end: rounds, replies, failures."""

import re

import pytest
import sqlalchemy as sa

from manila_lite import exception
from manila_lite.db.models import services
from manila_lite.share.operations.access.rules import RuleLockOptions
from tests.functional.api.conftest import member_of
from tests.support.access import CTX, INSTANCE, ShareRules
from tests.support.cloud import Crash

MESSAGE = services.Message.__table__
UNRESPONSIVE = exception.FileServerUnresponsive(server='NFS')


@pytest.fixture
def cloud(build_cloud):
    cloud = build_cloud()
    yield cloud
    cloud.settle()
    cloud.check_invariants()


@pytest.fixture
def rules(cloud):
    return ShareRules(cloud, cloud.create_share())


def messages(cloud):
    """Return action and detail of every message, oldest first."""
    return [
        tuple(row)
        for row in cloud.db.read(
            lambda session: session.rows(
                sa.select(MESSAGE.c.action_id, MESSAGE.c.detail_id).order_by(
                    MESSAGE.c.created_at
                )
            )
        )
    ]


def instance(cloud, rules, **values):
    """Change columns of the instance and resync it."""
    backend = next(
        one for one in cloud.share.backends if one.host.endswith(f'@{rules.backend}')
    )

    def change(session):
        session.run(
            sa.update(INSTANCE)
            .values(**values)
            .where(INSTANCE.c.id == rules.instance_id)
        )
        backend.endpoints.access.resync(session, CTX, rules.instance_id)

    cloud.db.write(change)


def die():
    raise Crash('here')


# Rounds


def test_requests_during_a_driver_call_take_one_more_call(cloud, rules):
    def more():
        assert rules.states == {'10.0.0.1': 'applying'}
        for number in range(2, 12):
            rules.allow(f'10.0.0.{number}')

    rules.allow()
    cloud.pause_at('before apply_access', more)
    cloud.settle()
    first, second = rules.calls
    assert (len(first.added), len(second.added), second.rules) == (1, 10, 11)
    assert set(rules.states.values()) == {'active'}
    assert rules.status == 'active'


def test_all_queued_rules_take_one_call(cloud, rules):
    kept, gone, raised = (rules.allow(f'10.0.0.{n}') for n in (1, 2, 3))
    cloud.settle()
    new = rules.allow('10.0.0.4')
    rules.deny(gone)
    rules.change(raised, 'ro')
    assert rules.status == 'out_of_sync'
    cloud.settle()
    call = rules.calls[-1]
    assert (call.added, call.deleted, call.updated, call.rules) == (
        [new],
        [gone],
        [raised],
        3,
    )
    assert rules.clients == {'10.0.0.1': 'rw', '10.0.0.3': 'ro', '10.0.0.4': 'rw'}
    assert rules.known == 3


def test_rule_denied_before_it_was_sent_is_still_denied(cloud, rules):
    rules.deny(rules.allow())
    cloud.settle()
    assert len(rules.calls) == 1
    assert (rules.rows, rules.clients, rules.known) == ({}, {}, 0)


def test_level_changed_before_sending_is_sent_changed(cloud, rules):
    rule = rules.allow(level='rw')
    rules.change(rule, 'ro')
    assert rules.states == {'10.0.0.1': 'queued_to_apply'}
    cloud.settle()
    assert rules.calls[0].added == [rule]
    assert rules.clients == {'10.0.0.1': 'ro'}


def test_hundreds_of_rules_take_one_call(cloud, rules):
    for number in range(600):
        rules.allow(f'10.0.{number // 250}.{number % 250}')
    cloud.settle()
    assert len(rules.calls) == 1
    assert len(rules.clients) == 600
    for rule in list(rules.rows):
        rules.deny(rule)
    cloud.settle()
    assert len(rules.calls) == 2
    assert (rules.clients, rules.known) == ({}, 0)


# Changes during a sync


@pytest.mark.parametrize('place', ['before', 'after'])
def test_rule_denied_while_applying_never_becomes_active(cloud, rules, place):
    rule = rules.allow()

    def deny():
        rules.deny(rule)
        assert rules.states == {'10.0.0.1': 'queued_to_deny'}

    cloud.pause_at(f'{place} apply_access', deny)
    while not rules.calls:
        cloud.step()
    assert rules.states == {'10.0.0.1': 'queued_to_deny'}
    cloud.settle()
    assert [call.deleted for call in rules.calls] == [[], [rule]]
    assert (rules.rows, rules.clients) == ({}, {})


def test_level_changed_while_applying_is_applied_next(cloud, rules):
    rule = rules.allow()
    cloud.pause_at('after apply_access', lambda: rules.change(rule, 'ro'))
    cloud.settle()
    assert [call.updated for call in rules.calls] == [[], [rule]]
    assert rules.clients == {'10.0.0.1': 'ro'}


def test_denying_twice_changes_nothing(cloud, rules):
    rule = rules.allow()
    cloud.settle()
    rules.deny(rule)
    rules.deny(rule)
    cloud.pause_at('before apply_access', lambda: rules.deny(rule))
    cloud.settle()
    assert (rules.known, rules.clients) == (0, {})
    assert len(rules.calls) == 2
    with pytest.raises(exception.ShareAccessNotFound):
        rules.deny(rule)


def test_unchanged_level_calls_no_driver(cloud, rules):
    rule = rules.allow(level='ro')
    cloud.settle()
    rules.change(rule, 'ro')
    assert rules.status == 'active'
    cloud.settle()
    assert len(rules.calls) == 1


def test_rule_being_denied_cannot_change_its_level(cloud, rules):
    rule = rules.allow()
    rules.deny(rule)
    with pytest.raises(exception.InvalidShareAccess):
        rules.change(rule, 'ro')


# Replies


def test_each_rule_gets_its_own_outcome(cloud, rules):
    rules.driver.refuse_rules(lambda verb, rule: rule['access_to'] == '10.0.0.2')
    for number in (1, 2, 3):
        rules.allow(f'10.0.0.{number}')
    cloud.settle()
    assert rules.states == {
        '10.0.0.1': 'active',
        '10.0.0.2': 'error',
        '10.0.0.3': 'active',
    }
    assert rules.status == 'error'
    assert messages(cloud) == [('010', '020')]


def test_error_blocks_no_other_rule_and_ends_with_its_rule(cloud, rules):
    rules.driver.refuse_rules(
        lambda verb, rule: (verb, rule['access_to']) == ('allow', '10.0.0.2')
    )
    bad = rules.allow('10.0.0.2')
    cloud.settle()
    rules.allow('10.0.0.1')
    assert rules.status == 'error'
    cloud.settle()
    assert rules.states == {'10.0.0.1': 'active', '10.0.0.2': 'error'}
    rules.deny(bad)
    cloud.settle()
    assert rules.states == {'10.0.0.1': 'active'}
    assert rules.status == 'active'


@pytest.mark.facts('LP1626249.3')
def test_driver_error_fails_exactly_the_rules_in_transit(cloud, rules):
    rules.allow('10.0.0.1')
    cloud.settle()
    rules.driver.fail_next('update_access')
    rules.allow('10.0.0.2')
    cloud.settle()
    assert rules.states == {'10.0.0.1': 'active', '10.0.0.2': 'error'}
    assert rules.clients == {'10.0.0.1': 'rw'}
    assert messages(cloud) == [('010', '001')]


def test_rule_waits_for_a_file_server_that_is_replaced(cloud, rules):
    rules.driver.fail_next('update_access', 2, UNRESPONSIVE)
    rules.allow()
    cloud.settle()
    assert rules.states == {'10.0.0.1': 'active'}
    assert messages(cloud) == []


def test_message_says_that_the_file_server_does_not_answer(cloud, rules):
    rules.driver.fail_next('update_access', None, UNRESPONSIVE)
    rules.allow()
    cloud.settle()
    assert rules.states == {'10.0.0.1': 'error'}
    assert messages(cloud) == [('010', '028')]
    reason = cloud.db.read(lambda session: session.rows(sa.select(MESSAGE.c.reason)))
    assert [row.reason for row in reason] == ['the NFS server does not answer']
    rules.driver.faults.clear()


WORDS = exception.ShareBackendException(msg='exportfs: 10.0.0.1 is not in DNS')


@pytest.mark.parametrize('is_denied', [False, True])
def test_administrators_read_what_the_driver_said_about_rules(cloud, rules, is_denied):
    if is_denied:
        rule = rules.allow()
        cloud.settle()
    rules.driver.fail_next('update_access', 1, WORDS)
    rules.deny(rule) if is_denied else rules.allow()
    cloud.settle()
    (message,) = cloud.api.get('/messages')['messages']
    # The published name of the method, not the one that calls it here.
    assert re.search(
        r' update_access of back end \S+ failed after [\d.]+ s: .*exportfs',
        message['user_message'],
    )
    member = member_of(cloud)
    assert 'exportfs' not in member.get('/messages')['messages'][0]['user_message']
    rules.driver.faults.clear()


def test_what_the_driver_said_about_hidden_rules_is_kept_from_all(cloud, rules):
    rules.allow(locked=RuleLockOptions(visibility=True))
    cloud.settle()
    rules.driver.fail_next('update_access', 1, WORDS)
    rules.allow('10.0.0.2')
    cloud.settle()
    (message,) = cloud.api.get('/messages')['messages']
    assert 'exportfs' not in message['user_message']
    rules.driver.faults.clear()


def test_failed_deny_is_visible_and_resynced(cloud, rules):
    rule = rules.allow()
    cloud.settle()
    rules.driver.fail_next('update_access')
    rules.deny(rule)
    cloud.settle()
    assert rules.states == {'10.0.0.1': 'error'}
    # The resync has sent the full set again.
    assert rules.clients == {}
    assert messages(cloud) == [('003', '001')]
    rules.deny(rule)
    cloud.settle()
    assert (rules.known, rules.status) == (0, 'active')


def test_message_of_a_refused_deny_says_that_the_client_has_access(cloud, rules):
    rule = rules.allow()
    cloud.settle()
    rules.driver.refuse_rules(lambda verb, rule: verb == 'deny')
    rules.deny(rule)
    cloud.settle()
    assert messages(cloud) == [('003', '001')]
    (message,) = cloud.api.get('/messages')['messages']
    assert 'may still have it' in message['user_message']
    assert '10.0.0.1' in message['user_message']


def test_refused_level_change_removes_the_old_level(cloud, rules):
    rule = rules.allow(level='rw')
    cloud.settle()
    rules.driver.refuse_rules(lambda verb, rule: verb == 'update')
    rules.change(rule, 'ro')
    cloud.settle()
    assert rules.states == {'10.0.0.1': 'error'}
    assert rules.clients == {}
    rules.driver.refuse_rules(None)
    rules.change(rule, 'rw')
    cloud.settle()
    assert rules.states == {'10.0.0.1': 'active'}
    assert rules.clients == {'10.0.0.1': 'rw'}


def test_unsupported_rule_is_reported_in_published_words(cloud, rules):
    rules.driver.fail_next('update_access', None, NotImplementedError())
    rules.allow()
    cloud.settle()
    assert rules.states == {'10.0.0.1': 'error'}
    assert messages(cloud) == [('010', '021')]
    rules.driver.faults.clear()


def test_reported_access_keys_are_stored(cloud, rules):
    rule = rules.allow('alice', type='cephx')
    cloud.settle()
    key = rules.rows[rule].access_key
    assert key
    rules.allow('bob', type='cephx')
    cloud.settle()
    assert rules.rows[rule].access_key == key


def test_replies_about_unknown_rules_are_ignored(cloud, rules, monkeypatch, caplog):
    monkeypatch.setattr(
        rules.driver,
        'update_access',
        lambda *args, **kwargs: {'stranger': {'state': 'error'}},
    )
    rule = rules.allow()
    cloud.settle()
    assert rules.states == {'10.0.0.1': 'active'}
    assert 'stranger' in caplog.text
    monkeypatch.undo()
    rules.deny(rule)


# The full set


def test_full_set_is_sent_first_after_a_restart(cloud, rules):
    rules.allow('10.0.0.1')
    cloud.settle()
    new = rules.allow('10.0.0.2')
    cloud.pause_at('after apply_access', die)
    with pytest.raises(Crash):
        cloud.settle()
    cloud.restart()
    assert rules.states['10.0.0.2'] == 'applying'
    cloud.settle()
    whole, normal = rules.calls  # of the driver started then
    assert (whole.rules, whole.added, whole.deleted, whole.updated) == (2, [], [], [])
    assert normal.added == [new]


def test_client_admitted_by_the_full_set_is_removed_if_then_refused(cloud, rules):
    kept = rules.allow('10.0.0.1')
    cloud.settle()
    rules.allow('10.0.0.2')
    cloud.pause_at('after apply_access', die)
    with pytest.raises(Crash):
        cloud.settle()
    cloud.restart()
    rules.driver.refuse_rules(
        lambda verb, rule: rule['access_to'] == '10.0.0.2' and len(rules.calls) > 1
    )
    cloud.settle()
    assert rules.states == {'10.0.0.1': 'active', '10.0.0.2': 'error'}
    assert rules.clients == {'10.0.0.1': 'rw'}
    assert [call.rules for call in rules.calls] == [2, 2, 1]
    rules.driver.refuse_rules(None)
    rules.deny(kept)


def test_broken_rule_grants_no_access(cloud, rules, monkeypatch):
    rule = rules.allow('10.0.0.1')
    cloud.settle()
    driver = rules.driver

    def answer_error(*args, **kwargs):
        monkeypatch.undo()
        return {rule: {'state': 'error'}}

    monkeypatch.setattr(driver, 'update_access', answer_error)
    rules.allow('10.0.0.2')
    cloud.settle()
    assert rules.states['10.0.0.1'] == 'error'
    assert '10.0.0.1' not in rules.clients


def test_cast_to_read_only_sends_the_full_set(cloud, rules):
    rules.allow('10.0.0.1', 'rw')
    rules.allow('10.0.0.2', 'ro')
    cloud.settle()
    instance(cloud, rules, cast_rules_to_readonly=True)
    assert rules.status == 'out_of_sync'
    cloud.settle()
    call = rules.calls[-1]
    assert (call.rules, call.added, call.deleted) == (2, [], [])
    assert rules.clients == {'10.0.0.1': 'ro', '10.0.0.2': 'ro'}
    rules.allow('10.0.0.3', 'rw')
    cloud.settle()
    assert rules.clients['10.0.0.3'] == 'ro'
    instance(cloud, rules, cast_rules_to_readonly=False)
    cloud.settle()
    assert rules.clients == {'10.0.0.1': 'rw', '10.0.0.2': 'ro', '10.0.0.3': 'rw'}
    assert rules.status == 'active'


def test_driver_may_request_rules_when_ensuring(cloud, rules, monkeypatch):
    without = cloud.create_share()
    rules.allow('10.0.0.1')
    cloud.settle()
    monkeypatch.setattr(
        rules.driver,
        'ensure_shares',
        lambda context, shares: {
            share['id']: {'reapply_access_rules': True} for share in shares
        },
    )
    cloud.api.ensure(f'node@{rules.backend}')
    cloud.settle()
    call = rules.calls[-1]
    assert (len(rules.calls), call.rules, call.added) == (2, 1, [])
    assert ShareRules(cloud, without).calls == []


@pytest.mark.facts('LP1707066')
def test_unsupported_addresses_are_hidden_from_the_driver(cloud, rules):
    assert not rules.driver.ipv6_implemented
    rule = rules.allow('2001:db8::1')
    cloud.settle()
    assert rules.states == {'2001:db8::1': 'active'}
    assert rules.calls == []
    rules.deny(rule)
    cloud.settle()
    assert (rules.known, rules.calls) == (0, [])


# Deletion of the share


def test_rules_are_removed_before_the_share(cloud, rules):
    rule = rules.allow()
    cloud.settle()
    driver, instance_id = rules.driver, rules.instance_id
    cloud.api.delete(rules.share_id)
    cloud.settle()
    call = driver.access_calls[-1]
    assert (call.subject_id, call.deleted, call.rules) == (instance_id, [rule], 0)
    assert [one.method for one in driver.calls if one.subject_id == instance_id][
        -2:
    ] == ['update_access', 'delete_share']


def test_share_that_could_not_be_deleted_grants_no_access(cloud, rules):
    rules.allow()
    cloud.settle()
    rules.driver.fail_next('delete_share')
    cloud.api.delete(rules.share_id)
    cloud.settle()
    assert cloud.api.show(rules.share_id)['status'] == 'error_deleting'
    assert rules.states == {'10.0.0.1': 'error'}
    assert (rules.status, rules.clients) == ('error', {})


def test_rules_of_a_share_being_deleted_are_not_synced(cloud, rules):
    rules.allow()
    cloud.api.delete(rules.share_id)
    driver = rules.driver
    cloud.settle()
    assert driver.access_inventory() == {}
    assert rules.known == 0


@pytest.mark.parametrize('status', ['creating', 'deleting', 'migrating', 'error'])
def test_busy_share_refuses_rule_changes(cloud, rules, status):
    rule = rules.allow()
    cloud.settle()
    instance_id = rules.instance_id
    cloud.api.act(rules.share_id, 'reset_status', {'status': status})
    with pytest.raises(exception.InvalidShare) as refused:
        rules.allow('10.0.0.2', allow_in_error=False)
    assert instance_id not in refused.value.msg
    with pytest.raises(exception.InvalidShare):
        rules.deny(rule, allow_in_error=False)
    assert rules.states == {'10.0.0.1': 'active'}
    assert rules.status == 'active'


def test_share_in_error_accepts_rules_if_configured(cloud, rules):
    cloud.api.act(rules.share_id, 'reset_status', {'status': 'error'})
    rules.allow()
    cloud.settle()
    assert rules.clients == {'10.0.0.1': 'rw'}


def test_one_client_has_one_rule_in_any_notation(cloud, rules):
    rules.allow('10.0.0.1')
    with pytest.raises(exception.ShareAccessExists):
        rules.allow('10.0.0.1/32', 'ro')
    rules.allow('10.0.0.1', type='user')
    cloud.settle()
    with pytest.raises(exception.ShareAccessExists):
        rules.allow('10.0.0.1/32')
