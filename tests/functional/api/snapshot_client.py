"""Requests for snapshots."""

import typing

from tests.support.api_client import ApiClient
from tests.support.cloud import Cloud
from tests.support.cloud_images import prepared

UNKNOWN = '00000000-0000-4000-8000-000000000000'


def create_snapshot(
    api: ApiClient,
    share_id: str,
    expect: int | None = 202,
    version: str | None = None,
    **body: object,
) -> typing.Any:
    """Request a snapshot; return the snapshot or the fault."""
    answer = api.request(
        'POST',
        '/snapshots',
        {'snapshot': {'share_id': share_id, **body}},
        expect=expect,
        version=version,
    )
    return answer.json.get('snapshot', answer.json)


@prepared
def create_available_snapshot(
    cloud: Cloud, api: ApiClient, share_id: str, **body: object
) -> str:
    """Create a snapshot, wait until it is available and return its id."""
    snapshot_id = create_snapshot(api, share_id, **body)['id']
    cloud.settle()
    assert show_snapshot(api, snapshot_id)['status'] == 'available'
    return snapshot_id


def show_snapshot(api: ApiClient, snapshot_id: str, version: str | None = None) -> dict:
    return api.get(f'/snapshots/{snapshot_id}', version=version)['snapshot']


def act_on_snapshot(
    api: ApiClient,
    snapshot_id: str,
    action: str,
    args: object = None,
    expect: int = 202,
) -> typing.Any:
    return api.request(
        'POST', f'/snapshots/{snapshot_id}/action', {action: args}, expect=expect
    )


def delete_snapshot(api: ApiClient, snapshot_id: str, expect: int = 202) -> typing.Any:
    return api.request('DELETE', f'/snapshots/{snapshot_id}', expect=expect)


def list_snapshot_instances(api: ApiClient, snapshot_id: str) -> list[dict]:
    return api.get(f'/snapshot-instances/detail?snapshot_id={snapshot_id}')[
        'snapshot_instances'
    ]
