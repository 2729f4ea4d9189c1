"""What the identity API serves, and to whom."""

import base64
import datetime
import logging
import os

from oslo_config import cfg
import pytest

from manila_lite.api.auth import users
from tests.unit.api.identity.conftest import Client, by_password, by_token

URL = 'http://localhost'


# Versions


def test_versions_lead_to_the_only_one(client):
    listed = client('GET', '/identity', expect=300).json['versions']['values']
    assert listed == [client('GET', '/identity/v3').json['version']]
    assert (listed[0]['id'], listed[0]['status']) == ('v3.14', 'stable')


@pytest.mark.parametrize('prefix', ['', '/identity'])
def test_all_is_served_below_both_prefixes(client, prefix):
    version = client('GET', f'{prefix}/v3').json['version']
    assert version['links'] == [{'rel': 'self', 'href': f'{URL}{prefix}/v3/'}]
    answer = client(
        'POST', f'{prefix}/v3/auth/tokens', by_password(name='alice'), expect=201
    )
    token = answer.headers['X-Subject-Token']
    assert client('GET', f'{prefix}/v3/users', X_Auth_Token=token)


@pytest.mark.parametrize('path', ['/v3', '/identity'])
def test_slash_at_the_end_makes_no_difference(client, path):
    status = 200 if path == '/v3' else 300
    assert (
        client('GET', f'{path}/', expect=status).body
        == client('GET', path, expect=status).body
    )


def test_base_url_is_written_into_links_and_the_catalog(build):
    client = Client(build('osapi_share_base_URL = https://out.example/\n'))
    version = client('GET', '/v3').json['version']
    assert version['links'][0]['href'] == 'https://out.example/v3/'
    token = client.sign_in(by_password(name='alice')).json['token']
    assert {
        endpoint['url']
        for service in token['catalog']
        for endpoint in service['endpoints']
    } == {'https://out.example/v2', 'https://out.example/identity/v3'}


@pytest.mark.parametrize(
    'text, strategy',
    [
        ('[http_basic]\nidentity_api = false\n', strategy)
        for strategy in ('http_basic', 'noauth')
    ],
)
def test_other_installations_have_no_identity_api(build, tmp_path, text, strategy):
    client = Client(build(text, strategy))
    for path in ('/v3', '/identity', '/v3/users'):
        client('GET', path, expect=404)
    client('POST', '/v3/auth/tokens', by_password(name='alice'), expect=404)
    assert not (tmp_path / 'token_key').exists()


def test_tokens_end_when_the_identity_api_is_turned_off(build):
    token = Client(build()).token('alice')
    client = Client(build('[http_basic]\nidentity_api = false\n'))
    client('GET', '/v2/caller', X_Auth_Token=token, expect=401)


def test_unknown_paths_are_404_and_other_methods_405(client):
    for path in ('/v3/groups', '/v3/users/a/b', '/identity/x', '/v2.0'):
        client('GET', path, expect=404)
    client('GET', '/v3x', expect=404)
    answer = client('PUT', '/v3/auth/tokens', expect=405)
    assert answer.headers['Allow'] == 'DELETE, GET, HEAD, POST'
    assert answer.json['error']['code'] == 405
    assert client('POST', '/v3/users', {}, expect=405)


def test_head_has_no_body(client):
    token = client.token('alice')
    answer = client(
        'HEAD', '/v3/auth/tokens', X_Auth_Token=token, X_Subject_Token=token
    )
    assert answer.body == b''
    assert answer.headers['X-Subject-Token'] == token


# Tokens


