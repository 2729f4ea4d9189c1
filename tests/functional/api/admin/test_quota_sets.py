"""The quota API: visibility, changes, and the limits that apply."""

import pytest

from manila_lite.db.queries.types import (
    types as share_type_records,
    types as share_types,
)
from manila_lite.db.session import Database
from manila_lite.quota.limits import NAMES, NAMES_PER_TYPE
from tests.functional.api.admin.quota_client import KEYS_TOO_EARLY, put_limits
from tests.support import reference
from tests.support.api_client import ApiClient
from tests.support.cloud import TYPE_ID, Cloud
from tests.support.databases import empty_tables
from tests.support.rows import insert_type

PATH = '/quota-sets/project'
PRIVATE_ID = '99999999-2222-3333-4444-555555555555'


@pytest.fixture
def api(cloud):
    return cloud.api


@pytest.fixture
def reader(cloud):
    return ApiClient(cloud, roles='reader')


def put(api, values, *, path=PATH, **options):
    return put_limits(api, path, 'quota_set', values, **options)


def show(api, query='', **options):
    return api.get(PATH + query, **options)['quota_set']


def old_or_new(version, rest='project'):
    prefix = '/os-' if int(version[2:]) < 7 else '/'
    return f'{prefix}quota-sets/{rest}'


# Views


@pytest.mark.facts('add-ability-to-check-tenant-quota-usages')
def test_every_version_shows_the_published_keys(api):
    rows = [
        row
        for row in reference.table('response-fields.csv')
        if row['resource'] == 'quota set' and row['view'] != 'detail'
    ]
    for minor in range(100):
        version = f'2.{minor}'
        published = {row['field'] for row in rows if minor >= int(row['since'][2:])}
        path = old_or_new(version)
        shown = [
            api.get(path, version=version),
            api.get(f'{path}/defaults', version=version),
        ]
        if minor >= 25:
            shown.append(api.get(f'{path}/detail', version=version))
        assert [set(answer['quota_set']) for answer in shown] == (
            [published] * len(shown)
        ), version
        changed = put(api, {'shares': 7}, path=path, version=version)
        assert set(changed) == published - {'id'}, version


@pytest.mark.facts('quota-sets.path')
def test_the_prefix_of_paths_ends_with_2_6(api):
    for path, version in (
        ('/quota-sets/project', '2.6'),
        ('/os-quota-sets/project', '2.7'),
        ('/quota-sets/project/defaults', '2.6'),
        ('/os-quota-sets/project/defaults', '2.7'),
        ('/quota-sets/project/detail', '2.24'),
    ):
        api.get(path, expect=404, version=version)


@pytest.mark.facts('project_id_quota_request_path')
def test_a_project_id_may_stand_before_the_path(cloud):
    project = 'e1284adea3ee4d2482af5ed214f3ad90'
    api = ApiClient(cloud, project=project)
    for named in (project, 'another'):
        for rest in ('', '/defaults', '/detail'):
            path = f'/quota-sets/{named}{rest}'
            assert api.get(f'/{project}{path}') == api.get(path)
            assert api.get(path)['quota_set'].get('id', named) == named
    body = {'quota_set': {'shares': 7}}
    api.request('PUT', f'/{project}/quota-sets/another', body, expect=200)
    assert api.get('/quota-sets/another')['quota_set']['shares'] == 7
    assert api.get(f'/quota-sets/{project}')['quota_set']['shares'] == 50


def test_options_are_shown_where_nothing_is_set(cloud, api):
    assert show(api) == {'id': 'project', **cloud.services.limits}


@pytest.mark.facts('add-quotas-section', 'add-share-group-quotas')
def test_each_default_has_an_option_in_its_section(build_cloud):
    values = {name: number for number, name in enumerate(NAMES, 31)}
    lines = [f'{name} = {value}' for name, value in values.items()]
    cloud = build_cloud('\n'.join(['[quota]', *lines]))
    assert show(cloud.api) == {'id': 'project', **values}
    assert values.keys() >= {
        'shares',
        'gigabytes',
        'snapshots',
        'share_groups',
        'share_group_snapshots',
    }


