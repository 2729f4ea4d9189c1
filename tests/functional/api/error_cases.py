"""Requests that provoke each published error code of the tested operations.

Most codes have a cause that is common to all operations: a caller without a
role, an unknown id, a malformed body. `ERROR_CASES` has those that are
specific to an operation.
"""

from collections.abc import Callable
import dataclasses
import typing

from manila_lite import conf
from manila_lite.api import versions
from manila_lite.api.auth import http_basic
from manila_lite.api.auth.passwords import PasswordVerifier
from manila_lite.api.auth.users import CurrentUsers
from manila_lite.cmd.build.api import build_api
from tests.functional.api import published_api
from tests.functional.api.examples.registry import example, latest_key
from tests.functional.api.samples.cloud import (
    DOWN_HOST,
    LARGEST_SHARE,
    SERVICE,
    SampleCloud,
)
from tests.functional.api.samples.groups import GROUP_TYPE
from tests.functional.api.samples.requests import (
    FOREIGN,
    TENANT,
    RequestArgs,
    request_args,
)
from tests.support import share_backups
from tests.support.cloud import TYPE_ID

UNKNOWN = '00000000-0000-4000-8000-000000000000'
_ACTION = 'POST /v2/shares/{id}/action'


class RefusedRequest(typing.NamedTuple):
    """A request that is refused, with the options that `send` needs for it.

    It is not sent in versions below `since`.
    """

    args: RequestArgs
    options: dict[str, typing.Any] = {}
    since: int = 0


ErrorCase = Callable[[SampleCloud], RefusedRequest]
ERROR_CASES: dict[tuple[str, int], ErrorCase] = {}


def register(code: int, *keys: str) -> Callable[[ErrorCase], ErrorCase]:
    def add(function: ErrorCase) -> ErrorCase:
        for key in keys:
            assert (key, code) not in ERROR_CASES, (key, code)
            ERROR_CASES[key, code] = function
        return function

    return add


def refused_request(
    sample: SampleCloud, operation: published_api.Operation, code: int
) -> RefusedRequest:
    """Return a request for the operation that is answered with this code."""
    case = ERROR_CASES.get((latest_key(operation.key), code))
    if case:
        return case(sample)
    args = example(operation)(sample)
    if code == 403:
        return RefusedRequest(args, {'persona': 'guest'})
    if code == 404:
        first = next(iter(args.variables))
        return RefusedRequest(
            args._replace(variables=args.variables | {first: UNKNOWN})
        )
    if code == 400 and operation.method in ('POST', 'PUT'):
        return RefusedRequest(args, {'raw': b'{"broken": '})
    if code == 422:
        return RefusedRequest(args._replace(body={'other': {}}))
    raise LookupError((operation.key, code))


@register(406, 'GET /v2/')
def version_out_of_range(sample):
    return RefusedRequest(request_args(), {'headers': {versions.HEADER: '2.100'}})


@register(401, 'GET /v2/')
def unknown_user(sample):
    """With password authentication and an empty file of users."""
    users = sample.cloud.folder / 'no_users'
    users.touch(mode=0o600)

    def authenticate(app):
        passwords = PasswordVerifier(CurrentUsers(str(users)))
        return http_basic.HttpBasicMiddleware(
            app, http_basic.SignIn(sample.cloud.services.enforcer, passwords)
        )

    app, _ = build_api(sample.cloud.process, auth=authenticate)
    return RefusedRequest(request_args(), {'app': app})


@register(503, 'GET /healthcheck')
def unhealthy(sample):
    app, _ = build_api(sample.cloud.process, checks={'back end': lambda: 'is on fire'})
    return RefusedRequest(request_args(), {'app': app})


@register(400, 'GET /v2/shares', 'GET /v2/shares/detail')
def negative_limit(sample):
    return RefusedRequest(request_args(query='?limit=-1'))


@register(404, 'POST /v2/shares')
def unknown_zone(sample):
    return RefusedRequest(
        request_args(
            {'share': {'share_proto': 'NFS', 'size': 1, 'availability_zone': 'moon'}}
        )
    )


@register(413, 'POST /v2/shares')
def share_above_its_limit(sample):
    return RefusedRequest(
        request_args({'share': {'share_proto': 'NFS', 'size': LARGEST_SHARE + 1}})
    )


@register(413, f'{_ACTION} extend')
def extended_above_its_limit(sample):
    return RefusedRequest(
        request_args({'new_size': LARGEST_SHARE + 1}, id=sample.idle_share())
    )


@register(400, 'DELETE /v2/shares/{id}')
def member_of_group(sample):
    return RefusedRequest(request_args(id=sample.grouped_share))


