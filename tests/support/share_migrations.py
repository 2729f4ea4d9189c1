"""Requests of share migrations, on a cloud with two back ends."""

from tests.support.cloud_images import prepared

# Simulated seconds between two polls of the driver.
SHORT_POLL_INTERVAL = 'migration_driver_continue_update_interval = 5\n'

DESTINATION = 'node@beta#pool'

OPTIONS = {
    'writable': True,
    'nondisruptive': False,
    'preserve_metadata': True,
    'preserve_snapshots': False,
}


def act(cloud, share_id, action, args=None, expect=202, version='2.99'):
    return cloud.api.request(
        'POST',
        f'/shares/{share_id}/action',
        {action: args},
        expect=expect,
        version=version,
    )


def start(cloud, share_id, host=DESTINATION, expect=202, **options):
    return act(
        cloud, share_id, 'migration_start', {'host': host, **OPTIONS, **options}, expect
    )


def complete(cloud, share_id, expect=202):
    return act(cloud, share_id, 'migration_complete', expect=expect)


def cancel(cloud, share_id, expect=202):
    return act(cloud, share_id, 'migration_cancel', expect=expect)


def progress(cloud, share_id, expect=200):
    return cloud.api.request(
        'GET', f'/shares/{share_id}/migration-progress', expect=expect, version='2.99'
    ).json


def task_state(cloud, share_id):
    return cloud.api.show(share_id)['task_state']


def instances(cloud, share_id):
    """Return host and status of the instances, ordered by host."""
    rows = cloud.api.request('GET', f'/shares/{share_id}/instances', expect=200).json[
        'share_instances'
    ]
    return sorted((row['host'], row['status']) for row in rows)


@prepared
def create_on_alpha(cloud, **body):
    """Create a share on the back end alpha and return its id."""
    set_disabled(cloud, 'beta', True)
    share_id = cloud.create_share(**body)
    set_disabled(cloud, 'beta', False)
    return share_id


def set_disabled(cloud, name, disabled):
    cloud.api.request(
        'PUT',
        '/services/' + ('disable' if disabled else 'enable'),
        {'host': f'node@{name}', 'binary': 'manila-share'},
        expect=200,
    )


def instance_of(cloud, share_id):
    """Return the id of the only instance of a share."""
    (row,) = cloud.api.request('GET', f'/shares/{share_id}/instances', expect=200).json[
        'share_instances'
    ]
    return row['id']


def allow(cloud, share_id, access_to='10.1.1.1', level='rw', expect=200):
    return cloud.api.act(
        share_id,
        'allow_access',
        {'access_type': 'ip', 'access_to': access_to, 'access_level': level},
        expect=expect,
    )


@prepared
def create_type(cloud, name='gold', **extra_specs):
    """Create a share type for shares without share servers; return its id."""
    return cloud.api.request(
        'POST',
        '/types',
        {
            'share_type': {
                'name': name,
                'extra_specs': {'driver_handles_share_servers': 'False', **extra_specs},
            }
        },
        expect=200,
    ).json['share_type']['id']


def shown_type(cloud, share_id):
    """Return the id of the share type that a share is shown with."""
    return cloud.api.show(share_id)['share_type']


def to_gold(cloud):
    """Return the option that gives the type gold to a share."""
    (found,) = (
        one['id']
        for one in cloud.api.get('/types')['share_types']
        if one['name'] == 'gold'
    )
    return {'new_share_type_id': found}