def test_description_of_a_token_has_the_published_form(build):
    client = Client(build('[http_basic]\ntoken_lifetime = 120\nregion = room-1\n'))
    answer = client.sign_in(by_password(name='alice'))
    token = answer.json['token']
    begins, ends = (
        datetime.datetime.strptime(token[key], '%Y-%m-%dT%H:%M:%S.%fZ')
        for key in ('issued_at', 'expires_at')
    )
    assert ends - begins == datetime.timedelta(seconds=120)
    assert token['user']['domain'] == {'id': 'default', 'name': 'Default'}
    assert token['project']['domain'] == token['user']['domain']
    assert len(token['audit_ids']) == 1
    endpoints = {
        (service['type'], endpoint['interface']): endpoint
        for service in token['catalog']
        for endpoint in service['endpoints']
    }
    for kind, path in (
        ('shared-file-system', '/v2'),
        ('sharev2', '/v2'),
        ('identity', '/identity/v3'),
    ):
        for interface in ('public', 'internal', 'admin'):
            endpoint = endpoints[kind, interface]
            assert endpoint['url'] == URL + path
            assert endpoint['region'] == endpoint['region_id'] == 'room-1'
    assert answer.headers['Cache-Control'] == 'no-store'


def test_catalog_is_left_out_on_request(client):
    answer = client(
        'POST', '/v3/auth/tokens?nocatalog', by_password(name='alice'), expect=201
    )
    assert 'catalog' not in answer.json['token']
    assert client.get('/v3/auth/catalog', 'alice')['catalog']


@pytest.mark.parametrize(
    'name, status', [('alice', 200), ('root', 200), ('carol', 404)]
)
def test_token_is_described_to_its_user_and_administrators(client, name, status):
    token = client.token('alice')
    answer = client(
        'GET',
        '/v3/auth/tokens',
        X_Auth_Token=client.token(name),
        X_Subject_Token=token,
        expect=status,
    )
    if status == 200:
        assert answer.json['token']['user']['name'] == 'alice'


def test_unknown_token_is_404_for_those_who_have_one(client):
    headers = {'X_Subject_Token': 'no.such.token'}
    client('GET', '/v3/auth/tokens', **headers, expect=401)
    headers['X_Auth_Token'] = client.token('root')
    client('GET', '/v3/auth/tokens', **headers, expect=404)
    client('GET', '/v3/auth/tokens', X_Auth_Token=headers['X_Auth_Token'], expect=404)


@pytest.mark.parametrize(
    'path', ['/v2/caller', '/v3/projects', '/v3/users', '/v3/auth/catalog']
)
def test_token_ends_with_its_user(client, users_file, path):
    token = client.token('alice')
    client('GET', path, X_Auth_Token=token)
    users.remove(str(users_file), 'alice')
    client('GET', path, X_Auth_Token=token, expect=401)


def revoke(client, token, by, expect=204):
    client(
        'DELETE',
        '/v3/auth/tokens',
        X_Auth_Token=by,
        X_Subject_Token=token,
        expect=expect,
    )


@pytest.mark.parametrize('name', ['alice', 'root'])
def test_token_is_revoked_by_its_user_and_administrators(client, name):
    first, second = client.token('alice'), client.token('alice')
    revoke(client, first, first if name == 'alice' else client.token(name))
    for path in ('/v2/caller', '/v3/users'):
        client('GET', path, X_Auth_Token=first, expect=401)
        client('GET', path, X_Auth_Token=second)
    client.sign_in(by_token(first), expect=401)
    revoke(client, first, second, expect=404)


def test_token_of_another_user_is_not_revoked(client):
    token = client.token('alice')
    revoke(client, token, client.token('carol'), expect=404)
    client('GET', '/v2/caller', X_Auth_Token=token)


def test_all_processes_with_the_files_know_a_revoked_token(build):
    first, second = Client(build()), Client(build())
    token = first.token('alice')
    second('GET', '/v2/caller', X_Auth_Token=token)
    revoke(first, token, token)
    second('GET', '/v2/caller', X_Auth_Token=token, expect=401)
    Client(build())('GET', '/v2/caller', X_Auth_Token=token, expect=401)


def test_revocation_that_cannot_be_recorded_is_503(build, tmp_path):
    (tmp_path / 'file').touch()
    client = Client(
        build(f'[http_basic]\nrevoked_tokens_file = {tmp_path}/file/revoked\n')
    )
    token = client.token('alice')
    revoke(client, token, token, expect=503)
    client('GET', '/v2/caller', X_Auth_Token=token)


# Projects, users, the domain


