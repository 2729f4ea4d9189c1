"""Request bodies are read or refused; none causes an error 500."""

import io
import json

from hypothesis import given, settings, strategies as st
import pytest

from manila_lite.api import wsgi
from tests.support import sampling

MALFORMED = {'badRequest': {'code': 400, 'message': 'Malformed request body'}}
LIMIT = 114688
INSIDE = (b'[' * (wsgi.MAX_DEPTH - 1)) + b']' * (wsgi.MAX_DEPTH - 1)


def echo(client, body, **more):
    return client('POST', '/v2/echo', body, **more)


@pytest.mark.parametrize(
    'body, value',
    [
        (b'{"a": [1, null, true, 1.5]}', {'a': [1, None, True, 1.5]}),
        (b'[]', []),
        (b'"x"', 'x'),
        (b'', None),
        (b'{"a": 1, "a": 2}', {'a': 2}),
        (b'{"a": 9223372036854775807, "b": -1}', {'a': 2**63 - 1, 'b': -1}),
        (b'[-9223372036854775807, 1.5]', [1 - 2**63, 1.5]),
        (b'"12345678901234567890123"', '12345678901234567890123'),
        (b'"\\\\u0000"', '\\u0000'),
        ('"é"'.encode(), 'é'),
        (b'[' + INSIDE + b']', json.loads(b'[' + INSIDE + b']')),
    ],
)
def test_body_is_read(client, body, value):
    assert echo(client, body).json == {'body': value}


@pytest.mark.parametrize(
    'body',
    [
        b'{',
        b'{]',
        b'nonsense',
        b"{'a': 1}",
        b'{"a": NaN}',
        b'[Infinity]',
        b'[-Infinity]',
        b'[1e999]',
        b'\xff\xfe',
        b'"\xe9"',
        b'"\\ud800"',
        b'\xef\xbb\xbf{}',
        b'"\0"',
        b'"\\u0000"',
        b'{"\\u0000": 1}',
        b'{"a": [{"b": "x\\u0000y"}]}',
        b'[9223372036854775808]',
        b'[18446744073709551616]',
        b'[-9223372036854775809]',
        b'{"a": ' + b'9' * 400 + b'}',
        b'[[' + INSIDE + b']]',
        b'[' * 100000,
        b'[' * 1000 + b']' * 1000,
        b'[' * 5000 + b']' * 5000,
        b'{"a":' * 900 + b'1' + b'}' * 900,
    ],
)
def test_unusable_body_is_malformed(client, body):
    response = echo(client, body)
    assert (response.status_int, response.json) == (400, MALFORMED)


@pytest.mark.parametrize(
    'kind',
    [
        'application/json',
        'application/json; charset=UTF-8',
        'Application/JSON',
        ' application/json ;x=y',
    ],
)
def test_json_content_type_is_read(client, kind):
    response = echo(client, b'{}', headers={'Content-Type': kind})
    assert response.json == {'body': {}}


@pytest.mark.parametrize(
    'kind',
    [
        '',
        'text/plain',
        'application/xml',
        'application/json+x',
        'json',
        'application/x-www-form-urlencoded',
        'multipart/form-data; boundary=x',
    ],
)
def test_body_of_another_content_type_is_ignored(client, kind):
    headers = {'Content-Type': kind}
    assert echo(client, b'{}', headers=headers).json == {'body': None}
    response = client('POST', '/v2/widgets', {'widget': {'size': 1}}, headers=headers)
    assert (response.status_int, response.json) == (400, MALFORMED)


def test_write_without_a_body_is_malformed(client):
    response = client('POST', '/v2/widgets')
    assert (response.status_int, response.json) == (400, MALFORMED)


@pytest.mark.parametrize('body', [[], 'x', 5, None, True, ['widget']])
def test_body_that_is_not_an_object_is_malformed(client, body):
    response = client('POST', '/v2/widgets', body)
    assert (response.status_int, response.json) == (400, MALFORMED)


# Length


class Stream(io.BytesIO):
    """A body that counts the bytes that are read."""

    bytes_read = 0

    def read(self, size=-1):
        data = super().read(size)
        self.bytes_read += len(data)
        return data


def chunked(client, body, **more):
    stream = Stream(body)
    response = echo(
        client,
        None,
        CONTENT_TYPE='application/json',
        HTTP_TRANSFER_ENCODING='Chunked',
        **{'wsgi.input': stream},
        **more,
    )
    return response, stream.bytes_read


def over_limit(response):
    assert response.status_int == 413
    fault = response.json['overLimit']
    assert (fault['code'], fault['retryAfter']) == (413, '0')
    assert response.headers['Retry-After'] == '0'
    assert str(LIMIT) in fault['message']
    return True


def test_body_of_the_maximum_length_is_read(client):
    body = b'"' + b'x' * (LIMIT - 2) + b'"'
    assert echo(client, body).status_int == 200
    response, _ = chunked(client, body)
    assert len(response.json['body']) == LIMIT - 2


