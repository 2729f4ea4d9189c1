"""Identities of tokens: how long they are kept, how many, and of whom."""

import concurrent.futures
import contextlib
import itertools
import json
import logging
import threading
import time

from keystonemiddleware import auth_token
from oslo_config import cfg
from oslo_context import context
import pytest
import webob

from manila_lite.api.auth import token_cache
from manila_lite.api.auth.token_cache import TokenCache
from tests.support.keystone_server import Keystone
from tests.support.processes import wait_until

NEVER = float('inf')


class Clock:
    now = 1000.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def wall_clock():
    return Clock()


@pytest.fixture
def cache(clock, wall_clock):
    return TokenCache(30, capacity=3, clock=clock, wall_clock=wall_clock)


def test_identity_is_found_by_its_token_only(cache):
    cache.add('one', {'HTTP_X_USER_ID': 'ann'}, NEVER)
    assert cache.find('one') == {'HTTP_X_USER_ID': 'ann'}
    for other in ('on', 'one ', 'One', 'onee', ''):
        assert cache.find(other) is None


def test_identity_is_forgotten_after_the_time(cache, clock):
    cache.add('one', {}, NEVER)
    clock.now += 29.9
    assert cache.find('one') == {}
    clock.now += 0.1
    assert cache.find('one') is None
    assert len(cache) == 0


def test_finding_a_token_does_not_prolong_it(cache, clock):
    cache.add('one', {}, NEVER)
    for _ in range(29):
        clock.now += 1
        assert cache.find('one') == {}
    clock.now += 1
    assert cache.find('one') is None


def test_expired_token_is_forgotten_whatever_the_time_kept(cache, wall_clock):
    cache.add('one', {}, wall_clock.now + 5)
    wall_clock.now += 4.9
    assert cache.find('one') == {}
    wall_clock.now += 0.1
    assert cache.find('one') is None


@pytest.mark.parametrize('step', [-3600, 3600])
def test_step_of_the_wall_clock_does_not_prolong_the_time(
    cache, clock, wall_clock, step
):
    cache.add('one', {}, NEVER)
    wall_clock.now += step
    clock.now += 30
    assert cache.find('one') is None


def test_oldest_tokens_make_room_for_new_ones(cache):
    for token in ('1', '2', '3', '1', '4'):  # the first is validated again
        cache.add(token, {}, NEVER)
    assert len(cache) == 3
    assert [cache.find(token) for token in '1234'] == [{}, None, {}, {}]


def test_dropped_token_is_not_found_and_others_are(cache):
    cache.add('one', {}, NEVER)
    cache.add('two', {}, NEVER)
    cache.drop('one')
    cache.drop('never added')
    assert (cache.find('one'), cache.find('two')) == (None, {})


def test_cache_holds_no_token_nor_its_plain_hash(cache, clock, wall_clock):
    cache.add('a-secret-token', {'HTTP_X_USER_ID': 'ann'}, NEVER)
    other = TokenCache(30, clock=clock, wall_clock=wall_clock)
    other.add('a-secret-token', {}, NEVER)
    assert 'a-secret-token' not in repr(vars(cache))
    assert not set(cache._entries) & set(other._entries)


def test_threads_keep_the_cache_within_its_bound(cache):
    together = threading.Barrier(4)

    def use(number):
        together.wait(60)
        for step in range(2000):
            token = str((step * number) % 7)
            cache.add(token, {'token': token}, NEVER)
            assert cache.find(token) in (None, {'token': token})
            assert len(cache) <= 4 + 3
            cache.drop(str(step % 5))

    with concurrent.futures.ThreadPoolExecutor(4) as threads:
        list(threads.map(use, range(1, 5)))
    assert len(cache) <= 3


@pytest.mark.parametrize(
    'token_cache_time, kept',
    [(300, 60), (120, 60), (60, 30), (3, 1), (1, 0), (0, 0), (-1, 0)],
)
def test_token_is_kept_for_half_of_the_time_or_a_minute(token_cache_time, kept):
    assert token_cache.lifetime(token_cache_time) == kept


