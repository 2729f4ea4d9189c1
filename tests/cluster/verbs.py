"""The requests of one client of a cluster."""

import random
import typing

from tests.cluster.lifecycle import LifecycleClient
from tests.support.load import TrackedResource
from tests.support.load import TrackedShare
from tests.support.rest_client import RestClient

if typing.TYPE_CHECKING:
    from tests.cluster.load import ClusterLoad

BY_DRIVER = {'backup_options': {'backup_type': 'vault'}}
KEPT_BY_DRIVER = {
    'writable': True,
    'nondisruptive': False,
    'preserve_metadata': True,
    'preserve_snapshots': True,
}
COPIED = {
    **dict.fromkeys(KEPT_BY_DRIVER, False),
    'force_host_assisted_migration': True,
}


class ClusterClient(LifecycleClient):
    """Each verb returns a status code, or None if it is not applicable."""

    load: 'ClusterLoad'

    def __init__(
        self, load: 'ClusterLoad', user: RestClient, rng: random.Random
    ):
        super().__init__(load, user, rng)
        self._projects = (user, load.receiver())
        self._pools: list[str] = []

    def _track(self, kind: str, wrapper: str, code: int) -> int:
        if code == 202:
            id = self._answer()[wrapper]['id']
            self.load.others[kind][id] = TrackedResource(id)
        return code

    def _delete_other(self, kind: str, path: str) -> int | None:
        resource = self._one_of(dict(self.load.others[kind]))
        if resource is None:
            return None
        resource.delete_requested = True
        code = self._send('DELETE', f'{path}/{resource.id}')
        resource.delete_accepted |= code == 202
        return code

    # Shares

    def list_shares(self, share: TrackedShare) -> int:
        return self._send('GET', '/shares/detail?limit=20')

    def rename(self, share: TrackedShare) -> int:
        name = f'share {self.rng.randrange(1000)}'
        return self._send(
            'PUT', f'/shares/{share.id}', {'share': {'display_name': name}}
        )

    def set_metadata(self, share: TrackedShare) -> int:
        return self._send(
            'POST',
            f'/shares/{share.id}/metadata',
            {'metadata': {'color': f'{self.rng.randrange(1000)}'}},
        )

    def lock(self, share: TrackedShare) -> int:
        return self._send(
            'POST',
            '/resource-locks',
            {
                'resource_lock': {
                    'resource_id': share.id,
                    'resource_type': 'share',
                    'resource_action': 'delete',
                }
            },
        )

    def unlock(self, share: TrackedShare) -> int | None:
        found = self._row(
            f'/resource-locks?resource_id={share.id}', 'resource_locks'
        )
        if not found:
            return None
        return self._send('DELETE', f'/resource-locks/{found[0]["id"]}')

    # Replicas

    def add_replica(self, share: TrackedShare) -> int:
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
        found = [
            row['id']
            for row in self._row(
                f'/share-replicas/detail?share_id={share.id}', 'share_replicas'
            )
            or ()
            if row['replica_state'] != 'active'
        ]
        return self.rng.choice(found) if found else None

    # Groups

    def create_group(self, share: TrackedShare) -> int:
        return self._track(
            'share group',
            'share_group',
            self._send('POST', '/share-groups', {'share_group': {}}),
        )

    def delete_group(self, share: TrackedShare) -> int | None:
        return self._delete_other('share group', '/share-groups')

    def create_member(self, share: TrackedShare) -> int | None:
        group = self._one_of(dict(self.load.others['share group']))
        if group is None:
            return None
        return self.create(share_group_id=group.id)

    def create(self, **more: str) -> int:
        size = self.rng.randint(1, 4)
        if not more:
            more = {'share_type': self.rng.choice(['default', 'sole'])}
        code = self._send(
            'POST',
            '/shares',
            {'share': {'share_proto': 'NFS', 'size': size} | more},
        )
        if code == 200:
            id = self._answer()['share']['id']
            if 'share_group_id' in more:
                self.load.groups_of_shares[id] = more['share_group_id']
            self.load.shares[id] = TrackedShare(id, size)
        return code

    def delete(self, share: TrackedShare) -> int | None:
        group = self.load.groups_of_shares.get(share.id)
        if group is None:
            return super().delete(share)
        if share.snapshots:
            return None
        share.delete_requested = True
        code = self._send(
            'DELETE', f'/shares/{share.id}?share_group_id={group}'
        )
        share.delete_accepted = code == 202
        return code

    def take_group_snapshot(self, share: TrackedShare) -> int | None:
        group = self._one_of(dict(self.load.others['share group']))
        if group is None:
            return None
        return self._track(
            'group snapshot',
            'share_group_snapshot',
            self._send(
                'POST',
                '/share-group-snapshots',
                {'share_group_snapshot': {'share_group_id': group.id}},
            ),
        )

    def delete_group_snapshot(self, share: TrackedShare) -> int | None:
        return self._delete_other('group snapshot', '/share-group-snapshots')

    # Migrations

    def migrate(self, share: TrackedShare) -> int | None:
        return self._migrate(share, KEPT_BY_DRIVER)

    def migrate_by_copy(self, share: TrackedShare) -> int | None:
        return self._migrate(share, COPIED)

    def _migrate(self, share: TrackedShare, options: dict) -> int | None:
        if not self._pools:
            self._pools = [
                pool['name']
                for pool in self._row('/scheduler-stats/pools', 'pools') or ()
            ]
            if not self._pools:
                return None
        return self._act(
            f'/shares/{share.id}',
            'migration_start',
            {'host': self.rng.choice(self._pools), **options},
        )

    def complete_migration(self, share: TrackedShare) -> int | None:
        return self._act_on_migration(share, 'migration_complete')

    def cancel_migration(self, share: TrackedShare) -> int | None:
        return self._act_on_migration(share, 'migration_cancel')

    def _act_on_migration(
        self, share: TrackedShare, action: str
    ) -> int | None:
        if not self._is_migrating(share):
            return None
        return self._act(f'/shares/{share.id}', action)

    def show_migration(self, share: TrackedShare) -> int | None:
        if not self._is_migrating(share):
            return None
        return self._send('GET', f'/shares/{share.id}/migration-progress')

    def _is_migrating(self, share: TrackedShare) -> bool:
        row = self._row(f'/shares/{share.id}', 'share')
        return row is not None and row['status'] == 'migrating'

    # Backups

    def back_up(self, share: TrackedShare) -> int:
        return self._back_up(share, BY_DRIVER)

    def back_up_by_copy(self, share: TrackedShare) -> int:
        return self._back_up(share, {})

    def _back_up(self, share: TrackedShare, options: dict) -> int:
        body = {'share_backup': {'share_id': share.id} | options}
        return self._track(
            'backup',
            'share_backup',
            self._send('POST', '/share-backups', body),
        )

    def restore_backup(self, share: TrackedShare) -> int | None:
        found = self._row(
            f'/share-backups/detail?share_id={share.id}', 'share_backups'
        )
        if not found:
            return None
        id = self.rng.choice(found)['id']
        return self._act(f'/share-backups/{id}', 'restore')

    def delete_backup(self, share: TrackedShare) -> int | None:
        return self._delete_other('backup', '/share-backups')

    # Transfers

    def offer(self, share: TrackedShare) -> int:
        code = self._send(
            'POST', '/share-transfers', {'transfer': {'share_id': share.id}}
        )
        if code == 202:
            transfer = self._answer()['transfer']
            self.load.keys[share.id] = transfer['id'], transfer['auth_key']
        return code

    def accept(self, share: TrackedShare) -> int | None:
        """Accept as one project or the other; the owner is refused."""
        id, key = self.load.keys.get(share.id, (None, None))
        if id is None:
            return None
        before, self.user = self.user, self.rng.choice(self._projects)
        try:
            return self._send(
                'POST',
                f'/share-transfers/{id}/accept',
                {'accept': {'auth_key': key}},
            )
        finally:
            before.last, self.user = self.user.last, before

    def withdraw(self, share: TrackedShare) -> int | None:
        """Withdraw an offer, also one whose key has been lost."""
        found = self._row(
            '/share-transfers/detail?all_tenants=1&resource_id=' + share.id,
            'transfers',
        )
        if not found:
            return None
        return self._send('DELETE', f'/share-transfers/{found[0]["id"]}')
