"""The requests of one client of a cluster."""

import random
import typing

from tests.cluster.acknowledged import is_done
from tests.cluster.lifecycle import LifecycleClient
from tests.support.load import TrackedResource, TrackedShare, TrackedSnapshot
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
COPIED = {**dict.fromkeys(KEPT_BY_DRIVER, False), 'force_host_assisted_migration': True}

SERVICES = (('scheduler2', 'manila-scheduler'), ('pair@alpha', 'manila-share'))
"""Services to disable; others do their work, or it waits."""

UNUSED = 'unused'
"""A project without any resources."""

PROJECTS = ('project', 'receiver')
"""That of the clients, and the other one of transfers."""


class ClusterClient(LifecycleClient):
    """Each verb returns a status code, or None if it is not applicable."""

    load: 'ClusterLoad'

    def __init__(self, load: 'ClusterLoad', user: RestClient, rng: random.Random):
        super().__init__(load, user, rng)
        self._projects = (user, load.receiver())
        self._pools: list[str] = []

    def _create_other(self, kind: str, path: str, wrapper: str, body: dict) -> int:
        code = self._create(path, wrapper, body)
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
        name = f'share {self.rng.randrange(10**6)}'
        return self._change(
            *(share.id, 'name', name, 'PUT', f'/shares/{share.id}'),
            {'share': {'display_name': name}},
        )

    def set_metadata(self, share: TrackedShare) -> int:
        color = f'{self.rng.randrange(10**6)}'
        return self._change(
            *(share.id, 'color', color),
            *('POST', f'/shares/{share.id}/metadata'),
            {'metadata': {'color': color}},
        )

    def unset_metadata(self, share: TrackedShare) -> int | None:
        if self.load.values.possible(share.id, 'color') <= {None}:
            return None
        return self._change(
            *(share.id, 'color', None),
            *('DELETE', f'/shares/{share.id}/metadata/color'),
        )

    def lock(self, share: TrackedShare) -> int:
        code = self._create(
            '/resource-locks',
            'resource_lock',
            {
                'resource_id': share.id,
                'resource_type': 'share',
                'resource_action': 'delete',
            },
            'lock_reason',
        )
        if code == 200:
            id = self._answer()['resource_lock']['id']
            self.load.shares_of[id] = share.id
            self.load.values.note(id, 'lock', True)
        return code

    def unlock(self, share: TrackedShare) -> int | None:
        found = self._row(f'/resource-locks?resource_id={share.id}', 'resource_locks')
        if not found:
            return None
        id = found[0]['id']
        self.load.shares_of[id] = share.id  # its POST may have no answer
        return self._change(*(id, 'lock', False, 'DELETE', f'/resource-locks/{id}'))

    # Snapshots and rules

    def take_snapshot(self, share: TrackedShare) -> int:
        code = self._create('/snapshots', 'snapshot', {'share_id': share.id})
        if code == 202:
            shown = self._answer()['snapshot']
            id = shown['id']
            self.load.values.note(id, 'name of snapshot', shown['name'])
            share.snapshots[id] = TrackedSnapshot(id)
        return code

    def rename_snapshot(self, share: TrackedShare) -> int | None:
        snapshot = self._one_of(share.snapshots)
        if snapshot is None:
            return None
        name = f'snapshot {self.rng.randrange(10**6)}'
        return self._change(
            *(snapshot.id, 'name of snapshot', name),
            *('PUT', f'/snapshots/{snapshot.id}'),
            {'snapshot': {'display_name': name}},
        )

    def change_level(self, share: TrackedShare) -> int | None:
        rule = self._one_of(share.rules)
        if rule is None:
            return None
        level = self.rng.choice(['rw', 'ro'])
        self.load.shares_of[rule.id] = share.id
        return self._change(
            *(rule.id, 'level', level),
            *('PUT', f'/share-access-rules/{rule.id}'),
            {'update_access': {'access_level': level}},
        )

    def set_rule_metadata(self, share: TrackedShare) -> int | None:
        rule = self._one_of(share.rules)
        if rule is None:
            return None
        color = f'{self.rng.randrange(10**6)}'
        self.load.shares_of[rule.id] = share.id
        return self._change(
            *(rule.id, 'color of rule', color),
            *('PUT', f'/share-access-rules/{rule.id}/metadata'),
            {'metadata': {'color': color}},
        )

    # Services and quotas

    def disable_service(self, share: TrackedShare) -> int | None:
        return self._set_service('disable', True)

    def enable_service(self, share: TrackedShare) -> int | None:
        return self._set_service('enable', False)

    def _set_service(self, verb: str, disabled: bool) -> int | None:
        host, binary = self.rng.choice(SERVICES)
        return self._administer(
            *(host, 'disabled', disabled, 'PUT', f'/services/{verb}'),
            {'host': host, 'binary': binary},
        )

    def set_quota(self, share: TrackedShare) -> int | None:
        limit = self.rng.randrange(10**6)
        return self._administer(
            *(UNUSED, 'quota', limit, 'PUT', f'/quota-sets/{UNUSED}'),
            {'quota_set': {'shares': limit}},
        )

    def _administer(self, *change: typing.Any) -> int | None:
        """Change what belongs to no share, one client after another."""
        if not self.load.administering.acquire(blocking=False):
            return None
        try:
            return self._change(*change)
        finally:
            self.load.administering.release()

    # Replicas

    def add_replica(self, share: TrackedShare) -> int:
        counted = self.load.counted_replicas
        counted.may_create(share.id)
        code = self._send(
            'POST', '/share-replicas', {'share_replica': {'share_id': share.id}}
        )
        if self._has_created_nothing(code):
            counted.refused(share.id)
        if is_done(code):
            id = self._answer()['share_replica']['id']
            counted.created(share.id, id)
            self.load.replicas[id] = TrackedResource(id)
            self.load.shares_of[id] = share.id
        return code

    def promote_replica(self, share: TrackedShare) -> int | None:
        replica = self._passive_replica(share)
        if replica is None:
            return None
        return self._change(
            *(share.id, 'active replica', replica),
            *('POST', f'/share-replicas/{replica}/action'),
            {'promote': None},
        )

    def delete_replica(self, share: TrackedShare) -> int | None:
        replica = self._passive_replica(share)
        if replica is None:
            return None
        tracked = self.load.replicas.setdefault(replica, TrackedResource(replica))
        self.load.shares_of[replica] = share.id
        tracked.delete_requested = True
        code = self._send('DELETE', f'/share-replicas/{replica}')
        tracked.delete_accepted |= code == 202
        return code

    def resync_replica(self, share: TrackedShare) -> int | None:
        replica = self._passive_replica(share)
        if replica is None:
            return None
        return self._act(f'/share-replicas/{replica}', 'resync')

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
        return self._create_other('share group', '/share-groups', 'share_group', {})

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
        code = self._create(
            '/shares', 'share', {'share_proto': 'NFS', 'size': size} | more
        )
        if code == 200:
            shown = self._answer()['share']
            id = shown['id']
            self.load.values.note(id, 'name', shown['name'])
            self.load.values.note(id, 'project', shown['project_id'])
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
        code = self._send('DELETE', f'/shares/{share.id}?share_group_id={group}')
        share.delete_accepted = code == 202
        return code

    def take_group_snapshot(self, share: TrackedShare) -> int | None:
        group = self._one_of(dict(self.load.others['share group']))
        if group is None:
            return None
        return self._create_other(
            'group snapshot',
            '/share-group-snapshots',
            'share_group_snapshot',
            {'share_group_id': group.id},
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
        # Another instance takes the place of the first replica.
        counted = self.load.counted_replicas
        counted.may_create(share.id)
        code = self._act_on_migration(share, 'migration_complete')
        if code is None or self._has_created_nothing(code):
            counted.refused(share.id)
        return code

    def cancel_migration(self, share: TrackedShare) -> int | None:
        return self._act_on_migration(share, 'migration_cancel')

    def _act_on_migration(self, share: TrackedShare, action: str) -> int | None:
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
        return self._create_other(
            'backup', '/share-backups', 'share_backup', {'share_id': share.id} | options
        )

    def restore_backup(self, share: TrackedShare) -> int | None:
        found = self._row(f'/share-backups/detail?share_id={share.id}', 'share_backups')
        if not found:
            return None
        id = self.rng.choice(found)['id']
        return self._act(f'/share-backups/{id}', 'restore')

    def delete_backup(self, share: TrackedShare) -> int | None:
        return self._delete_other('backup', '/share-backups')

    # Transfers

    def offer(self, share: TrackedShare) -> int:
        code = self._create('/share-transfers', 'transfer', {'share_id': share.id})
        if code == 202:
            transfer = self._answer()['transfer']
            self.load.keys[share.id] = transfer['id'], transfer['auth_key']
            self.load.shares_of[transfer['id']] = share.id
            self.load.values.note(transfer['id'], 'offer', True)
        return code

    def accept(self, share: TrackedShare) -> int | None:
        """Accept as one project or the other; the owner is refused."""
        id, key = self.load.keys.get(share.id, (None, None))
        if id is None:
            return None
        number = self.rng.randrange(len(PROJECTS))
        before, self.user = self.user, self._projects[number]
        code = None
        try:
            code = self._send(
                'POST', f'/share-transfers/{id}/accept', {'accept': {'auth_key': key}}
            )
        finally:
            before.last, self.user = self.user.last, before
            self.load.values.note(share.id, 'project', PROJECTS[number], code)
            self.load.values.note(id, 'offer', False, code)
        return code

    def withdraw(self, share: TrackedShare) -> int | None:
        """Withdraw an offer, also one whose key has been lost."""
        found = self._row(
            '/share-transfers/detail?all_tenants=1&resource_id=' + share.id, 'transfers'
        )
        if not found:
            return None
        id = found[0]['id']
        self.load.shares_of[id] = share.id  # its POST may have no answer
        return self._change(*(id, 'offer', False, 'DELETE', f'/share-transfers/{id}'))
