"""Transfers of shares that are withdrawn, expire or are accepted."""

from tests.simulation.crashing import Scene
from tests.support import cloud_snapshots, share_transfers


def accept_by_another(cloud, offered, **more):
    another = share_transfers.client_of(cloud, 'another')
    share_transfers.accept(another, offered, **more)


def offer_and_withdraw(cloud, share_id):
    offered = share_transfers.offer(cloud.api, share_id)
    share_transfers.withdraw(cloud.api, offered)
    cloud.settle()


def offer_and_expire(cloud, share_id):
    share_transfers.offer(cloud.api, share_id)
    cloud.clock.advance(301)
    cloud.beat()
    share_transfers.expire(cloud)
    cloud.settle()


def accept(cloud, share_id):
    offered = share_transfers.offer(cloud.api, share_id)
    accept_by_another(cloud, offered)
    cloud.settle()


def accept_without_rules(cloud, share_id):
    offered = share_transfers.offer(cloud.api, share_id)
    accept_by_another(cloud, offered, clear_access_rules=True)
    cloud.settle()


def accept_and_force_delete(cloud, share_id):
    offered = share_transfers.offer(cloud.api, share_id)
    accept_by_another(cloud, offered)
    for one in cloud.api.get('/snapshots')['snapshots']:
        cloud_snapshots.act(cloud, one['id'], 'force_delete')
    cloud.settle()
    cloud.api.act(share_id, 'force_delete')
    cloud.settle()


VERBS = Scene.named(
    offer_and_withdraw,
    offer_and_expire,
    accept,
    accept_without_rules,
    accept_and_force_delete,
)


def prepare(cloud):
    """Create a share with a snapshot and two rules."""
    cloud_snapshots.enable_snapshot_features(cloud)
    share_id = cloud.create_share(size=2)
    cloud_snapshots.create_available(cloud, share_id)
    for client in ('10.0.0.1', '10.0.0.2'):
        rule = {'access_type': 'ip', 'access_to': client}
        cloud.api.act(share_id, 'allow_access', rule, expect=200)
    return share_id


SCENE = Scene(
    name='transfers',
    prepare=prepare,
    verbs=VERBS,
    options={'backends': ['alpha']},
    without_driver=['offer_and_withdraw', 'offer_and_expire'],
)
