"""Access rules of shares are allowed, changed and denied."""

import pytest
import sqlalchemy as sa

from manila_lite.db.models.access import InstanceAccessRule
from manila_lite.db.models.engine import Transition
from manila_lite.db.models.shares import ShareInstance
from tests.functional.api.access.access_client import (
    CLIENT,
    allow_access,
    create_lock,
    delete_lock,
    deny_access,
    list_locks,
    list_rules,
    show_rule,
)
from tests.functional.api.samples.replicas import insert_replica, make_replicable
from tests.functional.api.snapshot_client import UNKNOWN
from tests.support.access import ShareRules
from tests.support.api_client import ApiClient
from tests.support.cloud import BACKENDS


def access_levels(cloud, share):
    """Return the access level of each client on the back end."""
    return ShareRules(cloud, share).clients


def change(api, rule, level, expect=200, version=None):
    return api.request(
        'PUT',
        f'/share-access-rules/{rule}',
        {'update_access': {'access_level': level}},
        expect=expect,
        version=version,
    ).json


def message(fault):
    (content,) = fault.values()
    return content['message']


# Allow


def test_rule_is_applied_after_the_answer(cloud, member, share):
    rule = allow_access(member, share, metadata={'color': 'red'})
    assert (rule['state'], rule['access_level']) == ('queued_to_apply', 'rw')
    assert member.show(share)['access_rules_status'] == 'out_of_sync'
    assert show_rule(member, rule['id']) == rule
    cloud.settle()
    assert show_rule(member, rule['id']) == rule | {'state': 'active'}
    assert member.show(share)['access_rules_status'] == 'active'
    cloud.check_invariants()


@pytest.mark.parametrize('version', ['2.0', '2.6', '2.7', '2.27', '2.44'])
@pytest.mark.facts('access_list')
def test_old_clients_see_old_words(cloud, member, share, version):
    prefix = 'os-' if version in ('2.0', '2.6') else ''
    rule = member.act(
        share,
        f'{prefix}allow_access',
        {'access_type': 'ip', 'access_to': '10.0.0.1', 'metadata': {'x': 1}},
        expect=200,
        version=version,
    ).json['access']
    states = ['queued_to_apply' if version == '2.44' else 'new']
    assert rule['state'] == states[0]
    cloud.settle()
    answer = member.act(
        share, f'{prefix}access_list', None, expect=200, version=version
    ).json
    assert [one['state'] for one in answer['access_list']] == ['active']
    assert show_rule(member, rule['id'])['metadata'] == {}


@pytest.mark.parametrize(
    'kind, target, since',
    [
        ('ip', '10.0.0.0/24', 0),
        ('ip', '0.0.0.0/0', 0),
        ('ip', 'fd00::1', 38),
        ('ip', '::/0', 38),
        ('user', 'abcd', 0),
        ('user', 'alice@corp', 0),
        ('user', 'Alice of Corp', 0),
        ('user', 'x' * 255, 0),
        ('cert', 'x' * 64, 0),
        ('cephx', 'alice', 13),
    ],
)
@pytest.mark.facts(
    'LP1674908',
    'LP1733494',
    'access_to.1',
    'access_to.2',
    'access_type',
    'add-ipv6.1',
    'add-ipv6.2',
)
def test_kinds_of_clients(member, share, kind, target, since):
    if since:
        allow_access(
            member,
            share,
            access_type=kind,
            access_to=target,
            expect=400,
            version=f'2.{since - 1}',
        )
    rule = allow_access(
        member, share, access_type=kind, access_to=target, version=f'2.{max(since, 7)}'
    )
    assert (rule['access_type'], rule['access_to']) == (kind, target)


