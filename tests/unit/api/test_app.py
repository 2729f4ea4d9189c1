"""The whole pipeline: ids, version list, health, optional middlewares."""

import re

import pytest

from manila_lite.api.health import NotKnown
from manila_lite.api.v2 import versions

ID = re.compile(r'req-[a-f0-9]{8}(-[a-f0-9]{4}){3}-[a-f0-9]{12}')
COMPUTE, PLAIN = 'x-compute-request-id', 'x-openstack-request-id'


# Version list


def test_root_lists_the_versions_with_300(client):
    for path in ('/', ''):
        response = client('GET', path)
        assert response.status_int == 300
        assert response.json == versions.document('http://localhost')


def test_v2_lists_the_same_with_200(client):
    response = client('GET', '/v2/')
    assert response.status_int == 200
    assert response.json == client('GET', '/').json


def test_version_list_has_the_published_form():
    (ours,) = versions.document('http://172.18.198.54:8786')['versions']
    self_link, documentation = sorted(
        ours.pop('links'), key=lambda link: link['rel'], reverse=True
    )
    assert self_link == {'rel': 'self', 'href': 'http://172.18.198.54:8786/v2/'}
    assert documentation.keys() == {'rel', 'href', 'type'}
    del ours['version']
    assert ours == {
        'id': 'v2.0',
        'status': 'CURRENT',
        'updated': '2015-08-27T11:33:21Z',
        'min_version': '2.0',
        'media-types': [
            {
                'base': 'application/json',
                'type': 'application/vnd.openstack.share+json;version=1',
            }
        ],
    }


@pytest.mark.facts('api-versions-mark-v1-deprecated', 'remove-v1-api', 'version_min')
def test_version_1_is_neither_served_nor_listed(client):
    for path in ('/v1', '/v1/', '/v1/widgets', '/v1/abcdef0123/widgets'):
        assert client('GET', path).status_int == 404
    (only,) = client('GET', '/').json['versions']
    assert only['id'] == 'v2.0'
    assert (only['min_version'], only['version']) == ('2.0', '2.99')


def test_v2_without_slash_redirects_to_v2_with_one(client):
    response = client('GET', '/v2')
    assert response.status_int == 302
    assert response.headers['Location'] == 'http://localhost/v2/'


def test_base_url_is_written_into_the_version_list(make_client):
    client = make_client('[DEFAULT]\nosapi_share_base_URL = https://out.example/\n')
    assert client('GET', '/').json == versions.document('https://out.example')
    assert client('GET', '/v2').headers['Location'] == 'https://out.example/v2/'


def test_project_id_regex_is_configured(make_client):
    client = make_client('[DEFAULT]\nproject_id_regex = [a-z]+\n')
    assert client('GET', '/v2/other/widgets').status_int == 400
    assert client('GET', '/v2/abcdef0123/widgets').status_int == 404


def test_there_are_no_extensions(client):
    assert client('GET', '/v2/extensions').json == {'extensions': []}
    response = client('GET', '/v2/extensions/os-things')
    assert response.json['itemNotFound']['code'] == 404


# Ids


@pytest.mark.parametrize(
    'path',
    [
        '/',
        '/v2/',
        '/v2',
        '/v2/widgets/a1',
        '/v2/nowhere',
        '/v1',
        '/healthcheck',
        '/v2/fail/crash',
        '/v2/fail/quota',
        '/v2/widgets/f1',
        '/v2/fail/moved',
    ],
)
@pytest.mark.facts('LP1815532', 'x-openstack-request-id')
def test_every_response_has_both_ids(client, path):
    response = client('GET', path)
    assert ID.fullmatch(response.headers[COMPUTE])
    assert response.headers[PLAIN] == response.headers[COMPUTE]
    assert response.headers.getall(PLAIN) == [response.headers[PLAIN]]


def test_every_request_has_its_own_id(client):
    assert client('GET', '/').headers[PLAIN] != client('GET', '/').headers[PLAIN]


