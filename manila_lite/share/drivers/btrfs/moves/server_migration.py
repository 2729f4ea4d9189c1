"""Migration of share servers between back ends of this machine.

In the first phase the shares and snapshots are copied while the source serves
its clients, again and again until little has changed since the last time. The
second phase does that once more, kills the servers of the source, sends what
its clients have written last, and records that the shares have arrived.
Clients can write to the destination when their access rules are applied
there. If it fails before, the source serves its clients again.
"""

from collections.abc import Iterator, Mapping, Sequence
import contextlib
import pathlib
import time
from typing import Any

from oslo_log import log

from manila_lite import exception
from manila_lite.host import Host
from manila_lite.share.drivers import base
from manila_lite.share.drivers.btrfs.backend import BtrfsBackend
from manila_lite.share.drivers.btrfs.catalog import Kind
from manila_lite.share.drivers.btrfs.exports.protocols import CIFS
from manila_lite.share.drivers.btrfs.moves import departures
from manila_lite.share.drivers.btrfs.moves.moves import Item, Move, items_of
from manila_lite.share.drivers.btrfs.moves.peers import BtrfsPeers
from manila_lite.share.drivers.btrfs.volumes.pool import Pool
from manila_lite.share.drivers.contract.migrations import (
    ServerMigration,
    ServerMigrationCompatibility,
    ServerMigrationCompleteReply,
)
from manila_lite.share.drivers.records import Record

LOG = log.getLogger(__name__)

ShareList = Sequence[base.ShareForDriver]
SnapshotList = Sequence[base.SnapshotForDriver]

_SHORT_PASS = 0.2
"""Seconds of a pass over all shares after which clients are interrupted."""


class Stage:
    """How far a migration is, in the record of the destination.

    Before it has arrived, the source has the latest content of all shares,
    and from then on the destination has it.
    """

    COPYING = 'copying'
    COPIED = 'copied'
    RETIRING = 'retiring'
    ARRIVED = 'arrived'