@pytest.mark.parametrize(
    'body',
    [
        {'access_to': '10.0.0.1/24'},
        {'access_to': '10.0.0.256'},
        {'access_to': ''},
        {'access_to': None},
        {'access_to': 'x' * 256},
        {'access_to': 'fe80::1%eth0'},
        {'access_type': 'dns'},
        {'access_type': None},
        {'access_type': 'user', 'access_to': 'abc'},
        {'access_type': 'user', 'access_to': 'a:b:c:d'},
        {'access_type': 'user', 'access_to': 'x' * 256},
        {'access_type': 'cert', 'access_to': 'x' * 65},
        {'access_type': 'cephx', 'access_to': 'a.b'},
        {'access_level': 'wr'},
        {'access_level': 7},
        {'metadata': {'': 'x'}},
        {'metadata': {'x': ''}},
        {'metadata': 'x'},
        {'lock_reason': 'because'},
        {'lock_visibility': 'maybe'},
    ],
)
@pytest.mark.facts('access_to.1', 'access_to.2', 'access_type', 'access_level')
def test_invalid_rule_is_refused(member, share, body):
    allow_access(member, share, expect=400, **body)
    assert list_rules(member, share) == []
    assert list_locks(member) == []


@pytest.mark.parametrize(
    'first, second',
    [
        ('10.0.0.1', '10.0.0.1/32'),
        ('fd00::1', 'FD00:0:0::1'),
        ('fd00::/64', 'fd00:0::/64'),
        ('10.0.0.1', '::ffff:10.0.0.1'),
        ('::ffff:10.0.0.0/120', '10.0.0.0/24'),
    ],
)
@pytest.mark.facts('LP1767430')
def test_client_has_one_rule_in_any_spelling(member, share, first, second):
    allow_access(member, share, access_to=first)
    fault = allow_access(member, share, access_to=second, expect=400)
    assert 'exists' in message(fault)
    assert len(list_rules(member, share)) == 1


@pytest.mark.parametrize(
    'written, shown',
    [
        ('10.0.0.1/32', '10.0.0.1/32'),
        ('FD00:0:0::1', 'FD00:0:0::1'),
        ('::ffff:10.0.0.1', '10.0.0.1'),
        ('::ffff:10.0.0.0/120', '10.0.0.0/24'),
    ],
)
def test_client_is_shown_as_written_but_mapped_addresses_as_ipv4(
    cloud, member, share, written, shown
):
    allow_access(member, share, access_to=written)
    cloud.settle()
    (rule,) = list_rules(member, share)
    assert (rule['access_to'], rule['state']) == (shown, 'active')


@pytest.mark.facts('add-access-key-to-share-access-map')
def test_key_is_shown_where_the_back_end_returns_one(cloud, member, share):
    keyless = allow_access(member, share, version='2.21')
    assert keyless['access_key'] is None
    assert 'access_key' not in show_rule_2_20(member, share)
    allow_access(member, share, access_type='cephx', access_to='alice')
    cloud.settle()
    listed = list_rules(member, share)
    assert [rule['access_key'] is None for rule in listed] == [True, False]
    for rule in listed:
        shown = show_rule(member, rule['id'])
        assert shown['access_key'] == rule['access_key']


def show_rule_2_20(member, share):
    answer = member.act(share, 'access_list', expect=200, version='2.20')
    return answer.json['access_list'][0]


def test_same_client_may_reach_several_shares(cloud, member, share):
    allow_access(member, share)
    allow_access(member, cloud.create_share())


def test_many_rules_are_applied_together(cloud, member, share):
    for number in range(20):
        allow_access(member, share, access_to=f'10.0.0.{number}')
    cloud.settle()
    assert {rule['state'] for rule in list_rules(member, share)} == {'active'}
    assert len(list_rules(member, share)) == 20


def test_share_that_is_not_ready_refuses_rules(admin, member, share):
    for status, version, code in (
        ('creating', '2.99', 400),
        ('deleting', '2.99', 400),
        ('error', '2.73', 400),
        ('error', '2.74', 200),
    ):
        admin.act(share, 'reset_status', {'status': status})
        allow_access(member, share, expect=code, version=version)


@pytest.mark.facts('LP1626249.5', 'LP1965561.1', 'LP1965561.2')
@pytest.mark.parametrize(
    'status, older, newer',
    [
        ('available', 200, 200),
        ('error', 400, 200),
        ('creating', 400, 400),
        ('extending', 400, 400),
    ],
)
def test_state_of_another_instance_hinders_changes_until_2_73(
    cloud, member, share, status, older, newer
):
    rule = allow_access(member, share)['id']
    cloud.settle()
    make_replicable(cloud, share)
    insert_replica(cloud, share, status=status)
    for version, code in (('2.73', older), ('2.74', newer)):
        target = f'10.0.1.{version[-1]}'
        allow_access(member, share, access_to=target, expect=code, version=version)
        deny_access(
            member, share, rule, expect=202 if code == 200 else code, version=version
        )


