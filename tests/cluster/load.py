"""Requests about everything that a cluster offers.

Beside those of `tests.support.load`: replicas, groups, migrations, backups,
transfers, locks, metadata, lists, clients of snapshots, the recycle bin, the
management of shares, statuses that are reset, services and quotas.
"""

import collections
from collections.abc import Callable
import random

from tests.cluster.outcomes import CheckedLoad
from tests.cluster.verbs import ClusterClient
from tests.support import load
from tests.support.load import LoadClient
from tests.support.rest_client import RestClient

WEIGHTS = {
    **load.WEIGHTS,
    'add_replica': 3,
    'promote_replica': 2,
    'delete_replica': 2,
    'resync_replica': 1,
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
    'unset_metadata': 1,
    'list_shares': 2,
    'allow_snapshot': 2,
    'deny_snapshot': 1,
    'rename_snapshot': 1,
    'change_level': 2,
    'set_rule_metadata': 1,
    'disable_service': 1,
    'enable_service': 2,
    'set_quota': 1,
    'soft_delete': 2,
    'restore': 2,
    'unmanage': 1,
    'manage': 2,
    'reset_to_error': 1,
    'reset_to_available': 2,
}
OF_DATA_SERVICE = {'migrate_by_copy': 2, 'back_up_by_copy': 1}


class ClusterLoad(CheckedLoad):
    """The same with more kinds of requests and of resources.

    `receiver` returns the client of another project, for transfers.
    """

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

    def is_stopped_within(self, seconds: float) -> bool:
        return self._stop.wait(seconds)

    def new_client(self, user: RestClient, rng: random.Random) -> LoadClient:
        return ClusterClient(self, user, rng)


def summary(load: load.Load) -> str:
    """Return how often each verb was accepted, and of how many requests."""
    answered = collections.Counter(load.requested)
    return ', '.join(
        f'{verb} {load.accepted[verb]}/{answered[verb]}' for verb in load.weights
    )