def test_all_identity_headers_of_the_library_are_known():
    names = {
        'HTTP_' + name.upper().replace('-', '_')
        for name in auth_token._request._AuthTokenRequest.blank('/')._all_auth_headers()
    }
    read = set(itertools.chain(*context._ENVIRON_HEADERS.values()))
    read = {name for name in read if name.startswith('HTTP_')} - {
        'HTTP_X_AUTH_TOKEN',
        'HTTP_X_STORAGE_TOKEN',
        'HTTP_X_SERVICE_TOKEN',
    }
    assert names <= token_cache.IDENTITY_HEADERS
    assert read <= token_cache.IDENTITY_HEADERS


# The middleware, before the one that validates


@pytest.fixture
def keystone():
    with Keystone() as running:
        yield running


@pytest.fixture
def alice(keystone):
    return keystone.add_user('alice', 'wonderland', 'tea party', ['Member', 'reader'])


@pytest.fixture
def app(make_app, keystone):
    return make_app('keystone', keystone.service_config())


def token_of(keystone, user, **scope):
    password = {'user': {'name': user.name, 'password': user.password}}
    token, _ = keystone.authenticate({'identity': {'password': password}, **scope})
    return token


SPOOFED = {name.removeprefix('HTTP_'): 'admin' for name in token_cache.IDENTITY_HEADERS}


def test_known_token_is_the_same_caller_without_validation(
    app, call_app, keystone, alice
):
    token = token_of(keystone, alice)
    first = call_app(app, X_Auth_Token=token).json
    again = call_app(
        app, X_Auth_Token=token, environ={'openstack.request_id': 'req-2'}
    ).json
    assert again == {**first, 'request_id': 'req-2'}
    assert again['project'] == alice.project_id
    assert keystone.validations == 1


def test_app_gets_the_variables_that_validation_sets(keystone, alice):
    """Compare what a validated and a known token set, one by one."""
    seen = []

    def record(environ, start_response):
        seen.append(dict(environ))
        start_response('200 OK', [])
        return [b'']

    cache = TokenCache(30)
    conf = cfg.ConfigOpts()
    conf([], default_config_files=[])
    options = {
        'oslo_config_config': conf,
        'www_authenticate_uri': keystone.url,
        'auth_type': 'password',
        'service_token_roles_required': 'true',
        **keystone.client_options(keystone.service),
    }
    wrapped = token_cache.KnownTokenMiddleware(
        record,
        auth_token.AuthProtocol(token_cache.RememberMiddleware(record, cache), options),
        cache,
    )
    token = token_of(keystone, alice)
    for headers in ({}, SPOOFED):
        request = webob.Request.blank(
            '/',
            headers={
                'X-Auth-Token': token,
                **{name.replace('_', '-'): value for name, value in headers.items()},
            },
        )
        assert request.get_response(wrapped).status_int == 200
    validated, known = (
        {name: value for name, value in environ.items() if name.startswith('HTTP_')}
        for environ in seen
    )
    assert keystone.validations == 1
    catalog = validated.pop('HTTP_X_SERVICE_CATALOG')
    assert json.loads(catalog)
    assert known == validated


def test_headers_of_the_client_do_not_change_a_known_caller(
    app, call_app, keystone, alice
):
    token = token_of(keystone, alice)
    honest = call_app(app, X_Auth_Token=token).json
    spoofed = call_app(app, X_Auth_Token=token, **SPOOFED).json
    del honest['request_id'], spoofed['request_id']  # of each its own
    assert spoofed == honest
    assert honest['is_admin'] is False
    assert keystone.validations == 1


def test_tokens_of_two_projects_are_two_callers(app, call_app, keystone, alice):
    bob = keystone.add_user('bob', 'builder', 'site', ['admin'])
    tokens = {user.project_id: token_of(keystone, user) for user in (alice, bob)}
    for _ in range(3):
        for project_id, token in tokens.items():
            found = call_app(app, X_Auth_Token=token).json
            assert found['project'] == project_id
            assert found['is_admin'] is (project_id == bob.project_id)
    assert keystone.validations == 2


def test_scopes_of_one_user_are_kept_apart(app, call_app, keystone, alice):
    project = token_of(keystone, alice)
    system = token_of(keystone, alice, scope={'system': {'all': True}})
    for _ in range(2):
        found = [call_app(app, X_Auth_Token=token).json for token in (project, system)]
        assert [one['system'] for one in found] == [None, 'all']
        assert [one['project'] for one in found] == [alice.project_id, None]