@pytest.mark.facts('LP1626249.4')
def test_right_is_checked_before_the_share_and_the_body(cloud, share):
    reader = ApiClient(cloud, user='reader', roles='reader')
    for id in (share, UNKNOWN):
        for action in ('allow_access', 'deny_access'):
            for args in (None, {}, {'access_id': 7}, CLIENT):
                reader.act(id, action, args, expect=403)


def test_unplaced_share_refuses_rules(cloud, member):
    id = member.create()['id']
    allow_access(member, id, expect=400)


def test_share_in_the_recycle_bin_refuses_rules(member, share):
    rule = allow_access(member, share)['id']
    member.act(share, 'soft_delete')
    allow_access(member, share, access_to='10.0.0.2', expect=403)
    deny_access(member, share, rule, expect=403)


@pytest.mark.facts('LP1626249.2')
def test_failed_rule_blocks_others_below_2_28_only(cloud, member, share):
    fail_next_update(cloud)
    bad = allow_access(member, share)['id']
    cloud.settle()
    assert show_rule(member, bad)['state'] == 'error'
    assert member.show(share)['access_rules_status'] == 'error'
    allow_access(member, share, access_to='10.0.0.2', expect=400, version='2.27')
    good = allow_access(member, share, access_to='10.0.0.2', version='2.28')['id']
    cloud.settle()
    assert show_rule(member, good)['state'] == 'active'
    assert member.show(share)['access_rules_status'] == 'error'
    deny_access(member, share, bad)
    cloud.settle()
    assert member.show(share)['access_rules_status'] == 'active'


def fail_next_update(cloud):
    for name in BACKENDS:
        cloud.driver(name).faults.fail_next('update_access')


@pytest.mark.facts('LP1626249.1')
def test_rule_shows_that_the_back_end_works_on_it(cloud, member, share):
    shown = []
    rule = allow_access(member, share)['id']

    def look():
        shown.append(show_rule(member, rule)['state'])
        listed = member.act(share, 'access_list', expect=200, version='2.28')
        shown.append(listed.json['access_list'][0]['state'])

    cloud.pause_at('before apply_access', look)
    cloud.settle()
    assert shown == ['applying', 'applying']
    deny_access(member, share, rule)
    cloud.pause_at('before apply_access', look)
    cloud.settle()
    assert shown[2:] == ['denying', 'denying']


# Deny


@pytest.mark.facts('fix-access-delete-404')
def test_rule_that_no_instance_has_is_not_visible(cloud, member, share):
    """Otherwise it would be seen and could not be denied."""
    rule = allow_access(member, share)['id']
    cloud.settle()
    cloud.db.write(lambda session: session.run(sa.delete(InstanceAccessRule.__table__)))
    show_rule(member, rule, expect=404)
    assert list_rules(member, share) == []
    deny_access(member, share, rule, expect=404)


def test_denied_rule_is_deleted_after_the_answer(cloud, member, share):
    rule = allow_access(member, share)['id']
    cloud.settle()
    deny_access(member, share, rule)
    assert show_rule(member, rule)['state'] == 'queued_to_deny'
    deny_access(member, share, rule)
    cloud.settle()
    show_rule(member, rule, expect=404)
    assert access_levels(cloud, share) == {}
    deny_access(member, share, rule, expect=404)
    cloud.check_invariants()


@pytest.mark.parametrize(
    'version, state', [('2.27', 'new'), ('2.28', 'queued_to_deny')]
)
def test_rule_being_denied_by_version(cloud, member, share, version, state):
    rule = allow_access(member, share)['id']
    cloud.settle()
    deny_access(member, share, rule)
    found = member.act(share, 'access_list', expect=200, version=version)
    assert [one['state'] for one in found.json['access_list']] == [state]


