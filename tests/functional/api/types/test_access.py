"""Project access to private share types."""

import pytest

from manila_lite import conf as configuration
from manila_lite.policies.enforcer import Enforcer
from tests.functional.api import plain_client
from tests.functional.api.plain_client import FOREIGN, MEMBER, MINE

NO_TYPE = '7fa1342b-de9d-4d89-bdc8-af67795c0e52'
PATHS = ['os-share-type-access', 'share_type_access']


@pytest.fixture
def private(api):
    return '/types/' + api.create_type('private', public=False)['id']


def add(api, path, project, **options):
    return api(
        'POST',
        f'{path}/action',
        {'addProjectAccess': {'project': project}},
        **{'expect': 202} | options,
    )


def remove(api, path, project, **options):
    return api(
        'POST',
        f'{path}/action',
        {'removeProjectAccess': {'project': project}},
        **{'expect': 202} | options,
    )


@pytest.mark.facts('share-types.1')
@pytest.mark.parametrize('minor', [0, 6, 7, 99])
@pytest.mark.parametrize('segment', PATHS)
def test_access_is_granted_listed_and_revoked(api, private, segment, minor):
    path, type_id = f'{private}/{segment}', private.rpartition('/')[2]
    assert api.get(path, minor=minor) == {'share_type_access': []}
    for project in (MINE, FOREIGN):
        assert add(api, private, project, minor=minor) is None
    assert api.get(path, minor=minor) == {
        'share_type_access': [
            {'share_type_id': type_id, 'project_id': FOREIGN},
            {'share_type_id': type_id, 'project_id': MINE},
        ]
    }
    remove(api, private, MINE, minor=minor)
    assert api.get(path)['share_type_access'] == [
        {'share_type_id': type_id, 'project_id': FOREIGN}
    ]


def test_access_is_granted_once_and_revoked_once(api, private):
    add(api, private, MINE)
    assert MINE in api.refused(
        'POST', f'{private}/action', {'addProjectAccess': {'project': MINE}}, expect=409
    )
    remove(api, private, MINE)
    remove(api, private, MINE, expect=404)


@pytest.mark.facts('share-types.1')
def test_public_types_have_no_access_list(api):
    path = '/types/' + api.create_type()['id']
    for segment in PATHS:
        assert 'public' in api.refused('GET', f'{path}/{segment}', expect=404)
    before = api.all_rows()
    add(api, path, MINE, expect=409)
    remove(api, path, MINE, expect=409)
    assert api.all_rows() == before


def test_unknown_types_have_no_access_list(api):
    path = f'/types/{NO_TYPE}'
    api.refused('GET', f'{path}/share_type_access', expect=404)
    add(api, path, MINE, expect=404)
    remove(api, path, MINE, expect=404)


@pytest.mark.parametrize(
    'value',
    [
        None,
        {},
        [],
        'x',
        {'project': None},
        {'project': 'demo'},
        {'project': 7},
        {'project': MINE + 'a'},
        {'project': MINE[:-1]},
        {'project': {'id': MINE}},
    ],
)
@pytest.mark.parametrize('action', ['addProjectAccess', 'removeProjectAccess'])
def test_the_project_must_look_like_a_uuid(api, private, action, value):
    before = api.all_rows()
    assert action in api.refused('POST', f'{private}/action', {action: value})
    assert api.all_rows() == before


@pytest.fixture
def without_keystone(api, tmp_path):
    """The API of an installation with any words as project ids."""
    conf = configuration.new(['--config-dir', str(tmp_path)])
    conf.set_override('auth_strategy', 'http_basic')
    return plain_client.Api(api.db, conf, Enforcer(conf))


def test_projects_have_any_id_without_keystone(without_keystone):
    api = without_keystone
    type_id = api.create_type('private', public=False)['id']
    path = f'/types/{type_id}'
    add(api, path, 'red')
    assert api.get(f'{path}/share_type_access') == {
        'share_type_access': [{'share_type_id': type_id, 'project_id': 'red'}]
    }
    remove(api, path, 'red')
    for value in ('', 'a b', 'rot/grün', 'x' * 256, 7, None):
        add(api, path, value, expect=400)


def test_ids_with_dashes_are_projects_too(api, private):
    add(api, private, 'e1284ade-a3ee-4d24-82af-5ed214f3ad90')


@pytest.mark.parametrize(
    'body', [{}, {'a': 1, 'b': 2}, {'renameProject': {}}, [], 'addProjectAccess', None]
)
def test_invalid_action_is_refused(api, private, body):
    api.refused('POST', f'{private}/action', body)


def test_projects_do_not_see_the_access_list(api, private):
    add(api, private, MINE)
    for segment in PATHS:
        api.refused('GET', f'{private}/{segment}', expect=403, roles=MEMBER)


def test_access_list_takes_two_statements(api, private):
    with api.record_statements() as sent:
        api.get(f'{private}/share_type_access')
    assert len(sent) == 2
