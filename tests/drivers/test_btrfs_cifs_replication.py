"""The contract of replicating drivers with CIFS shares of btrfs.

The replicas are shared by the machine, or by a share server each.
"""

from tests.drivers import (
    promotion_contract,
    replicated_snapshot_contract,
    replication_contract,
)
from tests.drivers.replication_backends import CIFS_BACKENDS
from tests.support import sampling

SITES = CIFS_BACKENDS

pytestmark = sampling.suite('the contract on replicated CIFS shares', 2)


class TestReplicas(replication_contract.ReplicaContract):
    """Replicas of CIFS shares."""


class TestPromotion(promotion_contract.PromotionContract):
    """Promotion of replicas of CIFS shares."""


class TestReplicatedSnapshots(replicated_snapshot_contract.ReplicatedSnapshotContract):
    """Snapshots of replicated CIFS shares."""
