"""Resource locks are created, changed, listed and deleted."""

import pytest

from tests.functional.api import differences
from tests.functional.api.access.access_client import (
    allow_access,
    create_lock,
    delete_lock,
    deny_access,
    list_locks,
    show_rule,
)
from tests.functional.api.conftest import member_of
from tests.functional.api.snapshot_client import UNKNOWN
from tests.support.api_client import ApiClient


@pytest.fixture
def service(cloud):
    """Return the client of another service without the admin role."""
    return ApiClient(cloud, project='services', user='nova', roles='service')


# Effect


@pytest.mark.parametrize(
    'action, code', [('soft_delete', 403), ('force_delete', 400), ('unmanage', 403)]
)
@pytest.mark.facts('bp-allow-locking-shares.1')
def test_locked_share_is_not_removed(admin, member, share, action, code):
    create_lock(member, share)
    before = member.show(share)
    admin.act(share, action, expect=code)
    assert member.show(share) == before


@pytest.mark.parametrize('version', ['2.6', '2.99'])
def test_no_instance_of_a_locked_share_is_removed(cloud, admin, member, share, version):
    lock_id = create_lock(member, share)['id']
    (instance,) = admin.get(f'/shares/{share}/instances')['share_instances']
    before = member.show(share)
    path = f'/share_instances/{instance["id"]}/action'
    body = {'os-force_delete' if version == '2.6' else 'force_delete': None}
    admin.request('POST', path, body, version=version, expect=403)
    assert member.show(share) == before
    delete_lock(member, lock_id)
    admin.request('POST', path, body, version=version, expect=202)
    cloud.settle()
    member.get(f'/shares/{share}', expect=404)


@pytest.mark.facts('bp-allow-locking-shares.1')
def test_locked_share_is_deleted_after_the_last_lock(cloud, member, admin, share):
    first, second = (create_lock(member, share)['id'], create_lock(admin, share)['id'])
    delete_lock(member, first)
    member.delete(share, expect=403)
    delete_lock(admin, second)
    member.delete(share)
    cloud.settle()
    member.get(f'/shares/{share}', expect=404)


def test_refusal_says_who_has_locked_the_share_and_why(member, admin, share):
    for api, reason in ((admin, 'audit until May'), (member, 'in use')):
        create_lock(api, share, lock_reason=reason)
    ours, theirs = list_locks(member)
    path = f'/shares/{share}'
    text = member.request('DELETE', path, expect=403).text
    for lock in (ours, theirs):
        assert (
            f'lock {lock["id"]} of {lock["lock_context"]} {lock["user_id"]} '
            f'({lock["lock_reason"]})'
        ) in text
    assert text.index('(audit until May)') < text.index('(in use)')
    for _ in range(3):
        create_lock(admin, share)
    assert member.request('DELETE', path, expect=403).text.count('lock ') == 3


def test_lock_is_deleted_with_its_share(cloud, member, admin, share):
    admin.act(share, 'reset_status', {'status': 'deleting'})
    admin.act(share, 'reset_status', {'status': 'available'})
    create_lock(member, share)
    admin.act(share, 'reset_status', {'status': 'deleting'})
    cloud.settle()  # there is no work: the rescue deletes the share
    member.get(f'/shares/{share}', expect=404)
    assert list_locks(member) == []


@pytest.mark.facts('bp-allow-locking-shares.2')
def test_lock_against_deletion_allows_other_actions(cloud, member, share):
    create_lock(member, share)
    rule = allow_access(member, share)['id']
    member.act(share, 'extend', {'new_size': 2})
    cloud.settle()
    assert member.show(share)['size'] == 2
    assert show_rule(member, rule)['state'] == 'active'
    deny_access(member, share, rule)


