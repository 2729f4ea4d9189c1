"""Unmanaged shares and snapshots of the dummy back end.

They are found by their path or provider location; inventories do not include
them or their clients.
"""

from manila_lite import exception
from manila_lite.share.drivers import base, records
from manila_lite.share.drivers.dummy.backend import DummyBackend
from manila_lite.share.drivers.dummy.domain_member import (
    DomainMember,
    without_replica_fields,
)
from manila_lite.share.drivers.dummy.share_servers import DummyServers
from manila_lite.share.drivers.dummy.state import share_exports, snapshot_exports


class DummyManaging:
    def __init__(
        self, backend: DummyBackend, member: DomainMember, servers: DummyServers
    ):
        self._backend, self._member, self._servers = backend, member, servers

    # Controls for tests

    def add_unmanaged_share(
        self,
        name: str,
        size: int | None = 1,
        share_proto: str = 'NFS',
        content: str = '',
    ) -> str:
        """Add a share that the service did not create; return its path.

        Without a size, the driver cannot return one when it is managed.
        """
        record = {
            'size': size,
            'share_proto': share_proto,
            'export': name,
            'status': 'available',
            'pool': None,
            'content': content,
            'used_gb': 0,
        }
        self._backend.state.unmanaged_shares.put(name, record)
        return share_exports(record)[0]['path']

    def add_unmanaged_snapshot(self, share_id: str, name: str) -> str:
        """Add an unmanaged snapshot; return its provider location."""
        share = self._backend.get_share(share_id)
        self._backend.state.unmanaged_snapshots.put(
            name,
            {
                'size': share['size'],
                'share': share['export'],
                'share_proto': share['share_proto'],
                'content': share['content'],
                'used_gb': share['used_gb'],
                'export': name,
                'status': 'available',
            },
        )
        return name

    def unmanaged_shares(self) -> dict[str, int]:
        """Return the sizes of unmanaged shares by path."""
        return {
            share_exports(record)[0]['path']: record['size']
            for _, record in self._backend.state.unmanaged_shares.records()
        }

    # Shares

    def manage_existing(self, share: base.ShareForDriver) -> base.ManageReply:
        return self.manage_existing_with_server(share)

    def manage_existing_with_server(
        self,
        share: base.ShareForDriver,
        share_server: base.ShareServerMapping | None = None,
    ) -> base.ManageReply:
        with self._backend.lock:
            name, record = self._unmanaged_at(share['export_location'])
            record = record or self._backend.state.shares.find(share['id'])
            if record is None:
                raise exception.ManageInvalidShare(
                    reason=f'there is no share at {share["export_location"]}'
                )
            if record['share_proto'] != share['share_proto']:
                raise exception.ManageInvalidShare(
                    reason=f'its protocol is {record["share_proto"]}'
                )
            if record['size'] is None:
                # The size is required, but some drivers omit it.
                return {}  # type: ignore[typeddict-item]
            if name is not None:
                record |= {
                    'pool': self._backend.pool_for(share),
                    **self._servers.fields_for(share_server),
                    **self._member.replica_fields(share),
                }
                self._backend.state.shares.put(share['id'], record)
                self._backend.faults.midway()
                self._backend.state.unmanaged_shares.drop(name)
        return {'size': record['size'], 'export_locations': share_exports(record)}

    def _unmanaged_at(
        self, path: str | None
    ) -> tuple[str | None, records.Record | None]:
        for name, record in self._backend.state.unmanaged_shares.records():
            if path in [export['path'] for export in share_exports(record)]:
                return name, record
        return None, None

    def unmanage(self, share: base.ShareForDriver) -> None:
        with self._backend.lock:
            record = self._backend.state.shares.find(share['id'])
            if record is not None:
                self._backend.state.unmanaged_shares.put(
                    share['id'], without_replica_fields(record)
                )
                self._backend.faults.midway()
                self._backend.state.shares.drop(share['id'])
            elif self._backend.state.unmanaged_shares.find(share['id']) is None:
                raise exception.ShareResourceNotFound(share_id=share['id'])
            self._backend.state.access.remove(share['id'])
            self._member.leave(share)

    unmanage_with_server = unmanage

    # Snapshots

    def manage_existing_snapshot(
        self, snapshot: base.SnapshotForDriver
    ) -> base.ManageSnapshotReply:
        location = snapshot['provider_location']
        with self._backend.lock:
            name, record = self._unmanaged_snapshot(location)
            record = record or self._backend.state.snapshots.find(snapshot['id'])
            share = self._backend.get_share(snapshot['share_instance_id'])
            if record is None or record['share'] != share['export']:
                raise exception.ManageInvalidShareSnapshot(
                    reason=f'the share has no snapshot {location}'
                )
            if name is not None:
                record |= {'replica': snapshot['share_instance_id']}
                self._backend.state.snapshots.put(snapshot['id'], record)
                self._backend.faults.midway()
                self._backend.state.unmanaged_snapshots.drop(name)
        return {
            'size': record['size'],
            'provider_location': location,
            'export_locations': snapshot_exports(record),
        }

    manage_existing_snapshot_with_server = manage_existing_snapshot

    def _unmanaged_snapshot(
        self, location: str | None
    ) -> tuple[str | None, records.Record | None]:
        for name, record in self._backend.state.unmanaged_snapshots.records():
            if record['export'] == location:
                return name, record
        return None, None

    def unmanage_snapshot(self, snapshot: base.SnapshotForDriver) -> None:
        with self._backend.lock:
            record = self._backend.state.snapshots.find(snapshot['id'])
            if record is not None:
                self._backend.state.unmanaged_snapshots.put(snapshot['id'], record)
                self._backend.faults.midway()
                self._backend.state.snapshots.drop(snapshot['id'])
            self._backend.state.snapshot_access.remove(snapshot['id'])

    unmanage_snapshot_with_server = unmanage_snapshot
