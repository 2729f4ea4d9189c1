"""Shares of the dummy back end."""

from collections.abc import Iterable

from manila_lite import exception
from manila_lite.share.drivers import base, records, tree_removal
from manila_lite.share.drivers.contract.connections import identity_of
from manila_lite.share.drivers.dummy.backend import DummyBackend
from manila_lite.share.drivers.dummy.domain_member import DomainMember
from manila_lite.share.drivers.dummy.share_servers import DummyServers
from manila_lite.share.drivers.dummy.state import INCOMING, share_exports

# Key of the metadata item that sets how full a share is.
USED_GB_KEY = 'dummy_used_gb'
CREATING_FROM_SNAPSHOT = 'creating_from_snapshot'


class DummyShares:
    def __init__(
        self, backend: DummyBackend, member: DomainMember, servers: DummyServers
    ):
        self._backend, self._member, self._servers = backend, member, servers

    # Controls for tests

    def write(self, share_id: str, content: str, used_gb: float = 0) -> None:
        """Write content to a share, as its users do."""
        with self._backend.lock:
            self._member.change_content(share_id, content, used_gb)

    def read(self, share_id: str) -> str:
        """Return the content of a share, visible to its users or not."""
        with self._backend.lock:
            self._member.catch_up(share_id)
            return self._backend.get_share(share_id)['content']

    def set_error(self, share_id: str) -> None:
        """Put a share into error, even while it is being created."""
        with self._backend.lock:
            self._backend.state.shares.put(
                share_id, self._backend.get_share(share_id) | {'status': 'error'}
            )

    # Exports

    def ensure_shares(
        self, shares: Iterable[base.ShareForDriver]
    ) -> dict[str, base.EnsureReply]:
        return {share['id']: self._ensure_reply(share) for share in shares}

    def _ensure_reply(self, share: base.ShareForDriver) -> base.EnsureReply:
        record = self._backend.state.shares.find(share['id'])
        if record is None:
            return {'status': 'error'}
        return {'export_locations': share_exports(record)}

    def ensure_share(self, share: base.ShareForDriver) -> base.ExportLocationsReply:
        return share_exports(self._backend.get_share(share['id']))

    def get_pool(self, share: base.ShareForDriver) -> str:
        record = self._backend.state.shares.find(share['id'])
        return record['pool'] if record else self._backend.pool_for(share)

    # Shares

    def create_share(
        self,
        share: base.ShareForDriver,
        share_server: base.ShareServerMapping | None = None,
    ) -> base.ExportLocationsReply:
        return share_exports(self._create(share, share_server, content='', used_gb=0))

    def create_share_from_snapshot(
        self,
        share: base.ShareForDriver,
        snapshot: base.SnapshotForDriver,
        share_server: base.ShareServerMapping | None = None,
    ) -> base.ExportLocationsReply | base.NewShareReply:
        source = self._member.get_snapshot(snapshot['id'])
        record = self._create(
            share,
            share_server,
            content=source['content'],
            used_gb=source['used_gb'],
            steps=self._backend.options.dummy_driver_from_snapshot_steps,
        )
        if record['status'] == CREATING_FROM_SNAPSHOT:
            return {
                'status': CREATING_FROM_SNAPSHOT,
                'export_locations': share_exports(record),
            }
        return share_exports(record)

    def _create(
        self,
        share: base.ShareForDriver,
        share_server: base.ShareServerMapping | None,
        content: str,
        used_gb: float,
        steps: int = 0,
    ) -> records.Record:
        with self._backend.lock:
            record = self._backend.state.shares.find(share['id'])
            if record is None or record['status'] == 'error':
                record = self.new_record(
                    share, share_server, content, used_gb
                ) | self._member.replica_fields(share)
                self._backend.state.shares.put(share['id'], record)
                self._backend.faults.midway()
                record |= (
                    {'status': CREATING_FROM_SNAPSHOT, 'steps': steps, 'done': 0}
                    if steps
                    else {'status': 'available'}
                )
                self._backend.state.shares.put(share['id'], record)
        return record

    def delete_share(self, share: base.ShareForDriver) -> None:
        with self._backend.lock:
            record = self._backend.state.shares.find(share['id'])
            if record is not None:
                self._backend.state.shares.put(
                    share['id'], record | {'status': 'error'}
                )
                self._backend.faults.midway()
                if INCOMING in record:
                    self._drop_snapshots(share['id'])
            tree_removal.remove_tree(self._backend.state.content(share['id']))
            self._backend.state.access.remove(share['id'])
            self._backend.state.shares.drop(share['id'])
            self._member.leave(share)
        if record is None:
            raise exception.ShareResourceNotFound(share_id=share['id'])

    def _drop_snapshots(self, share_id: str) -> None:
        """Drop the snapshots of a copy that no migration has removed."""
        snapshots = self._backend.state.snapshots
        for name, record in list(snapshots.records()):
            if record.get('replica') == share_id:
                snapshots.drop(name)

    def extend_share(self, share: base.ShareForDriver, new_size: int) -> None:
        with self._backend.lock:
            record = self._member.current_record(share['id'])
            self._member.put_replicated(
                share['id'], record | {'size': max(record['size'], new_size)}
            )

    def shrink_share(self, share: base.ShareForDriver, new_size: int) -> None:
        with self._backend.lock:
            record = self._member.current_record(share['id'])
            used_gb = max(
                record['used_gb'], float(share['metadata'].get(USED_GB_KEY, 0))
            )
            if new_size < min(record['size'], used_gb):
                raise exception.ShareShrinkingPossibleDataLoss(share_id=share['id'])
            self._member.put_replicated(
                share['id'], record | {'size': min(record['size'], new_size)}
            )

    def transfer_accept(
        self, share: base.ShareForDriver, new_user: str | None, new_project: str
    ) -> None:
        with self._backend.lock:
            self._backend.state.shares.put(
                share['id'],
                self._backend.get_share(share['id'])
                | {'owner': [new_project, new_user]},
            )

    def get_share_status(self, share: base.ShareForDriver) -> base.StatusReply:
        with self._backend.lock:
            record = self._backend.get_share(share['id'])
            if record['status'] == CREATING_FROM_SNAPSHOT:
                record = _advance(record)
                self._backend.state.shares.put(share['id'], record)
        reply: base.StatusReply = {
            'status': record['status'],
            'size': record['size'],
            'share_proto': record['share_proto'],
            'export_locations': share_exports(record),
        }
        if record['status'] == CREATING_FROM_SNAPSHOT:
            reply['progress'] = f'{100 * record["done"] // record["steps"]}%'
        return reply

    def connection_get_info(self, share: base.ShareForDriver) -> base.ConnectionInfo:
        """Return an own directory, which is created at the first call."""
        with self._backend.lock:
            self._backend.get_share(share['id'])
            content = self._backend.state.content(share['id'])
            content.mkdir(parents=True, exist_ok=True)
        return {'directory': identity_of(content)}

    def new_record(
        self,
        share: base.ShareForDriver,
        share_server: base.ShareServerMapping | None,
        content: str = '',
        used_gb: float = 0,
    ) -> records.Record:
        """Return the record of a share that is about to be created."""
        return {
            'size': share['size'],
            'share_proto': share['share_proto'],
            'export': share['mount_point_name'] or share['name'],
            'pool': self._backend.pool_for(share),
            'content': content,
            'used_gb': used_gb,
            'status': 'error',
            **self._servers.fields_for(share_server),
        }


def _advance(record: records.Record) -> records.Record:
    """Return the record after one more step of creation."""
    done = record['done'] + 1
    return record | {
        'done': done,
        'status': (CREATING_FROM_SNAPSHOT if done < record['steps'] else 'available'),
    }
