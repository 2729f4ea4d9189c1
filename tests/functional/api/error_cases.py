"""How to provoke each published error code of the walked operations.

Most codes have one cause that every operation knows: a caller without a
role, an unknown id, a broken body. `SPECIAL` has those of single
operations.
"""

from collections.abc import Callable
import dataclasses
import typing

from manila_lite import conf
from manila_lite.api import versions
from manila_lite.api.auth import http_basic
from manila_lite.cmd import build
from tests.functional.api import published_api as published
from tests.functional.api.examples import example
from tests.functional.api.examples import latest
from tests.functional.api.sample_cloud import LARGEST_SHARE
from tests.functional.api.sample_cloud import SERVICE
from tests.functional.api.sample_cloud import SILENT_HOST
from tests.functional.api.sample_cloud import TENANT
from tests.functional.api.sample_cloud import Given
from tests.functional.api.sample_cloud import World
from tests.functional.api.sample_cloud import given
from tests.support.cloud import TYPE_ID

UNKNOWN = '00000000-0000-4000-8000-000000000000'
_ACTION = 'POST /v2/shares/{id}/action'


class Refused(typing.NamedTuple):
    """A request that is refused, and what of it is not the usual."""

    what: Given
    how: dict[str, typing.Any] = {}
    since: int = 0


Refusal = Callable[[World], Refused]
SPECIAL: dict[tuple[str, int], Refusal] = {}


def of(code: int, *keys: str) -> Callable[[Refusal], Refusal]:
    def keep(function: Refusal) -> Refusal:
        for key in keys:
            assert (key, code) not in SPECIAL, (key, code)
            SPECIAL[key, code] = function
        return function

    return keep


def refusal(
    world: World, operation: published.Operation, code: int
) -> Refused:
    """A request for the operation that is answered with this code."""
    special = SPECIAL.get((latest(operation.key), code))
    if special:
        return special(world)
    what = example(operation)(world)
    if code == 403:
        return Refused(what, {'by': 'guest'})
    if code == 404:
        first = next(iter(what.variables))
        return Refused(
            what._replace(variables=what.variables | {first: UNKNOWN})
        )
    if code == 400 and operation.method in ('POST', 'PUT'):
        return Refused(what, {'raw': b'{"broken": '})
    if code == 422:
        return Refused(what._replace(body={'other': {}}))
    raise LookupError((operation.key, code))


@of(406, 'GET /v2/')
def version_out_of_range(world):
    return Refused(given(), {'headers': {versions.HEADER: '2.100'}})


@of(401, 'GET /v2/')
def nobody(world):
    """With a sign-in by password that knows no user."""
    users = world.cloud.folder / 'no_users'
    users.touch(mode=0o600)

    def signed_in(app):
        return http_basic.HttpBasic(
            app,
            world.cloud.services.enforcer,
            http_basic.Passwords(str(users)),
        )

    app, _ = build.api(world.cloud.process, auth=signed_in)
    return Refused(given(), {'app': app})


@of(503, 'GET /healthcheck')
def ill(world):
    app, _ = build.api(
        world.cloud.process, checks={'back end': lambda: 'is on fire'}
    )
    return Refused(given(), {'app': app})


@of(400, 'GET /v2/shares', 'GET /v2/shares/detail')
def negative_limit(world):
    return Refused(given(query='?limit=-1'))


@of(404, 'POST /v2/shares')
def unknown_zone(world):
    return Refused(
        given(
            {
                'share': {
                    'share_proto': 'NFS',
                    'size': 1,
                    'availability_zone': 'moon',
                }
            }
        )
    )


@of(413, 'POST /v2/shares')
def share_above_its_limit(world):
    return Refused(
        given({'share': {'share_proto': 'NFS', 'size': LARGEST_SHARE + 1}})
    )


@of(413, f'{_ACTION} extend')
def extended_above_its_limit(world):
    return Refused(given({'new_size': LARGEST_SHARE + 1}, id=world.idle()))


@of(400, 'DELETE /v2/shares/{id}')
def member_of_group(world):
    return Refused(given(id=world.grouped))


@of(
    409,
    'DELETE /v2/shares/{id}',
    f'{_ACTION} force_delete',
    f'{_ACTION} soft_delete',
)
def share_with_replicas(world):
    return Refused(given(id=world.replicated))


@of(404, 'POST /v2/shares/manage')
def managed_on_unknown_host(world):
    body = world.manage_body()
    body['share']['service_host'] = 'node@moon#pool'
    return Refused(given(body))


@of(409, 'POST /v2/shares/manage')
def managed_already(world):
    body = world.manage_body()
    body['share']['service_host'] = world.admin.show(world.share)['host']
    body['share']['export_path'] = world.path_of(world.share)
    return Refused(given(body))


@of(409, f'{_ACTION} unmanage', 'POST /v2/share-unmanage/{id}/unmanage')
def unmanaged_with_replicas(world):
    return Refused(given(id=world.replicated))


