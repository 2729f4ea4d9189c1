"""Every difference from the published API, with its reason.

A test fails for a difference that is not listed here, and for a listed one
that no longer exists. The key of an operation is its method, path and action
as in the table of the API surface.
"""

from collections.abc import Callable
from typing import TypeVar

T = TypeVar('T')

PLANNED = {
    'share migration': (
        'POST /v2/shares/{id}/action migration_start',
        'POST /v2/shares/{id}/action migration_complete',
        'POST /v2/shares/{id}/action migration_cancel',
        'POST /v2/shares/{id}/action migration_get_progress',
        'GET /v2/shares/{id}/migration-progress',
    )
}
"""Operations of capabilities that are planned."""

UNSUPPORTED_OPERATIONS = {
    operation: f'planned with {capability}'
    for capability, operations in PLANNED.items()
    for operation in operations
} | {
    'GET /v2/extensions/{alias}': (
        'there are no extensions, so every alias is unknown'
    )
}
"""Operations that are not supported."""

UNREACHABLE_CODES = {
    (
        f'{method} /v2/os-quota-sets/{{project_id}}',
        404,
    ): 'any project or user id is accepted, so none is unknown; share '
    'types can be unknown and have quotas from 2.39'
    for method in ('GET', 'PUT', 'DELETE')
} | {
    (operation, 500): 'answers 409 if a service is down, like other operations'
    for operation in (
        'POST /v2/share-networks/{id}/subnets',
        'POST /v2/share-networks/{id}/action '
        'share_network_subnet_create_check',
    )
}
"""Published error codes that never occur."""

UNREACHABLE_CODES[
    'POST /v2/share-servers/{id}/action migration_get_progress', 409
] = (
    'if the service is down, the answer is the last known progress with '
    'its time'
)

HEADER_NOT_REQUIRED = {
    f'POST /v2/share-servers/{{id}}/action {action}': (
        'the header is not required; requests that send it work as well'
    )
    for action in (
        'migration_check',
        'migration_start',
        'migration_complete',
        'migration_cancel',
        'migration_get_progress',
        'reset_task_state',
    )
}
"""Experimental operations that also answer without the header."""

MISSING_FIELDS = {
    (
        'share instance',
        'share_instances_links',
    ): 'the list of share instances is not paged, so there is no next page'
}
"""Published fields that never appear, by resource and name."""

MISSING_VIEWS = {
    ('extension', 'item'): 'there are no extensions',
    ('limits', 'rate[]'): 'there are no rate limits, so the list is empty',
    (
        'quota set',
        'detail',
    ): 'one row for every quota key, tested as the fields of `show`',
}
"""Published views that never appear, by resource and name."""

RULES = {
    'name~ and description~': (
        'match a literal part of the text, not a regular expression: a '
        'regular expression of a tenant could overload the database'
    ),
    'required fields': (
        'a body without one answers 400; the published code is 500'
    ),
    'metadata filter of shares': (
        'a value that is no object answers 400 as in other lists, not 500'
    ),
    'POST metadata/{key} of shares': (
        'the body has metadata with that key; the undocumented additional '
        'object `meta` is not required'
    ),
    'quota keys of later versions': (
        'every version refuses all keys that it does not know, not only '
        'those of the next version'
    ),
    'access rules being updated': (
        'shown as being applied before 2.88, as older clients do not know the '
        'newer states'
    ),
    'resource locks changed to show': (
        'answer 400; the published code is 500'
    ),
    'lock of a share for a rule': (
        'is deleted with the lock of the rule instead of being left behind'
    ),
    'filters of hidden rules': (
        'do not match hidden targets and keys, which would reveal them'
    ),
    'next links': (
        'have an offset as well as a marker, since markers are ignored'
    ),
    'marker of replicas': (
        'is honoured if there is no offset: clients that do not know the '
        'name of the link to the next page would repeat the first page'
    ),
    'reset_task_state': 'accepts only null until shares can be migrated',
}
"""Behaviour that differs from the published notes."""


def proves(rule: str) -> Callable[[T], T]:
    """Mark the test that fails when the difference no longer exists."""
    if rule not in RULES:
        raise LookupError(f'{rule} is not listed as a difference')
    return lambda test: test


ADDITIONAL_403 = {
    'POST /v2/share-networks/{id}/action share_network_subnet_create_check': (
        'its policy is enforced like those of all other operations'
    )
}
"""Operations that can answer 403 although the table has no such code."""

EXTENSION_PATHS = {
    '/v2/recovery/': 'resources in flight and their recovery are not part '
    'of the published API'
}
"""Paths that are not in the published API and do not collide with it."""
