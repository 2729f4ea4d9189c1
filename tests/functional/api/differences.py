"""Every difference from the published API, and its reason.

A test fails for a difference that is not listed here, and for one that is
listed and no longer there. The keys of operations are method, path and
action as the table of the API surface has them.
"""

from collections.abc import Callable
from typing import TypeVar

T = TypeVar('T')

LATER = {
    'migration': (
        'POST /v2/shares/{id}/action migration_start',
        'POST /v2/shares/{id}/action migration_complete',
        'POST /v2/shares/{id}/action migration_cancel',
        'POST /v2/shares/{id}/action migration_get_progress',
        'GET /v2/shares/{id}/migration-progress',
    )
}
"""Operations of capabilities that are still to come."""

SURFACE = {
    operation: f'comes with {capability}'
    for capability, operations in LATER.items()
    for operation in operations
} | {
    'GET /v2/extensions/{alias}': (
        'there are no extensions, so every alias is unknown'
    )
}
"""Operations that do not answer as published."""

CODES = {
    (
        f'{method} /v2/os-quota-sets/{{project_id}}',
        404,
    ): 'projects and users are not known here, so none is unknown; share '
    'types, which may be, have quotas from 2.39 on'
    for method in ('GET', 'PUT', 'DELETE')
} | {
    (
        operation,
        500,
    ): 'a service that is down is a conflict there as elsewhere, 409'
    for operation in (
        'POST /v2/share-networks/{id}/subnets',
        'POST /v2/share-networks/{id}/action '
        'share_network_subnet_create_check',
    )
}
"""Error codes that nothing leads to."""

CODES['POST /v2/share-servers/{id}/action migration_get_progress', 409] = (
    'where the service is down, what was heard last is told, and when'
)

WITHOUT_HEADER = {
    f'POST /v2/share-servers/{{id}}/action {action}': (
        'the design asks for no header; clients that send it are served'
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
"""Experiments that answer without the header, too."""

FIELDS = {
    (
        'share instance',
        'share_instances_links',
    ): 'the list of share instances is never cut, so no page follows'
}
"""Published fields that are never there, by resource and name."""

VIEWS = {
    ('extension', 'item'): 'there are no extensions',
    ('limits', 'rate[]'): 'no rate is limited, and the list is empty',
    (
        'quota set',
        'detail',
    ): 'one row for every quota key, walked as the fields of `show`',
}
"""Published views that are not seen, by resource and name."""

RULES = {
    'name~ and description~': (
        'a literal part of the text, not a regular expression: one of a '
        'tenant could stop the database'
    ),
    'required fields': (
        'a body without one answers 400, where the published 500 helps nobody'
    ),
    'metadata filter of shares': (
        'what is no object answers 400 as in other lists, not 500'
    ),
    'POST metadata/{key} of shares': (
        'the body has metadata with that key; that there must be an object '
        'meta besides is no rule that clients could know'
    ),
    'quota keys of later versions': (
        'every version refuses all keys that it does not know, not only '
        'those of the version after it'
    ),
    'access rules being updated': (
        'shown as being applied before 2.88, whose clients know no other word'
    ),
    'resource locks changed to show': (
        'answer 400, where the published 500 helps nobody'
    ),
    'lock of a share for a rule': (
        'goes with the lock of the rule, which it would outlive otherwise'
    ),
    'filters of hidden rules': (
        'do not find by target or key what is hidden: that would tell it'
    ),
    'next links': (
        'carry the offset besides the marker, since markers are ignored'
    ),
    'marker of replicas': (
        'is honoured without an offset: clients that do not know the name '
        'of the link to the next page would get the first one again'
    ),
    'reset_task_state': 'takes null only, until shares can migrate',
}
"""Rules of behaviour that are not those of the published notes."""


def proves(rule: str) -> Callable[[T], T]:
    """Mark the test that fails when the rule is no longer broken."""
    if rule not in RULES:
        raise LookupError(f'{rule} is not listed as a difference')
    return lambda test: test


FORBIDDEN = {
    'POST /v2/share-networks/{id}/action share_network_subnet_create_check': (
        'its policy is enforced, as those of all other operations'
    )
}
"""Operations that answer 403 where the table has no such code."""

OWN = {
    '/v2/recovery/': 'what is in flight, who has it and what is done about '
    'it has no place in the published API'
}
"""Paths that the published API does not have; no published one begins so."""
