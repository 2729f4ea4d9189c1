"""Requests about replicas and share groups, beside those about shares."""

import random

from tests.support import load
from tests.support.load import LoadClient
from tests.support.load import TrackedResource
from tests.support.load import TrackedShare
from tests.support.rest_client import RestClient

WEIGHTS = {
    **load.WEIGHTS,
    'add_replica': 3,
    'promote_replica': 2,
    'delete_replica': 2,
    'create_group': 1,
    'delete_group': 1,
}
_AT_REST = ('available', 'error', 'error_deleting')


class ClusterLoad(load.Load):
    """The same with other clients; knows the groups and replicas as well."""

    def __init__(self, *args: object, **facts: object):
        super().__init__(*args, weights=WEIGHTS, **facts)
        self.groups: dict[str, TrackedResource] = {}

    def new_client(self, user: RestClient, rng: random.Random) -> LoadClient:
        return ClusterClient(self, user, rng)

    def check(self, user: RestClient) -> list[str]:
        return [*super().check(user), *self._groups(user)]

    def _groups(self, user: RestClient) -> list[str]:
        rows = {
            row['id']: row
            for row in user.get('/share-groups/detail')['share_groups']
        }
        problems = [
            f'share group {id} is {row["status"]}'
            for id, row in rows.items()
            if row['status'] not in _AT_REST
        ]
        for id, group in self.groups.items():
            if id not in rows and not group.delete_requested:
                problems.append(f'share group {id} is lost')
            if (
                group.delete_accepted
                and rows.get(id, {}).get('status') == 'available'
            ):
                problems.append(f'share group {id} was to be deleted')
        self.groups = {id: TrackedResource(id) for id in rows}
        return problems


class ClusterClient(LoadClient):
    load: ClusterLoad

    def add_replica(self, share: TrackedShare) -> int | None:
        return self._send(
            'POST',
            '/share-replicas',
            {'share_replica': {'share_id': share.id}},
        )

    def promote_replica(self, share: TrackedShare) -> int | None:
        replica = self._passive_replica(share)
        if replica is None:
            return None
        return self._act(f'/share-replicas/{replica}', 'promote')

    def delete_replica(self, share: TrackedShare) -> int | None:
        replica = self._passive_replica(share)
        if replica is None:
            return None
        return self._send('DELETE', f'/share-replicas/{replica}')

    def _passive_replica(self, share: TrackedShare) -> str | None:
        if self._send(
            'GET', f'/share-replicas/detail?share_id={share.id}'
        ) != (200):
            return None
        found = [
            row['id']
            for row in self._answer()['share_replicas']
            if row['replica_state'] != 'active'
        ]
        return self.rng.choice(found) if found else None

    def create_group(self, share: TrackedShare) -> int | None:
        code = self._send('POST', '/share-groups', {'share_group': {}})
        if code == 202:
            id = self._answer()['share_group']['id']
            self.load.groups[id] = TrackedResource(id)
        return code

    def delete_group(self, share: TrackedShare) -> int | None:
        group = self._one_of(dict(self.load.groups))
        if group is None:
            return None
        group.delete_requested = True
        code = self._send('DELETE', f'/share-groups/{group.id}')
        group.delete_accepted = group.delete_accepted or code == 202
        return code
