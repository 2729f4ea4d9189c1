"""Access rules of snapshots are allowed, denied and listed."""

import pytest

from tests.functional.api.conftest import member_of
from tests.functional.api.snapshot_client import (
    UNKNOWN,
    act_on_snapshot,
    create_available_snapshot,
)
from tests.support.cloud import TYPE_ID
from tests.support.snapshot_access import SnapshotRules, create_mountable_snapshot


def reset(cloud, mount, status):
    act_on_snapshot(cloud.api, mount.snapshot_id, 'reset_status', {'status': status})


# Allow


@pytest.mark.facts('share-mount-snapshots.1')
def test_rule_is_applied_after_the_answer(cloud, mount):
    rule = mount.allow('10.0.0.1')
    assert rule == {
        'id': rule['id'],
        'access_type': 'ip',
        'access_to': '10.0.0.1',
        'state': 'queued_to_apply',
    }
    assert mount.rules == [rule]
    cloud.settle()
    assert mount.rules == [rule | {'state': 'active'}]
    assert mount.clients == {'10.0.0.1'}
    cloud.check_invariants()


@pytest.mark.parametrize(
    'kind, target, code',
    [
        ('ip', '10.0.0.0/24', 202),
        ('ip', '10.0.0.1/24', 400),
        ('ip', 'moon', 400),
        ('user', 'alice', 202),
        ('user', 'al', 400),
        ('cert', 'client.example', 202),
        ('cert', ' ', 400),
        ('cephx', 'alice', 400),
        ('moon', 'alice', 400),
    ],
)
def test_kinds_of_clients(mount, kind, target, code):
    mount.allow(target, kind, expect=code)


@pytest.mark.parametrize('target', ['fd00::1', 'fd00::/64', '::/0'])
def test_ipv6_is_known_from_2_38_on(mount, target):
    mount.allow(target, expect=400, version='2.37')
    assert mount.allow(target, version='2.38')['access_to'] == target


@pytest.mark.parametrize(
    'first, second',
    [
        ('10.0.0.1', '10.0.0.1'),
        ('10.0.0.1', '10.0.0.1/32'),
        ('fd00::1', 'fd00:0::0:1'),
        ('::ffff:10.0.0.1', '10.0.0.1'),
    ],
)
def test_the_same_client_twice_is_a_duplicate(mount, first, second):
    mount.allow(first)
    fault = mount.allow(second, expect=400)
    assert second in fault['badRequest']['message']
    assert len(mount.rules) == 1


def test_another_snapshot_has_rules_of_its_own(cloud, mount, member):
    share_id = member.get(mount.path)['snapshot']['share_id']
    other = SnapshotRules(
        cloud, create_available_snapshot(cloud, member, share_id), member
    )
    mount.allow()
    other.allow()
    cloud.settle()
    assert mount.states == other.states == {'10.0.0.1': 'active'}


@pytest.mark.parametrize(
    'body',
    [
        None,
        {},
        {'access_type': 'ip'},
        {'access_to': '10.0.0.1'},
        {'access_type': 'ip', 'access_to': ''},
        {'access_type': 'ip', 'access_to': 7},
    ],
)
def test_incomplete_bodies_are_refused(mount, body):
    mount.act('allow_access', body, expect=400)
    mount.act('deny_access', body, expect=400)


def test_actions_are_unknown_below_2_32(mount):
    mount.allow(version='2.31', expect=404)
    mount.deny(UNKNOWN, version='2.31', expect=404)
    mount.api.get(f'{mount.path}/access-list', version='2.31', expect=404)


# Preconditions


@pytest.mark.facts('share-mount-snapshots.2')
def test_share_must_have_mountable_snapshots(cloud, member):
    mount = create_mountable_snapshot(cloud, member)
    fault = mount.allow(expect=400)
    assert 'cannot be mounted' in fault['badRequest']['message']
    mount.deny(UNKNOWN, expect=400)
    member.get(f'{mount.path}/access-list', expect=400)