@pytest.mark.facts('add-per-share-gigabytes-quotas.2')
def test_size_of_a_share_is_unlimited_by_default(cloud, api, member):
    assert show(api)['per_share_gigabytes'] == -1
    assert show(api, '/defaults')['per_share_gigabytes'] == -1
    put(api, {'gigabytes': -1})
    assert member.create(size=100_000)


@pytest.mark.facts('add-ability-to-check-tenant-quota-usages')
def test_detail_shows_usage_and_reservations(cloud, api):
    cloud.create_share(size=3)
    share_id = cloud.create_share(size=2)
    api.act(share_id, 'extend', {'new_size': 6})
    found = show(api, '/detail')
    assert found.pop('id') == 'project'
    assert found['shares'] == {'limit': 50, 'in_use': 2, 'reserved': 0}
    assert found['gigabytes'] == {'limit': 1000, 'in_use': 5, 'reserved': 4}
    assert found['per_share_gigabytes'] == {'limit': -1, 'in_use': 0, 'reserved': 0}
    of_type = show(api, '/detail?share_type=default')
    assert of_type['gigabytes'] == found['gigabytes']
    of_user = show(api, '/detail?user_id=user')
    assert of_user['gigabytes'] == found['gigabytes']
    assert show(api, '/detail?user_id=other')['shares']['in_use'] == 0


def test_defaults_ignore_limits_of_the_project(cloud, api):
    put(api, {'shares': 7})
    assert api.get(f'{PATH}/defaults?share_type=unknown') == {
        'quota_set': {'id': 'project', **cloud.services.limits}
    }


# Effect


def test_a_limit_applies_to_the_next_share(cloud, api):
    api.create()
    put(api, {'shares': 2})
    api.create()
    refused = api.request(
        'POST', '/shares', {'share': {'share_proto': 'NFS', 'size': 1}}, expect=413
    )
    assert refused.headers['Retry-After'] == '0'
    assert refused.json['overLimit']['message'].startswith('ShareLimitExceeded: ')
    put(api, {'shares': -1})
    api.create()


@pytest.mark.parametrize('query', ['?user_id=user', '?share_type=default'])
@pytest.mark.facts('add-share-type-quotas.1')
def test_a_limit_of_a_user_or_type_applies_within_the_project(cloud, api, query):
    put(api, {'gigabytes': 5}, path=PATH + query)
    api.create(size=5)
    assert api.create(size=1, expect=413)['overLimit']['message'].startswith(
        'ShareSizeExceedsAvailableQuota: '
    )
    assert show(api)['gigabytes'] == 1000
    api.request('DELETE', PATH + query, expect=202)
    api.create(size=1)


@pytest.mark.facts('quota-sets.delete')
def test_a_deleted_limit_no_longer_applies(cloud, api):
    put(api, {'shares': 1})
    put(api, {'shares': 1}, path=f'{PATH}?user_id=user')
    api.create()
    api.create(expect=413)
    answer = api.request('DELETE', PATH, expect=202)
    assert answer.body == b''
    assert show(api)['shares'] == show(api, '?user_id=user')['shares'] == 50
    api.create()


@pytest.mark.facts('LP1872872')
@pytest.mark.parametrize('query', ['?user_id=user', '?share_type=default'])
def test_a_limit_applies_within_an_unlimited_project(api, query):
    put(api, {'shares': -1, 'gigabytes': -1})
    put(api, {'shares': 2, 'gigabytes': 5}, path=PATH + query)
    api.create(size=2)
    api.create(size=3)
    api.create(expect=413)