@pytest.mark.parametrize(
    'sent, kept',
    [
        ('req-0c1a8c31-1d5e-4a0b-8f3a-4b0e1c6c5a11', True),
        ('req-0C1A8C31-1d5e-4a0b-8f3a-4b0e1c6c5a11', False),
        ('0c1a8c31-1d5e-4a0b-8f3a-4b0e1c6c5a11', False),
        ('req-1', False),
        ('req-0c1a8c31-1d5e-4a0b-8f3a-4b0e1c6c5a11x', False),
    ],
)
def test_well_formed_global_request_id_is_recorded(client, sent, kept):
    environ = {
        'REQUEST_METHOD': 'GET',
        'PATH_INFO': '/healthcheck',
        'HTTP_X_OPENSTACK_REQUEST_ID': sent,
    }
    headers = call(client, environ)
    assert headers[PLAIN] != sent
    assert environ['openstack.request_id'] == headers[PLAIN]
    assert environ.get('openstack.global_request_id') == (sent if kept else None)


def call(client, environ):
    """Return the headers of the response to a bare environment."""
    seen = {}
    client.bare_app(
        environ,
        lambda status, headers, exc_info=None: seen.update(headers, status=status),
    )
    return seen


# Health


@pytest.mark.facts('add-healthcheck-middleware')
def test_health_needs_no_authentication(make_client):
    client = make_client(checks={'database': lambda: None})
    response = client('GET', '/healthcheck')
    assert (response.status_int, response.text) == (200, 'OK')
    assert response.content_type == 'text/plain'


def test_health_gives_the_reasons_of_failures(make_client):
    client = make_client(
        checks={'database': lambda: None, 'driver alpha': lambda: 'not started'}
    )
    response = client('GET', '/healthcheck')
    assert (response.status_int, response.text) == (503, 'driver alpha: not started')
    response = client('GET', '/healthcheck', headers={'Accept': 'application/json'})
    assert response.status_int == 503
    assert response.json == {
        'healthy': False,
        'reasons': ['driver alpha: not started'],
        'checks': {'database': 'OK', 'driver alpha': 'not started'},
    }


def test_what_is_not_known_yet_is_shown_only(make_client):
    client = make_client(checks={'bus': lambda: NotKnown('is being checked')})
    response = client('GET', '/healthcheck')
    assert (response.status_int, response.text) == (200, 'OK\nbus: is being checked')
    response = client('GET', '/healthcheck', headers={'Accept': 'application/json'})
    assert response.json == {
        'healthy': True,
        'reasons': ['bus: is being checked'],
        'checks': {'bus': 'is being checked'},
    }


def test_healthy_service_as_json(client):
    response = client('GET', '/healthcheck', headers={'Accept': 'application/json'})
    assert response.json == {'healthy': True, 'reasons': ['OK'], 'checks': {}}


def test_health_supports_head(make_client):
    client = make_client(checks={'bus': lambda: 'no answer'})
    response = client('HEAD', '/healthcheck')
    assert (response.status_int, response.body) == (503, b'')


# Optional middlewares

ORIGIN = {'Origin': 'https://horizon.example'}


CORS = '[cors]\nallowed_origin = https://horizon.example\n'
ALL_OPTIONAL = CORS + '[oslo_middleware]\nenable_proxy_headers_parsing = true\n'


@pytest.fixture(params=['none', 'http_basic', 'noauth'])
def cors_client(request, make_client, tmp_path):
    """A client of pages of another site, for a way of authentication."""
    if request.param == 'none':
        return make_client(CORS)
    (tmp_path / 'users').write_text('')
    conf = (
        f'[DEFAULT]\nauth_strategy = {request.param}\nstate_path = {tmp_path}\n'
        f'[http_basic]\nusers_file = {tmp_path / "users"}\n'
    )
    return make_client(conf + CORS, auth=None)


def test_cors_headers_are_sent_if_configured(cors_client):
    """The question of a browser has no credentials."""
    response = cors_client('GET', '/v2/widgets', headers=ORIGIN)
    assert response.headers['Access-Control-Allow-Origin'] == ORIGIN['Origin']
    # The library sends this response without the Content-Type that the WSGI
    # validator requires.
    preflight = call(
        cors_client,
        {
            'REQUEST_METHOD': 'OPTIONS',
            'PATH_INFO': '/v2/widgets',
            'HTTP_ORIGIN': ORIGIN['Origin'],
            'HTTP_ACCESS_CONTROL_REQUEST_METHOD': 'GET',
            'HTTP_ACCESS_CONTROL_REQUEST_HEADERS': (
                'authorization,content-type,x-auth-token,x-openstack-manila-api-version'
            ),
        },
    )
    assert preflight['status'] == '200 OK'
    assert preflight['Access-Control-Allow-Methods'] == 'GET'
    assert 'authorization' in preflight['Access-Control-Allow-Headers'].lower()
    assert ID.fullmatch(preflight[PLAIN])


