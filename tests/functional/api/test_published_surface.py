"""Every published operation answers in its versions, and in no others."""

import re

import pytest

from manila_lite.api import faults, routes, versions
from manila_lite.api.router import ACTION
from tests.functional.api import differences, published_api
from tests.functional.api.error_cases import refused_request
from tests.functional.api.examples.registry import example
from tests.functional.api.published_api import by_key
from tests.functional.api.samples.requests import request_args
from tests.support import reference, sampling

pytestmark = sampling.suite('the published surface', 100)


OPERATIONS = published_api.operations()
SERVED = [
    operation
    for operation in OPERATIONS
    if operation.key not in differences.UNSUPPORTED_OPERATIONS
]


@sampling.enumeration
@by_key(SERVED)
@pytest.mark.facts(
    'project_id_path',
    'bp-remove-project-id.1',
    'graduate-share-groups',
    'add_share_network_subnet_metadata',
)
def test_operation_answers_within_its_versions(sample, operation):
    """With and without a project id in the URL."""
    for minor in published_api.versions_to_try(operation.versions, operation.versions):
        answer = sample.send_request(
            operation,
            example(operation)(sample),
            minor=minor,
            project=minor % 2 == 1 and operation.accepts_project_id,
        )
        assert answer.status_int == operation.success_code, (minor, answer.text)
        if operation.is_versioned:
            assert answer.headers[versions.HEADER] == published_api.version_text(minor)
            assert answer.headers['Vary'] == versions.HEADER


@sampling.enumeration
@by_key(
    [
        operation
        for operation in SERVED
        if len(operation.versions) < len(published_api.VERSIONS)
    ]
)
@pytest.mark.facts('add-share-access-metadata.2', 'newton-migration.1')
def test_operation_is_unknown_outside_its_versions(sample, operation):
    args = example(operation)(sample)
    before = sample.all_rows()
    for minor in published_api.versions_to_try(
        set(published_api.VERSIONS) - set(operation.versions), operation.versions
    ):
        answer = sample.send_request(
            operation, args, minor=minor, project=minor % 2 == 1
        )
        assert answer.status_int == 404, (minor, answer.text)
        assert fault(answer)['code'] == 404
    assert sample.all_rows() == before


@by_key(
    [
        operation
        for operation in SERVED
        if operation.key in differences.HEADER_NOT_REQUIRED
    ]
)
def test_experiment_answers_without_its_header_where_listed(sample, operation):
    for minor in operation.versions[::10]:
        answer = sample.send_request(
            operation,
            example(operation)(sample),
            minor=minor,
            headers={versions.EXPERIMENTAL_HEADER: 'false'},
        )
        assert answer.status_int == operation.success_code, answer.text


@pytest.mark.facts('graduate-share-replication.2', 'graduate-share-migration.2')
@sampling.enumeration
@by_key(
    [
        operation
        for operation in SERVED
        if operation.experimental_versions
        and operation.key not in differences.HEADER_NOT_REQUIRED
    ]
)
def test_experiment_needs_its_header(sample, operation):
    """Without it the operation is unknown; with it the answer echoes it."""
    header = versions.EXPERIMENTAL_HEADER
    for minor in published_api.versions_to_try(
        operation.versions, operation.versions, operation.experimental_versions
    ):
        args = example(operation)(sample)
        answer = sample.send_request(operation, args, minor=minor)
        answered = header in answer.headers
        assert answered == (minor in operation.experimental_versions)
        args = example(operation)(sample)
        answer = sample.send_request(
            operation, args, minor=minor, headers={header: 'false'}
        )
        assert answer.status_int == (
            404 if minor in operation.experimental_versions else operation.success_code
        )


PROVOKED = [
    (operation, code)
    for operation in SERVED
    for code in operation.error_codes
    if (operation.key, code) not in differences.UNREACHABLE_CODES
]


@pytest.mark.parametrize(
    'operation, code',
    PROVOKED,
    ids=[f'{operation.key} {code}' for operation, code in PROVOKED],
)
def test_published_error_code_can_be_provoked(sample, operation, code):
    """In the first and the last version; nothing is changed."""
    for minor in (operation.versions[0], operation.versions[-1]):
        refused = refused_request(sample, operation, code)
        if minor < refused.since:
            continue
        before = sample.all_rows()
        answer = sample.send_request(
            operation, refused.args, minor=minor, **refused.options
        )
        assert answer.status_int == code, (minor, answer.text)
        if operation.is_versioned:
            assert fault(answer)
        assert sample.all_rows() == before


@pytest.mark.parametrize('key', differences.UNSUPPORTED_OPERATIONS)
def test_listed_difference_is_still_there(sample, key):
    (operation,) = (one for one in OPERATIONS if one.key == key)
    args = request_args({}, id=sample.share, alias='any')
    answer = sample.send_request(operation, args, minor=operation.versions[-1])
    if operation.action:
        assert 'no such action' in fault(answer)['message']
    else:
        assert answer.status_int == 404


def test_unreachable_codes_are_published():
    assert set(differences.UNREACHABLE_CODES) <= {
        (operation.key, code) for operation in SERVED for code in operation.error_codes
    }


def test_every_row_of_the_table_is_tested():
    resources = {row['resource'] for row in reference.table('api-surface.csv')}
    assert resources - set(published_api.RESOURCES) == {'removed'}


def test_every_operation_of_the_service_is_published():
    """An operation without a row would not be tested."""
    rows = reference.table('api-surface.csv')
    keys = {
        ' '.join((row['method'], row['path'], row['action'])).strip() for row in rows
    }
    assert [
        key
        for route in routes.ROUTES
        for key in _keys(route)
        if not any(map(_like(key), keys)) and not _is_extension(key)
    ] == []


def _is_extension(key):
    _, path = key.split()[:2]
    return path.startswith(tuple(differences.EXTENSION_PATHS))


def test_extension_paths_collide_with_no_published_path():
    published_paths = {row['path'] for row in reference.table('api-surface.csv')}
    for extension in differences.EXTENSION_PATHS:
        assert any(
            route.path.startswith(extension.removeprefix('/v2'))
            for route in routes.ROUTES
        )
        first = extension.split('/')[2]
        for path in published_paths:
            parts = path.split('/')[2:3]
            assert first not in parts, path
            # A path variable would match the segment of the extension.
            assert not (
                parts and parts[0].startswith('{') and 'project' not in parts[0]
            ), path


def _keys(route):
    """Return the keys of the operations of a route in the table."""
    key = f'{route.method} /v2{route.path}'
    if route.handler != ACTION:
        return [key]
    controller = route.controller
    members = [getattr(controller, name) for name in dir(controller)]
    return [
        f'{key} {action.name}'
        for member in members
        for action in getattr(member, 'actions', ())
    ]


def _like(key):
    """Return a matcher for keys that differ only in their variables."""
    return re.compile(re.sub(r'\{\w+\}', '[^/ ]+', key)).fullmatch


def fault(answer):
    """Return the content of a fault; check its published form."""
    ((key, value),) = answer.json.items()
    assert key == faults.FAULT_KEYS.get(answer.status_int, 'computeFault')
    assert value['code'] == answer.status_int
    assert set(value) == {'code', 'message'} | (
        {'retryAfter'} if answer.status_int == 413 else set()
    )
    return value
