"""Requests for access rules and resource locks."""

import typing

from tests.support.api_client import ApiClient

CLIENT = {'access_type': 'ip', 'access_to': '10.0.0.1'}


def allow_access(
    api: ApiClient,
    share_id: str,
    expect: int | None = 200,
    version: str | None = None,
    **body: object,
) -> typing.Any:
    """Request a rule; return the rule or the fault."""
    name = (
        'os-allow_access'
        if version and len(version) == 3 and (version < '2.7')
        else 'allow_access'
    )
    answer = api.act(share_id, name, CLIENT | body, expect=expect, version=version)
    return answer.json.get('access', answer.json)


def deny_access(
    api: ApiClient,
    share_id: str,
    access_id: str,
    expect: int = 202,
    version: str | None = None,
    **args: object,
) -> typing.Any:
    return api.act(
        share_id,
        'deny_access',
        {'access_id': access_id, **args},
        expect=expect,
        version=version,
    )


def list_rules(
    api: ApiClient,
    share_id: str,
    query: str = '',
    expect: int = 200,
    version: str | None = None,
) -> typing.Any:
    """Return the rules of a share, or the fault."""
    answer = api.get(
        f'/share-access-rules?share_id={share_id}{query}',
        expect=expect,
        version=version,
    )
    return answer.get('access_list', answer)


def show_rule(
    api: ApiClient, access_id: str, expect: int = 200, version: str | None = None
) -> typing.Any:
    answer = api.get(f'/share-access-rules/{access_id}', expect=expect, version=version)
    return answer.get('access', answer)


def create_lock(
    api: ApiClient,
    resource_id: str,
    kind: str = 'share',
    action: str = 'delete',
    expect: int = 200,
    version: str | None = None,
    **args: object,
) -> typing.Any:
    """Request a lock; return the lock or the fault."""
    answer = api.request(
        'POST',
        '/resource-locks',
        {
            'resource_lock': {
                'resource_id': resource_id,
                'resource_type': kind,
                'resource_action': action,
                **args,
            }
        },
        expect=expect,
        version=version,
    )
    return answer.json.get('resource_lock', answer.json)


def list_locks(api: ApiClient, query: str = '') -> list[dict]:
    return api.get(f'/resource-locks{query}')['resource_locks']


def delete_lock(api: ApiClient, lock_id: str, expect: int = 204) -> typing.Any:
    return api.request('DELETE', f'/resource-locks/{lock_id}', expect=expect)
