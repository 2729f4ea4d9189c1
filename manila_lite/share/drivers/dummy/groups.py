"""Share groups of the dummy back end."""

from collections.abc import Mapping

from manila_lite import exception
from manila_lite.share.drivers import base
from manila_lite.share.drivers.dummy.backend import DummyBackend
from manila_lite.share.drivers.dummy.share_servers import DummyServers
from manila_lite.share.drivers.dummy.shares import DummyShares
from manila_lite.share.drivers.dummy.snapshots import DummySnapshots


class DummyGroups:
    def __init__(
        self,
        backend: DummyBackend,
        snapshots: DummySnapshots,
        servers: DummyServers,
        shares: DummyShares,
    ):
        self._backend, self._servers = backend, servers
        self._shares, self._snapshots = shares, snapshots

    def create_share_group(
        self,
        share_group_dict: base.ShareGroupForDriver,
        share_server: base.ShareServerMapping | None = None,
    ) -> base.GroupReply:
        groups, id = self._backend.state.groups, share_group_dict['id']
        with self._backend.lock:
            record = groups.find(id)
            if record is None or record['status'] == 'error':
                server = self._servers.id_for(share_server)
                groups.put(id, {'status': 'error', 'server': server})
                self._backend.faults.midway()
                groups.put(id, {'status': 'available', 'server': server})
        return None

    def delete_share_group(
        self, share_group_dict: base.ShareGroupForDriver
    ) -> base.GroupReply:
        groups, id = self._backend.state.groups, share_group_dict['id']
        with self._backend.lock:
            record = groups.find(id)
            if record is not None:
                groups.put(id, record | {'status': 'error'})
                self._backend.faults.midway()
            groups.drop(id)
        return None

    def get_share_group_status(
        self, share_group: base.ShareGroupForDriver
    ) -> base.StatusReply:
        record = self._backend.state.groups.find(share_group['id'])
        if record is None:
            raise exception.ShareGroupResourceNotFound(share_group_id=share_group['id'])
        return {'status': record['status']}

    def create_share_group_from_share_group_snapshot(
        self,
        share_group_dict: base.ShareGroupForDriver,
        share_group_snapshot_dict: base.ShareGroupSnapshotForDriver,
        share_server: base.ShareServerMapping | None = None,
    ) -> base.GroupReply:
        groups, id = self._backend.state.groups, share_group_dict['id']
        members = {
            member['id']: member
            for member in share_group_snapshot_dict['share_group_snapshot_members']
        }
        server = self._servers.id_for(share_server)
        with self._backend.lock:
            groups.put(id, {'status': 'error', 'server': server})
            replies = []
            for share in share_group_dict['shares']:
                reply = self._shares.create_share_from_snapshot(
                    share,
                    members[share['source_share_group_snapshot_member_id']],
                    share_server,
                )
                if not isinstance(reply, Mapping):
                    reply = {'export_locations': reply}
                replies.append({'id': share['id'], **reply})
            self._backend.faults.midway()
            groups.put(id, {'status': 'available', 'server': server})
        return None, replies

    # Snapshots

    def create_share_group_snapshot(
        self, snap_dict: base.ShareGroupSnapshotForDriver
    ) -> base.GroupSnapshotReply:
        with self._backend.lock:
            replies = [
                {
                    'id': member['id'],
                    'provider_location': self._snapshots.create_snapshot(member)[
                        'provider_location'
                    ],
                }
                for member in snap_dict['share_group_snapshot_members']
            ]
        return None, replies

    def delete_share_group_snapshot(
        self, snap_dict: base.ShareGroupSnapshotForDriver
    ) -> base.GroupSnapshotReply:
        with self._backend.lock:
            for member in snap_dict['share_group_snapshot_members']:
                self._snapshots.delete_snapshot(member)
        return None

    def get_share_group_snapshot_status(
        self, share_group_snapshot: base.ShareGroupSnapshotForDriver
    ) -> base.StatusReply:
        replies = {
            member['id']: self._snapshots.get_snapshot_status(member)
            for member in share_group_snapshot['share_group_snapshot_members']
        }
        is_complete = all(reply['status'] == 'available' for reply in replies.values())
        return {
            'status': 'available' if is_complete else 'error',
            'share_group_snapshot_members': [
                {'id': id, 'provider_location': reply['provider_location']}
                for id, reply in replies.items()
            ],
        }