@pytest.mark.parametrize('conf', [CORS, ALL_OPTIONAL])
@pytest.mark.parametrize(
    'method, path, code',
    [
        ('GET', '/v2/fail/challenge', 401),
        ('GET', '/v2/fail/forbidden', 403),
        ('GET', '/v2/fail/conflict', 409),
        ('GET', '/v2/fail/quota', 413),
        ('GET', '/v2/fail/webob', 415),
        ('GET', '/v2/fail/crash', 500),
        ('GET', '/v2/fail/busy', 503),
        ('GET', '/v2/nothing', 404),
        ('GET', '/nothing', 404),
        ('POST', '/v2/echo', 413),
    ],
)
def test_refusals_can_be_read_by_pages_of_other_sites(
    make_client, conf, method, path, code
):
    # Only a length: webob reads a body of its own once more.
    length = {'CONTENT_LENGTH': str(1 << 20)} if method == 'POST' else {}
    response = make_client(conf)(method, path, headers=ORIGIN, **length)
    assert response.status_int == code
    assert response.headers['Access-Control-Allow-Origin'] == ORIGIN['Origin']
    assert response.content_type == 'application/json'
    if code == 401:
        assert response.headers['WWW-Authenticate'] == 'Basic'


def test_refused_sign_ins_can_be_read_by_pages_of_other_sites(make_client, tmp_path):
    (tmp_path / 'users').write_text('')
    client = make_client(
        f'[DEFAULT]\nauth_strategy = http_basic\nstate_path = {tmp_path}\n'
        f'[http_basic]\nusers_file = {tmp_path / "users"}\n{CORS}',
        auth=None,
    )
    codes = set()
    for _ in range(40):
        response = client(
            'GET', '/v2/widgets', headers={**ORIGIN, 'Authorization': 'Basic YTpi'}
        )
        codes.add(response.status_int)
        assert response.headers['Access-Control-Allow-Origin'] == ORIGIN['Origin']
    assert codes == {401, 503}


def test_cors_headers_are_not_sent_by_default(client):
    response = client('GET', '/v2/widgets', headers=ORIGIN)
    assert 'Access-Control-Allow-Origin' not in response.headers


FORWARDED = {
    'X-Forwarded-Proto': 'https',
    'X-Forwarded-Host': 'out:443',
    'X-Forwarded-Prefix': '/share',
}


@pytest.mark.parametrize(
    'text, url',
    [
        ('', 'http://localhost/v2/'),
        ('[oslo_middleware]\n', 'http://localhost/v2/'),
        (
            '[oslo_middleware]\nenable_proxy_headers_parsing = true\n',
            'https://out/share/v2/',
        ),
    ],
)
@pytest.mark.facts('LP1815038', 'Use-http_proxy_to_wsgi')
def test_proxy_headers_are_used_if_configured(make_client, text, url):
    response = make_client(text)('GET', '/', headers=FORWARDED)
    assert response.json['versions'][0]['links'][1]['href'] == url


@pytest.mark.parametrize(
    'headers, url',
    [
        ({'X-Forwarded-Prefix': '/share/'}, 'http://localhost/share/v2/'),
        ({'X-Forwarded-Prefix': '/'}, 'http://localhost/v2/'),
        ({'X-Forwarded-Prefix': 'share'}, 'http://localhost/share/v2/'),
        ({'X-Forwarded-Prefix': '/cloud, /share/'}, 'http://localhost/cloud/share/v2/'),
        (
            {'X-Forwarded-Proto': 'https, http', 'X-Forwarded-Host': 'out:8443, inner'},
            'https://out:8443/v2/',
        ),
        (
            {'Forwarded': 'proto=https;host="out:8443", proto=http;host=in'},
            'https://out:8443/v2/',
        ),
    ],
)
@pytest.mark.facts('LP1815038')
def test_links_follow_the_headers_of_several_proxies(make_client, headers, url):
    client = make_client('[oslo_middleware]\nenable_proxy_headers_parsing = true\n')
    response = client('GET', '/', headers=headers)
    assert response.json['versions'][0]['links'][1]['href'] == url
