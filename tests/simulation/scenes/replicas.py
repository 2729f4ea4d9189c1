"""Replicas of a share with a rule and a snapshot.

In the end one replica is active, or more if the type is writable; all have
the same rules and all snapshots.
"""

from tests.simulation import crash_images
from tests.simulation.crashing import Scene
from tests.support.replicated import ReplicatedCloud


class CrashableReplicatedCloud(crash_images.CrashableCloud, ReplicatedCloud):
    """A replicated cloud with crash points."""


def create(cloud, found):
    cloud.request_replica(found['share'], 'gamma')
    cloud.settle()


def fail_to_place(cloud, found):
    cloud.request_replica(found['share'], 'beta')
    cloud.settle()


def fail_to_create(cloud, found):
    cloud.driver('gamma').half_fail_next('create_replica')
    cloud.request_replica(found['share'], 'gamma')
    cloud.settle()


def delete(cloud, found):
    cloud.ask('delete', found['beta'])
    cloud.settle()


def fail_to_delete(cloud, found):
    cloud.driver('beta').half_fail_next('delete_replica')
    cloud.ask('delete', found['beta'])
    cloud.settle()


def force_delete(cloud, found):
    cloud.ask('force_delete', found['beta'])
    cloud.settle()


def promote(cloud, found):
    cloud.ask('promote', found['beta'])
    cloud.settle()


def fail_to_promote(cloud, found):
    cloud.driver('beta').half_fail_next('promote_replica')
    cloud.ask('promote', found['beta'])
    cloud.settle()


def delete_active(cloud, found):
    """Delete an active writable replica while another one stays."""
    cloud.ask('delete', found['alpha'])
    cloud.settle()


def prepare(cloud):
    """Create two replicas, with a rule and a snapshot."""
    share_id = cloud.create_share_on('alpha', size=2)
    cloud.allow(share_id)
    cloud.snapshot(share_id)
    cloud.replicate(share_id, 'beta')
    cloud.update()
    cloud.check_invariants()
    assert {row.replica_state for row in cloud.replicas(share_id)} <= {
        'active',
        'in_sync',
    }
    return {'share': share_id} | {
        name: next(
            row.id
            for row in cloud.replicas(share_id)
            if row.host.endswith(f'@{name}#pool')
        )
        for name in ('alpha', 'beta')
    }


def check(cloud):
    cloud.settle()
    cloud.update()
    cloud.check_invariants()


def scene(style, *verbs, **more):
    return Scene(
        name=f'{style} replicas',
        prepare=prepare,
        verbs=Scene.named(*verbs),
        kind=CrashableReplicatedCloud,
        options={'style': style},
        check=check,
        least=4,
        **more,
    )


READABLE = scene(
    'readable',
    create,
    fail_to_place,
    fail_to_create,
    delete,
    fail_to_delete,
    force_delete,
    promote,
    fail_to_promote,
    without_driver=['fail_to_place'],
    seeds=(40, 1),
)
SCENES = [
    READABLE,
    scene('dr', promote, seeds=(10, 1)),
    scene('writable', create, delete_active, seeds=(10, 1)),
]