@pytest.mark.parametrize(
    'name, projects, people',
    [
        ('root', ['blue', 'red'], ['alice', 'carol', 'root']),
        ('alice', ['red'], ['alice']),
        ('carol', ['red'], ['carol']),
    ],
)
def test_callers_see_what_the_policies_allow(client, name, projects, people):
    listed = client.get('/v3/projects', name)['projects']
    assert [one['id'] for one in listed] == projects
    listed = client.get('/v3/users', name)['users']
    assert [one['name'] for one in listed] == people
    for project in ('red', 'blue', 'green'):
        status = 200 if project in projects else 404
        shown = client.get(f'/v3/projects/{project}', name, expect=status)
        if status == 200:
            assert shown['project']['name'] == project
    for person in ('alice', 'root', 'nobody'):
        status = 200 if person in people else 404
        shown = client.get(f'/v3/users/id-of-{person}', name, expect=status)
        if status == 200:
            assert shown['user']['name'] == person


def test_own_projects_are_listed(client):
    listed = client.get('/v3/auth/projects', 'root')['projects']
    assert [one['id'] for one in listed] == ['blue']


@pytest.mark.parametrize(
    'query, found',
    [
        ('name=red', ['red']),
        ('name=red&domain_id=default', ['red']),
        ('name=red&domain_id=other', []),
        ('name=green', []),
        ('limit=1', ['blue', 'red']),
    ],
)
def test_lists_are_filtered_by_name_and_domain(client, query, found):
    listed = client.get(f'/v3/projects?{query}', 'root')['projects']
    assert [one['name'] for one in listed] == found


@pytest.mark.parametrize(
    'name, person, projects',
    [
        ('root', 'alice', ['blue', 'red']),
        ('root', 'root', ['blue']),
        ('alice', 'alice', ['red']),
        ('alice', 'root', None),
        ('root', 'nobody', None),
    ],
)
def test_projects_of_a_user_are_listed(client, users_file, name, person, projects):
    users.add(str(users_file), 'al', 'x', 'id-of-alice', 'blue', ['admin'], cost=4)
    shown = client.get(
        f'/v3/users/id-of-{person}/projects',
        name,
        expect=404 if projects is None else 200,
    )
    if projects is not None:
        assert [one['id'] for one in shown['projects']] == projects


def test_services_and_endpoints_are_those_of_the_catalog(client):
    catalog = client.get('/v3/auth/catalog', 'alice')['catalog']
    services = client.get('/v3/services', 'alice')['services']
    assert [(one['id'], one['type']) for one in services] == [
        (one['id'], one['type']) for one in catalog
    ]
    for service in catalog:
        query = f'service_id={service["id"]}&interface=public'
        (found,) = client.get(f'/v3/endpoints?{query}', 'alice')['endpoints']
        assert found['service_id'] == service['id']
        assert found['enabled'] is True
        assert found.items() >= service['endpoints'][0].items()
        shown = client.get(f'/v3/endpoints/{found["id"]}', 'alice')
        assert shown['endpoint'] == found
    (found,) = client.get('/v3/services?type=identity', 'alice')['services']
    shown = client.get('/v3/services/identity', 'alice')['service']
    assert shown == found
    (region,) = client.get('/v3/regions', 'alice')['regions']
    assert region['id'] == found_region(catalog)
    client.get('/v3/regions/elsewhere', 'alice', expect=404)


def found_region(catalog):
    (region,) = {
        endpoint['region'] for service in catalog for endpoint in service['endpoints']
    }
    return region


def test_roles_are_those_of_the_policies_and_of_visible_users(client, users_file):
    users.add(str(users_file), 'dave', 'x', 'id-of-dave', 'red', ['backup'], cost=4)
    for name, more in (('root', ['backup']), ('alice', [])):
        listed = client.get('/v3/roles', name)['roles']
        assert [one['name'] for one in listed] == sorted(
            ['admin', 'member', 'reader', *more]
        )
    (found,) = client.get('/v3/roles?name=reader', 'alice')['roles']
    shown = client.get(f'/v3/roles/{found["id"]}', 'alice')['role']
    assert shown['name'] == 'reader'


