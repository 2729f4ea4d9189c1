"""Migration of shares to other pools of this machine, by incremental send.

The first phase copies in a thread, since the published methods return at
once: a migration can be cancelled while it copies.
"""

from collections.abc import Callable
import concurrent.futures
import contextlib
import threading
from typing import Any

from oslo_log import log

from manila_lite import exception
from manila_lite.host import Host
from manila_lite.share.drivers import base
from manila_lite.share.drivers.btrfs.backend import BtrfsBackend
from manila_lite.share.drivers.btrfs.catalog import Kind
from manila_lite.share.drivers.btrfs.moves import closing
from manila_lite.share.drivers.btrfs.moves.migrated_snapshots import SnapshotPair
from manila_lite.share.drivers.btrfs.moves.migration_copy import (
    MigrationCopy,
    forget_leaving,
)
from manila_lite.share.drivers.btrfs.moves.peers import BtrfsPeers
from manila_lite.share.drivers.contract.migrations import (
    ShareMigration,
    ShareMigrationCompatibility,
    ShareMigrationCompleteReply,
)


class BackgroundCall:
    """A call in a thread, which ends with the process at the latest."""

    def __init__(self, function: Callable[[], None]):
        self._function = function
        self._future: concurrent.futures.Future[None] = concurrent.futures.Future()
        # Unlike those of an executor, it does not keep the process alive.
        threading.Thread(target=self._run, daemon=True).start()

    def has_ended(self, timeout: float) -> bool:
        """Wait at most `timeout` seconds; raise the error that it ended with."""
        try:
            self._future.result(timeout)
        except concurrent.futures.TimeoutError:
            if self._future.done():  # it is the error of the call
                raise
            return False
        return True

    def _run(self) -> None:
        try:
            self._function()
        except BaseException as error:  # noqa: BLE001 (has_ended raises it)
            self._future.set_exception(error)
        else:
            self._future.set_result(None)


LOG = log.getLogger(__name__)

PATIENCE = 5.0
"""Seconds that a poll waits for the end of the copy."""

_NOT_YET = 99
"""The highest progress while clients change what is copied."""


