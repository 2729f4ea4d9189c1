"""Share groups, the shares in them, and their snapshots.

On share networks, a group has its share server created with it.
"""

import datetime

from tests.simulation import crash_images
from tests.simulation.crashing import Scene
from tests.support import cloud_snapshots, share_groups


def create(cloud, group):
    type_id = share_groups.show(cloud.api, group)['share_group_type_id']
    share_groups.request(cloud.api, type_id)
    cloud.settle()


def create_and_delete(cloud, group):
    type_id = share_groups.show(cloud.api, group)['share_group_type_id']
    share_groups.request(cloud.api, type_id)
    cloud.settle()
    for one in cloud.api.get('/share-groups')['share_groups']:
        share_groups.delete(cloud.api, one['id'], expect=None)
    cloud.settle()


def delete(cloud, group):
    share_groups.delete(cloud.api, group)
    cloud.settle()


def create_share(cloud, group):
    cloud.api.create(share_group_id=group)
    cloud.settle()


def take_snapshot(cloud, group):
    share_groups.request_snapshot(cloud.api, group)
    cloud.settle()


def take_snapshot_and_delete(cloud, group):
    answer = share_groups.request_snapshot(cloud.api, group)
    cloud.settle()
    share_groups.delete_snapshot(cloud.api, answer.json['share_group_snapshot']['id'])
    cloud.settle()


def copy_group(cloud, group):
    answer = share_groups.request_snapshot(cloud.api, group)
    cloud.settle()
    snapshot = answer.json['share_group_snapshot']['id']
    share_groups.request_copy(cloud.api, snapshot, expect=None)
    cloud.settle()


VERBS = Scene.named(create, create_and_delete, delete, create_share)
SNAPSHOT_VERBS = Scene.named(take_snapshot, take_snapshot_and_delete, copy_group)


def prepare_shares(cloud):
    """Create a group with two shares."""
    cloud_snapshots.enable_snapshot_features(cloud)
    group = share_groups.create(cloud)
    for _ in range(2):
        cloud.create_share(share_group_id=group)
    return group


SINGLE = 'share_driver = tests.support.single_copies_driver.SingleCopiesDriver'
SLOW = 'dummy_driver_from_snapshot_steps = 2'


# On share networks


def create_on_network(cloud, found):
    share_groups.request(cloud.api, found['type'], share_network_id=found['empty'])
    cloud.settle()


def create_on_used_network(cloud, found):
    share_groups.request(cloud.api, found['type'], share_network_id=found['used'])
    cloud.settle()


def create_with_share_at_once(cloud, found):
    cloud.api.create(share_network_id=found['empty'])
    create_on_network(cloud, found)


def fail_to_create_server(cloud, found):
    cloud.driver().half_fail_next('_setup_server')
    create_on_network(cloud, found)


def create_share_on_server(cloud, found):
    cloud.api.create(share_group_id=found['group'])
    cloud.settle()


def copy_group_on_server(cloud, found):
    share_groups.request_copy(cloud.api, found['snapshot'])
    cloud.settle()


def delete_with_server(cloud, found):
    share_groups.delete(cloud.api, found['lonely'])
    cloud.settle()


def delete_group_and_idle_server(cloud, found):
    share_groups.delete(cloud.api, found['lonely'], expect=None)
    cloud.settle()
    cloud.clock.advance(601)
    cloud.share.backends[0].endpoints.share_servers.delete_idle(
        datetime.timedelta(minutes=10)
    )
    cloud.settle()


SERVER_VERBS = Scene.named(
    create_on_network,
    create_on_used_network,
    create_with_share_at_once,
    fail_to_create_server,
    create_share_on_server,
    copy_group_on_server,
    delete_with_server,
    delete_group_and_idle_server,
)
WITH_LAST = 'delete_share_server_with_last_share = true'


def prepare_servers(cloud):
    """Create a group with a snapshot, one alone on its server, a network."""
    cloud_snapshots.enable_snapshot_features(cloud)
    found = {
        'type': share_groups.create_type(cloud.api),
        'empty': cloud.add_network(),
        'used': cloud.add_network(),
    }
    for name, network in (('group', found['used']), ('lonely', cloud.add_network())):
        found[name] = share_groups.create(
            cloud, found['type'], share_network_id=network
        )
    cloud.create_share(share_group_id=found['group'])
    found['snapshot'] = share_groups.take_snapshot(cloud, found['group'])
    return found


SCENES = [
    Scene(
        name='share groups',
        prepare=share_groups.create,
        verbs=VERBS,
        options={'backends': ['alpha']},
    ),
    Scene(
        name='snapshots of groups',
        prepare=prepare_shares,
        verbs={
            **SNAPSHOT_VERBS,
            'copy_group singly': copy_group,
            'copy_group slowly': copy_group,
        },
        options={'backends': ['alpha']},
        conf_of={
            'copy_group singly': {'backend_conf': SINGLE},
            'copy_group slowly': {'backend_conf': SLOW},
        },
        seeds=(40, 1),
    ),
    Scene(
        name='share groups on servers',
        prepare=prepare_servers,
        verbs=SERVER_VERBS,
        kind=crash_images.CrashableShareServersCloud,
        options={'backends': ['alpha']},
        conf_of={'delete_with_server': {'extra_conf': WITH_LAST}},
    ),
]