@register(
    409, 'DELETE /v2/shares/{id}', f'{_ACTION} force_delete', f'{_ACTION} soft_delete'
)
def share_with_replicas(sample):
    return RefusedRequest(request_args(id=sample.replicated_share))


@register(404, 'POST /v2/shares/manage')
def managed_on_unknown_host(sample):
    body = sample.manage_body()
    body['share']['service_host'] = 'node@moon#pool'
    return RefusedRequest(request_args(body))


@register(409, 'POST /v2/shares/manage')
def managed_already(sample):
    body = sample.manage_body()
    body['share']['service_host'] = sample.admin.show(sample.share)['host']
    body['share']['export_path'] = sample.path_of(sample.share)
    return RefusedRequest(request_args(body))


@register(409, f'{_ACTION} unmanage', 'POST /v2/share-unmanage/{id}/unmanage')
def unmanaged_with_replicas(sample):
    return RefusedRequest(request_args(id=sample.replicated_share))


@register(404, 'PUT /v2/services/enable', 'PUT /v2/services/disable')
def unknown_host(sample):
    return RefusedRequest(request_args(SERVICE | {'host': 'moon'}))


@register(404, 'POST /v2/services/ensure-shares')
def ensured_on_unknown_host(sample):
    return RefusedRequest(request_args({'ensure_shares': {'host': 'moon'}}))


@register(409, 'POST /v2/services/ensure-shares')
def ensured_by_a_service_that_is_down(sample):
    return RefusedRequest(request_args({'ensure_shares': {'host': DOWN_HOST}}))


@register(400, 'GET /v2/scheduler-stats/pools', 'GET /v2/scheduler-stats/pools/detail')
def broken_expression(sample):
    return RefusedRequest(request_args(query='?host=('))


# Snapshots


@register(400, 'GET /v2/snapshots', 'GET /v2/snapshots/detail')
def snapshots_with_unknown_usage(sample):
    return RefusedRequest(request_args(query='?usage=none'))


@register(404, 'POST /v2/snapshots')
def snapshot_of_unknown_share(sample):
    return RefusedRequest(request_args({'snapshot': {'share_id': UNKNOWN}}))


@register(413, 'POST /v2/snapshots')
def snapshot_above_the_quota(sample):
    return RefusedRequest(
        request_args({'snapshot': {'share_id': sample.oversized_snapshot_source}})
    )


@register(400, 'DELETE /v2/snapshots/{id}')
def snapshot_being_deleted(sample):
    return RefusedRequest(request_args(id=sample.idle_snapshot('deleting')))


@register(409, f'{_ACTION} revert')
def reverted_to_an_older_snapshot(sample):
    return RefusedRequest(
        request_args(
            {'snapshot_id': sample.snapshot}, id=sample.idle_snapshotted_share()
        )
    )


@register(404, 'POST /v2/snapshots/manage')
def managed_of_unknown_share(sample):
    body = sample.manage_snapshot_body()
    body['snapshot']['share_id'] = UNKNOWN
    return RefusedRequest(request_args(body))


@register(409, 'POST /v2/snapshots/manage')
def managed_of_share_with_replicas(sample):
    body = sample.manage_snapshot_body()
    body['snapshot']['share_id'] = sample.replicated_share
    return RefusedRequest(request_args(body))


@register(409, 'POST /v2/snapshots/{id}/action unmanage')
def unmanaged_snapshot_with_replicas(sample):
    return RefusedRequest(request_args(id=sample.replicated_snapshot))


@register(400, 'GET /v2/snapshots/{id}/access-list')
def rules_of_an_unmountable_snapshot(sample):
    return RefusedRequest(request_args(id=sample.new_unmountable_snapshot()))


# Share types


@register(400, 'GET /v2/types')
def broken_extra_specs(sample):
    return RefusedRequest(request_args(query='?extra_specs={'))


@register(404, 'GET /v2/types/default')
def no_default_type(sample):
    return RefusedRequest(
        request_args(), {'app': _app_with(sample, 'default_share_type = nothing')}
    )


def _app_with(sample, option):
    """Return the application with another value of an option."""
    file = sample.cloud.folder / 'other.conf'
    file.write_text(f'[DEFAULT]\n{option}\n')
    process = dataclasses.replace(
        sample.cloud.process, conf=conf.new(files=[str(file)])
    )
    app, _ = build_api(process, auth=sample.cloud._authenticate)
    return app


@register(409, 'POST /v2/types')
def type_with_existing_name(sample):
    body = sample.type_body()
    body['share_type']['name'] = 'default'
    return RefusedRequest(request_args(body))