def test_rule_being_denied_shows_the_error_of_the_share(cloud, member, share):
    rule = allow_access(member, share)['id']
    cloud.settle()
    fail_next_update(cloud)
    allow_access(member, share, access_to='10.0.0.2')
    cloud.settle()
    deny_access(member, share, rule)
    found = member.act(share, 'access_list', expect=200, version='2.27')
    assert [one['state'] for one in found.json['access_list']] == ['error', 'error']


@pytest.mark.parametrize('access_id', [UNKNOWN, 'x'])
def test_unknown_rule_is_not_found(member, share, access_id):
    deny_access(member, share, access_id, expect=404)


def test_rule_of_another_share_is_not_found(cloud, member, share):
    rule = allow_access(member, share)['id']
    deny_access(member, cloud.create_share(), rule, expect=404)
    assert show_rule(member, rule)['state'] == 'active'


# Another level


@pytest.mark.facts('LP2031193', 'LP2066871.1')
def test_level_is_changed(cloud, member, share):
    rule = allow_access(member, share)['id']
    cloud.settle()
    changed = change(member, rule, 'ro')['access']
    assert (changed['access_level'], changed['state']) == ('ro', 'queued_to_update')
    assert changed['updated_at'] is not None
    cloud.settle()
    assert show_rule(member, rule) == changed | {'state': 'active'}
    assert access_levels(cloud, share) == {'10.0.0.1': 'ro'}


def test_level_of_any_kind_of_client_is_changed(cloud, member, share):
    for kind, target in (
        ('user', 'alice'),
        ('cert', 'client.example'),
        ('cephx', 'bob'),
    ):
        rule = allow_access(member, share, access_type=kind, access_to=target)['id']
        cloud.settle()
        change(member, rule, 'ro')
        cloud.settle()
        assert show_rule(member, rule)['access_level'] == 'ro'
        assert show_rule(member, rule)['state'] == 'active'


@pytest.mark.facts('LP2066871.3')
def test_same_level_changes_nothing(cloud, member, share):
    rule = allow_access(member, share)['id']
    cloud.settle()
    before = show_rule(member, rule)
    assert change(member, rule, 'rw') == {'access': before}
    assert show_rule(member, rule) == before


@pytest.mark.parametrize(
    'body',
    [
        {},
        {'update_access': {}},
        {'update_access': None},
        {'update_access': {'access_level': None}},
        {'update_access': {'access_level': 'wr'}},
        {'access_level': 'ro'},
    ],
)
def test_level_must_be_one(member, share, body):
    rule = allow_access(member, share)['id']
    member.request('PUT', f'/share-access-rules/{rule}', body, expect=400)


def test_rule_being_denied_keeps_its_level(member, share):
    rule = allow_access(member, share)['id']
    deny_access(member, share, rule)
    change(member, rule, 'ro', expect=400)


# Locks created with a rule


@pytest.mark.facts('LP2075967', 'unrestrict_access.2')
def test_locked_rule_is_not_denied(cloud, member, share):
    rule = allow_access(member, share, lock_deletion=True, lock_reason='mounted')
    cloud.settle()
    (of_rule,) = list_locks(member, '?resource_type=access_rule')
    assert (
        of_rule['resource_id'],
        of_rule['resource_action'],
        of_rule['lock_reason'],
    ) == (rule['id'], 'delete', 'mounted')
    (of_share,) = list_locks(member, '?resource_type=share')
    assert of_rule['id'] in of_share['lock_reason']
    deny_access(member, share, rule['id'], expect=403)
    member.delete(share, expect=403)
    assert show_rule(member, rule['id'])['state'] == 'active'


@pytest.mark.facts('unrestrict_access')
def test_owner_of_all_locks_removes_them_by_denying(cloud, member, share):
    rule = allow_access(member, share, lock_deletion=True)['id']
    create_lock(member, rule, 'access_rule')
    deny_access(member, share, rule, unrestrict=True)
    assert list_locks(member) == []
    cloud.settle()
    show_rule(member, rule, expect=404)
    member.delete(share)


