"""Share servers: with their first share, without any, managed and unmanaged.

A server is deleted by request, with its last share, or when it is idle.
"""

import datetime

from tests.simulation import crash_images
from tests.simulation.crashing import Scene

WITH_LAST = 'delete_share_server_with_last_share = true'


def create_first(cloud, found):
    cloud.api.create(share_network_id=found['empty'], size=2)
    cloud.settle()


def create_two_first(cloud, found):
    for _ in range(2):
        cloud.api.create(share_network_id=found['empty'])
    cloud.settle()


def create_next(cloud, found):
    cloud.api.create(share_network_id=found['used'])
    cloud.settle()


def fail_to_create_first(cloud, found):
    cloud.driver().half_fail_next('_setup_server')
    cloud.api.create(share_network_id=found['empty'])
    cloud.settle()


def delete_share(cloud, found):
    cloud.api.delete(found['share'])
    cloud.settle()


def delete(cloud, found):
    cloud.api.request('DELETE', f'/share-servers/{found["idle"]}')
    cloud.settle()


def delete_idle(cloud, found):
    cloud.clock.advance(601)
    cloud.share.backends[0].endpoints.share_servers.delete_idle(
        datetime.timedelta(minutes=10)
    )
    cloud.settle()


def manage(cloud, found):
    cloud.api.request(
        'POST',
        '/share-servers/manage',
        {
            'share_server': {
                'host': 'node@alpha',
                'share_network_id': found['empty'],
                'identifier': 'theirs',
            }
        },
        expect=202,
    )
    cloud.settle()


def fail_to_manage(cloud, found):
    cloud.api.request(
        'POST',
        '/share-servers/manage',
        {
            'share_server': {
                'host': 'node@alpha',
                'share_network_id': found['empty'],
                'identifier': 'nowhere',
            }
        },
        expect=202,
    )
    cloud.settle()


def unmanage(cloud, found):
    cloud.api.request(
        'POST',
        f'/share-servers/{found["idle"]}/action',
        {'unmanage': {'force': False}},
        expect=202,
    )
    cloud.settle()


VERBS = Scene.named(
    create_first,
    create_two_first,
    create_next,
    fail_to_create_first,
    delete_share,
    delete,
    delete_idle,
    manage,
    fail_to_manage,
    unmanage,
)


def prepare(cloud):
    """Create a server with a share, an idle server, and an unmanaged one."""
    found = {'empty': cloud.add_network(), 'used': cloud.add_network()}
    found['share'] = cloud.create_share_on_network(found['used'])
    other = cloud.create_share_on_network(cloud.add_network())
    found['idle'] = cloud.server_of(other)
    cloud.api.delete(other)
    cloud.settle()
    cloud.driver().add_unmanaged_server('theirs', ['10.10.0.77'])
    return found


SCENE = Scene(
    name='share servers',
    prepare=prepare,
    verbs=VERBS,
    kind=crash_images.CrashableShareServersCloud,
    options={'backends': ['alpha']},
    conf_of={'delete_share': {'extra_conf': WITH_LAST}},
    without_driver=['fail_to_manage'],
    seeds=(60, 2),
    least=4,
)