@register(409, 'PUT /v2/types/{id}')
def renamed_to_existing_name(sample):
    return RefusedRequest(
        request_args({'share_type': {'name': 'default'}}, id=sample.private_type)
    )


@register(400, 'DELETE /v2/types/{id}')
def type_in_use(sample):
    return RefusedRequest(request_args(id=TYPE_ID))


@register(
    409,
    'POST /v2/types/{id}/action addProjectAccess',
    'POST /v2/types/{id}/action removeProjectAccess',
)
def access_to_public_type(sample):
    return RefusedRequest(request_args({'project': TENANT}, id=TYPE_ID))


# Share groups

_GROUPS = 'POST /v2/share-groups'


@register(400, 'GET /v2/share-groups', 'GET /v2/share-groups/detail')
def group_list_with_an_unknown_key(sample):
    return RefusedRequest(request_args(query='?colour=red'))


@register(400, _GROUPS)
def group_with_an_unknown_field(sample):
    body = sample.group_body()
    body['share_group']['colour'] = 'red'
    return RefusedRequest(request_args(body))


@register(404, _GROUPS)
def group_of_an_unknown_type(sample):
    body = sample.group_body()
    body['share_group']['share_group_type_id'] = UNKNOWN
    return RefusedRequest(request_args(body))


@register(413, _GROUPS)
def group_above_the_quota(sample):
    sample.admin.request(
        'PUT',
        f'/quota-sets/{TENANT}',
        {'quota_set': {'share_groups': 0, 'force': True}},
        expect=200,
    )
    return RefusedRequest(request_args(sample.group_body()), {'persona': 'member'})


@register(409, _GROUPS)
def group_from_a_snapshot_in_error(sample):
    id = sample.new_group_snapshot()
    sample.admin.request(
        'POST',
        f'/share-group-snapshots/{id}/action',
        {'reset_status': {'status': 'error'}},
        expect=202,
    )
    body = {'source_share_group_snapshot_id': id}
    return RefusedRequest(request_args({'share_group': body}))


@register(409, 'DELETE /v2/share-groups/{id}')
def group_that_is_being_created(sample):
    id = sample.new_group()
    sample.admin.request(
        'POST',
        f'/share-groups/{id}/action',
        {'reset_status': {'status': 'creating'}},
        expect=202,
    )
    return RefusedRequest(request_args(id=id))


_GROUP_SNAPSHOTS = 'POST /v2/share-group-snapshots'


@register(400, 'GET /v2/share-group-snapshots', 'GET /v2/share-group-snapshots/detail')
def group_snapshot_list_with_an_unknown_key(sample):
    return RefusedRequest(request_args(query='?colour=red'))


@register(400, _GROUP_SNAPSHOTS)
def snapshot_of_an_unknown_group(sample):
    return RefusedRequest(request_args(sample.group_snapshot_body(UNKNOWN)))


@register(409, _GROUP_SNAPSHOTS)
def snapshot_of_a_group_in_error(sample):
    id = sample.new_group()
    sample.admin.request(
        'POST',
        f'/share-groups/{id}/action',
        {'reset_status': {'status': 'error'}},
        expect=202,
    )
    return RefusedRequest(request_args(sample.group_snapshot_body(id)))


@register(413, _GROUP_SNAPSHOTS)
def group_snapshot_above_the_quota(sample):
    sample.admin.request(
        'PUT',
        f'/quota-sets/{TENANT}',
        {'quota_set': {'share_group_snapshots': 0, 'force': True}},
        expect=200,
    )
    return RefusedRequest(request_args(sample.group_snapshot_body()))


@register(409, 'DELETE /v2/share-group-snapshots/{id}')
def group_snapshot_that_is_being_deleted(sample):
    id = sample.new_group_snapshot()
    sample.admin.request(
        'POST',
        f'/share-group-snapshots/{id}/action',
        {'reset_status': {'status': 'deleting'}},
        expect=202,
    )
    return RefusedRequest(request_args(id=id))


# Share group types

_GROUP_TYPES = 'GET /v2/share-group-types'
_GROUP_TYPE_ACTION = 'POST /v2/share-group-types/{id}/action'


@register(400, _GROUP_TYPES)
def invalid_flag(sample):
    return RefusedRequest(request_args(query='?is_public=maybe'))


@register(400, 'DELETE /v2/share-group-types/{id}')
def group_type_of_a_group(sample):
    return RefusedRequest(request_args(id=sample.public_group_type))


@register(404, f'{_GROUP_TYPES}/default')
def no_default_group_type(sample):
    return RefusedRequest(
        request_args(), {'app': _app_with(sample, 'default_share_group_type = nothing')}
    )


