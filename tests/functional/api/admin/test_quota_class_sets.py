"""The quota class API, and the projects that the default class applies to."""

import pytest

from tests.functional.api.admin.quota_client import KEYS_TOO_EARLY, put_limits
from tests.support import reference
from tests.support.api_client import ApiClient

PATH = '/quota-class-sets/default'


@pytest.fixture
def api(cloud):
    return cloud.api


def put(api, values, *, path=PATH, **options):
    return put_limits(api, path, 'quota_class_set', values, **options)


def show(api, path=PATH, **options):
    return api.get(path, **options)['quota_class_set']


def test_every_version_shows_the_published_keys(api):
    rows = [
        row
        for row in reference.table('response-fields.csv')
        if row['resource'] == 'quota class set'
    ]
    for minor in range(100):
        version = f'2.{minor}'
        published = {row['field'] for row in rows if minor >= int(row['since'][2:])}
        path = PATH if minor >= 7 else '/os-quota-class-sets/default'
        assert set(show(api, path, version=version)) == published, version
        changed = put(api, {'shares': 7}, path=path, version=version)
        assert set(changed) == published - {'id'}, version


def test_the_prefix_of_paths_ends_with_2_6(api):
    show(api, '/os-quota-class-sets/default', version='2.6')
    api.get('/os-quota-class-sets/default', version='2.7', expect=404)
    api.get(PATH, version='2.6', expect=404)


@pytest.mark.facts('quota-classes')
def test_the_default_class_applies_where_nothing_is_set(cloud, api):
    api.create()
    api.request('PUT', '/quota-sets/other', {'quota_set': {'shares': 9}}, expect=200)
    assert put(api, {'shares': 1})['shares'] == 1
    assert show(api) == {'id': 'default', **cloud.services.limits, 'shares': 1}
    for path, shares in (
        ('project', 1),
        ('project/defaults', 1),
        ('project?user_id=user', 1),
        ('newcomer', 1),
        ('other', 9),
        ('other/defaults', 1),
    ):
        found = api.get(f'/quota-sets/{path}')['quota_set']
        assert found['shares'] == shares, path
    api.create(expect=413)
    newcomer = ApiClient(cloud, project='newcomer')
    newcomer.create()
    newcomer.create(expect=413)
    put(api, {'shares': -1})
    api.create()


@pytest.mark.facts('quota-classes')
def test_other_classes_are_stored_and_have_no_effect(cloud, api):
    silver = '/quota-class-sets/silver'
    assert show(api, silver) == {'id': 'silver', **cloud.services.limits}
    put(api, {'shares': 1}, path=silver)
    put(api, {'gigabytes': 5}, path=silver)
    assert show(api, silver) == {
        'id': 'silver',
        **cloud.services.limits,
        'shares': 1,
        'gigabytes': 5,
    }
    assert show(api)['shares'] == 50
    api.create()
    api.create()


def test_the_class_in_the_body_is_ignored(api):
    assert put(api, {'class_name': 'silver', 'shares': 7})['shares'] == 7
    assert show(api)['shares'] == 7
    assert show(api, '/quota-class-sets/silver')['shares'] == 50


@pytest.mark.parametrize(
    'value', [-2, 2**31, 10**30, 1.5, True, None, '', 'x', [7], {}]
)
def test_invalid_limits_are_refused(cloud, api, value):
    assert 'shares' in put(api, {'shares': value}, expect=400) or (
        value == 10**30
    )  # too large for any part of a body
    assert show(api) == {'id': 'default', **cloud.services.limits}


@pytest.mark.parametrize(
    'body',
    [
        None,
        [],
        {},
        {'shares': 7},
        {'quota_set': {'shares': 7}},
        {'quota_class_set': [7]},
    ],
)
def test_invalid_bodies_are_refused(api, body):
    api.request('PUT', PATH, body, expect=400)


@pytest.mark.parametrize('name, version', KEYS_TOO_EARLY)
def test_keys_of_later_versions_are_refused(api, name, version):
    assert name in put(api, {name: 7}, version=version, expect=400)
    later = f'2.{int(version[2:]) + 1}'
    assert put(api, {name: 7}, version=later)[name] == 7


@pytest.mark.parametrize('name', ['floating_ips', 'force', 'tenant_id'])
def test_unknown_keys_are_refused(api, name):
    assert name in put(api, {'shares': 7, name: 7}, expect=400)
    assert show(api)['shares'] == 50


def test_a_name_that_cannot_be_stored_is_refused(api):
    put(api, {'shares': 7}, path=f'/quota-class-sets/{"x" * 256}', expect=400)
    put(api, {'shares': 7}, path=f'/quota-class-sets/{"x" * 255}')


def test_readers_see_and_administrators_change(cloud, api):
    reader = ApiClient(cloud, roles='reader')
    assert show(reader) == show(api)
    ApiClient(cloud, roles='guest').get(PATH, expect=403)
    ApiClient(cloud, roles='member,reader').request(
        'PUT', PATH, {'quota_class_set': {'shares': 7}}, expect=403
    )
    assert show(api)['shares'] == 50


def test_statement_count_is_constant(cloud, api):
    body = {'quota_class_set': dict.fromkeys(cloud.services.limits, 40)}
    api.request('PUT', PATH, body)
    for project in ('a', 'b', 'c'):
        ApiClient(cloud, project=project).create()
    before = cloud.statements
    show(api)
    assert cloud.statements - before == 1
    api.request('PUT', PATH, body)
    assert cloud.statements - before == 1 + 5
