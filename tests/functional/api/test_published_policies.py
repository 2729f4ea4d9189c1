"""Every operation is allowed for its published default personas only."""

from collections.abc import Callable
import typing

import pytest

from manila_lite.policies.enforcer import Enforcer
from tests.functional.api import differences, published_api
from tests.functional.api.error_cases import UNKNOWN
from tests.functional.api.examples.registry import example
from tests.functional.api.published_api import by_key
from tests.functional.api.samples.requests import PERSONAS, TENANT
from tests.support import reference
from tests.support.api_client import ApiClient
from tests.support.share_backups import EXPERIMENTAL

OPERATIONS = [
    operation
    for operation in published_api.operations()
    if operation.policies and operation.key not in differences.UNSUPPORTED_OPERATIONS
]
_ALLOWED = {
    'admin': {'admin'},
    'admin or project member': {'admin', 'member'},
    'admin or project reader': {'admin', 'member', 'reader'},
    'admin/service or project member': {'admin', 'member'},
    'admin/service or project reader': {'admin', 'member', 'reader'},
    'owner user of the lock or admin/service': {'admin', 'member'},
}
"""Personas of the project, and admins, that the published text allows."""

OF_A_PROJECT = [
    operation
    for operation in OPERATIONS
    if operation.path.startswith(
        (
            '/v2/shares/{',
            '/v2/messages/{',
            '/v2/resource-locks/{',
            '/v2/share-access-rules/{',
            '/v2/snapshots/{',
            '/v2/share-networks/{',
            '/v2/security-services/{',
            '/v2/share-replicas/{',
            '/v2/share-transfers/{',
        )
    )
    # Other projects may accept a transfer.
    and not operation.path.endswith('/accept')
    or (operation.method, operation.path) == ('GET', '/v2/types/{id}')
]
"""Operations on resources that belong to a project."""


def allowed(operation):
    return _ALLOWED[operation.persona.partition(';')[0]]


@by_key(OPERATIONS)
@pytest.mark.facts(
    'share-backups.reset',
    'disable-share-groups-api',
    'share-group-snapshots',
    'add-share-server-migration.4',
    'share-actions.reset',
    'LP2006792',
    'enable-enforce-scope.2',
)
def test_operation_is_for_its_published_personas(sample, operation):
    minor = operation.versions[-1]
    for persona in set(PERSONAS) - {'foreign'}:
        args = example(operation)(sample)
        before = sample.all_rows()
        answer = sample.send_request(operation, args, persona=persona, minor=minor)
        if persona in allowed(operation):
            assert answer.status_int == operation.success_code, persona
        else:
            assert answer.status_int == refused_code(operation), persona
            assert sample.all_rows() == before


def refused_code(operation):
    """Return 403, or 404 if the operation hides the existence of resources."""
    return (
        403
        if (403 in operation.error_codes or operation.key in differences.ADDITIONAL_403)
        else 404
    )


@by_key(OF_A_PROJECT)
@pytest.mark.facts('LP1901210', 'LP1654598', 'LP2004230', 'LP1861485')
def test_foreign_resource_answers_like_an_unknown_one(sample, operation):
    minor = operation.versions[-1]
    args = example(operation)(sample)
    name, real = next(iter(args.variables.items()))
    before = sample.all_rows()
    expected = 404 if 'member' in allowed(operation) else 403
    answers = []
    for id in (real, UNKNOWN):
        args.variables[name] = id
        answer = sample.send_request(operation, args, persona='foreign', minor=minor)
        assert answer.status_int == expected
        answers.append(answer.text.replace(id, 'the id'))
    assert answers[0] == answers[1]
    assert sample.all_rows() == before


@by_key(
    [
        operation
        for operation in OF_A_PROJECT
        # Every role may change the locks that its user has created.
        if not operation.persona.startswith('owner user')
    ]
)
def test_role_without_the_operation_gets_the_same_for_every_id(sample, operation):
    minor = operation.versions[-1]
    args = example(operation)(sample)
    name, real = next(iter(args.variables.items()))
    before = sample.all_rows()
    for persona in {'member', 'reader', 'guest'} - allowed(operation):
        for id in (real, UNKNOWN):
            args.variables[name] = id
            answer = sample.send_request(operation, args, persona=persona, minor=minor)
            assert answer.status_int == refused_code(operation), persona
    assert sample.all_rows() == before


@by_key([operation for operation in OPERATIONS if 'instances/{' in operation.path])
def test_tenants_do_not_learn_about_instances(sample, operation):
    args = example(operation)(sample)
    answers = set()
    for id in (args.variables['id'], UNKNOWN):
        args.variables['id'] = id
        for persona in ('member', 'foreign'):
            answer = sample.send_request(
                operation, args, persona=persona, minor=operation.versions[-1]
            )
            assert answer.status_int == 403
            answers.add(answer.text)
    assert len(answers) == 1


@by_key(
    [
        operation
        for operation in OPERATIONS
        if '{project_id}' in operation.path
        # All projects have the same defaults, so they are no secret.
        and not operation.path.endswith('/defaults')
    ]
)
def test_quotas_of_another_project_are_forbidden(sample, operation):
    answer = sample.send_request(
        operation,
        example(operation)(sample),
        persona='foreign',
        minor=operation.versions[-1],
    )
    assert answer.status_int == 403