def test_longer_body_is_refused_unread_before_authentication(client):
    stream = Stream(b'')
    response = client(
        'POST', '/v2/nowhere', CONTENT_LENGTH=str(LIMIT + 1), **{'wsgi.input': stream}
    )
    assert over_limit(response)
    assert stream.bytes_read == 0


def test_chunked_body_is_cut_off_at_the_limit(client):
    response, bytes_read = chunked(client, b'"' + b'x' * 10 * LIMIT)
    assert over_limit(response)
    assert bytes_read == LIMIT + 1


def test_limit_is_configured(make_client):
    client = make_client('[DEFAULT]\nmax_request_body_size = 1024\n')
    assert client('POST', '/v2/echo', b' ' * 1025).status_int == 413
    assert client('POST', '/v2/echo', b'{}' + b' ' * 1022).status_int == 200


@pytest.mark.parametrize('length', ['x', '-1', '1_0', '0x5', '٣', '1' * 50])
def test_malformed_content_length_is_refused(client, length):
    response = raw_call(client, length)
    assert response.startswith('4')


def raw_call(client, length):
    """Return the status for an unvalidated Content-Length."""
    seen = []
    list(
        client.bare_app(
            {
                'REQUEST_METHOD': 'POST',
                'PATH_INFO': '/v2/echo',
                'CONTENT_TYPE': 'application/json',
                'CONTENT_LENGTH': length,
                'wsgi.input': io.BytesIO(b'{}'),
                'wsgi.url_scheme': 'http',
            },
            lambda status, headers, exc_info=None: seen.append(status),
        )
    )
    return seen[0]


def test_truncated_body_is_malformed(client):
    assert raw_call(client, '2') == '200 OK'
    assert raw_call(client, '3') == '400 Bad Request'


# Arbitrary input is never a server error

anything = st.recursive(
    st.none() | st.booleans() | st.floats() | st.text() | st.integers(-(2**70), 2**70),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.text()
            | st.sampled_from(
                ['widget', 'size', 'name', 'colour', 'to', 'force', 'unit']
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)
bodies = (
    st.binary(max_size=200)
    | anything.map(lambda value: json.dumps(value).encode())
    | anything.map(lambda value: json.dumps({'widget': value}).encode())
    | st.tuples(st.sampled_from(['stretch', 'measure', 'reset', 'x']), anything).map(
        lambda pair: json.dumps(dict([pair])).encode()
    )
)
targets = st.sampled_from(
    [
        ('POST', '/v2/widgets'),
        ('PUT', '/v2/widgets/a1'),
        ('POST', '/v2/widgets/a1/action'),
        ('POST', '/v2/echo'),
    ]
)


@settings(max_examples=sampling.examples(3200, 50))
@given(targets, bodies, st.integers(0, 99))
def test_no_body_causes_a_500(client, target, body, minor):
    response = client(*target, body, version=f'2.{minor}', roles='admin')
    assert response.status_int < 500
    if response.status_int >= 400:
        ((key, fault),) = response.json.items()
        assert fault['code'] == response.status_int
        assert fault['message']


queries = st.text(max_size=40) | st.lists(
    st.sampled_from(
        [
            'limit',
            '=',
            '&',
            '%',
            '%00',
            '%ff',
            '%C3%A9',
            '1',
            ';',
            '+',
            '%ED%A0',
            '[]',
            'a',
        ]
    )
).map(''.join)


@settings(max_examples=sampling.examples(2400, 40))
@given(queries.map(lambda text: text.encode('utf-8', 'replace').decode('latin-1')))
def test_no_query_causes_a_500(client, query):
    response = client('GET', '/v2/widgets?' + query.replace('?', ''))
    assert response.status_int in (200, 400)


@pytest.mark.parametrize(
    'query, read',
    [
        ('', {}),
        ('a=1&a=2', {'a': '2'}),
        ('a', {'a': ''}),
        ('a=', {'a': ''}),
        ('n=%C3%A9', {'n': 'é'}),
        ('n=\xc3\xa9', {'n': 'é'}),
        ('name~=a%2Bb', {'name~': 'a+b'}),
    ],
)
def test_query_has_the_last_value_of_each_key(client, query, read):
    assert client('GET', '/v2/widgets?' + query).json['query'] == read


@pytest.mark.parametrize(
    'query',
    ['a=%FF', 'a=\xff', 'a=%00', '%00=1', 'a=%ED%A0%80', '&'.join(['a=1'] * 201)],
)
@pytest.mark.facts('LP1746202')
def test_query_that_is_not_text_is_malformed(client, query):
    response = client('GET', '/v2/widgets?' + query)
    assert response.json == {
        'badRequest': {'code': 400, 'message': 'Malformed request url'}
    }
