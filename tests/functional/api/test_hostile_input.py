"""Nothing that is sent is answered with 5xx, or changes what it may not."""

import json

import hypothesis
from hypothesis import strategies as st
import pytest

from manila_lite.api import versions
from tests.functional.api import differences
from tests.functional.api import hostile_input as hostile
from tests.functional.api import published_api as published
from tests.functional.api.examples import example
from tests.functional.api.test_published_surface import fault
from tests.support.seeds import seeds

OPERATIONS = [
    operation
    for operation in published.operations()
    if operation.key not in differences.SURFACE
    and operation.accepts_project_id
    and operation.versions[-1] == published.VERSIONS[-1]
]
WRITES = [
    operation
    for operation in OPERATIONS
    if operation.method in ('POST', 'PUT')
]
READS = [
    operation
    for operation in OPERATIONS
    if operation.method == 'GET' and not operation.path.endswith('}')
]
WITH_ID = [operation for operation in OPERATIONS if '{' in operation.path]

hypothesis.settings.register_profile(
    'hostile',
    max_examples=len(seeds(12)),
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=list(hypothesis.HealthCheck),
)


def by_key(operations):
    return pytest.mark.parametrize(
        'operation', operations, ids=lambda operation: operation.key
    )


def refused(answer, codes=range(400, 500)):
    """Whether a request was refused; an error has the published form."""
    assert answer.status_int < 500, answer.text
    if answer.status_int < 400:
        return False
    assert answer.status_int in codes, answer.text
    if answer.content_type == 'application/json':
        assert fault(answer)
    else:  # no route is so called
        assert answer.status_int == 404
    return True


def url(operation, what):
    return operation.path.format(**what.variables) + what.query


@by_key(WRITES)
def test_body_with_another_value(sample, operation):
    """In each place; nothing changes unless the request is accepted."""
    what = example(operation)(sample)
    valid = {operation.action: what.body} if operation.action else what.body
    before = sample.all_rows()
    for body in hostile.variations(valid):
        answer = sample.send(
            operation.method,
            url(operation, what),
            body,
            raw=json.dumps(body).encode(),
        )
        if not refused(answer):
            before = sample.all_rows()
        assert sample.all_rows() == before, body


@by_key(WRITES)
@hypothesis.settings(hypothesis.settings.get_profile('hostile'))
@hypothesis.given(data=st.data())
def test_body_that_is_spoilt(sample, operation, data):
    """Whatever it is made of, nothing changes unless it is accepted."""
    what = example(operation)(sample)
    valid = {operation.action: what.body} if operation.action else what.body
    body = data.draw(hostile.corrupted_body(valid))
    before = sample.all_rows()
    answer = sample.send(
        operation.method, url(operation, what), raw=json.dumps(body).encode()
    )
    if refused(answer):
        assert sample.all_rows() == before


@pytest.mark.parametrize('raw', hostile.RAW.values(), ids=hostile.RAW)
def test_body_that_is_no_json_object(sample, raw):
    whats = [(operation, example(operation)(sample)) for operation in WRITES]
    before = sample.all_rows()
    for operation, what in whats:
        answer = sample.send(operation.method, url(operation, what), raw=raw)
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
    whats = [(operation, example(operation)(sample)) for operation in WRITES]
    before = sample.all_rows()
    for operation, what in whats:
        body = {operation.action: what.body} if operation.action else what.body
        answer = sample.send(
            operation.method,
            url(operation, what),
            raw=json.dumps(body).encode(),
            headers={'Content-Type': kind},
        )
        assert refused(answer, codes=(400,)), operation.key
    assert sample.all_rows() == before


@by_key(WITH_ID)
def test_id_that_nothing_has(sample, operation):
    """In every variable of the path, whoever asks."""
    what = example(operation)(sample)
    before = sample.all_rows()
    for name in what.variables:
        if name in ('project_id', 'class'):
            continue  # nobody knows which projects and classes there are
        for id in hostile.IDS:
            spoilt = what._replace(variables=what.variables | {name: id})
            for by in ('admin', 'member'):
                answer = sample.send_request(operation, spoilt, by=by)
                assert refused(answer, codes=(400, 403, 404)), (name, id)
    assert sample.all_rows() == before


@by_key(READS)
def test_query_that_makes_no_sense(sample, operation):
    what = example(operation)(sample)
    before = sample.all_rows()
    for query in hostile.QUERIES:
        for by in ('admin', 'member'):
            refused(
                sample.send_request(
                    operation, what._replace(query=f'?{query}'), by=by
                ),
                codes=(400, 403, 404),
            )
    assert sample.all_rows() == before


@pytest.mark.parametrize(
    'version', hostile.VERSIONS, ids=lambda version: version[:10]
)
def test_version_that_is_none(sample, version):
    for path in ('/v2/shares', f'/v2/shares/{sample.share}', '/v2/'):
        answer = sample.send('GET', path, headers={versions.HEADER: version})
        assert refused(answer, codes=(400, 406))


@by_key(OPERATIONS)
def test_project_in_the_url_is_the_callers(sample, operation):
    what = example(operation)(sample)
    before = sample.all_rows()
    path = url(operation, what).replace('/v2', '/v2/' + '0' * 32, 1)
    answer = sample.send(operation.method, path, what.body)
    assert refused(answer, codes=(400,))
    assert fault(answer)['message'] == 'Malformed request url'
    assert sample.all_rows() == before


@pytest.mark.parametrize(
    'method',
    ['PATCH', 'TRACE', 'CONNECT', 'BREW', 'get', 'PROPFIND', 'DELETE'],
)
def test_method_that_no_route_has(sample, method):
    assert refused(sample.send(method, '/v2/shares'), codes=(404, 405))


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


def test_length_that_lies(sample):
    for length in ('-1', 'x', '1e3', '99999999999999999999'):
        answer = sample.send(
            'POST',
            '/v2/shares',
            raw=b'{"share": {}}',
            headers={'Content-Length': length},
        )
        assert refused(answer, codes=(400, 413)), length
