"""Access to the snapshots of shares that have replicas."""

import pytest

from manila_lite.share.drivers.dummy import driver as dummy
from tests.functional.share.replication.snapshots.snapshot_states import (
    complete,
)
from tests.functional.share.replication.snapshots.snapshot_states import (
    fall_out,
)
from tests.functional.share.replication.snapshots.snapshot_states import (
    statuses,
)
from tests.support import cloud_snapshots


@pytest.fixture
def mountable(cloud):
    cloud_snapshots.enable_snapshot_features(cloud)
    share_id = cloud.create_share_on('alpha')
    cloud.replicate(share_id, 'beta')
    return share_id


def allow(cloud, snapshot_id, expect=202):
    return cloud_snapshots.act(
        cloud,
        snapshot_id,
        'allow_access',
        {'access_type': 'ip', 'access_to': '10.0.0.1'},
        expect=expect,
    )


def rules(cloud, snapshot_id):
    return [
        one['state']
        for one in cloud.api.get(f'/snapshots/{snapshot_id}/access-list')[
            'snapshot_access_list'
        ]
    ]


def let_in(cloud, backend):
    found = dummy.snapshot_access_inventory(cloud.folder / 'dummy' / backend)
    return sum(len(clients) for clients in found.values())


def test_snapshot_rule_is_applied_on_every_replica(cloud, mountable):
    snapshot_id = complete(cloud, mountable)
    allow(cloud, snapshot_id)
    cloud.settle()
    assert rules(cloud, snapshot_id) == ['active']
    assert (let_in(cloud, 'alpha'), let_in(cloud, 'beta')) == (1, 1)
    cloud.check_invariants()


def test_replica_gets_a_snapshot_rule_with_the_snapshot(cloud, mountable):
    fall_out(cloud, mountable)
    snapshot_id = cloud_snapshots.create_available(cloud, mountable)
    allow(cloud, snapshot_id)
    cloud.settle()
    assert rules(cloud, snapshot_id) == ['active']
    assert (let_in(cloud, 'alpha'), let_in(cloud, 'beta')) == (1, 0)
    cloud.update()
    assert statuses(cloud, snapshot_id)['beta'] == 'available'
    assert (let_in(cloud, 'alpha'), let_in(cloud, 'beta')) == (1, 1)
    cloud.check_invariants()


def test_new_replica_gets_the_rules_of_snapshots(cloud, mountable):
    snapshot_id = complete(cloud, mountable)
    allow(cloud, snapshot_id)
    cloud.settle()
    cloud.replicate(mountable, 'gamma')
    cloud.update()
    assert let_in(cloud, 'gamma') == 1
    assert rules(cloud, snapshot_id) == ['active']
    cloud.check_invariants()


def test_snapshot_rules_are_removed_on_every_replica(cloud, mountable):
    snapshot_id = complete(cloud, mountable)
    allow(cloud, snapshot_id)
    cloud.settle()
    cloud_snapshots.delete(cloud, snapshot_id)
    cloud.settle()
    cloud.update()
    cloud_snapshots.check_gone(cloud, snapshot_id)
    assert (let_in(cloud, 'alpha'), let_in(cloud, 'beta')) == (0, 0)
    cloud.check_invariants()
