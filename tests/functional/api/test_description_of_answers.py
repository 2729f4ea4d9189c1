"""The API description says what the service accepts and answers.

All tests with the sample cloud compare every answer with it.
"""

import re

import pytest

from manila_lite.api import routes, wsgi
from manila_lite.api.description import parameters
from manila_lite.api.router import RouteIndex
from manila_lite.api.versions import EXPERIMENTAL_HEADER
from tests.functional.api import published_api
from tests.functional.api.described import description
from tests.functional.api.examples.registry import example
from tests.functional.api.published_api import by_key
from tests.functional.api.test_published_surface import PROVOKED, SERVED
from tests.functional.api.views.registry import VIEWS
from tests.support import sampling

pytestmark = sampling.suite('the description of answers', 75)


DESCRIBED = [operation for operation in SERVED if operation.is_versioned]


def described(operation, minor):
    """Return the description of a published operation, or None."""
    path = re.sub(r'\{\w+\}', 'any', operation.path)
    return description(minor).find(operation.method, path)


@by_key([operation for operation in DESCRIBED if operation.action])
def test_action_is_described_in_its_versions_only(operation):
    for minor in published_api.VERSIONS:
        found = described(operation, minor)
        actions = found.actions if found else {}
        assert (operation.action in actions) == (minor in operation.versions)


@pytest.mark.parametrize(
    'operation, code',
    PROVOKED,
    ids=[f'{operation.key} {code}' for operation, code in PROVOKED],
)
def test_published_error_is_described(operation, code):
    if operation.is_versioned:
        found = described(operation, operation.versions[-1])
        assert str(code) in found.content['responses']


@by_key([operation for operation in DESCRIBED if operation.method in ('POST', 'PUT')])
def test_accepted_body_is_as_described(sample, operation):
    body = example(operation)(sample).body
    if operation.action:
        body = {operation.action: body}
    for minor in (operation.versions[0], operation.versions[-1]):
        found = described(operation, minor)
        if 'requestBody' in found.content:
            assert description(minor).accepts(found, body)


@sampling.enumeration
@pytest.mark.parametrize(
    'view', VIEWS, ids=lambda view: ' '.join((view.title, *view.parts))
)
def test_rows_of_a_view_are_as_described(sample, view):
    """The requests of views have rows where those of examples have none."""
    served = published_api.VERSIONS[view.since :]
    for persona in view.personas:
        api = _Checked(sample.apis[persona])
        for minor in published_api.versions_to_try(served, served):
            assert view.fetch_items(sample, api, minor)


class _Checked:
    """A client that compares every answer with the description."""

    def __init__(self, api):
        self._api = api

    def __getattr__(self, name):
        return getattr(self._api, name)

    def get(self, path, **options):
        return self.request('GET', path, expect=200, **options).json

    def request(self, method, path, body=None, **options):
        answer = self._api.request(method, path, body, **options)
        minor = published_api.minor(options.get('version', '2.99'))
        found = description(minor).find(method, f'/v2{path.partition("?")[0]}')
        action = next(iter(body), None) if found.actions else None
        description(minor).check(found, answer.status_int, answer.body, action)
        return answer


class _Recording(dict):
    """A query that records which keys are looked up."""

    def __init__(self, *content):
        super().__init__(*content)
        self.read = set()

    def __contains__(self, key):
        self.read.add(key)
        return super().__contains__(key)

    def __getitem__(self, key):
        self.read.add(key)
        return super().__getitem__(key)

    def get(self, key, default=None):
        self.read.add(key)
        return super().get(key, default)


@by_key([operation for operation in DESCRIBED if operation.method != 'POST'])
def test_query_keys_are_those_that_the_handler_reads(sample, operation, monkeypatch):
    queries = []

    def query(req):
        if 'query' not in req.__dict__:
            req.__dict__['query'] = _Recording(original.func(req))
            queries.append(req.__dict__['query'])
        return req.__dict__['query']

    original = wsgi.Request.query
    monkeypatch.setattr(wsgi.Request, 'query', property(query))
    minor = operation.versions[-1]
    args = example(operation)(sample)
    queries.clear()
    answer = sample.send_request(
        operation, args, minor=minor, headers={EXPERIMENTAL_HEADER: 'true'}
    )
    assert answer.status_int == operation.success_code
    read = set().union(*(recorded.read for recorded in queries))
    assert read <= declared_keys(operation, args)


def declared_keys(operation, args):
    """Return the query keys of an operation, of all versions."""
    path = operation.path.removeprefix('/v2').format(**args.variables)
    found = RouteIndex(routes.ROUTES, '[0-9a-f]{32}').find(operation.method, path)
    return {
        row.key
        for route in found.routes
        for row in parameters.rows(
            wsgi.declaration(route.controller, route.handler).query
        )
    }