class BtrfsServerMigration:
    """Migrations to this back end, in which it reaches for the source."""

    def __init__(self, backend: BtrfsBackend, peers: BtrfsPeers):
        self._backend = backend
        self._peers = peers

    def share_server_migration_check_compatibility(
        self,
        share_server: base.ShareServerMapping,
        dest_host: str,
        shares_request_spec: Mapping[str, Any],
    ) -> ServerMigrationCompatibility:
        if not self._backend.has_servers:
            return {'compatible': False}
        source = self._find_source(share_server['host'])
        pool = Host.parse(dest_host).pool
        compatible = (
            source is not None
            and source.servers.find(share_server['id']) is not None
            and (not pool or pool in self._backend.pools)
            and all(
                self._backend.exports.has_protocol(share['share_proto'])
                for share in shares_request_spec['shares_req_spec']
            )
        )
        return {
            'compatible': compatible,
            'writable': compatible,
            'nondisruptive': False,
            'preserve_snapshots': compatible,
            'migration_cancel': compatible,
            'migration_get_progress': compatible,
        }

    # The first phase

    def share_server_migration_start(self, migration: ServerMigration) -> None:
        source = self._source(migration.src_share_server['host'])
        server_id = migration.dest_share_server['id']
        with self._moving(server_id, source):
            self._backend.servers.get(server_id)
            if self._find(server_id) is None:
                record = {
                    'host': migration.src_share_server['host'],
                    'server': migration.src_share_server['id'],
                    'pool': Host.parse(migration.dest_share_server['host']).pool,
                    'stage': Stage.COPYING,
                    'pools': {},
                    'volumes': [],
                }
                items = items_of(migration.shares, migration.snapshots)
                self._put(
                    server_id, record | {'pools': self._pools(record, source, items)}
                )
            source.departures.begin(
                server_id, migration.src_share_server['id'], self._backend.root
            )

    def share_server_migration_continue(self, migration: ServerMigration) -> bool:
        """Copy everything; the call takes as long as that."""
        source = self._source(migration.src_share_server['host'])
        server_id = migration.dest_share_server['id']
        items = items_of(migration.shares, migration.snapshots)
        with self._moving(server_id, source):
            record = self._get(server_id)
            if record['stage'] == Stage.COPYING:
                pools = self._pools(record, source, items)
                move = Move(self._backend, source, server_id)
                _catch_up(move, items, pools)
                self._put(server_id, record | {'stage': Stage.COPIED, 'pools': pools})
        return True

    def share_server_migration_get_progress(
        self, migration: ServerMigration
    ) -> dict[str, int]:
        source = self._source(migration.src_share_server['host'])
        server_id = migration.dest_share_server['id']
        record = self._get(server_id)
        items = items_of(migration.shares, migration.snapshots)
        if record['stage'] != Stage.COPYING:
            return {'total_progress': 100}
        pools = self._pools(record, source, items)
        move = Move(self._backend, source, server_id)
        return {'total_progress': move.progress(items, pools)}

    def share_server_migration_cancel(
        self, dest_share_server: base.ShareServerMapping
    ) -> None:
        self.abandon(dest_share_server['id'])

    def abandon(self, server_id: str) -> None:
        """Let the source keep what has not arrived on a server yet.

        A source that is out of reach does that itself when it starts.
        """
        record = self._find(server_id)
        source = self._find_source(record['host']) if record else None
        with self._moving(server_id, source):
            record = self._find(server_id)
            if record and record['stage'] == Stage.ARRIVED:
                raise exception.ShareBackendException(
                    msg=f'shares have arrived on share server {server_id}'
                )
            if record:
                self._give_back(server_id, record, source)
            self._forget(server_id, source)

    def _give_back(
        self, server_id: str, record: Record, source: BtrfsBackend | None
    ) -> None:
        """Remove what clients would see here, then let the source serve."""
        move = Move(self._backend, source or self._backend, server_id)
        move.discard_volumes(record['volumes'])
        if source is not None and record['stage'] == Stage.RETIRING:
            with self._changing(source, record['server']):
                source.servers.enable(record['server'])
        self._put(server_id, record | {'stage': Stage.COPIED, 'volumes': []})

    def _forget(self, server_id: str, source: BtrfsBackend | None) -> None:
        """Remove all copies, and what is recorded on both sides."""
        if source is not None:
            departures.drop_copies(source.pools.values(), server_id)
            source.departures.end(server_id)
        departures.drop_copies(self._backend.pools.values(), server_id)
        self._backend.departures.arriving.drop(server_id)

    # The second phase

    def share_server_migration_complete(
        self, migration: ServerMigration
    ) -> ServerMigrationCompleteReply:
        source = self._source(migration.src_share_server['host'])
        server_id = migration.dest_share_server['id']
        items = items_of(migration.shares, migration.snapshots)
        with self._moving(server_id, source):
            record = self._find(server_id)
            if record is not None:  # else it was completed before
                if record['stage'] != Stage.ARRIVED:
                    record = self._arrive(server_id, record, source, items)
                self._leave_source(server_id, record, source, items)
        return {
            'share_updates': {
                item.id: self._reply(item, server_id)
                for item in items
                if item.kind is Kind.SHARE
            },
            'snapshot_updates': {
                item.id: self._reply(item, server_id)
                for item in items
                if item.kind is Kind.SNAPSHOT
            },
        }

    def _arrive(
        self,
        server_id: str,
        record: Record,
        source: BtrfsBackend,
        items: Sequence[Item],
    ) -> Record:
        """Move the latest content here; after an error the source has it."""
        self._backend.servers.get(server_id)
        pools = self._pools(record, source, items)
        move = Move(self._backend, source, server_id)
        received = _catch_up(move, items, pools)
        has_cifs = CIFS in move.protocols(items)
        if has_cifs:
            # It takes a while; clients do not wait for it.
            self._backend.servers.start_smb(server_id)
        retiring = record | {
            'stage': Stage.RETIRING,
            'pools': pools,
            'volumes': [[item.kind, item.name] for item in items],
        }
        self._put(server_id, retiring)
        try:
            with self._changing(source, record['server']):
                source.servers.disable(record['server'])
            shares = [item for item in items if item.kind is Kind.SHARE]
            received |= move.copy(shares, pools)
            if has_cifs:
                self._backend.servers.users(server_id).adopt(
                    source.servers.users(record['server'])
                )
            move.create_volumes(received, pools)
            arrived = retiring | {'stage': Stage.ARRIVED}
            self._put(server_id, arrived)
        except exception.StaleFencingToken:
            raise  # another process completes it
        except BaseException:
            self._try_to_give_back(server_id, source)
            raise
        return arrived

    def _try_to_give_back(self, server_id: str, source: BtrfsBackend) -> None:
        record = self._get(server_id)
        if record['stage'] != Stage.RETIRING:
            return
        try:
            self._give_back(server_id, record, source)
        except (OSError, exception.ManilaLiteError) as error:
            LOG.error(
                'Share server %(id)s does not serve its clients until the '
                'migration is cancelled or completed: %(error)s',
                {'id': record['server'], 'error': error},
            )

    def _leave_source(
        self,
        server_id: str,
        record: Record,
        source: BtrfsBackend,
        items: Sequence[Item],
    ) -> None:
        """Leave a source that can be torn down."""
        move = Move(self._backend, source, server_id)
        move.register(items, record['pools'])
        with self._changing(source, record['server']):
            source.servers.close(record['server'])
        move.remove_from_source(items)
        self._forget(server_id, source)

    def _reply(self, item: Item, server_id: str) -> Any:
        found = self._backend.find(item.kind, item.name)
        if found is None or found[1].get('server') != server_id:
            raise exception.ShareBackendException(
                msg=f'{item.name} is not on share server {server_id}'
            )
        pool, record = found
        place = (
            {'pool_name': pool.name}
            if item.kind is Kind.SHARE
            else {'provider_location': record['volume']}
        )
        return place | {'export_locations': self._backend.locations(item.kind, record)}

    # Both phases

    def _find_source(self, host: str) -> BtrfsBackend | None:
        """Return the back end of a host if all of its pools are mounted."""
        found = self._peers.with_servers_at(host)
        if found and len(found.pools) == len(found.configuration.btrfs_pools):
            return found
        return None

    def _source(self, host: str) -> BtrfsBackend:
        found = self._find_source(host)
        if found is None:
            raise exception.ShareBackendException(
                msg=f'the back end of {host} is out of reach'
            )
        return found

    @contextlib.contextmanager
    def _moving(self, server_id: str, source: BtrfsBackend | None) -> Iterator[None]:
        """Lock the copies of a server on both sides."""
        sides = [self._backend, *([source] if source else [])]
        try:
            with contextlib.ExitStack() as stack:
                for side in sorted(sides, key=lambda each: each.root):
                    stack.enter_context(side.lock_copies(server_id))
                self._backend.fencing.check_call()
                yield
        except OSError as error:
            raise exception.ShareBackendException(
                msg=f'{error.filename or server_id}: {error.strerror or error}'
            ) from error

    @contextlib.contextmanager
    def _changing(self, source: BtrfsBackend, server_id: str) -> Iterator[None]:
        """Lock a server of the source, unless this call is too late."""
        with source.changing(server_id):
            self._backend.fencing.check_call()
            yield

    def _find(self, server_id: str) -> Record | None:
        return self._backend.departures.arriving.find(server_id)

    def _get(self, server_id: str) -> Record:
        record = self._find(server_id)
        if record is None:
            raise exception.ShareBackendException(
                msg=f'no migration to share server {server_id} has begun'
            )
        return record

    def _put(self, server_id: str, record: Record) -> None:
        self._backend.fencing.check_call()
        self._backend.departures.arriving.put(server_id, record)

    def _pools(
        self, record: Record, source: BtrfsBackend, items: Sequence[Item]
    ) -> dict[str, str]:
        """Return the pool of each share: it stays the same."""
        return {
            item.name: record['pools'].get(item.name)
            or self._pool_for(record['pool'], source, item)
            for item in items
            if item.kind is Kind.SHARE
        }

    def _pool_for(self, wanted: str, source: BtrfsBackend, item: Item) -> str:
        """Return the requested pool, one of the same name, or any pool."""
        pools = self._backend.pools
        current = source.get_share(item.name)[0].name
        if wanted or current in pools:
            name = wanted or current
            if name not in pools:
                raise exception.ShareBackendException(msg=f'there is no pool {name}')
            return name

        def free_bytes(pool: Pool) -> int:
            return pool.capacity_bytes()[1]

        return max(pools.values(), key=free_bytes).name


def _catch_up(
    move: Move, items: Sequence[Item], pools: Mapping[str, str]
) -> dict[Item, pathlib.Path]:
    """Copy until little has changed meanwhile; return the last copies.

    Clients may write faster than that: it ends when another copy would not
    help.
    """
    before = float('inf')
    while True:
        began = time.monotonic()
        received = move.copy(items, pools)
        seconds = time.monotonic() - began
        if seconds < _SHORT_PASS or seconds > before / 2:
            return received
        before = seconds
