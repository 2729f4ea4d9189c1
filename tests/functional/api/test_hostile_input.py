"""Malformed requests never answer 5xx and change nothing when refused."""

import json

import hypothesis
from hypothesis import strategies as st
import pytest

from manila_lite.api import versions
from tests.functional.api import differences, hostile_input as hostile, published_api
from tests.functional.api.examples.registry import example
from tests.functional.api.published_api import by_key
from tests.functional.api.test_published_surface import fault
from tests.support import sampling

pytestmark = sampling.suite('malformed requests', 60)


OPERATIONS = [
    operation
    for operation in published_api.operations()
    if operation.key not in differences.UNSUPPORTED_OPERATIONS
    and operation.accepts_project_id
    and operation.versions[-1] == published_api.VERSIONS[-1]
]
WRITES = [operation for operation in OPERATIONS if operation.method in ('POST', 'PUT')]
READS = [
    operation
    for operation in OPERATIONS
    if operation.method == 'GET' and not operation.path.endswith('}')
]
# Of the latest version, some operations are experimental.
EXPERIMENT = {versions.EXPERIMENTAL_HEADER: 'true'}
WITH_ID = [operation for operation in OPERATIONS if '{' in operation.path]

hypothesis.settings.register_profile(
    'hostile',
    max_examples=sampling.examples(60, 4),
    deadline=None,
    database=None,
    suppress_health_check=list(hypothesis.HealthCheck),
)


def refused(answer, codes=range(400, 500)):
    """Tell whether a request was refused; check the form of its error."""
    assert answer.status_int < 500, answer.text
    if answer.status_int < 400:
        return False
    assert answer.status_int in codes, answer.text
    assert fault(answer)
    return True


def url(operation, args):
    return operation.path.format(**args.variables) + args.query


@by_key(WRITES)
def test_body_with_another_value(sample, operation):
    """Replace each value; nothing changes unless the request is accepted."""
    args = example(operation)(sample)
    valid = {operation.action: args.body} if operation.action else args.body
    before = sample.all_rows()
    for body in hostile.variations(valid):
        answer = sample.send(
            operation.method,
            url(operation, args),
            body,
            raw=json.dumps(body).encode(),
            headers=EXPERIMENT,
        )
        if not refused(answer):
            before = sample.all_rows()
        assert sample.all_rows() == before, body


@by_key(WRITES)
@hypothesis.settings(hypothesis.settings.get_profile('hostile'))
@hypothesis.given(data=st.data())
def test_body_that_is_corrupted(sample, operation, data):
    """Nothing changes unless the request is accepted."""
    args = example(operation)(sample)
    valid = {operation.action: args.body} if operation.action else args.body
    body = data.draw(hostile.corrupted_body(valid))
    before = sample.all_rows()
    answer = sample.send(
        operation.method,
        url(operation, args),
        raw=json.dumps(body).encode(),
        headers=EXPERIMENT,
    )
    if refused(answer):
        assert sample.all_rows() == before


@pytest.mark.parametrize('raw', hostile.RAW.values(), ids=hostile.RAW)
def test_body_that_is_no_json_object(sample, raw):
    requests = [(operation, example(operation)(sample)) for operation in WRITES]
    before = sample.all_rows()
    for operation, args in requests:
        answer = sample.send(
            operation.method, url(operation, args), raw=raw, headers=EXPERIMENT
        )
        assert refused(answer, codes=(400, 413, 422)), operation.key
    assert sample.all_rows() == before


@pytest.mark.parametrize(
    'kind',
    [
        '',
        'text/plain',
        'application/xml',
        'multipart/form-data; boundary=x',
        'application/x-www-form-urlencoded',
        '/',
        'application/json5',
    ],
)
def test_body_that_is_not_declared_as_json(sample, kind):
    requests = [(operation, example(operation)(sample)) for operation in WRITES]
    before = sample.all_rows()
    for operation, args in requests:
        body = {operation.action: args.body} if operation.action else args.body
        answer = sample.send(
            operation.method,
            url(operation, args),
            raw=json.dumps(body).encode(),
            headers={'Content-Type': kind, **EXPERIMENT},
        )
        assert refused(answer, codes=(400,)), operation.key
    assert sample.all_rows() == before


@by_key(WITH_ID)
def test_unknown_id(sample, operation):
    """In every variable of the path, for every persona."""
    args = example(operation)(sample)
    before = sample.all_rows()
    for name in args.variables:
        if name in ('project_id', 'class'):
            continue  # any project and any class is accepted
        for id in hostile.IDS:
            corrupted = args._replace(variables=args.variables | {name: id})
            for persona in ('admin', 'member'):
                answer = sample.send_request(operation, corrupted, persona=persona)
                assert refused(answer, codes=(400, 403, 404)), (name, id)
    assert sample.all_rows() == before


@by_key(READS)
def test_malformed_query(sample, operation):
    args = example(operation)(sample)
    before = sample.all_rows()
    for query in hostile.QUERIES:
        for persona in ('admin', 'member'):
            refused(
                sample.send_request(
                    operation, args._replace(query=f'?{query}'), persona=persona
                ),
                codes=(400, 403, 404),
            )
    assert sample.all_rows() == before


@pytest.mark.parametrize('version', hostile.VERSIONS, ids=lambda version: version[:10])
def test_malformed_version(sample, version):
    for path in ('/v2/shares', f'/v2/shares/{sample.share}', '/v2/'):
        answer = sample.send('GET', path, headers={versions.HEADER: version})
        assert refused(answer, codes=(400, 406))


@by_key(OPERATIONS)
def test_project_in_the_url_is_the_callers(sample, operation):
    args = example(operation)(sample)
    before = sample.all_rows()
    path = url(operation, args).replace('/v2', '/v2/' + '0' * 32, 1)
    answer = sample.send(operation.method, path, args.body)
    assert refused(answer, codes=(400,))
    assert fault(answer)['message'] == 'Malformed request url'
    assert sample.all_rows() == before


@differences.proves('methods that a URL does not have')
@pytest.mark.parametrize(
    'method', ['PATCH', 'TRACE', 'CONNECT', 'BREW', 'get', 'PROPFIND', 'DELETE']
)
def test_method_that_no_route_has(sample, method):
    answer = sample.send(method, '/v2/shares')
    assert refused(answer, codes=(405,))
    assert answer.headers['Allow'] == 'GET, HEAD, POST'


@differences.proves('unknown URLs')
@pytest.mark.parametrize(
    'path',
    [
        '/v2/moon',
        '/v2//shares',
        '/v2/shares/',
        '/v2/shares//metadata',
        '/v3',
        '/v2/shares/a/b/c/d/e',
        '/v2/shares.json.json',
        '/v2/%2fshares',
        '/v1/',
        '/v2/' + 'x/' * 5000,
        '/v2/shares%00',
        '/v2/%FF',
        '//',
        '/v2.json',
    ],
)
def test_path_that_no_route_has(sample, path):
    assert refused(sample.send('GET', path), codes=(404,))


def test_wrong_content_length(sample):
    for length in ('-1', 'x', '1e3', '99999999999999999999'):
        answer = sample.send(
            'POST',
            '/v2/shares',
            raw=b'{"share": {}}',
            headers={'Content-Length': length},
        )
        assert refused(answer, codes=(400, 413)), length
