"""Replicas of the tests about them, and requests about those."""

import typing

from manila_lite.api import versions
from tests.support.cloud import Api

UNKNOWN = '00000000-0000-4000-8000-000000000000'


def replicate(
    api: Api,
    share_id: str,
    expect: int = 202,
    version: str | None = None,
    **body: object,
) -> typing.Any:
    """Ask for a replica; what is answered of it, or the fault."""
    answer = api.request(
        'POST',
        '/share-replicas',
        {'share_replica': {'share_id': share_id, **body}},
        expect=expect,
        version=version,
        **{versions.EXPERIMENTAL_HEADER: 'true'},
    )
    return answer.json.get('share_replica', answer.json)


def show(api: Api, replica_id: str, version: str | None = None) -> dict:
    return api.get(
        f'/share-replicas/{replica_id}',
        version=version,
        **{versions.EXPERIMENTAL_HEADER: 'true'},
    )['share_replica']


def listed(
    api: Api, query: str = '', path: str = '/share-replicas'
) -> list[dict]:
    return api.get(f'{path}?{query}')['share_replicas']


def ids(api: Api, query: str = '', path: str = '/share-replicas') -> list[str]:
    return [one['id'] for one in listed(api, query, path)]


def act(
    api: Api,
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


def delete(api: Api, replica_id: str, expect: int = 202) -> typing.Any:
    return api.request(
        'DELETE', f'/share-replicas/{replica_id}', expect=expect
    )
