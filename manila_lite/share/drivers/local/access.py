"""Access to the shares and snapshots of the local driver."""

from collections.abc import Sequence
import pathlib

from manila_lite import exception
from manila_lite.share.drivers import base, records, samba
from manila_lite.share.drivers.contract.values import AccessReply, AccessRuleForDriver
from manila_lite.share.drivers.files.replicas import READABLE, Role
from manila_lite.share.drivers.local.backend import LocalBackend
from manila_lite.share.drivers.local.peers import LocalRoles
from manila_lite.share.drivers.local.store import LocalItem
from manila_lite.share.drivers.nfs_clients import clients_of


class LocalAccess:
    """Writes the export files of NFS servers and Samba."""

    def __init__(self, backend: LocalBackend, roles: LocalRoles):
        self._backend = backend
        self._roles = roles

    def update_access(
        self, share: base.ShareForDriver, access_rules: list[base.AccessRuleForDriver]
    ) -> base.AccessReplies:
        """Rewrite the export file of the share, whatever its content."""
        item = self._backend.store.share(share['name'])
        if not access_rules:
            self._backend.store.remove_exports(item)
            if not self._backend.store.disk.is_deleted():
                self._backend.get_share(share['name'])
            return {}
        _, record = self._backend.get_share(share['name'])
        role = None
        try:
            # The role may change meanwhile; a replica that has become
            # passive must not stay writable.
            while role != (role := self._roles.role_of(share)):
                replies = self._export_for_role(item, record, share, access_rules, role)
        except FileNotFoundError as error:  # deleted meanwhile
            raise exception.ShareResourceNotFound(share_id=share['id']) from error
        return replies

    def _export_for_role(
        self,
        item: LocalItem,
        record: records.Record,
        share: base.ShareForDriver,
        rules: list[base.AccessRuleForDriver],
        role: str,
    ) -> base.AccessReplies:
        if role == Role.ACTIVE:
            return self._write_export(item, record, rules)
        if share['replication_type'] == READABLE:
            return self._write_export(item, record, rules, read_only=True)
        self._backend.store.remove_exports(item)  # until it is promoted
        return {}

    def snapshot_update_access(
        self,
        snapshot: base.SnapshotForDriver,
        access_rules: list[base.AccessRuleForDriver],
    ) -> base.AccessReplies:
        """Rewrite the export file of a snapshot, which is read-only."""
        item = self._backend.store.snapshot(snapshot['name'])
        if not access_rules:
            self._backend.store.remove_exports(item)
            if not self._backend.store.disk.is_deleted():
                self._backend.get_snapshot(snapshot)
            return {}
        _, record = self._backend.get_snapshot(snapshot)
        if self._roles.denies_all(snapshot['share']):
            self._backend.store.remove_exports(item)
            return {}
        try:
            return self._write_export(item, record, access_rules, read_only=True)
        except FileNotFoundError as error:  # deleted meanwhile
            raise exception.SnapshotResourceNotFound(
                snapshot_id=snapshot['id']
            ) from error

    def _write_export(
        self,
        item: LocalItem,
        record: records.Record,
        rules: list[base.AccessRuleForDriver],
        read_only: bool = False,
    ) -> base.AccessReplies:
        data = item.data_path(record)
        if record.get('share_proto') == 'CIFS':
            file = item.samba
            text, replies = samba.format_section(
                item.name, data, rules, read_only=read_only
            )
        else:
            file = item.exports
            text, replies = format_exports(
                data,
                rules,
                self._backend.configuration.local_export_options,
                read_only=read_only,
            )
        if text is None:
            self._backend.store.remove_exports(item)
        else:
            self._backend.store.write_export(item, file, text)
        return replies


_HEADER = '# Written by manila_lite. What is changed here will be lost.\n'
_QUOTED = frozenset(' \t\n#"\\')


def format_exports(
    directory: pathlib.Path,
    rules: Sequence[AccessRuleForDriver],
    options: str,
    *,
    read_only: bool = False,
) -> tuple[str | None, dict[str, AccessReply]]:
    """Return the text (None if no client has access) and the replies."""
    clients, replies = clients_of(rules, read_only)
    if not clients:
        return None, replies
    line = ' '.join(
        [
            _quoted(str(directory)),
            *(f'{client.network}({client.level},{options})' for client in clients),
        ]
    )
    return f'{_HEADER}{line}\n', replies


def _quoted(path: str) -> str:
    """Escape a path for exports(5)."""
    return ''.join(
        f'\\{ord(letter):03o}' if letter in _QUOTED else letter for letter in path
    )
