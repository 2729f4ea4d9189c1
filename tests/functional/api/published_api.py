"""The tables of the published API as operations and views."""

from collections.abc import Iterable
import re
import typing

import pytest

from tests.support import reference, sampling

VERSIONS = range(100)
"""All minor versions N of 2.N."""

RESOURCES = (
    'versions',
    'extensions',
    'availability zone',
    'service',
    'quota set',
    'quota class set',
    'limits',
    'share',
    'share action',
    'share manage',
    'share metadata',
    'share instance',
    'share instance action',
    'share instance export location',
    'share export location',
    'share export location metadata',
    'share type',
    'share type access',
    'share type action',
    'share type extra specs',
    'share group',
    'share group action',
    'share group snapshot',
    'share group snapshot action',
    'share group type',
    'share group type action',
    'share group type specs',
    'qos type',
    'qos type specs',
    'scheduler stats',
    'message',
    'resource lock',
    'share access rule',
    'share access rule metadata',
    'snapshot',
    'snapshot action',
    'snapshot metadata',
    'snapshot instance',
    'snapshot instance action',
    'snapshot export location',
    'snapshot instance export location',
    'share network',
    'share network action',
    'share network subnet',
    'share network subnet metadata',
    'security service',
    'share server',
    'share server action',
    'share replica',
    'share replica action',
    'share replica metadata',
    'share replica export location',
    'share transfer',
    'share backup',
    'share backup action',
)
"""The resources of api-surface.csv that are tested."""


class Operation(typing.NamedTuple):
    """One row of api-surface.csv; other tables refer to it by `key`."""

    resource: str
    method: str
    path: str
    action: str
    versions: range
    experimental_versions: range
    policies: tuple[str, ...]
    persona: str
    success_code: int
    error_codes: tuple[int, ...]

    @property
    def key(self) -> str:
        return ' '.join(filter(None, (self.method, self.path, self.action)))

    @property
    def is_versioned(self) -> bool:
        """Tell whether the path is below /v2."""
        return self.path.startswith('/v2')

    @property
    def accepts_project_id(self) -> bool:
        """Tell whether the URL may contain the project id."""
        return self.is_versioned and self.path != '/v2/'


def operations() -> list[Operation]:
    """Return the rows of all tested resources."""
    return [
        _operation(row)
        for row in reference.table('api-surface.csv')
        if row['resource'] in RESOURCES
    ]


def _operation(row: dict[str, str]) -> Operation:
    return Operation(
        row['resource'],
        row['method'],
        row['path'],
        row['action'],
        version_range(row['min_version'], row['max_version']),
        _experimental(row['experimental_range']),
        tuple(re.findall(r'\w+:[\w:]+', row['policy'])),
        row['default_role'],
        int(row['success_code']),
        tuple(int(code) for code in row['error_codes'].split(';') if code),
    )


def version_range(since: str, until: str) -> range:
    """Return the versions from one to another, both inclusive."""
    if since == 'unversioned':
        return VERSIONS
    return range(minor(since or '2.0'), minor(until or '2.99') + 1)


def _experimental(text: str) -> range:
    if not text:
        return range(0)
    since, _, until = text.partition('-')
    return version_range(since, until)


def minor(version: str) -> int:
    major, _, number = version.partition('.')
    assert major == '2', version
    return int(number)


def version_text(number: int) -> str:
    return f'2.{number}'


class PublishedField(typing.NamedTuple):
    """One row of response-fields.csv."""

    field: str
    type: str
    versions: range
    admin_only: bool


def view_fields(resource: str, *names: str) -> list[PublishedField]:
    """Return the fields of a view, which may be several views of the table.

    Rows that only describe the format of a value are left out.
    """
    rows = [
        row
        for row in reference.table('response-fields.csv')
        if row['resource'] == resource and row['view'] in names
    ]
    assert {row['view'] for row in rows} == set(names), (resource, names)
    return [
        PublishedField(
            row['field'],
            row['type'],
            version_range(row['since'], row['until']),
            bool(row['admin_only']),
        )
        for row in rows
        if row['field'].replace('-', '').replace(':', '').isidentifier()
    ]


def view_names(resources: typing.Container[str]) -> set[tuple[str, str]]:
    """Return the views of some resources, as pairs of resource and name."""
    return {
        (row['resource'], row['view'])
        for row in reference.table('response-fields.csv')
        if row['resource'] in resources
    }


def inferred_extra_specs() -> list[tuple[str, range]]:
    """Return the extra specs always shown to tenants, and their versions."""
    found = []
    for row in reference.table('response-fields.csv'):
        if (
            row['resource'] == 'share type'
            and row['field'].startswith('extra_specs')
            and row['type'] == 'boolean false'
        ):
            names = re.findall(r'\w+_support', row['field'] + ' ' + row['notes'])
            found += [
                (name, version_range(row['since'], row['until'])) for name in names
            ]
    return found


def visible_fields(
    shown: list[PublishedField], version: int, admin: bool
) -> dict[str, str]:
    """Return name and type of the fields one role sees in a version."""
    return {
        row.field: row.type
        for row in shown
        if version in row.versions and (admin or not row.admin_only)
    }


def versions_to_try(minors: Iterable[int], *ranges: range) -> list[int]:
    """Return the versions that this run tries, and always the ends.

    These are the first and the last version of each range and the ones
    beside them, as far as they are in `minors`.
    """
    minors = sorted(minors)
    ends = {
        minor
        for one in ranges
        if one
        for minor in (one[0] - 1, one[0], one[-1], one[-1] + 1)
    }
    return sorted({*sampling.sample(minors, 3), *ends.intersection(minors)})


def by_key(operations: Iterable[Operation]) -> pytest.MarkDecorator:
    """Run a test with each of the operations."""
    return pytest.mark.parametrize(
        'operation', operations, ids=lambda operation: operation.key
    )
