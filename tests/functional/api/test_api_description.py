"""GET /v2/openapi.json: every version, for whom the policy allows."""

import json
import re
import urllib.parse

import openapi_spec_validator
import pytest
import webob

from manila_lite import conf as configuration
from manila_lite.api import routes, versions
from manila_lite.api.app import build_app
from manila_lite.api.description import operations
from manila_lite.policies.enforcer import Enforcer
from tests.functional.api.described import description
from tests.support import sampling

PATH = '/openapi.json'
RULE = 'api_description:get'


@sampling.enumeration
@pytest.mark.parametrize(
    'minor', sampling.sample(range(versions.MIN, versions.MAX + 1), 2)
)
def test_description_of_every_version_is_valid(minor):
    openapi_spec_validator.validate(description(minor).content)


def test_patterns_have_no_flags():
    """Those of Python are unknown to ECMA-262, as OpenAPI requires."""
    found = list(patterns(description(versions.MAX).content))
    assert found
    # Groups and lookaheads begin alike.
    assert [one for one in found if re.search(r'\(\?(?![:=!])', one)] == []


def patterns(content):
    """Yield the patterns in a description."""
    for schema in parts(content):
        if isinstance(schema.get('pattern'), str):
            yield schema['pattern']


def parts(content):
    """Yield all objects in a part of a description, such as schemas."""
    if isinstance(content, dict):
        yield content
        content = list(content.values())
    if isinstance(content, list):
        for part in content:
            yield from parts(part)


def test_generators_can_name_all_values_and_keys():
    """They know no `const`, and write names in one case, without signs."""
    content = description(versions.MAX).content
    for schema in parts(content):
        assert not isinstance(schema.get('const'), str | int | bool), schema
        if isinstance(schema.get('enum'), list):
            assert_names_differ(filter(None, schema['enum']))
    for operation in description(versions.MAX).operations:
        assert_names_differ(
            parameter['name']
            for parameter in operation.content['parameters']
            if 'name' in parameter
        )


def assert_names_differ(words):
    words = [str(word) for word in words]
    assert len({re.sub(r'\W', '', one).lower() for one in words}) == len(words), words


def test_operations_and_actions_say_their_versions():
    content = description(51).find('POST', '/v2/shares/1/action')
    assert content.content['x-openstack'] == versions_from('2.0')
    assert content.actions['extend']['x-openstack'] == versions_from('2.7')
    old = description(6).find('POST', '/v2/shares/1/action')
    assert old.actions['os-extend']['x-openstack'] == {
        'min-ver': '2.0',
        'max-ver': '2.6',
    }


def versions_from(first):
    return {'min-ver': first, 'max-ver': versions.text(versions.MAX)}


@pytest.mark.parametrize(
    'key, form',
    [
        ('limit', {'type': 'integer', 'minimum': 0, 'maximum': 2**31 - 1}),
        ('offset', {'type': 'integer', 'minimum': 0}),
        ('sort_dir', {'type': 'string', 'enum': ['asc', 'desc']}),
    ],
)
def test_keys_of_pages_have_their_limits(key, form):
    assert query_key(key)['schema'] == form


def test_position_in_a_list_is_described_as_links_have_it(cloud, admin):
    for _ in range(2):
        cloud.create_share()
    (link,) = admin.get('/shares?limit=1')['shares_links']
    after = urllib.parse.parse_qs(link['href'])['after'][0]
    assert re.search(query_key('after')['schema']['pattern'], after)


def query_key(name):
    (found,) = (
        parameter
        for parameter in description(versions.MAX)
        .find('GET', '/v2/shares')
        .content['parameters']
        if parameter.get('name') == name
    )
    return found


def test_version_is_that_of_the_header_or_of_the_query(admin):
    assert admin.get(PATH, version='2.0')['info']['version'] == '2.0'
    assert admin.get(PATH, version='2.9')['info']['version'] == '2.9'
    found = admin.get(f'{PATH}?version=2.30', version='2.9')
    assert found['info']['version'] == '2.30'


@pytest.mark.parametrize(
    'version, code', [('2.100', 406), ('3.0', 406), ('latest', 400)]
)
def test_version_of_the_query_must_be_served(admin, version, code):
    answer = admin.request('GET', f'{PATH}?version={version}')
    assert answer.status_int == code


def test_every_route_is_described_in_its_versions():
    """A new route needs no entry anywhere else."""
    for minor in (versions.MIN, 31, versions.MAX):
        found = {
            (operation.method, operation.path)
            for operation in description(minor).operations
        }
        assert found == {
            (route.method, route.template)
            for route in routes.ROUTES
            if operations.serves(route, minor)
        }
        for route in routes.ROUTES:
            if minor not in route.window:
                assert (route.method, route.template) not in found or any(
                    minor in other.window
                    for other in routes.ROUTES
                    if other.template == route.template and other.method == route.method
                )


def test_who_may_is_said_as_rule_and_roles():
    found = description(versions.MAX).find('DELETE', '/v2/shares/1').content
    assert found['x-openstack-policy'] == 'share:delete'
    assert found['x-openstack-default-roles'] == ['admin', 'member']
    reset = (
        description(versions.MAX)
        .find('POST', '/v2/shares/1/action')
        .actions['reset_status']
    )
    assert reset['x-openstack-default-roles'] == ['admin']


@pytest.mark.parametrize(
    'roles, code', [('reader', 200), ('member', 200), ('admin', 200), ('guest', 403)]
)
def test_callers_with_a_published_role_may_read_it(cloud, roles, code):
    request = webob.Request.blank(
        f'/v2{PATH}', headers={'X-Roles': roles, 'X-User': 'u', 'X-Project': 'p'}
    )
    assert request.get_response(cloud.app).status_int == code


@pytest.fixture
def with_rule(cloud, tmp_path):
    """Return a function that serves with passwords, and with a rule."""

    def build(check):
        users, policy, file = (
            tmp_path / name for name in ('users', 'policy.yaml', 'extra.conf')
        )
        users.write_text('')
        policy.write_text(json.dumps({RULE: check} if check else {}))
        file.write_text(
            f'[DEFAULT]\nstate_path = {tmp_path}\n'
            'auth_strategy = http_basic\n'
            f'[http_basic]\nusers_file = {users}\n'
            f'[oslo_policy]\npolicy_file = {policy}\n'
        )
        conf = configuration.new(files=[str(file)])
        return build_app(conf, cloud.services, Enforcer(conf))

    return build


def test_strangers_are_refused_by_default(with_rule):
    answer = webob.Request.blank(f'/v2{PATH}').get_response(with_rule(None))
    assert answer.status_int == 401


def test_strangers_may_read_it_if_the_policy_is_open(with_rule):
    app = with_rule('@')
    answer = webob.Request.blank(
        f'/v2{PATH}', headers={versions.HEADER: '2.78'}
    ).get_response(app)
    assert answer.status_int == 200
    assert answer.json['info']['version'] == '2.78'
    other = webob.Request.blank('/v2/shares').get_response(app)
    assert other.status_int == 401


def test_sign_in_is_that_of_the_configuration():
    conf = configuration.new([])
    assert operations.sign_in(conf) == ['token']
    conf.set_override('auth_strategy', 'noauth')
    assert operations.sign_in(conf) == []
    conf.set_override('auth_strategy', 'http_basic')
    assert operations.sign_in(conf) == ['basic', 'token']
    conf.set_override('identity_api', False, group='http_basic')
    assert operations.sign_in(conf) == ['basic']
