"""Share backups on a `Cloud`: requests, and what a test sees of them."""

import sqlalchemy as sa

from manila_lite.api import versions
from manila_lite.db.models import shares
from tests.support.cloud_images import prepared

BACKUPS = '/share-backups'
BY_DRIVER = {'backup_options': {'backup_type': 'vault'}}
"""The part of a request that leaves the backup to the driver."""

SHORT_POLL_INTERVALS = """
driver_backup_continue_update_interval = 5
driver_restore_continue_update_interval = 5
"""
EXPERIMENTAL = {versions.EXPERIMENTAL_HEADER: 'true'}


def request(api, share_id, expect=202, **body):
    """Request a backup; return the response."""
    return api.request(
        'POST',
        BACKUPS,
        {'share_backup': {'share_id': share_id, **body}},
        expect=expect,
        **EXPERIMENTAL,
    )


def content_of(cloud, share_id):
    """Return the directory with the content of the only share instance."""
    shown = cloud.api.get(f'/shares/{share_id}/instances')
    (instance,) = shown['share_instances']
    backend = instance['host'].partition('@')[2].partition('#')[0]
    return cloud.driver(backend).backend.state.content(instance['id'])


CONTENT = {'below/second': 'two', 'first': 'one'}
"""The text of each file of a share that is backed up."""


def fill(cloud, share_id):
    for name, text in CONTENT.items():
        path = content_of(cloud, share_id) / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


@prepared
def create(cloud, share_id=None, **body):
    """Create a backup that is available; return its id."""
    if share_id is None:
        share_id = cloud.create_share()
        fill(cloud, share_id)
    id = request(cloud.api, share_id, **body).json['share_backup']['id']
    cloud.settle()
    assert show(cloud.api, id)['status'] == 'available'
    return id


def show(api, id):
    return api.get(f'{BACKUPS}/{id}', **EXPERIMENTAL)['share_backup']


def delete(api, id, expect=202):
    return api.request('DELETE', f'{BACKUPS}/{id}', expect=expect, **EXPERIMENTAL)


def act(api, id, action, args=None, expect=202):
    return api.request(
        'POST', f'{BACKUPS}/{id}/action', {action: args}, expect=expect, **EXPERIMENTAL
    )


def restore(api, id, to=None, expect=202):
    return act(api, id, 'restore', to, expect)


def check_gone(api, id):
    api.request('GET', f'{BACKUPS}/{id}', expect=404, **EXPERIMENTAL)


def listed(api, query=''):
    answer = api.get(f'{BACKUPS}/detail{query}', **EXPERIMENTAL)
    return answer['share_backups']


def update(api, backup_id, expect=200, **values):
    return api.request(
        'PUT',
        f'{BACKUPS}/{backup_id}',
        {'share_backup': values},
        expect=expect,
        **EXPERIMENTAL,
    )


def set_status(cloud, id, status):
    """Write a status that no request can set."""
    table = shares.ShareBackup.__table__
    cloud.db.write(
        lambda session: session.run(
            sa.update(table).where(table.c.id == id).values(status=status)
        )
    )
