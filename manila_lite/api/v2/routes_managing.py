"""Routes of what back ends have already, and is taken over or let go."""

from manila_lite.api import wsgi
from manila_lite.api.router import Route
from manila_lite.api.v2.shares import manage as share_manage
from manila_lite.api.v2.snapshots import manage as snapshot_manage

CONTROLLERS: dict[str, type[wsgi.Controller]] = {
    'share_manage': share_manage.ShareManageController,
    'share_unmanage': share_manage.ShareUnmanageController,
    'snapshot_manage': snapshot_manage.SnapshotManageController,
}

# fmt: off
ROUTES = [
    Route('POST', '/os-share-manage', 'share_manage', 'create',
          until='2.6', kind='free'),
    Route('POST', '/shares/manage', 'share_manage', 'create',
          since='2.7', kind='free'),
    Route('POST', '/os-share-unmanage/{share_id}/unmanage',
          'share_unmanage', 'unmanage', until='2.6', kind='free'),
    Route('POST', '/snapshots/manage', 'snapshot_manage', 'create',
          since='2.12', kind='free'),
]
# fmt: on
