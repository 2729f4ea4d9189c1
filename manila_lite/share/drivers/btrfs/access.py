"""Access to the shares and snapshots of the btrfs driver."""

from manila_lite.context import RequestContext
from manila_lite.share.drivers import base
from manila_lite.share.drivers.btrfs.backend import BtrfsBackend
from manila_lite.share.drivers.btrfs.catalog import Kind
from manila_lite.share.drivers.nfs_clients import clients_of


class BtrfsAccess:
    """The clients of exports, always all of them at once."""

    def __init__(self, backend: BtrfsBackend):
        self._backend = backend

    def update_access(
        self,
        context: RequestContext,
        share: base.ShareForDriver,
        access_rules: list[base.AccessRuleForDriver],
        add_rules: list[base.AccessRuleForDriver],
        delete_rules: list[base.AccessRuleForDriver],
        update_rules: list[base.AccessRuleForDriver],
        share_server: base.ShareServerMapping | None = None,
    ) -> base.AccessReplies:
        """Export the share to the given clients, whatever it was before.

        Others lose the files that they have open.
        """
        clients, replies = clients_of(access_rules)
        with self._backend.changing(share['name']):
            found = self._backend.find(Kind.SHARE, share['name'])
            if found is None and not access_rules:
                return {}
            pool, record = found or self._backend.get_share(share['name'])
            volume = record['volume']
            self._backend.exports.publish(
                Kind.SHARE, volume, pool.path(Kind.SHARE, volume), clients
            )
        return replies

    def snapshot_update_access(
        self,
        context: RequestContext,
        snapshot: base.SnapshotForDriver,
        access_rules: list[base.AccessRuleForDriver],
        add_rules: list[base.AccessRuleForDriver],
        delete_rules: list[base.AccessRuleForDriver],
        share_server: base.ShareServerMapping | None = None,
    ) -> base.AccessReplies:
        """Export the snapshot read-only; without clients, do not export it."""
        clients, replies = clients_of(access_rules, read_only=True)
        with self._backend.changing(snapshot['name']):
            found = self._backend.find(Kind.SNAPSHOT, snapshot['name'])
            if found is None and not access_rules:
                return {}
            pool, record = found or self._backend.get_snapshot(snapshot)
            volume = record['volume']
            if clients:
                self._backend.exports.publish(
                    Kind.SNAPSHOT,
                    volume,
                    pool.path(Kind.SNAPSHOT, volume),
                    clients,
                )
            else:
                self._backend.exports.withdraw(Kind.SNAPSHOT, volume)
        return replies