@register(404, 'POST /v2/share-group-types')
def group_type_of_unknown_share_type(sample):
    body = sample.group_type_body()
    body['share_group_type']['share_types'] = [UNKNOWN]
    return RefusedRequest(request_args(body))


@register(409, 'POST /v2/share-group-types')
def group_type_with_existing_name(sample):
    body = sample.group_type_body()
    body['share_group_type']['name'] = GROUP_TYPE
    return RefusedRequest(request_args(body))


@register(
    409,
    f'{_GROUP_TYPE_ACTION} addProjectAccess',
    f'{_GROUP_TYPE_ACTION} removeProjectAccess',
)
def access_to_public_group_type(sample):
    return RefusedRequest(
        request_args({'project': TENANT}, id=sample.public_group_type)
    )


# QoS types


@register(409, 'POST /v2/qos-types')
def qos_type_with_existing_name(sample):
    name = sample.admin.get(f'/qos-types/{sample.qos_type}')['qos_type']['name']
    return RefusedRequest(request_args({'qos_type': {'name': name}}))


@register(400, 'DELETE /v2/qos-types/{id}')
def qos_type_of_a_share_type(sample):
    id = sample.new_qos_type()
    sample.admin.request(
        'POST',
        f'/types/{sample.private_type}/extra_specs',
        {'extra_specs': {'default_qos_type': id}},
        expect=200,
    )
    return RefusedRequest(request_args(id=id))


# Quotas and messages

_QUOTA = (
    'GET /v2/quota-sets/{project_id}',
    'GET /v2/quota-sets/{project_id}/detail',
    'DELETE /v2/quota-sets/{project_id}',
)


@register(400, *_QUOTA)
def user_and_type(sample):
    return RefusedRequest(
        request_args(query='?user_id=u&share_type=default', project_id=TENANT)
    )


@register(404, *_QUOTA, 'PUT /v2/quota-sets/{project_id}')
def quota_of_unknown_type(sample):
    return RefusedRequest(
        request_args(
            {'quota_set': {'shares': 7}}, query='?share_type=moon', project_id=TENANT
        ),
        since=39,
    )


@register(400, 'GET /v2/messages', 'GET /v2/resource-locks')
def limit_that_is_no_number(sample):
    return RefusedRequest(request_args(query='?limit=all'))


# Resource locks


@register(409, 'POST /v2/resource-locks')
def lock_of_a_deleted_share(sample):
    body = sample.lock_body()
    body['resource_lock']['resource_id'] = id = sample.idle_share()
    sample.admin.act(id, 'reset_status', {'status': 'deleting'})
    return RefusedRequest(request_args(body))


# Share transfers

_ACCEPT = 'POST /v2/share-transfers/{id}/accept'


@register(400, _ACCEPT)
def accepted_with_another_key(sample):
    return RefusedRequest(
        request_args(
            {'accept': {'auth_key': 'another'}}, id=sample.new_transfer()['id']
        )
    )


@register(413, _ACCEPT)
def accepted_above_the_quota(sample):
    offered = sample.new_transfer()
    sample.admin.request(
        'PUT', f'/quota-sets/{FOREIGN}', {'quota_set': {'gigabytes': 1}}, expect=200
    )
    return RefusedRequest(
        request_args({'accept': {'auth_key': offered['auth_key']}}, id=offered['id']),
        {'persona': 'foreign'},
    )


@register(400, 'DELETE /v2/share-transfers/{id}')
def transfer_of_a_share_that_was_reset(sample):
    id = sample.new_transfer()['id']
    sample.idle_share()
    return RefusedRequest(request_args(id=id))


# Access rules


@register(400, 'GET /v2/share-access-rules')
def rules_without_share(sample):
    return RefusedRequest(request_args())


_BACKUPS = 'POST /v2/share-backups'
_BACKUP = '/v2/share-backups/{id}'


@register(400, 'GET /v2/share-backups', 'GET /v2/share-backups/detail')
def backup_list_with_an_unknown_key(sample):
    return RefusedRequest(request_args(query='?colour=red'))


@register(400, _BACKUPS)
def backup_of_an_unknown_share(sample):
    return RefusedRequest(request_args(sample.backup_body(UNKNOWN)))


@register(413, _BACKUPS)
def backup_above_the_quota(sample):
    sample.admin.request(
        'PUT',
        f'/quota-sets/{TENANT}',
        {'quota_set': {'backups': 0, 'force': True}},
        expect=200,
    )
    return RefusedRequest(request_args(sample.backup_body()))


@register(400, f'DELETE {_BACKUP}', f'POST {_BACKUP}/action restore')
def backup_that_is_being_deleted(sample):
    id = sample.new_backup()
    share_backups.delete(sample.member, id)
    return RefusedRequest(request_args(id=id))