@pytest.mark.facts('LP2089061')
def test_lock_by_another_project_counts_for_a_rule(
    cloud, admin, member, colleague, service, share
):
    rule = allow_access(member, share)['id']
    cloud.settle()
    hides = create_lock(service, rule, 'access_rule', 'show')['id']
    keeps = create_lock(service, rule, 'access_rule')['id']
    for api in (member, colleague):
        assert show_rule(api, rule)['access_to'] == '******'
        deny_access(api, share, rule, expect=403)
        deny_access(api, share, rule, expect=403, unrestrict=True)
    assert show_rule(admin, rule)['access_to'] == '10.0.0.1'
    delete_lock(service, hides)
    assert show_rule(member, rule)['access_to'] == '10.0.0.1'
    delete_lock(service, keeps)
    deny_access(member, share, rule)


@pytest.mark.facts('LP2161758')
def test_share_is_locked_until_its_last_locked_rule_is_gone(cloud, member, share):
    rules = [
        allow_access(member, share, access_to=f'10.0.0.{number}', lock_deletion=True)[
            'id'
        ]
        for number in (1, 2)
    ]
    cloud.settle()
    for rule in rules:
        member.delete(share, expect=403)
        assert list_locks(member, f'?resource_id={share}')
        deny_access(member, share, rule, unrestrict=True)
        cloud.settle()
    assert list_locks(member) == []
    member.delete(share)


@pytest.mark.facts('add-access-visibility-and-delete-locks.1')
def test_locked_rule_cannot_be_denied_by_project_members(
    cloud, member, colleague, share
):
    rule = allow_access(member, share, lock_deletion=True)['id']
    cloud.settle()
    for unrestrict in (False, True):
        deny_access(colleague, share, rule, expect=403, unrestrict=unrestrict)
    assert show_rule(member, rule)['state'] == 'active'
    (lock,) = list_locks(member, f'?resource_id={rule}')
    delete_lock(member, lock['id'])
    deny_access(colleague, share, rule)


def test_lock_applies_to_deferred_deletion(build_cloud):
    cloud = build_cloud('is_deferred_deletion_enabled = true\n')
    share = cloud.create_share()
    create_lock(cloud.api, share)
    cloud.api.delete(share, expect=403)


# Create


@pytest.mark.facts('bp-allow-locking-shares.3')
def test_lock_shows_its_creator_and_reason(member, share):
    lock = create_lock(member, share, lock_reason='mounted')
    assert lock == list_locks(member)[0]
    assert {
        key: lock[key]
        for key in (
            'user_id',
            'project_id',
            'lock_context',
            'resource_id',
            'resource_type',
            'resource_action',
            'lock_reason',
            'updated_at',
        )
    } == {
        'user_id': 'user of project',
        'project_id': 'project',
        'lock_context': 'user',
        'resource_id': share,
        'resource_type': 'share',
        'resource_action': 'delete',
        'lock_reason': 'mounted',
        'updated_at': None,
    }


@pytest.mark.facts('resource_lock_action')
def test_default_action_is_delete(member, share):
    body = {'resource_lock': {'resource_id': share, 'resource_type': 'share'}}
    answer = member.request('POST', '/resource-locks', body, expect=200)
    assert answer.json['resource_lock']['resource_action'] == 'delete'


@pytest.mark.facts('resource_lock_context')
def test_context_is_the_callers(admin, member, service, share):
    assert [
        create_lock(api, share)['lock_context'] for api in (member, admin, service)
    ] == ['user', 'admin', 'service']


@pytest.mark.parametrize(
    'body',
    [
        {'resource_id': UNKNOWN},
        {'resource_id': 'x'},
        {'resource_id': None},
        {'resource_type': 'snapshot'},
        {'resource_type': None},
        {'resource_action': 'show'},
        {'resource_action': 'extend'},
        {'lock_reason': 'x' * 1024},
        {'lock_reason': 7},
    ],
)
@pytest.mark.facts('resource_lock_action', 'resource_lock_type')
def test_invalid_lock_is_refused(member, share, body):
    member.request(
        'POST',
        '/resource-locks',
        {'resource_lock': {'resource_id': share, 'resource_type': 'share', **body}},
        expect=400,
    )
    assert list_locks(member) == []


