"""Access to the shares and snapshots of the btrfs driver."""

from collections.abc import Iterator
import contextlib

from oslo_log import log

from manila_lite import exception
from manila_lite.share.drivers import base
from manila_lite.share.drivers.btrfs.backend import BtrfsBackend
from manila_lite.share.drivers.btrfs.catalog import Kind, RecordsUnreadable
from manila_lite.share.drivers.btrfs.daemons import root_directory
from manila_lite.share.drivers.btrfs.exports.protocols import volume_of
from manila_lite.share.drivers.btrfs.moves import closing
from manila_lite.share.drivers.btrfs.moves.roles import BtrfsRoles
from manila_lite.share.drivers.contract.access import RuleChanges

LOG = log.getLogger(__name__)

_MIGRATING = 'migrating'


class BtrfsAccess:
    """Sets the clients of an export, always the complete list."""

    def __init__(self, backend: BtrfsBackend, roles: BtrfsRoles):
        self._backend = backend
        self._roles = roles

    def update_access(
        self, share: base.ShareForDriver, rules: RuleChanges
    ) -> base.AccessReplies:
        """Export the share to the given clients, whatever it was before.

        Others lose the files that they have open. Replicas that are not
        active let clients read, or none in, as does a share that moves to
        another pool at this moment. If its pool fails, an error is raised,
        and a share that a client may have to lose lets none in.
        """
        with (
            self._backend.changing(share['name']),
            self._failing_closed(Kind.SHARE, volume_of(share), rules.is_revoking),
        ):
            found = self._backend.find(Kind.SHARE, share['name'])
            if found is None:
                self._backend.require()
            pool, record = found or self._backend.get_share(share['name'])
            is_closed = closing.is_closed(pool, share['name'])
            if is_closed and share['status'] != _MIGRATING:
                closing.forget(pool, share['name'])
                is_closed = False
            read_only = self._roles.is_read_only(share)
            return self._backend.exports.publish(
                Kind.SHARE,
                record,
                pool.path(Kind.SHARE, record['volume']),
                rules.access_rules,
                read_only=read_only,
                denies_all=is_closed or (read_only and self._roles.denies_all(share)),
            )

    def snapshot_update_access(
        self, snapshot: base.SnapshotForDriver, rules: RuleChanges
    ) -> base.AccessReplies:
        """Export the snapshot read-only; without clients, do not export it.

        If its pool fails, an error is raised, and a snapshot that a client
        may have to lose is not exported.
        """
        volume = snapshot['provider_location'] or snapshot['name']
        with (
            self._backend.changing(snapshot['name']),
            self._failing_closed(Kind.SNAPSHOT, volume, rules.is_revoking),
        ):
            found = self._backend.find(Kind.SNAPSHOT, snapshot['name'])
            if found is None:
                self._backend.require()
            pool, record = found or self._backend.get_snapshot(snapshot)
            return self._backend.exports.publish(
                Kind.SNAPSHOT,
                record,
                pool.path(Kind.SNAPSHOT, record['volume']),
                rules.access_rules,
                read_only=True,
                denies_all=self._roles.denies_all(snapshot['share']),
            )

    @contextlib.contextmanager
    def _failing_closed(
        self, kind: Kind, volume: str, is_revoking: bool
    ) -> Iterator[None]:
        """End an export if its pool fails while access is revoked.

        If `btrfs_root` cannot be written, nothing has been changed, and the
        error says so: other clients are not affected.
        """
        try:
            yield
        except (OSError, RecordsUnreadable, exception.StorageUnavailable) as error:
            if is_revoking and not (
                isinstance(error, OSError)
                and root_directory.has_failed(self._backend.root, error)
            ):
                LOG.error(
                    '%(volume)s lets no clients in, since its rules cannot '
                    'be applied: %(error)s',
                    {'volume': volume, 'error': error},
                )
                self._backend.exports.withdraw(kind, volume)
            raise