def test_request_with_a_service_token_is_always_validated(
    app, call_app, keystone, alice
):
    token = token_of(keystone, alice)
    assert call_app(app, X_Auth_Token=token).json['service_roles'] == []
    service = token_of(keystone, keystone.service)
    for _ in range(2):
        both = call_app(app, X_Auth_Token=token, X_Service_Token=service)
        assert both.json['service_roles'] == ['service']
    refused = call_app(app, X_Auth_Token=token, X_Service_Token='unknown')
    assert refused.status_int == 401
    assert call_app(app, X_Auth_Token=token).json['service_roles'] == []


def test_revoked_token_is_refused_after_token_cache_time(
    make_app, call_app, keystone, alice
):
    app = make_app('keystone', keystone.service_config() + 'token_cache_time = 3\n')
    token = token_of(keystone, alice)
    assert call_app(app, X_Auth_Token=token).status_int == 200
    validated_at = time.monotonic()
    keystone.revoke(token)
    assert call_app(app, X_Auth_Token=token).status_int == 200
    wait_until(
        lambda: call_app(app, X_Auth_Token=token).status_int == 401,
        'the token is refused',
    )
    # The library counts whole seconds.
    assert time.monotonic() - validated_at < 3 + 1.5
    assert call_app(app, X_Auth_Token=token).status_int == 401


def test_expired_token_is_refused_at_once(make_app, call_app, keystone, alice):
    keystone.lifetime = 2
    app = make_app('keystone', keystone.service_config())
    token = token_of(keystone, alice)
    issued_at = time.monotonic()
    assert call_app(app, X_Auth_Token=token).status_int == 200
    wait_until(
        lambda: call_app(app, X_Auth_Token=token).status_int == 401,
        'the token has expired',
    )
    assert 1 < time.monotonic() - issued_at < 5


def test_refused_request_makes_its_token_unknown(keystone, alice):
    answers = iter(('200 OK', '401 Unauthorized', '200 OK'))
    validated = []

    def validating(environ, start_response):
        validated.append(environ['HTTP_X_AUTH_TOKEN'])
        cache.add('one', {}, NEVER)
        return app(environ, start_response)

    def app(environ, start_response):
        start_response(next(answers), [])
        return [b'']

    cache = TokenCache(30)
    wrapped = token_cache.KnownTokenMiddleware(app, validating, cache)
    for _ in range(3):
        webob.Request.blank('/', headers={'X-Auth-Token': 'one'}).get_response(wrapped)
    assert validated == ['one', 'one']


@pytest.mark.parametrize(
    'detail',
    [{'bind': {'kerberos': 'alice'}}, {'application_credential': {'access_rules': []}}],
)
def test_token_whose_use_depends_on_the_request_is_not_kept(detail):
    cache = TokenCache(30)
    with contextlib.closing(_remember(cache, **detail)):
        assert len(cache) == 0
    with contextlib.closing(_remember(cache)):
        assert len(cache) == 1


def _remember(cache, **detail):
    def app(environ, start_response):
        yield b''

    return token_cache.RememberMiddleware(app, cache)(
        {
            'HTTP_X_AUTH_TOKEN': 'one',
            'HTTP_X_IDENTITY_STATUS': 'Confirmed',
            'keystone.token_info': {
                'token': {'expires_at': '2099-01-01T00:00:00.000000Z'} | detail
            },
        },
        None,
    )


def test_many_threads_see_one_caller_each(app, call_app, keystone):
    users = [
        keystone.add_user(f'user{n}', 'secret', f'project{n}', ['member'])
        for n in range(6)
    ]
    tokens = [(user, token_of(keystone, user)) for user in users]

    def call(which):
        user, token = tokens[which % len(tokens)]
        found = call_app(app, X_Auth_Token=token).json
        return (found['user'], found['project']) == (user.id, user.project_id)

    with concurrent.futures.ThreadPoolExecutor(6) as threads:
        assert all(threads.map(call, range(120)))


def test_log_has_no_token(app, call_app, keystone, alice, caplog):
    caplog.set_level(logging.DEBUG)
    token = token_of(keystone, alice)
    for _ in range(2):
        assert call_app(app, X_Auth_Token=token).status_int == 200
    keystone.revoke(token)
    call_app(app, X_Auth_Token=token, X_Service_Token='unknown')
    assert token not in caplog.text