def test_wrapper_is_required(member):
    member.request('POST', '/resource-locks', {}, expect=400)


def test_share_of_another_project_is_unknown(member, stranger, share):
    answers = [
        create_lock(stranger, id, expect=400)['badRequest']['message'].replace(id, '')
        for id in (share, UNKNOWN)
    ]
    assert answers[0] == answers[1]


def test_public_share_is_only_locked_by_its_project(admin, stranger, share):
    admin.request('PUT', f'/shares/{share}', {'share': {'is_public': True}}, expect=200)
    create_lock(stranger, share, expect=403)


@pytest.mark.parametrize('status', ['deleting', 'error_deleting'])
def test_share_being_deleted_cannot_be_locked(admin, member, share, status):
    admin.act(share, 'reset_status', {'status': status})
    create_lock(member, share, expect=409)
    assert list_locks(member) == []


def test_share_in_the_recycle_bin_cannot_be_locked(member, share):
    member.act(share, 'soft_delete')
    create_lock(member, share, expect=409)


@pytest.mark.facts('add-access-visibility-and-delete-locks.3')
def test_rules_can_be_locked_from_2_82(member, share):
    rule = allow_access(member, share)['id']
    create_lock(member, rule, 'access_rule', expect=400, version='2.81')
    create_lock(member, rule, 'access_rule', version='2.82')


def test_rule_of_another_project_is_unknown(member, stranger, share):
    create_lock(stranger, allow_access(member, share)['id'], 'access_rule', expect=400)


@pytest.mark.facts('add-access-visibility-and-delete-locks.3')
def test_visibility_is_locked_once(admin, member, share):
    rule = allow_access(member, share)['id']
    create_lock(member, rule, 'access_rule', 'show')
    create_lock(member, rule, 'access_rule', 'show', expect=409)
    create_lock(admin, rule, 'access_rule', 'show', expect=409)
    assert len(list_locks(member)) == 1


@pytest.mark.parametrize('state', ['queued_to_deny', 'error'])
def test_rule_being_denied_cannot_be_locked_against_it(cloud, member, share, state):
    if state == 'error':
        cloud.driver('alpha').faults.fail_next('update_access')
        cloud.driver('beta').faults.fail_next('update_access')
    rule = allow_access(member, share)['id']
    if state == 'error':
        cloud.settle()
    else:
        member.act(share, 'deny_access', {'access_id': rule})
    assert show_rule(member, rule)['state'] == state
    create_lock(member, rule, 'access_rule', expect=409)
    create_lock(member, rule, 'access_rule', 'show')


# Change and delete

CREATORS = ('member', 'admin', 'service')
MAY_CHANGE = {
    'user': {'member', 'admin', 'service'},
    'service': {'admin', 'service'},
    'admin': {'admin'},
}


@pytest.mark.parametrize(
    'caller', ['member', 'colleague', 'admin', 'service', 'stranger']
)
@pytest.mark.parametrize('creator', CREATORS)
@pytest.mark.facts('resource-locks.change', 'service_token_locks')
def test_permission_to_change_and_delete(request, share, creator, caller):
    lock = create_lock(request.getfixturevalue(creator), share)
    api = request.getfixturevalue(caller)
    path = f'/resource-locks/{lock["id"]}'
    is_visible = caller != 'stranger'
    allowed = caller in MAY_CHANGE[lock['lock_context']]
    refused = 403 if is_visible else 404
    api.request(
        'PUT',
        path,
        {'resource_lock': {'lock_reason': 'new'}},
        expect=200 if allowed else refused,
    )
    delete_lock(api, lock['id'], expect=204 if allowed else refused)