@pytest.mark.facts('LP1975483')
@pytest.mark.parametrize(
    'body, code',
    [
        ({'availability_zone': 'moon'}, 400),
        ({'neutron_net_id': 'a'}, 400),
        ({'nova_net_id': 'a'}, 400),
        ({'name': 'x' * 256}, 400),
    ],
)
def test_refused_network_takes_no_quota(cloud, api, body, code):
    api.request('POST', '/share-networks', {'share_network': body}, expect=code)
    for query in ('', '?user_id=user'):
        assert show(api, f'/detail{query}')['share_networks'] == {
            'limit': 10,
            'in_use': 0,
            'reserved': 0,
        }
    assert cloud.usage('share_networks') == (0, 0)


@pytest.mark.facts('recycle-bin.5')
def test_share_in_the_recycle_bin_counts(cloud, api):
    share = cloud.create_share(size=3)
    api.act(share, 'soft_delete')
    cloud.settle()
    assert show(api, '/detail')['shares']['in_use'] == 1
    assert show(api, '/detail')['gigabytes']['in_use'] == 3
    put(api, {'shares': 1})
    api.create(expect=413)
    api.delete(share)
    cloud.settle()
    assert show(api, '/detail')['shares']['in_use'] == 0


def test_limits_of_users_and_types_are_independent(api):
    put(api, {'shares': 10})
    put(api, {'shares': 5}, path=f'{PATH}?user_id=user')
    put(api, {'shares': 6}, path=f'{PATH}?share_type=default')
    assert show(api, '?user_id=user')['shares'] == 5
    assert show(api, '?user_id=other')['shares'] == 10
    assert show(api, '?share_type=default')['shares'] == 6
    assert api.get('/quota-sets/other')['quota_set']['shares'] == 50


@pytest.mark.facts('add-share-type-quotas.3')
def test_a_user_or_type_may_not_exceed_the_project(api):
    put(api, {'shares': 10})
    for query in ('?user_id=user', '?share_type=default'):
        for wanted in (11, -1):
            assert 'shares' in put(
                api, {'shares': wanted}, expect=400, path=PATH + query
            )
        assert put(api, {'shares': 10}, path=PATH + query)['shares'] == 10


@pytest.mark.facts('add-share-type-quotas.3')
def test_limit_above_that_of_the_project_must_be_forced(api):
    put(api, {'shares': 10})
    for query in ('?user_id=user', '?share_type=default'):
        for wanted in (11, -1):
            forced = put(api, {'shares': wanted, 'force': True}, path=PATH + query)
            assert forced['shares'] == wanted
            assert show(api, query)['shares'] == wanted


def test_forced_limit_of_a_user_leaves_that_of_the_project_in_effect(cloud, api):
    put(api, {'shares': 1})
    put(api, {'shares': -1, 'force': True}, path=f'{PATH}?share_type=default')
    cloud.create_share(size=1)
    api.create(expect=413)


def test_limit_below_usage_must_be_forced(cloud, api):
    cloud.create_share(size=3)
    assert 'gigabytes' in put(api, {'shares': 7, 'gigabytes': 2}, expect=400)
    assert show(api) == {'id': 'project', **cloud.services.limits}
    assert put(api, {'gigabytes': 2, 'force': 'True'})['gigabytes'] == 2
    put(api, {'gigabytes': 1, 'force': False}, expect=400)


# Request bodies


@pytest.mark.parametrize(
    'value',
    [
        -2,
        2**31,
        2**63,
        10**30,
        -(10**30),
        1.5,
        7.0,
        True,
        None,
        '',
        'x',
        '1.5',
        '-',
        '٣',
        [7],
        {'limit': 7},
    ],
)
def test_invalid_limits_are_refused(cloud, api, value):
    put(api, {'shares': value, 'gigabytes': 7}, expect=400)
    assert show(api) == {'id': 'project', **cloud.services.limits}


@pytest.mark.parametrize('value', [0, 2**31 - 1, -1])
def test_limits_may_be_written_as_strings(api, value):
    assert put(api, {'shares': value})['shares'] == value
    assert put(api, {'shares': str(value)})['shares'] == value


