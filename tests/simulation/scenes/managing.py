"""Managing, unmanaging and copying of shares and snapshots.

Shares are created from a snapshot at once, by a slow driver, and placed by
the scheduler.
"""

from tests.simulation.crashing import Scene
from tests.support import cloud_snapshots

_SLOWLY = {
    'backend_conf': 'dummy_driver_from_snapshot_steps = 3',
    'extra_conf': 'periodic_interval = 5',
}
_PLACED = 'use_scheduler_creating_share_from_snapshot = true'


def manage(cloud, found):
    cloud.api.request(
        'POST',
        '/shares/manage',
        {
            'share': {
                'protocol': 'NFS',
                'export_path': found['path'],
                'service_host': 'node@alpha#pool',
            }
        },
        expect=200,
    )
    cloud.settle()


def unmanage(cloud, found):
    cloud.api.act(found['bare'], 'unmanage')
    cloud.settle()


def fail_to_manage_and_unmanage(cloud, found):
    share = cloud.api.request(
        'POST',
        '/shares/manage',
        {
            'share': {
                'protocol': 'NFS',
                'export_path': 'nowhere',
                'service_host': 'node@alpha#pool',
            }
        },
        expect=200,
    ).json['share']
    cloud.settle()
    cloud.api.act(share['id'], 'unmanage')
    cloud.settle()


def manage_again(cloud, found):
    """The path is that of a share, and the protocol at first another."""
    for protocol in ('CIFS', 'NFS'):
        cloud.api.request(
            'POST',
            '/shares/manage',
            {
                'share': {
                    'protocol': protocol,
                    'export_path': found['path'],
                    'service_host': 'node@alpha#pool',
                }
            },
            expect=200,
        )
        cloud.settle()


def snapshot_of_a_failed_share(cloud, found):
    cloud.api.act(found['bare'], 'reset_status', {'status': 'error'})
    cloud.api.request(
        'POST',
        '/snapshots',
        {'snapshot': {'share_id': found['bare'], 'force': True}},
        expect=202,
    )
    cloud.settle()


def manage_snapshot(cloud, found):
    cloud.api.request(
        'POST',
        '/snapshots/manage',
        {
            'snapshot': {
                'share_id': found['share'],
                'metadata': {'key': 'value'},
                'provider_location': found['location'],
            }
        },
        expect=202,
    )
    cloud.settle()


def unmanage_snapshot(cloud, found):
    cloud_snapshots.act(cloud, found['snapshot'], 'unmanage')
    cloud.settle()


def copy(cloud, found):
    cloud.api.create(snapshot_id=found['snapshot'], size=4)
    cloud.settle()


def copy_and_force_delete(cloud, found):
    share = cloud.api.create(snapshot_id=found['snapshot'], size=4)
    cloud.step()
    cloud.api.act(share['id'], 'force_delete')
    cloud.settle()


MANAGING = (
    manage,
    unmanage,
    fail_to_manage_and_unmanage,
    manage_again,
    snapshot_of_a_failed_share,
    manage_snapshot,
    unmanage_snapshot,
)
COPYING = (copy, copy_and_force_delete)
VERBS = {
    **Scene.named(*MANAGING, *COPYING),
    **{f'{verb.__name__} slowly': verb for verb in COPYING},
    'copy placed by the scheduler': copy,
}
CONF = {
    **{f'{verb.__name__} slowly': _SLOWLY for verb in COPYING},
    'copy placed by the scheduler': {'extra_conf': _PLACED},
}


def prepare(cloud):
    """Create managed and unmanaged shares and snapshots."""
    cloud_snapshots.enable_snapshot_features(cloud)
    share_id = cloud.create_share(size=3)
    found = {
        'share': share_id,
        'snapshot': cloud_snapshots.create_available(cloud, share_id),
        'bare': cloud.create_share(size=2),
    }
    driver = cloud.driver()
    found['path'] = driver.add_unmanaged_share('foreign', size=5)
    found['location'] = driver.add_unmanaged_snapshot(
        cloud.api.get(f'/shares/{share_id}/instances')['share_instances'][0]['id'],
        'foreign',
    )
    return found


SCENE = Scene(
    name='managing',
    prepare=prepare,
    verbs=VERBS,
    options={'backends': ['alpha']},
    conf_of=CONF,
)
