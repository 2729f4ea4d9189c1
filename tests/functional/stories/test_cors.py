"""Pages of an allowed site can read refusals from every layer."""

import base64
import contextlib
import http.client
import json
import socket

import pytest

from tests.functional.stories.conftest import new_installation

SITE = 'https://horizon.example'
LIMIT = 114688
"""The default of max_request_body_size."""

LENGTHS = [LIMIT + 1, 1 << 20, (1 << 20) + 1, 5 << 20]
TIMEOUT = 60


@pytest.fixture(scope='module', params=['threading', 'eventlet'])
def service(request, tmp_path_factory):
    with new_installation(
        tmp_path_factory.mktemp('cors') / 'installation',
        auth='http_basic',
        concurrency=request.param,
        options='quota_shares = 0',
        sections=f'[cors]\nallowed_origin = {SITE}\n',
    ) as installation:
        installation.manage(
            *('user', 'add', 'ann', '--user-id', 'ann', '--project', 'red'),
            *('--role', 'member'),
            stdin='secret\n',
        )
        yield installation.start()


def headers_of(name='ann', password='secret'):
    login = base64.b64encode(f'{name}:{password}'.encode()).decode()
    return {
        'Origin': SITE,
        'Content-Type': 'application/json',
        'Authorization': f'Basic {login}',
    }


def request(service, method, path, body=None, headers=None, *, chunked=False):
    """Send a request as browsers do; return what a page can read of the answer."""
    with contextlib.closing(
        http.client.HTTPConnection('127.0.0.1', service.port, timeout=TIMEOUT)
    ) as connection:
        connection.request(
            method,
            path,
            iter([body]) if chunked else body,
            headers or headers_of(),
            encode_chunked=chunked,
        )
        return check(connection.getresponse())


def check(response):
    """Return the code of a refusal, whose form is that of the API."""
    fault = json.loads(response.read())
    assert response.headers['Access-Control-Allow-Origin'] == SITE
    assert response.headers['X-Openstack-Request-Id'].startswith('req-')
    assert 'X-OpenStack-Request-Id' in response.headers['Access-Control-Expose-Headers']
    ((_, shown),) = fault.items()
    assert shown['code'] == response.status
    return response.status, shown['message']


def send(service, data):
    """Send bytes that are no request; return what a page can read."""
    with socket.create_connection(('127.0.0.1', service.port), TIMEOUT) as client:
        client.sendall(data)
        response = http.client.HTTPResponse(client)
        response.begin()
        return check(response)


@pytest.mark.parametrize('chunked', [False, True], ids=['length', 'chunks'])
@pytest.mark.parametrize('length', LENGTHS)
def test_refusal_of_a_long_body_can_be_read(service, length, chunked):
    assert request(service, 'POST', '/v2/shares', b'x' * length, chunked=chunked) == (
        413,
        f'The request body is larger than {LIMIT} bytes.',
    )


@pytest.mark.parametrize(
    'method, path, body, code',
    [
        ('POST', '/v2/shares', {'share': {}}, 400),
        ('POST', '/v2/types', {'share_type': {}}, 403),
        ('GET', '/v2/shares/none', None, 404),
        ('POST', '/v2/shares', {'share': {'share_proto': 'NFS', 'size': 1}}, 413),
    ],
)
def test_refusal_of_the_api_can_be_read(service, method, path, body, code):
    found, _ = request(service, method, path, body and json.dumps(body))
    assert found == code


def test_refused_sign_ins_can_be_read(service):
    codes = set()
    for number in range(12):
        code, _ = request(
            service, 'GET', '/v2/shares', headers=headers_of(f'bob{number % 2}', 'no')
        )
        codes.add(code)
    assert codes == {401, 503}


@pytest.mark.parametrize('origin_first', [True, False])
def test_refusal_of_what_is_no_request_can_be_read(service, origin_first):
    """By the threaded server; that of eventlet closes such a connection."""
    if service.concurrency == 'eventlet':
        pytest.skip('eventlet answers by itself')
    origin = b'Origin: ' + SITE.encode() + b'\r\n'
    long = b'X-Long: ' + b'x' * 300_000 + b'\r\n'
    for code, line, kept in [
        (431, b'GET /v2/shares HTTP/1.1', long),
        (431, b'GET /v2/shares?name=' + b'x' * 300_000 + b' HTTP/1.1', b'A: b\r\n'),
        (501, b'POST /v2/shares HTTP/1.1', b'Transfer-Encoding: gzip\r\n'),
        (400, b'POST /v2/shares HTTP/1.1', b'Content-Length: many\r\n'),
    ]:
        headers = origin + kept if origin_first else kept + origin
        assert (
            send(service, line + b'\r\nHost: here\r\n' + headers + b'\r\n')[0] == code
        )