@pytest.mark.parametrize(
    'body',
    [
        None,
        [],
        'quota_set',
        {},
        {'shares': 7},
        {'quota_set': []},
        {'quota_set': 'shares'},
        {'quota_set': {'shares': 7, 'force': 'maybe'}},
    ],
)
def test_invalid_bodies_are_refused(api, body):
    answer = api.request('PUT', PATH, body, expect=400)
    assert answer.json['badRequest']['code'] == 400


@pytest.mark.parametrize('name, version', KEYS_TOO_EARLY)
def test_keys_of_later_versions_are_refused(api, name, version):
    assert name in put(api, {name: 7}, version=version, expect=400)
    later = f'2.{int(version[2:]) + 1}'
    assert put(api, {name: 7}, version=later)[name] == 7


@pytest.mark.parametrize('name', ['floating_ips', 'id', 'share_type'])
def test_unknown_keys_are_refused(cloud, api, name):
    assert name in put(api, {'shares': 7, name: 7}, expect=400)
    assert show(api) == {'id': 'project', **cloud.services.limits}


def test_the_tenant_in_the_body_is_ignored(api):
    assert put(api, {'tenant_id': 'other', 'shares': 7})['shares'] == 7
    assert show(api)['shares'] == 7
    assert api.get('/quota-sets/other')['quota_set']['shares'] == 50


# Users and share types

REQUESTS = pytest.mark.parametrize(
    'method, path, body',
    [
        ('GET', PATH, None),
        ('GET', f'{PATH}/detail', None),
        ('PUT', PATH, {'quota_set': {'shares': 7}}),
        ('DELETE', PATH, None),
    ],
)


@REQUESTS
@pytest.mark.facts('add-share-type-quotas.1')
def test_a_share_type_is_named_by_id_or_name(api, method, path, body):
    for named in (TYPE_ID, 'default'):
        api.request(
            method,
            f'{path}?share_type={named}',
            body,
            expect=202 if method == 'DELETE' else 200,
        )
    for named in ('unknown', '', 'x' * 300):
        api.request(method, f'{path}?share_type={named}', body, expect=404)


@REQUESTS
@pytest.mark.facts('add-share-type-quotas.2', 'user_id_query')
def test_user_and_share_type_exclude_each_other(api, method, path, body):
    api.request(method, f'{path}?share_type=default&user_id=user', body, expect=400)


@REQUESTS
def test_invalid_user_id_is_refused(api, method, path, body):
    put(api, {'shares': 5})
    for user in ('', 'x' * 256):
        api.request(method, f'{path}?user_id={user}', body, expect=400)
    assert show(api)['shares'] == 5


@pytest.mark.parametrize('version', ['2.0', '2.7', '2.38'])
def test_share_types_are_refused_below_2_39(api, version):
    path = old_or_new(version) + '?share_type=default'
    for method, body in (
        ('GET', None),
        ('DELETE', None),
        ('PUT', {'quota_set': {'shares': 7}}),
    ):
        answer = api.request(method, path, body, expect=400, version=version)
        assert 'share_type' in answer.json['badRequest']['message']
    show(api, '?share_type=default', version='2.39')


@pytest.mark.facts('add-share-type-quotas.4')
def test_not_everything_can_be_limited_for_a_share_type(api):
    path = f'{PATH}?share_type=default'
    shown = show(api, '?share_type=default')
    assert set(shown) == {'id', *NAMES_PER_TYPE}
    assert set(put(api, {'shares': 7}, path=path)) == set(NAMES_PER_TYPE)
    assert 'share_networks' not in NAMES_PER_TYPE
    for name in set(NAMES) - set(NAMES_PER_TYPE):
        assert name in put(api, {name: 7}, path=path, expect=400)


def test_a_private_type_is_hidden_from_projects_without_it(cloud, api, reader):
    cloud.db.write(
        lambda session: insert_type(session, PRIVATE_ID, name='secret', is_public=False)
    )
    show(api, '?share_type=secret')
    reader.get(f'{PATH}?share_type=secret', expect=404)
    cloud.db.write(share_types.TABLES.add_access, PRIVATE_ID, 'project')
    show(reader, '?share_type=secret')