def test_locks_of_others_are_not_removed_by_denying(admin, member, share):
    rule = allow_access(member, share, lock_deletion=True)['id']
    create_lock(admin, rule, 'access_rule')
    before = list_locks(member)
    deny_access(member, share, rule, unrestrict=True, expect=403)
    assert list_locks(member) == before
    assert show_rule(member, rule)['state'] == 'queued_to_apply'
    deny_access(admin, share, rule, unrestrict=True)


def test_locks_are_not_known_below_2_82(member, share):
    allow_access(
        member,
        share,
        lock_deletion=True,
        lock_visibility=True,
        lock_reason='mounted',
        version='2.81',
    )
    assert list_locks(member) == []


def test_visibility_lock_does_not_prevent_denial(cloud, member, share):
    rule = allow_access(member, share, lock_visibility=True)['id']
    assert len(list_locks(member)) == 1
    deny_access(member, share, rule)
    cloud.settle()
    assert list_locks(member) == []


def test_refused_rule_leaves_no_lock(member, share):
    allow_access(member, share)
    allow_access(member, share, lock_deletion=True, expect=400)
    assert list_locks(member) == []


def test_lock_of_rule_can_be_removed_separately(member, share):
    rule = allow_access(member, share, lock_deletion=True)['id']
    delete_lock(member, list_locks(member, '?resource_type=share')[0]['id'])
    member.delete(share)
    deny_access(member, share, rule, expect=400)
    assert len(list_locks(member)) == 1


# Metadata


def metadata(api, rule, values, expect=200):
    return api.request(
        'PUT',
        f'/share-access-rules/{rule}/metadata',
        {'metadata': values},
        expect=expect,
    ).json


@pytest.mark.facts('access-metadata', 'add-share-access-metadata.3')
def test_metadata_merges_and_answers_all_keys(member, share):
    rule = allow_access(member, share, metadata={'color': 'red', 'x': 'y'})['id']
    expected = {'color': 'blue', 'x': 'y', 'new': 'z'}
    assert metadata(member, rule, {'color': 'blue', 'new': 'z'}) == {
        'metadata': expected
    }
    assert show_rule(member, rule)['metadata'] == expected


@pytest.mark.parametrize(
    'values',
    [{'': 'x'}, {'x': ''}, {'x': None}, 'x', {'x': 'y' * 1024}, {'x' * 256: 'y'}],
)
def test_invalid_metadata_is_refused(member, share, values):
    rule = allow_access(member, share)['id']
    metadata(member, rule, values, expect=400)
    assert show_rule(member, rule)['metadata'] == {}


@pytest.mark.facts('access-metadata')
def test_metadata_key_is_removed_once(member, share):
    rule = allow_access(member, share, metadata={'color': 'red', 'x': 'y'})['id']
    path = f'/share-access-rules/{rule}/metadata/color'
    member.request('DELETE', path, expect=200)
    assert show_rule(member, rule)['metadata'] == {'x': 'y'}
    member.request('DELETE', path, expect=404)


@pytest.mark.facts('add-share-access-metadata.1')
def test_list_has_the_metadata(member, share):
    allow_access(member, share, metadata={'color': 'red'})
    allow_access(member, share, access_to='10.0.0.2')
    assert [rule['metadata'] for rule in list_rules(member, share, version='2.45')] == [
        {'color': 'red'},
        {},
    ]
    list_rules(member, share, version='2.44', expect=404)


def test_journal_says_whose_rule_was_removed_from_a_replica_without_a_host(
    cloud, member, share
):
    make_replicable(cloud, share)
    replica = insert_replica(cloud, share)
    rule = allow_access(member, share)['id']
    instances = ShareInstance.__table__
    unplace = (
        sa.update(instances)
        .where(instances.c.id == replica)
        .values(host=None, status='error', replica_state='error')
    )
    cloud.db.write(lambda session: session.run(unplace))
    deny_access(member, share, rule)
    journal = Transition.__table__
    removal = sa.select(journal.c.project_id, journal.c.parent_id).where(
        journal.c.event == 'removed'
    )
    (found,) = cloud.db.read(lambda session: session.rows(removal))
    assert tuple(found) == (member.show(share)['project_id'], rule)