@pytest.mark.parametrize(
    'path, key',
    [
        ('/shares', 'shares'),
        ('/shares/detail', 'shares'),
        ('/shares?all_tenants=1', 'shares'),
        (f'/shares?all_tenants=1&project_id={TENANT}', 'shares'),
        ('/shares?is_public=true', 'shares'),
        ('/messages', 'messages'),
        ('/snapshots', 'snapshots'),
        ('/snapshots/detail', 'snapshots'),
        ('/snapshots?all_tenants=1', 'snapshots'),
        (f'/snapshots?all_tenants=1&project_id={TENANT}', 'snapshots'),
        ('/share-networks', 'share_networks'),
        ('/share-networks/detail?all_tenants=1', 'share_networks'),
        (f'/share-networks?all_tenants=1&project_id={TENANT}', 'share_networks'),
        ('/security-services', 'security_services'),
        ('/security-services/detail?all_tenants=1', 'security_services'),
        ('/share-replicas', 'share_replicas'),
        ('/share-replicas/detail', 'share_replicas'),
        ('/share-groups', 'share_groups'),
        ('/share-groups/detail?all_tenants=1', 'share_groups'),
        (f'/share-groups?all_tenants=1&project_id={TENANT}', 'share_groups'),
        ('/share-group-snapshots', 'share_group_snapshots'),
        ('/share-group-snapshots/detail?all_tenants=1', 'share_group_snapshots'),
        ('/share-transfers', 'transfers'),
        ('/share-transfers/detail?all_tenants=1', 'transfers'),
        (f'/share-transfers?all_tenants=1&source_project_id={TENANT}', 'transfers'),
        ('/resource-locks', 'resource_locks'),
        ('/resource-locks?all_projects=1', 'resource_locks'),
        (f'/resource-locks?all_projects=1&project_id={TENANT}', 'resource_locks'),
    ],
)
def test_lists_hold_nothing_of_another_project(sample, path, key):
    assert sample.member.get(path)[key]
    assert sample.apis['foreign'].get(path)[key] == []


# Rules that decide on a part of an operation

_SHARE_METADATA = {'metadata': {'__sealed': 'x'}}


def _get(path: str, **kwargs: typing.Any) -> Callable:
    return lambda sample, api: api.request('GET', path, **kwargs)


def _share_path(sample: typing.Any) -> str:
    return f'/shares/{sample.share}'


PARTS: dict[str, Callable] = {
    'share:create_public_share': lambda sample, api: api.create(
        is_public=True, expect=None
    ),
    'share:set_public_share': lambda sample, api: api.request(
        'PUT', _share_path(sample), {'share': {'is_public': True}}
    ),
    'share:list_all_projects': _get('/shares?all_tenants=1'),
    'share:list_by_host': _get('/shares?host=none'),
    'share:list_by_share_server_id': _get('/shares?share_server_id=none'),
    'share:list_shares_in_deferred_deletion_states': _get('/shares/detail'),
    'share:force_extend': lambda sample, api: api.act(
        sample.share, 'extend', {'new_size': 3, 'force': True}, expect=None
    ),
    'share:extend_beyond_max_share_size_spec': lambda sample, api: api.act(
        sample.share, 'extend', {'new_size': 3}, expect=None
    ),
    'share:update_admin_only_metadata': lambda sample, api: api.request(
        'POST', f'{_share_path(sample)}/metadata', _SHARE_METADATA
    ),
    'share_snapshot:list_snapshots_in_deferred_deletion_states': _get(
        '/snapshots/detail'
    ),
    'share_export_location:update_admin_only_metadata': lambda sample, api: api.request(
        'POST',
        f'{_share_path(sample)}/export_locations/'
        f'{sample.export_of(sample.share)}/metadata',
        {'metadata': {'preferred': 'True'}},
    ),
    'share_snapshot:list_all_projects': _get('/snapshots?all_tenants=1'),
    'security_service:get_all_security_services': _get(
        '/security-services?all_tenants=1'
    ),
    'resource_lock:get_all_projects': _get('/resource-locks?all_projects=1'),
    'resource_lock:bypass_locked_show_action': lambda sample, api: api.request(
        'GET', f'/share-access-rules?share_id={sample.share}'
    ),
    'share_network:get_all_share_networks': _get('/share-networks?all_tenants=1'),
    'share_network:show_network_details': _get('/share-networks/detail'),
    'share_transfer:get_all_tenant': _get('/share-transfers?all_tenants=1'),
    'share_backup:get_all_project': _get(
        '/share-backups?all_tenants=1', **EXPERIMENTAL
    ),
}
"""A request for each rule that no operation requires as a whole."""


def test_every_published_rule_is_required_by_an_operation_or_a_part():
    required = {rule for one in OPERATIONS for rule in one.policies}
    assert (
        set(PARTS)
        == {
            row['rule']
            for row in reference.table('policies.csv')
            if row['note'] != 'base rule'
        }
        - required
    )


@pytest.mark.parametrize('rule', PARTS)
def test_rule_of_a_part_is_asked_and_answered_by_role(sample, rule, monkeypatch):
    """Members of the project, who may send the request, are refused the part."""
    answers = set()
    allows = Enforcer.allows

    def note(enforcer, asked, target, creds):
        allowed = allows(enforcer, asked, target, creds)
        if asked == rule:
            answers.add(allowed)
        return allowed

    if rule == 'resource_lock:bypass_locked_show_action':
        other = ApiClient(sample.cloud, project=TENANT, user='other')
        hidden = {**sample.rule_body(), 'lock_visibility': True}
        other.act(sample.share, 'allow_access', hidden, expect=200)
    monkeypatch.setattr(Enforcer, 'allows', note)
    for api, expected in ((sample.member, {False}), (sample.admin, {True})):
        answers.clear()
        PARTS[rule](sample, api)
        assert answers == expected
