"""Bodies: what is read, what is refused, and nothing that breaks us."""

import io
import json

from hypothesis import given
from hypothesis import settings
from hypothesis import strategies as st
import pytest

from manila_lite.api import wsgi

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
        (b'{"a": 9223372036854775807}', {'a': 2**63 - 1}),
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
def test_body_that_no_handler_can_use_is_malformed(client, body):
    answer = echo(client, body)
    assert (answer.status_int, answer.json) == (400, MALFORMED)


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
    answer = echo(client, b'{}', headers={'Content-Type': kind})
    assert answer.json == {'body': {}}


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
def test_body_of_another_type_counts_as_absent(client, kind):
    headers = {'Content-Type': kind}
    assert echo(client, b'{}', headers=headers).json == {'body': None}
    answer = client(
        'POST', '/v2/shelves', {'shelf': {'size': 1}}, headers=headers
    )
    assert (answer.status_int, answer.json) == (400, MALFORMED)


def test_write_without_a_body_is_malformed(client):
    answer = client('POST', '/v2/shelves')
    assert (answer.status_int, answer.json) == (400, MALFORMED)


@pytest.mark.parametrize('body', [[], 'x', 5, None, True, ['shelf']])
def test_body_that_is_no_object_is_malformed(client, body):
    answer = client('POST', '/v2/shelves', body)
    assert (answer.status_int, answer.json) == (400, MALFORMED)


# Length


class Stream(io.BytesIO):
    """A body that counts what is read of it."""

    taken = 0

    def read(self, size=-1):
        data = super().read(size)
        self.taken += len(data)
        return data


def chunked(client, body, **more):
    stream = Stream(body)
    answer = echo(
        client,
        None,
        CONTENT_TYPE='application/json',
        HTTP_TRANSFER_ENCODING='Chunked',
        **{'wsgi.input': stream},
        **more,
    )
    return answer, stream.taken


def over_limit(answer):
    assert answer.status_int == 413
    fault = answer.json['overLimit']
    assert (fault['code'], fault['retryAfter']) == (413, '0')
    assert answer.headers['Retry-After'] == '0'
    assert str(LIMIT) in fault['message']
    return True


def test_body_of_the_greatest_length_is_read(client):
    body = b'"' + b'x' * (LIMIT - 2) + b'"'
    assert echo(client, body).status_int == 200
    answer, _ = chunked(client, body)
    assert len(answer.json['body']) == LIMIT - 2


def test_longer_body_is_refused_before_sign_in_and_unread(client):
    stream = Stream(b'')
    answer = client(
        'POST',
        '/v2/nowhere',
        CONTENT_LENGTH=str(LIMIT + 1),
        **{'wsgi.input': stream},
    )
    assert over_limit(answer)
    assert stream.taken == 0


def test_chunked_body_is_cut_off_at_the_limit(client):
    answer, taken = chunked(client, b'"' + b'x' * 10 * LIMIT)
    assert over_limit(answer)
    assert taken == LIMIT + 1


def test_limit_is_configured(make_client):
    client = make_client('[DEFAULT]\nmax_request_body_size = 1024\n')
    assert client('POST', '/v2/echo', b' ' * 1025).status_int == 413
    assert client('POST', '/v2/echo', b'{}' + b' ' * 1022).status_int == 200


@pytest.mark.parametrize('length', ['x', '-1', '1_0', '0x5', '٣', '1' * 50])
def test_length_that_is_no_length_is_refused(client, length):
    answer = raw_call(client, length)
    assert answer.startswith('4')


def raw_call(client, length):
    """The status when a server passes on any Content-Length."""
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


def test_body_cut_short_by_the_client_is_malformed(client):
    assert raw_call(client, '2') == '200 OK'
    assert raw_call(client, '3') == '400 Bad Request'


# Whatever comes, it is the client's fault

anything = st.recursive(
    st.none()
    | st.booleans()
    | st.floats()
    | st.text()
    | st.integers(-(2**70), 2**70),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.text()
            | st.sampled_from(
                ['shelf', 'size', 'name', 'colour', 'to', 'force', 'unit']
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
    | anything.map(lambda value: json.dumps({'shelf': value}).encode())
    | st.tuples(
        st.sampled_from(['stretch', 'measure', 'reset', 'x']), anything
    ).map(lambda pair: json.dumps(dict([pair])).encode())
)
targets = st.sampled_from(
    [
        ('POST', '/v2/shelves'),
        ('PUT', '/v2/shelves/a1'),
        ('POST', '/v2/shelves/a1/action'),
        ('POST', '/v2/echo'),
    ]
)


@settings(max_examples=400)
@given(targets, bodies, st.integers(0, 99))
def test_no_body_is_answered_by_500(client, target, body, minor):
    answer = client(*target, body, version=f'2.{minor}', roles='admin')
    assert answer.status_int < 500
    if answer.status_int >= 400:
        ((key, fault),) = answer.json.items()
        assert fault['code'] == answer.status_int
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


@settings(max_examples=300)
@given(
    queries.map(lambda text: text.encode('utf-8', 'replace').decode('latin-1'))
)
def test_no_query_is_answered_by_500(client, query):
    answer = client('GET', '/v2/shelves?' + query.replace('?', ''))
    assert answer.status_int in (200, 400)


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
    assert client('GET', '/v2/shelves?' + query).json['query'] == read


@pytest.mark.parametrize(
    'query',
    [
        'a=%FF',
        'a=\xff',
        'a=%00',
        '%00=1',
        'a=%ED%A0%80',
        '&'.join(['a=1'] * 201),
    ],
)
def test_query_that_is_no_text_is_malformed(client, query):
    answer = client('GET', '/v2/shelves?' + query)
    assert answer.json == {
        'badRequest': {'code': 400, 'message': 'Malformed request url'}
    }
