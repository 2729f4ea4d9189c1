"""How the data service reaches the content of CephFS shares.

It mounts a share as a Ceph user of its own, who can use nothing else. Each
attempt to copy has another user, and the next attempt cuts off that of the one
before: what a paused data service still writes is refused by the cluster.
"""

import uuid

from manila_lite import exception
from manila_lite.share.drivers import base
from manila_lite.share.drivers.cephfs.backend import CephfsBackend, refuse_reverting
from manila_lite.share.drivers.cephfs.users import COPYING, authorize, revoke_all


class CephfsConnections:
    """A Ceph user for each, which exists as long as the connection."""

    def __init__(self, backend: CephfsBackend):
        self._backend = backend

    def connection_get_info(self, share: base.ShareForDriver) -> base.ConnectionInfo:
        record = self._backend.get_share(share)
        refuse_reverting(share['name'], record)
        subvolume = record['subvolume']
        revoke_all(self._backend, subvolume, COPYING)
        user = f'{COPYING}{uuid.uuid4().hex}'
        key = authorize(self._backend, subvolume, user, 'rw')
        return {
            'ceph': {
                'monitors': self._backend.all_monitors(),
                'filesystem': self._backend.filesystem,
                'path': record['path'],
                'user': user,
                'key': key,
            }
        }

    def connection_end(self, share: base.ShareForDriver) -> None:
        try:
            record = self._backend.get_share(share)
        except exception.ShareResourceNotFound:
            return
        revoke_all(self._backend, record['subvolume'], COPYING)
