"""Requests about everything that a cluster offers, and what became of them.

Beside those of `tests.support.load`: replicas, groups, migrations, backups,
transfers, locks, metadata, lists, clients of snapshots, the recycle bin, the
management of shares, and statuses that are reset.
"""

import collections
from collections.abc import Callable, Mapping
import random

from manila_lite.states.share_task import WAITING
from manila_lite.states.share_task import ShareTask
from tests.cluster.lifecycle import Unmanaged
from tests.cluster.verbs import ClusterClient
from tests.support import load
from tests.support.load import LoadClient
from tests.support.load import TrackedResource
from tests.support.rest_client import RestClient

WEIGHTS = {
    **load.WEIGHTS,
    'add_replica': 3,
    'promote_replica': 2,
    'delete_replica': 2,
    'create_group': 1,
    'delete_group': 1,
    'create_member': 2,
    'take_group_snapshot': 1,
    'delete_group_snapshot': 1,
    'migrate': 2,
    'complete_migration': 2,
    'cancel_migration': 1,
    'show_migration': 1,
    'back_up': 2,
    'restore_backup': 1,
    'delete_backup': 1,
    'offer': 2,
    'accept': 2,
    'withdraw': 1,
    'lock': 1,
    'unlock': 1,
    'rename': 1,
    'set_metadata': 1,
    'list_shares': 2,
    'allow_snapshot': 2,
    'deny_snapshot': 1,
    'soft_delete': 2,
    'restore': 2,
    'unmanage': 1,
    'manage': 2,
    'reset_to_error': 1,
    'reset_to_available': 2,
}
OF_DATA_SERVICE = {'migrate_by_copy': 2, 'back_up_by_copy': 1}

KINDS = {
    'share group': ('/share-groups/detail', 'share_groups'),
    'group snapshot': (
        '/share-group-snapshots/detail',
        'share_group_snapshots',
    ),
    'backup': ('/share-backups/detail', 'share_backups'),
}
"""Where resources that belong to no share are listed, and under what name."""


class ClusterLoad(load.Load):
    """The same with more kinds of requests and of resources.

    `receiver` returns the client of another project, for transfers.
    """

    # Transfers move shares to another project.
    query = '?all_tenants=1'
    # A migration waits for a request after its first phase, and a transfer
    # until it is accepted.
    idle = load.Load.idle | {'migrating', 'awaiting_transfer'}

    def __init__(
        self,
        rest: Callable[[], RestClient],
        receiver: Callable[[], RestClient],
        seed: int,
        *,
        with_data_service: bool,
        **facts: object,
    ):
        weights = WEIGHTS | (OF_DATA_SERVICE if with_data_service else {})
        super().__init__(rest, seed, weights=weights, **facts)
        self.receiver = receiver
        self.others: dict[str, dict[str, TrackedResource]] = {
            kind: {} for kind in KINDS
        }
        self.groups_of_shares: dict[str, str] = {}
        self.keys: dict[str, tuple[str, str]] = {}
        """The ids and keys of transfers, by the ids of shares."""
        self.in_bin: dict[str, bool | None] = {}
        """Whether a share is in the recycle bin; None if unknown."""
        self.reset: set[str] = set()
        """Shares whose status was reset: no message explains an error."""
        self.unusable: set[str] = set()
        """Shares to leave alone: a reset without an answer may come late."""
        self.unmanaged: dict[str, Unmanaged] = {}
        """Shares that are not managed any more, by their paths."""

    def new_client(self, user: RestClient, rng: random.Random) -> LoadClient:
        return ClusterClient(self, user, rng)

    def list_shares(self, user: RestClient) -> dict[str, dict]:
        """Return all shares, also those in the recycle bin."""
        path = f'/shares/detail{self.query}&is_soft_deleted=true'
        bin = {one['id']: one for one in user.get(path)['shares']}
        return super().list_shares(user) | bin

    def outcome_of(
        self,
        share: load.TrackedShare,
        row: dict | None,
        messages: Mapping[str, set],
    ) -> list[str]:
        if row is None:
            return super().outcome_of(share, row, messages)
        in_bin = self.in_bin.get(share.id, False)
        if in_bin not in (None, row['is_soft_deleted']):
            return [f'share {share.id} is {"not " * in_bin}in the recycle bin']
        if share.id in self.reset and row['status'] == 'error':
            return []
        return super().outcome_of(share, row, messages)

    def check(self, user: RestClient) -> list[str]:
        messages = self.messages(user)
        return [
            *self._rules_of_snapshots(user),
            *super().check(user),
            *self._migrations(user, messages),
            *(
                problem
                for kind in KINDS
                for problem in self._others(user, kind, messages)
            ),
        ]

    def forget(self, shares: dict, snapshots: dict) -> None:
        super().forget(shares, snapshots)
        self.in_bin = {
            id: row['is_soft_deleted'] for id, row in shares.items()
        }
        self.unusable.clear()

    def _rules_of_snapshots(self, user: RestClient) -> list[str]:
        rows = user.get(f'/snapshots/detail{self.query}')['snapshots']
        found = {row['id'] for row in rows}
        return [
            problem
            for share in self.shares.values()
            for snapshot in share.snapshots.values()
            if snapshot.rules and snapshot.id in found
            for problem in load.outcome_of_rules(
                snapshot.rules,
                {
                    row['id']: row
                    for row in user.get(
                        f'/snapshots/{snapshot.id}/access-list'
                    )['snapshot_access_list']
                },
            )
        ]

    def _migrations(
        self, user: RestClient, messages: Mapping[str, set]
    ) -> list[str]:
        return [
            f'share {row["id"]} is {row["status"]}, {row["task_state"]}, '
            f'messages {messages[row["id"]]}'
            for row in user.get(f'/shares/detail{self.query}')['shares']
            if (
                row['status'] == 'migrating'
                and row['task_state'] not in WAITING
            )
            or (
                row['task_state'] == ShareTask.ERROR
                and not messages[row['id']]
            )
        ]

    def _others(
        self, user: RestClient, kind: str, messages: Mapping[str, set]
    ) -> list[str]:
        path, name = KINDS[kind]
        rows = {
            row['id']: row
            for row in user.get(f'{path}{self.query}', timeout=30)[name]
        }
        known = self.others[kind]
        self.others[kind] = {id: TrackedResource(id) for id in rows}
        return [
            problem
            for id, resource in known.items()
            for problem in load.outcome(
                kind, resource, rows.get(id), messages, self.idle
            )
        ]


def summary(load: load.Load) -> str:
    """Return how often each verb was accepted, and of how many requests."""
    answered = collections.Counter(load.requested)
    return ', '.join(
        f'{verb} {load.accepted[verb]}/{answered[verb]}'
        for verb in load.weights
    )