@pytest.mark.facts('snapshot-inherit.2')
def test_rules_are_refused_if_those_of_the_share_apply(cloud, mount, member):
    rule = mount.allow()['id']
    cloud.settle()
    cloud.api.request(
        'POST',
        f'/types/{TYPE_ID}/extra_specs',
        {'extra_specs': {'snapshot_inherit_share_access_support': 'True'}},
        expect=200,
    )
    assert mount.deny(rule) is None  # the share was created before that
    for backend in cloud.share.backends:
        backend.report()
    inheriting = SnapshotRules(cloud, _inheriting(cloud, member), member)
    inheriting.allow(expect=400)
    inheriting.deny(UNKNOWN, expect=400)
    assert inheriting.rules == []


def _inheriting(cloud, member):
    """Set the flag of the share: no back end supports it yet."""
    cloud.api.request(
        'DELETE',
        f'/types/{TYPE_ID}/extra_specs/snapshot_inherit_share_access_support',
        expect=202,
    )
    mount = create_mountable_snapshot(cloud, member)
    cloud.db.write(
        lambda session: session.connection.exec_driver_sql(
            'UPDATE shares SET snapshot_inherit_share_access_support = 1'
        )
    )
    return mount.snapshot_id


@pytest.mark.parametrize(
    'status', ['creating', 'error', 'deleting', 'error_deleting', 'restoring']
)
def test_snapshot_must_be_available(cloud, mount, status):
    rule = mount.allow()['id']
    cloud.settle()
    reset(cloud, mount, status)
    fault = mount.allow('10.0.0.2', expect=400)
    assert f'while it is {status}' in fault['badRequest']['message']
    mount.deny(rule, expect=400)
    assert mount.states == {'10.0.0.1': 'active'}


# Deny


def test_denied_rule_is_deleted_after_the_back_end_revoked_it(cloud, mount):
    rule = mount.allow()['id']
    cloud.settle()
    assert mount.deny(rule) is None
    assert mount.states == {'10.0.0.1': 'queued_to_deny'}
    mount.deny(rule)  # repeated denial is harmless
    cloud.settle()
    assert (mount.rules, mount.clients) == ([], set())
    mount.deny(rule, expect=404)
    mount.allow()
    cloud.settle()
    assert mount.clients == {'10.0.0.1'}


def test_rule_of_another_snapshot_is_not_found(cloud, mount, member):
    other = create_mountable_snapshot(cloud, member)
    rule = other.allow()['id']
    mount.deny(rule, expect=404)
    mount.deny(UNKNOWN, expect=404)
    assert other.states == {'10.0.0.1': 'queued_to_apply'}


def test_rules_are_hidden_from_other_projects(cloud, mount, stranger):
    rule = mount.allow()['id']
    theirs = SnapshotRules(cloud, mount.snapshot_id, stranger)
    theirs.allow('10.0.0.2', expect=404)
    theirs.deny(rule, expect=404)
    stranger.get(f'{mount.path}/access-list', expect=404)
    assert mount.states == {'10.0.0.1': 'queued_to_apply'}


def test_readers_read_and_change_nothing(cloud, mount):
    rule = mount.allow()['id']
    reader = member_of(cloud)
    reader.headers['X-Roles'] = 'reader'
    theirs = SnapshotRules(cloud, mount.snapshot_id, reader)
    assert [one['id'] for one in theirs.rules] == [rule]
    theirs.allow('10.0.0.2', expect=403)
    theirs.deny(rule, expect=403)


# The capability of shares


@pytest.mark.parametrize(
    'version, shown', [('2.31', False), ('2.32', True), ('2.99', True)]
)
def test_capability_is_copied_from_the_type_to_the_share(
    cloud, mount, member, version, shown
):
    share_id = member.get(mount.path)['snapshot']['share_id']
    share = member.show(share_id, version=version)
    assert share.get('mount_snapshot_support') is (True if shown else None)
    cloud.api.request(
        'DELETE', f'/types/{TYPE_ID}/extra_specs/mount_snapshot_support', expect=202
    )
    assert member.show(share_id)['mount_snapshot_support'] is True
    assert member.create()['mount_snapshot_support'] is False