# Not on SQLite, where writers are serialised.
@pytest.mark.parametrize('kind', ['mysql', 'postgresql'])
def test_a_type_deleted_meanwhile_is_unknown(tmp_path, shared_database, kind):
    url = shared_database(kind)
    empty_tables(url)
    cloud = Cloud(tmp_path, url=url)
    other = Database(url)

    def delete(name):
        seen.append(name)
        if len(seen) == 2:  # the type has been found
            other.write(share_type_records.delete, TYPE_ID)

    seen = []
    cloud.db.on_step = delete
    cloud.api.request(
        'PUT', f'{PATH}?share_type=default', {'quota_set': {'shares': 7}}, expect=404
    )
    assert len(seen) > 2
    other.dispose()
    cloud.db.dispose()


# Roles


@pytest.mark.parametrize(
    'rest', ['', '/detail', '?user_id=someone', '?share_type=default']
)
def test_a_reader_sees_the_own_project_only(cloud, reader, rest):
    reader.get(PATH + rest)
    reader.get(f'/quota-sets/other{rest}', expect=403)
    ApiClient(cloud, roles='guest').get(PATH + rest, expect=403)
    ApiClient(cloud, project='other').get(PATH + rest)


def test_a_reader_sees_the_defaults_by_the_id_of_any_project(cloud, reader):
    found = reader.get('/quota-sets/other/defaults')['quota_set']
    assert found == {'id': 'other', **cloud.services.limits}
    guest = ApiClient(cloud, roles='guest')
    guest.get('/quota-sets/other/defaults', expect=403)


def test_only_administrators_change_limits(cloud):
    member = ApiClient(cloud, roles='member,reader')
    for query in ('', '?user_id=user', '?share_type=default'):
        member.request('PUT', PATH + query, {'quota_set': {'shares': 7}}, expect=403)
        member.request('DELETE', PATH + query, expect=403)
    assert show(cloud.api)['shares'] == 50


@pytest.mark.parametrize('rest', ['', '/defaults', '/detail'])
def test_a_project_id_that_cannot_be_stored_is_refused(api, rest):
    api.get(f'/quota-sets/{"x" * 255}{rest}')
    api.get(f'/quota-sets/{"x" * 256}{rest}', expect=400)


# Cost


@pytest.mark.parametrize(
    'method, rest, allowed',
    [
        ('GET', '', 1),
        ('GET', '?user_id=user', 1),
        ('GET', '?share_type=default', 2),
        ('GET', '/defaults', 1),
        ('GET', '/detail', 2),
        ('GET', '/detail?share_type=default', 3),
        ('PUT', '', 6),
        ('PUT', '?share_type=default', 7),
        ('DELETE', '', 6),
        ('DELETE', '?user_id=user', 4),
    ],
)
def test_statement_count_is_constant(cloud, api, method, rest, allowed):
    body = {'quota_set': dict.fromkeys(NAMES_PER_TYPE, 40)}
    for query in ('', '?user_id=user', '?share_type=default'):
        put(api, body['quota_set'], path=PATH + query)
    cloud.create_share(size=1)
    before = cloud.statements
    api.request(method, PATH + rest, body if method == 'PUT' else None)
    assert cloud.statements - before == allowed


@pytest.mark.parametrize(
    'path, key, more',
    [
        ('/quota-sets/project', 'quota_set', {'force': True}),
        ('/quota-sets/project', 'quota_set', {'tenant_id': 'project'}),
        ('/quota-sets/project?user_id=user', 'quota_set', {'force': True}),
        ('/quota-sets/project?share_type=default', 'quota_set', {}),
        ('/quota-class-sets/default', 'quota_class_set', {'class_name': 'x'}),
    ],
)
@pytest.mark.facts('LP1778975')
def test_update_without_a_quota_is_refused(api, path, key, more):
    for body in ({}, more):
        api.request('PUT', path, {key: body}, expect=400)
