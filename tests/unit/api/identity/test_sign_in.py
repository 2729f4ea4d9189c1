"""Who gets a token, and for what."""

import base64

import bcrypt
import pytest

from manila_lite.api.auth import users
from tests.unit.api.identity.conftest import COST, by_password, by_token

DEFAULT = {'name': 'Default'}


@pytest.mark.parametrize(
    'user',
    [
        {'name': 'alice', 'domain': {'name': 'Default'}},
        {'name': 'alice', 'domain': {'id': 'default'}},
        {'name': 'alice', 'domain': {'name': 'default'}},
        {'name': 'alice'},
        {'id': 'id-of-alice'},
    ],
)
@pytest.mark.parametrize(
    'scope',
    [
        None,
        {'project': {'id': 'red'}},
        {'project': {'name': 'red', 'domain': DEFAULT}},
        {'project': {'name': 'red'}},
        {'unscoped': {}},
        'unscoped',
    ],
)
def test_user_gets_a_token_for_the_own_project(client, user, scope):
    body = by_password(scope, 'alice-secret', **user)
    answer = client.sign_in(body)
    token = answer.json['token']
    assert token['user']['id'] == 'id-of-alice'
    assert token['user']['name'] == 'alice'
    assert token['project']['id'] == token['project']['name'] == 'red'
    assert [role['name'] for role in token['roles']] == ['member', 'reader']
    assert token['methods'] == ['password']
    caller = client(
        'GET', '/v2/caller', X_Auth_Token=answer.headers['X-Subject-Token']
    ).json
    assert caller == {
        'user': 'id-of-alice',
        'project': 'red',
        'roles': ['member', 'reader'],
        'is_admin': False,
    }


@pytest.mark.parametrize(
    'body',
    [
        by_password(name='alice', password='wrong'),
        by_password(name='alice', password=''),
        by_password(name='alice', password='x' * 100),
        by_password(name='nobody'),
        by_password(id='alice', password='alice-secret'),
        by_password(id='nobody', password='alice-secret'),
        by_password(name='alice', domain={'name': 'other'}),
        by_password(name='alice', domain={'id': 'other'}),
        by_password({'project': {'id': 'blue'}}, name='alice'),
        by_password({'project': {'name': 'blue'}}, name='alice'),
        by_password({'project': {'id': 'red', 'domain': {'id': 'x'}}}, name='alice'),
        by_password({'domain': {'id': 'default'}}, name='alice'),
        by_password({'system': {'all': True}}, name='root'),
        by_password({'OS-TRUST:trust': {'id': 'x'}}, name='alice'),
        by_token('no.such.token'),
        {'auth': {'identity': {'methods': ['password']}}},
        {
            'auth': {
                'identity': {
                    'methods': ['application_credential'],
                    'application_credential': {'id': 'x', 'secret': 'y'},
                }
            }
        },
        {
            'auth': {
                'identity': {
                    'methods': ['password', 'totp'],
                    'password': {'user': {'name': 'alice', 'password': 'alice-secret'}},
                }
            }
        },
    ],
)
def test_others_get_no_token(client, body):
    answer = client.sign_in(body, expect=401)
    assert answer.json['error']['code'] == 401
    assert 'X-Subject-Token' not in answer.headers
    assert 'secret' not in answer.text


@pytest.mark.parametrize(
    'body',
    [
        None,
        [],
        {},
        {'auth': None},
        {'auth': {'identity': {}}},
        {'auth': {'identity': {'methods': 'password'}}},
        {'auth': {'identity': {'methods': ['token'], 'token': 'x'}}},
        by_password(name='alice', password=7),
        by_password(name=['alice'], password='alice-secret'),
        by_password(password='alice-secret'),
        by_password('everything', name='alice'),
        by_password({'project': 'red'}, name='alice'),
        by_password(name='alice', domain='default'),
        by_password(name='ali\0ce'),
        by_password(name='x' * 256, password='x'),
    ],
)
def test_malformed_requests_are_refused_without_quoting_them(client, body):
    answer = client.sign_in(body, expect=400)
    assert answer.json['error']['code'] == 400
    assert 'secret' not in answer.text


def test_token_can_be_exchanged_and_lives_no_longer(client):
    first = client.sign_in(by_password(name='alice'))
    token = first.headers['X-Subject-Token']
    second = client.sign_in(by_token(token, {'project': {'name': 'red'}}))
    assert second.json['token']['methods'] == ['token', 'password']
    assert second.json['token']['expires_at'] == first.json['token']['expires_at']
    client.sign_in(by_token(token, {'project': {'name': 'blue'}}), expect=401)


def test_person_with_a_name_per_project_signs_in_by_id(client, users_file):
    users.add(
        str(users_file),
        'alice-blue',
        'blue-secret',
        'id-of-alice',
        'blue',
        ['reader'],
        cost=COST,
    )
    for project, password in (('red', 'alice-secret'), ('blue', 'blue-secret')):
        body = by_password({'project': {'id': project}}, password, id='id-of-alice')
        token = client.sign_in(body).json['token']
        assert token['project']['id'] == project
        wrong = by_password(
            {'project': {'id': project}}, 'carol-secret', id='id-of-alice'
        )
        client.sign_in(wrong, expect=401)


def test_repeated_failures_are_delayed_however_the_user_is_named(client):
    wrong = [
        by_password(name='alice', password='wrong'),
        by_password(id='id-of-alice', password='wrong'),
        by_password(name='alice', password='wrong', domain={'id': 'default'}),
        by_password(name='alice', password='wrong', domain={'id': 'other'}),
    ]
    for body in wrong:
        client.sign_in(body, expect=401)
    for body in (*wrong, by_password(name='alice')):
        answer = client.sign_in(body, expect=503)
        assert int(answer.headers['Retry-After']) >= 1
    basic = base64.b64encode(b'alice:alice-secret').decode()
    client('GET', '/v2/caller', Authorization=f'Basic {basic}', expect=503)
    assert client.token('carol')


def test_token_is_accepted_while_sign_ins_are_delayed(client):
    token = client.token('alice')
    wrong = by_password(name='alice', password='wrong')
    for status in (401, 401, 401, 401, 503):
        client.sign_in(wrong, expect=status)
    client('GET', '/v2/caller', X_Auth_Token=token)


def test_unknown_user_costs_a_hash(client, monkeypatch):
    costs = []
    work = bcrypt.checkpw

    def count(password, hashed):
        costs.append(hashed[:7])
        return work(password, hashed)

    monkeypatch.setattr(bcrypt, 'checkpw', count)
    for user in (
        {'name': 'nobody'},
        {'id': 'nobody'},
        {'name': 'alice', 'domain': {'id': 'other'}},
    ):
        client.sign_in(by_password(password='wrong', **user), expect=401)
    assert len(costs) == 3
