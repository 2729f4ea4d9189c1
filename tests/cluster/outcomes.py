"""What became of the requests to a cluster, once nothing is in flight."""

import collections
from collections.abc import Callable, Iterator, Mapping
import threading

from manila_lite.messages import Action
from manila_lite.states.access_rule import RulesStatus, RuleState
from manila_lite.states.share_replica import ReplicaState
from manila_lite.states.share_task import WAITING, ShareTask
from tests.cluster.acknowledged import CountedCreations, Creations, Values
from tests.cluster.lifecycle import Unmanaged
from tests.cluster.verbs import SERVICES, UNUSED
from tests.support import load
from tests.support.load import TrackedResource
from tests.support.rest_client import RestClient

RULE_ACTIONS = {Action.UPDATE_ACCESS_RULES.value, Action.DELETE_ACCESS_RULES.value}
KINDS = {
    'share group': ('/share-groups/detail', 'share_groups'),
    'group snapshot': ('/share-group-snapshots/detail', 'share_group_snapshots'),
    'backup': ('/share-backups/detail', 'share_backups'),
}
"""Where resources that belong to no share are listed, and under what name."""


class CheckedLoad(load.Load):
    """Remembers what was accepted, and finds what is wrong about it."""

    # Transfers move shares to another project.
    query = '?all_tenants=1'
    # A migration waits for a request after its first phase, and a transfer
    # until it is accepted.
    idle = load.Load.idle | {'migrating', 'awaiting_transfer'}

    def __init__(self, rest: Callable[[], RestClient], seed: int, **facts: object):
        super().__init__(rest, seed, **facts)
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
        self.values = Values()
        self.creations = Creations()
        self.counted_replicas = CountedCreations(first=1)
        """By shares, which begin with one replica."""
        self.snapshots_with_clients: set[str] = set()
        """Snapshots that a request may have given an access rule."""
        self.replicas: dict[str, TrackedResource] = {}
        self.shares_of: dict[str, str] = {}
        """The ids of shares by those of replicas, rules, locks and offers."""
        self.administering = threading.Lock()
        self.repeated = 0
        """How many requests were sent again, as their answer told."""
        self.incomplete = 0
        """How many answers began and had no end."""

    def list_shares(self, user: RestClient) -> dict[str, dict]:
        """Return all shares, also those in the recycle bin."""
        path = f'/shares/detail{self.query}&is_soft_deleted=true'
        bin = {one['id']: one for one in user.get(path)['shares']}
        return super().list_shares(user) | bin

    def outcome_of(
        self, share: load.TrackedShare, row: dict | None, messages: Mapping[str, set]
    ) -> list[str]:
        if row is None:
            return super().outcome_of(share, row, messages)
        in_bin = self.in_bin.get(share.id, False)
        if in_bin not in (None, row['is_soft_deleted']):
            return [f'share {share.id} is {"not " * in_bin}in the recycle bin']
        if share.id in self.reset and row['status'] == 'error':
            return []
        return super().outcome_of(share, row, messages)

    def outcome_of_share_rules(
        self, share: load.TrackedShare, rows: Mapping[str, dict]
    ) -> list[str]:
        return [
            *super().outcome_of_share_rules(share, rows),
            *self._duplicate_rules(rows),
        ]

    def _duplicate_rules(self, rows: Mapping[str, dict]) -> list[str]:
        return self.creations.problems(
            'rule', [(id, row['access_to']) for id, row in rows.items()]
        )

    def check(self, user: RestClient) -> list[str]:
        messages = self.messages(user)
        shares = self.list_shares(user)
        snapshots = user.get(f'/snapshots/detail{self.query}')['snapshots']
        return [
            *self._created(user, shares, snapshots),
            *self._values_of_shares(user, shares, messages),
            *self.values.problems(
                'name of snapshot', {row['id']: row['name'] for row in snapshots}
            ),
            *self._values_of_rules(user, shares),
            *self._administered(user),
            *self._replicas(user, shares, messages),
            *self._failed_rules(user, shares, messages),
            *self._rules_of_snapshots(user, snapshots, messages),
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
        self.in_bin = {id: row['is_soft_deleted'] for id, row in shares.items()}
        self.unusable.clear()

    def _created(
        self, user: RestClient, shares: dict[str, dict], snapshots: list[dict]
    ) -> Iterator[str]:
        """Yield what exists although no request can have created it."""
        rows = {'share': shares.values(), 'snapshot': snapshots} | {
            kind: self._list(user, kind) for kind in KINDS
        }
        for kind, found in rows.items():
            yield from self.creations.problems(
                kind, [(row['id'], row['name']) for row in found]
            )

    def _list(self, user: RestClient, kind: str) -> list[dict]:
        path, name = KINDS[kind]
        return user.get(f'{path}{self.query}', timeout=30)[name]

    def _values_of_shares(
        self, user: RestClient, shares: dict[str, dict], messages: Mapping[str, set]
    ) -> Iterator[str]:
        """Yield the changes that were accepted at once, and are lost."""
        for name, value_of in (
            ('name', lambda row: row['name']),
            ('color', lambda row: row['metadata'].get('color')),
        ):
            yield from self.values.problems(
                name, {id: value_of(row) for id, row in shares.items()}
            )

        def is_refused(id: str) -> bool:
            accept = Action.TRANSFER_ACCEPT.value
            return accept in messages[self.shares_of.get(id, id)]

        yield from self.values.problems(
            'project', {id: row['project_id'] for id, row in shares.items()}, is_refused
        )
        for name, path, wrapper, field in (
            (
                *('lock', '/resource-locks?all_projects=1'),
                *('resource_locks', 'lock_reason'),
            ),
            (*('offer', '/share-transfers?all_tenants=1'), *('transfers', 'name')),
        ):
            rows = {row['id']: row[field] for row in user.get(path)[wrapper]}
            yield from self.creations.problems(name, rows.items())
            yield from self.values.problems(
                name,
                {
                    id: id in rows
                    for id in self.values.ids(name)
                    if self.shares_of[id] in shares
                },
                is_refused if name == 'offer' else lambda id: False,
            )

    def _values_of_rules(
        self, user: RestClient, shares: dict[str, dict]
    ) -> Iterator[str]:
        names = ('level', 'color of rule')
        changed = {id for name in names for id in self.values.ids(name)}
        rules = {
            row['id']: row
            for share in {self.shares_of[id] for id in changed} & shares.keys()
            for row in self._list_rules(user, share)
        }
        yield from self.values.problems(
            'level',
            {
                id: row['access_level']
                for id, row in rules.items()
                if row['state'] == RuleState.ACTIVE
            },
        )
        yield from self.values.problems(
            'color of rule',
            {id: row['metadata'].get('color') for id, row in rules.items()},
        )

    @staticmethod
    def _list_rules(user: RestClient, share: str) -> list[dict]:
        return user.get(f'/share-access-rules?share_id={share}')['access_list']

    @staticmethod
    def _list_services(user: RestClient) -> list[dict]:
        return user.get('/services')['services']

    def _administered(self, user: RestClient) -> Iterator[str]:
        """Yield the changes of services and quotas that are lost."""
        yield from self.values.problems(
            'disabled',
            {
                row['host']: row['status'] == 'disabled'
                for row in self._list_services(user)
            },
        )
        quota = user.get(f'/quota-sets/{UNUSED}')['quota_set']
        yield from self.values.problems('quota', {UNUSED: quota['shares']})

    def enable_services(self, user: RestClient) -> list[str]:
        """Let services do what waits for them; return what is wrong."""
        problems = [*self._administered(user)]
        for row in self._list_services(user):
            service = {name: row[name] for name in ('host', 'binary')}
            if tuple(service.values()) in SERVICES:
                self.values.note(row['host'], 'disabled', False)
                user.request('PUT', '/services/enable', service)
        return problems

    def _replicas(
        self, user: RestClient, shares: dict[str, dict], messages: Mapping[str, set]
    ) -> list[str]:
        """Return what is wrong about replicas, and about promotions."""
        rows = {
            row['id']: row
            for row in user.get('/share-replicas/detail')['share_replicas']
        }
        said = collections.defaultdict(set)  # of the replicas of a share
        for id, row in rows.items():
            said[row['share_id']] |= messages[id] | messages[row['share_id']]
        problems = [
            f'replica {id} is {row["status"]}, {row["replica_state"]}, '
            'without a user message'
            for id, row in rows.items()
            if row['replica_state'] == ReplicaState.ERROR
            and row['share_id'] not in self.reset
            and not said[row['share_id']]
        ]
        for id, tracked in self.replicas.items():
            share = self.shares_of[id]
            if share in shares and share not in self.reset:
                problems += load.outcome(
                    'replica', tracked, rows.get(id), {id: said[share]}, self.idle
                )
        self.replicas = {id: TrackedResource(id) for id in rows}
        self.shares_of.update((id, row['share_id']) for id, row in rows.items())
        problems += self.counted_replicas.problems(
            'replica', [(id, row['share_id']) for id, row in rows.items()]
        )
        problems += self.values.problems(
            'active replica',
            {
                row['share_id']: id
                for id, row in rows.items()
                if row['replica_state'] == ReplicaState.ACTIVE
            },
            lambda id: Action.PROMOTE.value in said[id],
        )
        return problems

    def _failed_rules(
        self, user: RestClient, shares: dict[str, dict], messages: Mapping[str, set]
    ) -> Iterator[str]:
        """Yield the rules in error that no message explains."""
        for id, row in shares.items():
            if row['access_rules_status'] != RulesStatus.ERROR:
                continue
            replicas = [one for one, of in self.shares_of.items() if of == id]
            said = {action for one in (id, *replicas) for action in messages[one]}
            if not said & RULE_ACTIONS:
                yield (
                    f'rules of share {id} are in error without a user '
                    f'message: {self._list_rules(user, id)}'
                )

    def _rules_of_snapshots(
        self, user: RestClient, snapshots: list[dict], messages: Mapping[str, set]
    ) -> Iterator[str]:
        found = {row['id'] for row in snapshots}
        for share in self.shares.values():
            for snapshot in share.snapshots.values():
                if snapshot.id not in found & self.snapshots_with_clients:
                    continue
                path = f'/snapshots/{snapshot.id}/access-list'
                rows = {
                    row['id']: row for row in user.get(path)['snapshot_access_list']
                }
                yield from load.outcome_of_rules(snapshot.rules, rows)
                yield from self._duplicate_rules(rows)
                failed = [
                    id for id, row in rows.items() if row['state'] == RuleState.ERROR
                ]
                if failed and not messages[snapshot.id]:
                    yield (
                        f'rules {failed} of snapshot {snapshot.id} are in '
                        'error without a user message'
                    )

    def _migrations(self, user: RestClient, messages: Mapping[str, set]) -> list[str]:
        return [
            f'share {row["id"]} is {row["status"]}, {row["task_state"]}, '
            f'messages {messages[row["id"]]}'
            for row in user.get(f'/shares/detail{self.query}')['shares']
            if (row['status'] == 'migrating' and row['task_state'] not in WAITING)
            or (row['task_state'] == ShareTask.ERROR and not messages[row['id']])
        ]

    def _others(
        self, user: RestClient, kind: str, messages: Mapping[str, set]
    ) -> list[str]:
        rows = {row['id']: row for row in self._list(user, kind)}
        known = self.others[kind]
        self.others[kind] = {id: TrackedResource(id) for id in rows}
        return [
            problem
            for id, resource in known.items()
            for problem in load.outcome(
                kind, resource, rows.get(id), messages, self.idle
            )
        ]