class _Progress:
    """How many bytes of a share were sent, of those it had at first."""

    def __init__(self, total: int):
        self.total = total
        self.sent = 0

    def add(self, number: int) -> None:
        self.sent += number

    @property
    def percent(self) -> int:
        if self.sent >= self.total:
            return _NOT_YET
        return min(_NOT_YET, 100 * self.sent // self.total)


class BtrfsMigration:
    """Shares that leave this back end, or one of its pools."""

    def __init__(self, backend: BtrfsBackend, peers: BtrfsPeers):
        self._backend = backend
        self._peers = peers
        self._calls: dict[str, BackgroundCall] = {}
        self._progress: dict[str, _Progress] = {}

    def forget_ended(self) -> None:
        """Remove what is kept for copies that no longer exist.

        They were removed at the destination while this back end could not be
        reached.
        """
        for pool in self._backend.pools.values():
            for name, leaving in list(pool.catalog.leaving.records()):
                there = self._peers.beside(leaving['to_host'], leaving['host'])
                found = there and there.pools.get(Host.parse(leaving['to_host']).pool)
                if (
                    found
                    and found.catalog.arriving.find(leaving['to']) is None
                    and found.catalog.find(Kind.SHARE, leaving['to']) is None
                ):
                    self._try_to_forget(name, leaving['to'])

    def _try_to_forget(self, name: str, copy: str) -> None:
        with self._backend.try_lock_copies(name) as is_locked:
            if not is_locked:
                return
            try:
                forget_leaving(self._backend, name, copy)
            except exception.ShareBackendException as error:
                LOG.error(
                    'Share %(name)s, which was to be migrated, cannot be '
                    'used: %(error)s',
                    {'name': name, 'error': error},
                )

    # The first phase

    def migration_check_compatibility(
        self, migration: ShareMigration
    ) -> ShareMigrationCompatibility:
        """Return how a share can be moved to a pool of this machine."""
        reason = self._why_not(migration)
        if reason is not None:
            LOG.info(
                'Share %(name)s cannot be migrated to %(host)s: %(reason)s',
                {
                    'name': migration.source_share['name'],
                    'host': migration.destination_share['host'],
                    'reason': reason,
                },
            )
        return {
            'compatible': reason is None,
            'writable': reason is None,
            'preserve_metadata': reason is None,
            'nondisruptive': False,
            'preserve_snapshots': reason is None,
        }

    def _why_not(self, migration: ShareMigration) -> str | None:
        source, destination = migration.source_share, migration.destination_share
        found = self._backend.find(Kind.SHARE, source['name'])
        if found is None or 'reverting_to' in found[1]:
            return 'it is incomplete'
        there = self._peers.beside(destination['host'], source['host'])
        if there is None:
            return 'that is no btrfs back end of this machine'
        try:
            self._backend.locations(Kind.SHARE, found[1])
            there.server_for(migration.destination_share_server)
            there.pool_for(destination)
            there.exports.check(found[1]['share_proto'], destination['name'])
        except (ValueError, exception.ShareBackendException) as error:
            return str(error)
        return None

    def migration_start(self, migration: ShareMigration) -> None:
        """Record that the share moves; the next calls copy it."""
        self._copy_of(migration).begin()

    def migration_continue(self, migration: ShareMigration) -> bool:
        """Copy until little is left, also after a restart of the service.

        What has changed meanwhile is sent again and again.
        """
        copy = self._copy_of(migration)
        call = self._calls.get(copy.name)
        if call is None:
            if copy.find_share() is not None:
                return True
            if not copy.is_begun():
                raise exception.ShareResourceNotFound(share_id=copy.name)
            call = BackgroundCall(lambda: self._catch_up(copy))
            self._calls[copy.name] = call
        with contextlib.ExitStack() as stack:
            stack.callback(self._calls.pop, copy.name, None)
            if not call.has_ended(PATIENCE):
                stack.pop_all()
                return False
        return True

    def _catch_up(self, copy: MigrationCopy) -> None:
        with copy.locked():
            if not copy.has_content():
                self._progress[copy.name] = _Progress(copy.used_bytes())
            copy.catch_up(self._count(copy))

    def _count(self, copy: MigrationCopy) -> Callable[[int], None]:
        return self._progress.setdefault(copy.name, _Progress(0)).add

    def migration_get_progress(self, migration: ShareMigration) -> dict[str, int]:
        """Return the percentage of the bytes that the share had at first."""
        copy = self._copy_of(migration)
        progress = self._progress.get(copy.name)
        if progress is not None:
            return {'total_progress': progress.percent, 'sent_bytes': progress.sent}
        is_copied = copy.has_content() or copy.find_share() is not None
        return {'total_progress': _NOT_YET if is_copied else 0}

    def migration_cancel(self, migration: ShareMigration) -> None:
        """Stop copying, and remove the copy; a missing one is success."""
        try:
            copy = self._copy_of(migration)
        except exception.ShareBackendException:
            # The destination is removed when it is within reach again.
            own = migration.source_share['name']
            with self._backend.lock_copies(own):
                forget_leaving(self._backend, own, migration.destination_share['name'])
            raise
        copy.discard()
        self._forget(copy)

    # The second phase

    def migration_complete(
        self, migration: ShareMigration
    ) -> ShareMigrationCompleteReply:
        """Send the rest while no client can write, and remove the source.

        If that fails, its clients can use it as before.
        """
        try:
            copy = self._copy_of(migration)
        except exception.ShareBackendException:
            # An earlier call may have been killed before its end.
            own = migration.source_share['name']
            with self._backend.lock_copies(own), self._backend.changing(own):
                closing.reopen(self._backend, own)
            raise
        with copy.locked():
            record = copy.replace_source(
                self._count(copy), migration.destination_share_server
            )
        self._forget(copy)
        there = self._reach(migration)
        return {
            'export_locations': there.locations(Kind.SHARE, record),
            'snapshot_updates': {
                snapshot['id']: _snapshot_update(there, snapshot)
                for snapshot in migration.snapshot_mappings.values()
            },
        }

    def _forget(self, copy: MigrationCopy) -> None:
        self._calls.pop(copy.name, None)
        self._progress.pop(copy.name, None)

    def _copy_of(self, migration: ShareMigration) -> MigrationCopy:
        pairs = [
            SnapshotPair(one['name'], copy['name'])
            for one, copy in migration.snapshot_pairs
        ]
        return MigrationCopy(
            self._backend,
            migration.source_share,
            self._reach(migration),
            migration.destination_share,
            pairs,
        )

    def _reach(self, migration: ShareMigration) -> BtrfsBackend:
        """Return the back end of the destination."""
        host = migration.destination_share['host']
        there = self._peers.beside(host, migration.source_share['host'])
        if there is None:
            raise exception.ShareBackendException(msg=f'{host} is out of reach')
        return there


def _snapshot_update(
    there: BtrfsBackend, snapshot: base.SnapshotForDriver
) -> dict[str, Any]:
    """Return where a snapshot is on the destination."""
    _, record = there.get_snapshot(snapshot)
    return {
        'provider_location': record['volume'],
        'export_locations': there.locations(Kind.SNAPSHOT, record),
    }
