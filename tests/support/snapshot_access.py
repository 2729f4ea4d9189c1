"""A mountable snapshot and its access rules: requests, and their state."""

import typing

from manila_lite.share.drivers.dummy import driver as dummy
from tests.support.access import RulesOnBackend
from tests.support.api_client import ApiClient
from tests.support.cloud import TYPE_ID, Cloud


def enable_snapshot_mounts(cloud: Cloud) -> None:
    """Make the snapshots of new shares mountable."""
    cloud.api.request(
        'POST',
        f'/types/{TYPE_ID}/extra_specs',
        {
            'extra_specs': {
                'mount_snapshot_support': 'True',
                'revert_to_snapshot_support': 'True',
            }
        },
        expect=200,
    )


class SnapshotRules(RulesOnBackend):
    """The access rules of one snapshot, over the API as one user."""

    def __init__(self, cloud: Cloud, snapshot_id: str, api: ApiClient | None = None):
        self.cloud = self.process = cloud
        self.snapshot_id = snapshot_id
        self.path = f'/snapshots/{snapshot_id}'
        self.api = api or cloud.api

    # Requests

    def act(
        self,
        name: str,
        args: object,
        expect: int | None = 202,
        version: str | None = None,
    ) -> typing.Any:
        answer = self.api.request(
            'POST', f'{self.path}/action', {name: args}, expect=expect, version=version
        )
        return answer.json if answer.body else None

    def allow(
        self, to: str = '10.0.0.1', type: str = 'ip', **kwargs: typing.Any
    ) -> typing.Any:
        """Request a rule; return it, or the fault."""
        answer = self.act(
            'allow_access', {'access_type': type, 'access_to': to}, **kwargs
        )
        return answer.get('snapshot_access', answer)

    def deny(self, access_id: str, **kwargs: typing.Any) -> typing.Any:
        return self.act('deny_access', {'access_id': access_id}, **kwargs)

    # State

    @property
    def rules(self) -> list[dict]:
        return self.api.get(f'{self.path}/access-list')['snapshot_access_list']

    @property
    def states(self) -> dict[str, str]:
        """The states of the rules, by access_to."""
        return {rule['access_to']: rule['state'] for rule in self.rules}

    @property
    def instance_id(self) -> str:
        return self.cloud.api.get(
            f'/snapshot-instances?snapshot_id={self.snapshot_id}'
        )['snapshot_instances'][0]['id']

    @property
    def host(self) -> str:
        share_id = self.cloud.api.get(self.path)['snapshot']['share_id']
        return self.cloud.api.show(share_id)['host']

    @property
    def clients(self) -> set[str]:
        """The clients that the back end allows to mount it."""
        return {
            to
            for _, to, _ in dummy.snapshot_access_inventory(self.folder).get(
                self.instance_id, ()
            )
        }


def create_mountable_snapshot(
    cloud: Cloud, api: ApiClient | None = None, **share: object
) -> SnapshotRules:
    """Create a share and a snapshot of it; wait until it is available."""
    api = api or cloud.api
    share_id = api.create(**share)['id']
    cloud.settle()
    response = api.request(
        'POST', '/snapshots', {'snapshot': {'share_id': share_id}}, expect=202
    )
    cloud.settle()
    return SnapshotRules(cloud, response.json['snapshot']['id'], api)