@pytest.mark.parametrize(
    'name, query, found',
    [
        ('root', '', [('alice', 'member'), ('carol', 'reader'), ('root', 'admin')]),
        ('alice', '', [('alice', 'member')]),
        (
            'root',
            'effective&user.id=id-of-alice',
            [('alice', 'member'), ('alice', 'reader')],
        ),
        ('root', 'role.id=reader', [('carol', 'reader')]),
        ('root', 'scope.project.id=blue', [('root', 'admin')]),
        ('root', 'group.id=x', []),
        ('root', 'scope.system=all', []),
    ],
)
def test_role_assignments_are_those_of_visible_users(client, name, query, found):
    path = f'/v3/role_assignments?include_names&{query}'
    listed = client.get(path, name)['role_assignments']
    assert [(one['user']['name'], one['role']['name']) for one in listed] == found
    for one in listed:
        assert one['scope']['project']['id'] in ('red', 'blue')
    path = f'/v3/role_assignments?include_names=0&{query}'
    for one in client.get(path, name)['role_assignments']:
        assert list(one['role']) == list(one['user']) == ['id']


def test_there_is_one_domain(client):
    for query, number in (('', 1), ('?name=Default', 1), ('?name=x', 0)):
        listed = client.get(f'/v3/domains{query}', 'carol')['domains']
        assert len(listed) == number
    shown = client.get('/v3/domains/default', 'carol')['domain']
    assert shown['name'] == 'Default'
    client.get('/v3/domains/other', 'carol', expect=404)


@pytest.mark.parametrize(
    'path',
    [
        '/v3/projects',
        '/v3/users/x',
        '/v3/users/x/projects',
        '/v3/domains',
        '/v3/auth/projects',
        '/v3/services',
        '/v3/endpoints',
        '/v3/regions/x',
        '/v3/roles',
        '/v3/role_assignments',
    ],
)
def test_look_ups_need_authentication(client, path):
    answer = client('GET', path, expect=401)
    assert answer.json['error']['code'] == 401


def test_log_names_the_users_of_requests(client, caplog):
    caplog.set_level(logging.INFO)
    client.get('/v3/auth/catalog', 'alice')
    for path in ('/v3/auth/tokens', '/v3/auth/catalog'):
        assert f'{path} of id-of-alice, project red, from' in caplog.text
    client.sign_in(by_password(name='al\nice', password='wrong'), expect=401)
    client.sign_in(by_password(id='id-of-x', password='wrong'), expect=401)
    assert r"Sign-in of user 'al\nice' from - refused" in caplog.text
    assert 'Sign-in of user id-of-x from - refused' in caplog.text


def test_key_of_the_configuration_needs_no_file(build, tmp_path):
    key = base64.b64encode(os.urandom(32)).decode()
    text = f'[http_basic]\ntoken_key = {key}\n'
    token = Client(build(text)).token('alice')
    # As another node does.
    assert Client(build(text)).get('/v2/caller', 'alice')
    assert Client(build(text))('GET', '/v2/caller', X_Auth_Token=token)
    assert not (tmp_path / 'token_key').exists()
    Client(build())('GET', '/v2/caller', X_Auth_Token=token, expect=401)


def test_key_of_the_configuration_that_is_none_is_refused_and_not_shown(build):
    with pytest.raises(cfg.Error, match='token_key in section') as refused:
        build('[http_basic]\ntoken_key = no-such-key\n')
    assert 'no-such-key' not in str(refused.value)


def test_nothing_secret_is_logged_or_shown(client, tmp_path, caplog):
    caplog.set_level(logging.DEBUG)
    token = client.token('alice')
    client('GET', '/v2/caller', X_Auth_Token=token)
    client('GET', '/v2/caller', X_Auth_Token=token + 'x', expect=401)
    client.sign_in(by_password(name='alice', password='wrong'), expect=401)
    shown = str(client.get('/v3/users', 'root'))
    key = (tmp_path / 'token_key').read_text().strip()
    hashed = (tmp_path / 'users').read_text().split(':')[1]
    for secret in ('alice-secret', 'wrong', token, key, hashed):
        assert secret not in caplog.text
        assert secret not in shown