@pytest.mark.facts('bp-allow-locking-shares.3')
def test_reason_is_changed_and_removed(member, share):
    path = f'/resource-locks/{create_lock(member, share)["id"]}'
    for reason in ('new', None):
        changed = member.request(
            'PUT', path, {'resource_lock': {'lock_reason': reason}}, expect=200
        ).json['resource_lock']
        assert changed['lock_reason'] == reason
        assert changed['updated_at'] is not None
        assert member.get(path)['resource_lock'] == changed


@pytest.mark.parametrize(
    'body',
    [
        {'resource_id': UNKNOWN},
        {'lock_context': 'admin'},
        {'user_id': 'me'},
        {'resource_action': 'extend'},
        {'lock_reason': 'x' * 1024},
    ],
)
def test_nothing_else_is_changed(member, share, body):
    lock = create_lock(member, share)
    member.request(
        'PUT', f'/resource-locks/{lock["id"]}', {'resource_lock': body}, expect=400
    )
    assert list_locks(member) == [lock]


@differences.proves('resource locks changed to show')
def test_deletion_lock_cannot_become_a_visibility_lock(member, share):
    lock = create_lock(member, allow_access(member, share)['id'], 'access_rule')
    member.request(
        'PUT',
        f'/resource-locks/{lock["id"]}',
        {'resource_lock': {'resource_action': 'show'}},
        expect=400,
    )
    assert list_locks(member) == [lock]


def test_visibility_lock_can_become_a_deletion_lock(member, share):
    lock = create_lock(member, allow_access(member, share)['id'], 'access_rule', 'show')
    changed = member.request(
        'PUT',
        f'/resource-locks/{lock["id"]}',
        {'resource_lock': {'resource_action': 'delete'}},
        expect=200,
    ).json
    assert changed['resource_lock']['resource_action'] == 'delete'


@pytest.mark.facts('bp-allow-locking-shares.3')
def test_second_delete_is_not_found(member, share):
    lock = create_lock(member, share)['id']
    delete_lock(member, lock)
    delete_lock(member, lock, expect=404)


# List


@pytest.fixture
def many(member, colleague, stranger, admin, share):
    """Create several locks; return their ids, oldest first."""
    rule = allow_access(member, share)['id']
    foreign = stranger.create()['id']
    return [
        create_lock(api, id, *kind, lock_reason=reason)['id']
        for api, id, kind, reason in (
            (member, share, (), 'mounted'),
            (colleague, share, (), 'in use'),
            (member, rule, ('access_rule',), None),
            (member, rule, ('access_rule', 'show'), 'mounted'),
            (admin, share, (), 'audit'),
            (stranger, foreign, (), 'mounted'),
        )
    ]


@pytest.mark.parametrize(
    'query, expected',
    [
        ('', [4, 3, 2, 1, 0]),
        ('?resource_type=access_rule', [3, 2]),
        ('?resource_action=show', [3]),
        ('?lock_context=admin', [4]),
        ('?lock_reason=mounted', [3, 0]),
        ('?lock_reason~=ount', [3, 0]),
        ('?lock_reason~=%25', []),
        ('?user_id=colleague', [1]),
        ('?project_id=another', [4, 3, 2, 1, 0]),
        ('?all_projects=1', [4, 3, 2, 1, 0]),
        ('?all_projects=1&project_id=another', [4, 3, 2, 1, 0]),
        ('?sort_dir=asc', [0, 1, 2, 3, 4]),
        ('?sort_key=lock_context&sort_dir=desc&limit=1&offset=4', [4]),
        ('?limit=2&offset=1', [3, 2]),
        ('?created_since=2000-01-01', [4, 3, 2, 1, 0]),
        ('?created_before=2000-01-01', []),
        ('?color=red', [4, 3, 2, 1, 0]),
    ],
)
@pytest.mark.facts('LP2161287')
def test_list_is_filtered_and_paged(member, many, query, expected):
    assert [one['id'] for one in list_locks(member, query)] == [
        many[position] for position in expected
    ]