@of(404, 'PUT /v2/services/enable', 'PUT /v2/services/disable')
def unknown_host(world):
    return Refused(given(SERVICE | {'host': 'moon'}))


@of(404, 'POST /v2/services/ensure-shares')
def ensured_on_unknown_host(world):
    return Refused(given({'ensure_shares': {'host': 'moon'}}))


@of(409, 'POST /v2/services/ensure-shares')
def ensured_by_a_silent_service(world):
    return Refused(given({'ensure_shares': {'host': SILENT_HOST}}))


@of(
    400,
    'GET /v2/scheduler-stats/pools',
    'GET /v2/scheduler-stats/pools/detail',
)
def broken_expression(world):
    return Refused(given(query='?host=('))


# Snapshots


@of(400, 'GET /v2/snapshots', 'GET /v2/snapshots/detail')
def snapshots_of_no_usage(world):
    return Refused(given(query='?usage=none'))


@of(404, 'POST /v2/snapshots')
def snapshot_of_unknown_share(world):
    return Refused(given({'snapshot': {'share_id': UNKNOWN}}))


@of(413, 'POST /v2/snapshots')
def snapshot_above_the_quota(world):
    return Refused(given({'snapshot': {'share_id': world.huge}}))


@of(400, 'DELETE /v2/snapshots/{id}')
def snapshot_being_deleted(world):
    return Refused(given(id=world.idle_snapshot('deleting')))


@of(409, f'{_ACTION} revert')
def reverted_to_an_older_snapshot(world):
    return Refused(given({'snapshot_id': world.snapshot}, id=world.still()))


@of(404, 'POST /v2/snapshots/manage')
def managed_of_unknown_share(world):
    body = world.manage_snapshot_body()
    body['snapshot']['share_id'] = UNKNOWN
    return Refused(given(body))


@of(409, 'POST /v2/snapshots/manage')
def managed_of_share_with_replicas(world):
    body = world.manage_snapshot_body()
    body['snapshot']['share_id'] = world.replicated
    return Refused(given(body))


@of(409, 'POST /v2/snapshots/{id}/action unmanage')
def unmanaged_snapshot_with_replicas(world):
    return Refused(given(id=world.replicated_snapshot))


@of(400, 'GET /v2/snapshots/{id}/access-list')
def rules_of_what_cannot_be_mounted(world):
    return Refused(given(id=world.new_unmountable()))


# Share types


@of(400, 'GET /v2/types')
def broken_extra_specs(world):
    return Refused(given(query='?extra_specs={'))


@of(404, 'GET /v2/types/default')
def no_default_type(world):
    file = world.cloud.folder / 'no_default.conf'
    file.write_text('[DEFAULT]\ndefault_share_type = nothing\n')
    process = dataclasses.replace(
        world.cloud.process, conf=conf.new(files=[str(file)])
    )
    app, _ = build.api(process, auth=world.cloud._sign_in)
    return Refused(given(), {'app': app})


@of(409, 'POST /v2/types')
def type_of_known_name(world):
    body = world.type_body()
    body['share_type']['name'] = 'default'
    return Refused(given(body))


@of(409, 'PUT /v2/types/{id}')
def renamed_to_known_name(world):
    return Refused(
        given({'share_type': {'name': 'default'}}, id=world.private_type)
    )


@of(400, 'DELETE /v2/types/{id}')
def type_in_use(world):
    return Refused(given(id=TYPE_ID))


@of(
    409,
    'POST /v2/types/{id}/action addProjectAccess',
    'POST /v2/types/{id}/action removeProjectAccess',
)
def access_to_public_type(world):
    return Refused(given({'project': TENANT}, id=TYPE_ID))


# Quotas and messages

_QUOTA = (
    'GET /v2/quota-sets/{project_id}',
    'GET /v2/quota-sets/{project_id}/detail',
    'DELETE /v2/quota-sets/{project_id}',
)


@of(400, *_QUOTA)
def user_and_type(world):
    return Refused(
        given(query='?user_id=u&share_type=default', project_id=TENANT)
    )


@of(404, *_QUOTA, 'PUT /v2/quota-sets/{project_id}')
def quota_of_unknown_type(world):
    return Refused(
        given(
            {'quota_set': {'shares': 7}},
            query='?share_type=moon',
            project_id=TENANT,
        ),
        since=39,
    )


@of(400, 'GET /v2/messages', 'GET /v2/resource-locks')
def wordy_limit(world):
    return Refused(given(query='?limit=all'))


# Resource locks


@of(409, 'POST /v2/resource-locks')
def lock_of_what_is_deleted(world):
    body = world.lock_body()
    body['resource_lock']['resource_id'] = id = world.idle()
    world.admin.act(id, 'reset_status', {'status': 'deleting'})
    return Refused(given(body))


# Access rules


@of(400, 'GET /v2/share-access-rules')
def rules_of_no_share(world):
    return Refused(given())
