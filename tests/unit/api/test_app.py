"""The pipeline as a whole: ids, version list, health, configured parts."""

import json
import re

import pytest

from manila_lite.api.v2 import versions as version_list
from tests.support import reference

ID = re.compile(r'req-[a-f0-9]{8}(-[a-f0-9]{4}){3}-[a-f0-9]{12}')
COMPUTE, PLAIN = 'x-compute-request-id', 'x-openstack-request-id'


# Version list


def test_root_lists_the_versions_with_300(client):
    for path in ('/', ''):
        answer = client('GET', path)
        assert answer.status_int == 300
        assert answer.json == version_list.document('http://localhost')


def test_v2_lists_the_same_with_200(client):
    answer = client('GET', '/v2/')
    assert answer.status_int == 200
    assert answer.json == client('GET', '/').json


def test_version_list_has_the_published_form():
    folder = reference.require_folder() / 'api-samples'
    sample = (folder / 'versions-get-version-response.json').read_text()
    (published,) = json.loads(sample)['versions']
    (ours,) = version_list.document('http://172.18.198.54:8786')['versions']
    assert ours.keys() == published.keys()
    for key in ('id', 'status', 'updated', 'min_version', 'media-types'):
        assert ours[key] == published[key]
    assert sorted(map(str, map(sorted, ours['links']))) == sorted(
        map(str, map(sorted, published['links']))
    )
    assert 'http://172.18.198.54:8786/v2/' in [
        link['href'] for link in ours['links']
    ]


def test_v2_without_slash_redirects_to_v2_with_one(client):
    answer = client('GET', '/v2')
    assert answer.status_int == 302
    assert answer.headers['Location'] == 'http://localhost/v2/'


def test_base_url_is_written_into_the_version_list(make_client):
    client = make_client(
        '[DEFAULT]\nosapi_share_base_URL = https://out.example/\n'
    )
    assert client('GET', '/').json == version_list.document(
        'https://out.example'
    )
    assert (
        client('GET', '/v2').headers['Location'] == 'https://out.example/v2/'
    )


def test_project_id_regex_is_configured(make_client):
    client = make_client('[DEFAULT]\nproject_id_regex = [a-z]+\n')
    assert client('GET', '/v2/other/shelves').status_int == 400
    assert client('GET', '/v2/abcdef0123/shelves').status_int == 404


def test_extensions_are_none(client):
    assert client('GET', '/v2/extensions').json == {'extensions': []}
    answer = client('GET', '/v2/extensions/os-things')
    assert answer.json['itemNotFound']['code'] == 404


# Ids


@pytest.mark.parametrize(
    'path',
    [
        '/',
        '/v2/',
        '/v2',
        '/v2/shelves/a1',
        '/v2/nowhere',
        '/v1',
        '/healthcheck',
        '/v2/fail/crash',
        '/v2/fail/quota',
        '/v2/shelves/f1',
        '/v2/fail/moved',
    ],
)
def test_every_answer_has_both_ids(client, path):
    answer = client('GET', path)
    assert ID.fullmatch(answer.headers[COMPUTE])
    assert answer.headers[PLAIN] == answer.headers[COMPUTE]
    assert answer.headers.getall(PLAIN) == [answer.headers[PLAIN]]


def test_every_request_has_an_id_of_its_own(client):
    assert (
        client('GET', '/').headers[PLAIN] != client('GET', '/').headers[PLAIN]
    )


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
def test_id_of_a_larger_action_is_kept_when_it_is_one(client, sent, kept):
    environ = {
        'REQUEST_METHOD': 'GET',
        'PATH_INFO': '/healthcheck',
        'HTTP_X_OPENSTACK_REQUEST_ID': sent,
    }
    headers = call(client, environ)
    assert headers[PLAIN] != sent
    assert environ['openstack.request_id'] == headers[PLAIN]
    assert environ.get('openstack.global_request_id') == (
        sent if kept else None
    )


def call(client, environ):
    """The headers of the answer to a bare environment."""
    seen = {}
    client.bare_app(
        environ,
        lambda status, headers, exc_info=None: seen.update(
            headers, status=status
        ),
    )
    return seen


# Health


def test_health_is_ok_without_sign_in(make_client):
    client = make_client(checks={'database': lambda: None})
    answer = client('GET', '/healthcheck')
    assert (answer.status_int, answer.text) == (200, 'OK')
    assert answer.content_type == 'text/plain'


def test_health_tells_what_is_wrong(make_client):
    client = make_client(
        checks={
            'database': lambda: None,
            'driver alpha': lambda: 'not started',
        }
    )
    answer = client('GET', '/healthcheck')
    assert (answer.status_int, answer.text) == (
        503,
        'driver alpha: not started',
    )
    answer = client(
        'GET', '/healthcheck', headers={'Accept': 'application/json'}
    )
    assert answer.status_int == 503
    assert answer.json == {
        'healthy': False,
        'reasons': ['driver alpha: not started'],
        'checks': {'database': 'OK', 'driver alpha': 'not started'},
    }


def test_health_as_json_when_all_is_well(client):
    answer = client(
        'GET', '/healthcheck', headers={'Accept': 'application/json'}
    )
    assert answer.json == {'healthy': True, 'reasons': ['OK'], 'checks': {}}


def test_health_can_be_asked_by_head(make_client):
    client = make_client(checks={'bus': lambda: 'no answer'})
    answer = client('HEAD', '/healthcheck')
    assert (answer.status_int, answer.body) == (503, b'')


# What only some installations need

ORIGIN = {'Origin': 'https://horizon.example'}


def test_cors_is_answered_where_it_is_configured(make_client):
    client = make_client('[cors]\nallowed_origin = https://horizon.example\n')
    answer = client('GET', '/v2/shelves', headers=ORIGIN)
    assert answer.headers['Access-Control-Allow-Origin'] == ORIGIN['Origin']
    # The library answers this one without the Content-Type that the
    # validator of WSGI wants.
    preflight = call(
        client,
        {
            'REQUEST_METHOD': 'OPTIONS',
            'PATH_INFO': '/v2/shelves',
            'HTTP_ORIGIN': ORIGIN['Origin'],
            'HTTP_ACCESS_CONTROL_REQUEST_METHOD': 'GET',
        },
    )
    assert preflight['status'] == '200 OK'
    assert preflight['Access-Control-Allow-Methods'] == 'GET'
    assert ID.fullmatch(preflight[PLAIN])


def test_cors_is_silent_elsewhere(client):
    answer = client('GET', '/v2/shelves', headers=ORIGIN)
    assert 'Access-Control-Allow-Origin' not in answer.headers


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
def test_proxy_headers_are_believed_when_told_so(make_client, text, url):
    answer = make_client(text)('GET', '/', headers=FORWARDED)
    assert answer.json['versions'][0]['links'][1]['href'] == url