@pytest.mark.facts('sort_key_resource_locks')
@pytest.mark.parametrize(
    'key',
    [
        'id',
        'resource_id',
        'resource_type',
        'resource_action',
        'user_id',
        'project_id',
        'lock_context',
        'created_at',
        'updated_at',
    ],
)
def test_list_is_sorted(admin, many, key):
    for number in (2, 0, 3):
        admin.request(
            'PUT',
            f'/resource-locks/{many[number]}',
            {'resource_lock': {'lock_reason': 'new'}},
            expect=200,
        )
    query = f'?all_projects=1&sort_key={key}&sort_dir='
    for way, reverse in (('asc', False), ('desc', True)):
        values = [one[key] for one in list_locks(admin, query + way)]
        assert len(values) == 6
        assert len(set(values)) > 1
        ordered = sorted(filter(None, values), reverse=reverse)
        assert list(filter(None, values)) == ordered


def test_list_by_resource(member, many, share):
    assert [one['id'] for one in list_locks(member, f'?resource_id={share}')] == [
        many[4],
        many[1],
        many[0],
    ]
    assert [one['id'] for one in list_locks(member, f'?id={many[3]}')] == [many[3]]


@pytest.mark.parametrize('caller', ['admin', 'service'])
def test_administrators_and_services_see_all_projects(request, many, caller):
    api = request.getfixturevalue(caller)
    assert len(list_locks(api, '?all_projects=1')) == 6
    assert [
        one['id'] for one in list_locks(api, '?all_projects=1&project_id=another')
    ] == [many[5]]


def test_stranger_sees_only_own_locks(stranger, many):
    assert [one['id'] for one in list_locks(stranger)] == [many[5]]
    stranger.get(f'/resource-locks/{many[0]}', expect=404)


@pytest.mark.facts('resource-locks.view')
def test_owner_sees_who_has_locked_a_share_and_why(
    member, colleague, stranger, service, share
):
    rule = allow_access(member, share)['id']
    on_share = create_lock(service, share, lock_reason='audit')
    on_rule = create_lock(service, rule, 'access_rule', lock_reason='backup')
    for api in (member, colleague):
        assert list_locks(api) == [on_rule, on_share]
        assert list_locks(api, '?user_id=nova&limit=1') == [on_rule]
        for one in (on_share, on_rule):
            shown = api.get(f'/resource-locks/{one["id"]}')['resource_lock']
            assert shown == one
            assert (shown['user_id'], shown['project_id']) == ('nova', 'services')
    assert list_locks(stranger) == []
    stranger.get(f'/resource-locks/{on_share["id"]}', expect=404)


@pytest.mark.facts('count', 'with_count_query')
def test_count_is_of_all_that_match(member, many):
    path = '/resource-locks?limit=1&lock_reason=mounted'
    assert member.get(f'{path}&with_count=true')['count'] == 2
    assert 'count' not in member.get(path)
    assert 'count' not in member.get('/resource-locks?lock_reason=x&with_count=true')


def test_full_page_links_to_the_next(member, many):
    answer = member.get('/resource-locks?limit=3')
    (link,) = answer['resource_locks_links']
    following = member.get(link['href'].partition('/v2')[2])
    assert [one['id'] for one in following['resource_locks']] == [many[1], many[0]]
    assert 'resource_locks_links' not in following


@pytest.mark.parametrize(
    'query',
    [
        'limit=x',
        'offset=-1',
        'sort_key=share_id',
        'with_count=maybe',
        'all_projects=maybe',
        'created_since=now',
    ],
)
def test_invalid_query_is_refused(member, query):
    member.get(f'/resource-locks?{query}', expect=400)


def test_member_of_no_lock_has_an_empty_list(cloud):
    assert list_locks(member_of(cloud, 'third')) == []
