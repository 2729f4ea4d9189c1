"""Requests for share replicas."""

import typing

from manila_lite.api import versions
from tests.support.api_client import ApiClient

UNKNOWN = '00000000-0000-4000-8000-000000000000'


def create_replica(
    api: ApiClient,
    share_id: str,
    expect: int = 202,
    version: str | None = None,
    **body: object,
) -> typing.Any:
    """Request a replica; return the replica or the fault."""
    answer = api.request(
        'POST',
        '/share-replicas',
        {'share_replica': {'share_id': share_id, **body}},
        expect=expect,
        version=version,
        **{versions.EXPERIMENTAL_HEADER: 'true'},
    )
    return answer.json.get('share_replica', answer.json)


def show_replica(api: ApiClient, replica_id: str, version: str | None = None) -> dict:
    return api.get(
        f'/share-replicas/{replica_id}',
        version=version,
        **{versions.EXPERIMENTAL_HEADER: 'true'},
    )['share_replica']


def list_replicas(
    api: ApiClient, query: str = '', path: str = '/share-replicas'
) -> list[dict]:
    return api.get(f'{path}?{query}')['share_replicas']


def list_replica_ids(
    api: ApiClient, query: str = '', path: str = '/share-replicas'
) -> list[str]:
    return [one['id'] for one in list_replicas(api, query, path)]


def act_on_replica(
    api: ApiClient,
    replica_id: str,
    action: str,
    args: object = None,
    expect: int = 202,
    version: str | None = None,
) -> typing.Any:
    return api.request(
        'POST',
        f'/share-replicas/{replica_id}/action',
        {action: args},
        expect=expect,
        version=version,
    )


def delete_replica(api: ApiClient, replica_id: str, expect: int = 202) -> typing.Any:
    return api.request('DELETE', f'/share-replicas/{replica_id}', expect=expect)
