"""The identity API where every caller is an administrator."""

import datetime

import pytest

from tests.unit.api.identity.conftest import Client, by_password, by_token


@pytest.fixture(params=['noauth', 'noauthv2'])
def client(build, request):
    return Client(build(strategy=request.param))


def caller(client, token):
    return client('GET', '/v2/caller', X_Auth_Token=token).json


@pytest.mark.parametrize(
    'scope, project',
    [
        (None, 'alice'),
        ('unscoped', 'alice'),
        ({'project': {'name': 'red', 'domain': {'name': 'Default'}}}, 'red'),
        ({'project': {'id': 'blue'}}, 'blue'),
    ],
)
@pytest.mark.parametrize('key', ['name', 'id'])
def test_every_password_is_right(client, key, scope, project):
    answer = client.sign_in(by_password(scope, 'anything', **{key: 'alice'}))
    token = answer.json['token']
    assert token['user']['id'] == token['user']['name'] == 'alice'
    assert token['project']['id'] == token['project']['name'] == project
    assert caller(client, answer.headers['X-Subject-Token']) == {
        'user': 'alice',
        'project': project,
        'roles': ['admin', 'member', 'reader'],
        'is_admin': True,
    }


def test_token_is_renewed_and_for_another_project(client):
    token = client.token('alice')
    for scope, project in ((None, 'alice'), ({'project': {'name': 'red'}}, 'red')):
        answer = client.sign_in(by_token(token, scope))
        assert answer.json['token']['methods'] == ['token', 'password']
        assert caller(client, answer.headers['X-Subject-Token'])['project'] == (project)


def test_token_is_described_with_times_ahead(client):
    token = client.token('alice')
    described = client(
        'GET', '/v3/auth/tokens', X_Auth_Token=token, X_Subject_Token=token
    ).json['token']
    begins, ends = (
        datetime.datetime.strptime(described[key], '%Y-%m-%dT%H:%M:%S.%fZ')
        for key in ('issued_at', 'expires_at')
    )
    assert ends - begins == datetime.timedelta(hours=1)
    assert described['catalog']


@pytest.mark.parametrize('name', ['a:b', 'a\nb', 'ä', 'a b', ''])
def test_names_that_no_token_can_have_are_refused(client, name):
    client.sign_in(by_password(password='any', name=name), expect=400)
    scope = {'project': {'name': name or ' '}}
    client.sign_in(by_password(scope, 'any', name='alice'), expect=400)


@pytest.mark.parametrize('token', ['', 'a b', 'ä:red'])
def test_unknown_form_of_a_token_is_not_found(client, token):
    client(
        'GET',
        '/v3/auth/tokens',
        X_Auth_Token='alice',
        X_Subject_Token=token,
        expect=404,
    )


@pytest.mark.parametrize('kind', ['project', 'user'])
def test_whatever_is_named_exists(client, kind):
    token = client.token('alice')
    path = f'/v3/{kind}s'
    shown = client('GET', f'{path}/any', X_Auth_Token=token).json[kind]
    assert (shown['id'], shown['name']) == ('any', 'any')
    for query, found in (
        ('', {'alice'}),
        ('?name=any', {'any'}),
        ('?name=alice', {'alice'}),
        ('?name=a%20b', set()),
    ):
        listed = client('GET', path + query, X_Auth_Token=token).json
        assert {one['name'] for one in listed[f'{kind}s']} == found
    client('GET', f'{path}/a%20b', X_Auth_Token=token, expect=404)


def test_other_domains_and_systems_are_refused(client):
    for scope in (
        {'domain': {'id': 'default'}},
        {'system': {'all': True}},
        {'project': {'name': 'red', 'domain': {'id': 'other'}}},
    ):
        client.sign_in(by_password(scope, 'any', name='alice'), expect=401)
    other = {'name': 'alice', 'domain': {'id': 'other'}}
    client.sign_in(by_password(password='any', **other), expect=401)


def test_without_a_token_the_caller_is_admin(client):
    listed = client('GET', '/v3/auth/projects').json['projects']
    assert [one['name'] for one in listed] == ['admin']


def test_own_projects_and_roles_are_listed(client):
    token = client.sign_in(
        by_password({'project': {'name': 'red'}}, name='alice')
    ).headers['X-Subject-Token']

    def get(path):
        return client('GET', f'/v3/{path}', X_Auth_Token=token).json

    projects = get('users/alice/projects')['projects']
    assert 'red' in [one['id'] for one in projects]
    assert [one['id'] for one in get('roles')['roles']] == ['admin', 'member', 'reader']
    query = 'user.id=alice&scope.project.id=red'
    assert get(f'role_assignments?{query}')['role_assignments']


def test_revoked_token_is_the_next_one_again(client):
    token = client.token('alice')
    client(
        'DELETE',
        '/v3/auth/tokens',
        X_Auth_Token=token,
        X_Subject_Token=token,
        expect=204,
    )
    assert client.token('alice') == token
