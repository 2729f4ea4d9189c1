"""Plain directories of this machine as shares, without root rights.

Sizes are nominal: plain directories have no quota. A snapshot of a share in
use has each file as of the moment it is copied. Access rules are written to
files for an NFS server or Samba. `store` describes the directory layout.
"""

from collections.abc import Iterable, Iterator
import os
import pathlib
import re
from typing import Any

from manila_lite import exception
from manila_lite.context import RequestContext
from manila_lite.share.drivers import base
from manila_lite.share.drivers import records
from manila_lite.share.drivers.local import samba
from manila_lite.share.drivers.local import trees
from manila_lite.share.drivers.local.managing import LocalManaging
from manila_lite.share.drivers.local.managing import export_locations
from manila_lite.share.drivers.local.nfs_exports import format_exports
from manila_lite.share.drivers.local.replica import READABLE
from manila_lite.share.drivers.local.replica import ReplicaRole
from manila_lite.share.drivers.local.replication import LocalReplication
from manila_lite.share.drivers.local.store import SHARES
from manila_lite.share.drivers.local.store import LocalItem
from manila_lite.share.drivers.local.store import LocalStore

GIB = 1024**3

_EXPORT_OPTIONS = re.compile(r'[^\s()#"]+')


class LocalDriver(
    LocalReplication,
    LocalManaging,
    base.CreateFromSnapshotSupport,
    base.RevertSupport,
    base.MountSnapshotSupport,
):
    ipv6_implemented = True

    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__(False, *args, **kwargs)
        self._root = pathlib.Path(self.configuration.local_root)
        self._store = LocalStore(self._root)
        self._capacity_gb: float | None = self.configuration.local_capacity_gb

    # Start

    def check_for_setup_error(self) -> None:
        """Check that the root is an absolute path that we can write to."""
        if not self._root.is_absolute():
            raise self._bad_root('is not an absolute path')
        try:
            self._store.create_directories()
        except OSError as error:
            raise self._bad_root(f'cannot be used: {error}') from error
        options = self.configuration.local_export_options
        if not _EXPORT_OPTIONS.fullmatch(options):
            raise exception.BadConfiguration(
                reason=f'back end "{self.configuration.config_group}": '
                f'local_export_options {options!r} has characters that are '
                'not allowed between brackets'
            )
        self._check_replication()
        self._demote_superseded()

    def _bad_root(self, reason: str) -> exception.BadConfiguration:
        return exception.BadConfiguration(
            reason=f'back end "{self.configuration.config_group}": '
            f'local_root {self._root} {reason}'
        )

    def get_backend_info(self, context: RequestContext) -> dict[str, str]:
        return {'root': str(self._root)}

    def ensure_shares(
        self, context: RequestContext, shares: Iterable[base.ShareForDriver]
    ) -> dict[str, base.EnsureReply]:
        return {share['id']: self._ensure_reply(share) for share in shares}

    def _ensure_reply(self, share: base.ShareForDriver) -> base.EnsureReply:
        try:
            status = self.get_share_status(share)
        except exception.ShareResourceNotFound:
            return {'status': 'error'}
        # The export files may have been written for other paths.
        return {
            'status': status['status'],
            'reapply_access_rules': True,
            'export_locations': status['export_locations'],
        }

    def ensure_share(
        self,
        context: RequestContext,
        share: base.ShareForDriver,
        share_server: base.ShareServerMapping | None = None,
    ) -> base.ExportLocationsReply:
        return self.get_share_status(share)['export_locations']

    def get_pool(self, share: base.ShareForDriver) -> str:
        return self.backend_name

    # Shares

    def create_share(
        self,
        context: RequestContext,
        share: base.ShareForDriver,
        share_server: base.ShareServerMapping | None = None,
    ) -> base.ExportLocationsReply:
        item = self._store.share(share['name'])
        with self._store.locked_work_directory(item.name) as work:
            record = item.find()
            if record is None:
                (work / 'data').mkdir()
                record = _share_record(share)
                item.publish(work, record)
        return export_locations(item.data_path(record))

    def create_share_from_snapshot(
        self,
        context: RequestContext,
        share: base.ShareForDriver,
        snapshot: base.SnapshotForDriver,
        share_server: base.ShareServerMapping | None = None,
        parent_share: base.ShareForDriver | None = None,
    ) -> base.ExportLocationsReply:
        item = self._store.share(share['name'])
        with self._store.locked_work_directory(item.name) as work:
            record = item.find()
            if record is None:
                source_item, source_record = self._get_snapshot(snapshot)
                trees.copy_tree(
                    source_item.data_path(source_record), work / 'data'
                )
                record = _share_record(share)
                item.publish(work, record)
        return export_locations(item.data_path(record))

    def delete_share(
        self,
        context: RequestContext,
        share: base.ShareForDriver,
        share_server: base.ShareServerMapping | None = None,
    ) -> None:
        self._store.remove(self._store.share(share['name']))

    def extend_share(
        self,
        share: base.ShareForDriver,
        new_size: int,
        share_server: base.ShareServerMapping | None = None,
    ) -> None:
        item, record = self._get_share(share['name'])
        if record['size'] < new_size:
            item.write_record(record | {'size': new_size})

    def shrink_share(
        self,
        share: base.ShareForDriver,
        new_size: int,
        share_server: base.ShareServerMapping | None = None,
    ) -> None:
        item, record = self._get_share(share['name'])
        if record['size'] <= new_size:
            return
        if trees.used_bytes(item.data_path(record)) > new_size * GIB:
            raise exception.ShareShrinkingPossibleDataLoss(
                share_id=share['id']
            )
        item.write_record(record | {'size': new_size})

    def get_share_status(
        self,
        share: base.ShareForDriver,
        share_server: base.ShareServerMapping | None = None,
    ) -> base.StatusReply:
        item, record = self._get_share(share['name'])
        data = item.data_path(record)
        is_complete = 'reverting_to' not in record and data.is_dir()
        return {
            'status': 'available' if is_complete else 'error',
            'size': record['size'],
            'share_proto': record['share_proto'],
            'export_locations': export_locations(data),
        }

    # Access

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
        """Rewrite the export file of the share, whatever its content."""
        item = self._store.share(share['name'])
        if not access_rules:
            self._store.remove_exports(item)
            return {}
        _, record = self._get_share(share['name'])
        role = None
        try:
            # The role may change meanwhile; a replica that has become
            # passive must not stay writable.
            while role != (role := self._role(share)):
                replies = self._export_for_role(
                    item, record, share, access_rules, role
                )
        except FileNotFoundError as error:  # deleted meanwhile
            raise exception.ShareResourceNotFound(
                share_id=share['id']
            ) from error
        return replies

    def _export_for_role(
        self,
        item: LocalItem,
        record: records.Record,
        share: base.ShareForDriver,
        rules: list[base.AccessRuleForDriver],
        role: str,
    ) -> base.AccessReplies:
        if role == ReplicaRole.ACTIVE:
            return self._write_export(item, record, rules)
        if share['replication_type'] == READABLE:
            return self._write_export(item, record, rules, read_only=True)
        self._store.remove_exports(item)  # until it is promoted
        return {}

    def snapshot_update_access(
        self,
        context: RequestContext,
        snapshot: base.SnapshotForDriver,
        access_rules: list[base.AccessRuleForDriver],
        add_rules: list[base.AccessRuleForDriver],
        delete_rules: list[base.AccessRuleForDriver],
        share_server: base.ShareServerMapping | None = None,
    ) -> base.AccessReplies:
        """Rewrite the export file of a snapshot, which is read-only."""
        item = self._store.snapshot(snapshot['name'])
        if not access_rules:
            self._store.remove_exports(item)
            return {}
        _, record = self._get_snapshot(snapshot)
        if self._denies_all_access(snapshot['share']):
            self._store.remove_exports(item)
            return {}
        try:
            return self._write_export(
                item, record, access_rules, read_only=True
            )
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
                self.configuration.local_export_options,
                read_only=read_only,
            )
        if text is None:
            self._store.remove_exports(item)
        else:
            self._store.write_export(item, file, text)
        return replies

    # Snapshots

    def create_snapshot(
        self,
        context: RequestContext,
        snapshot: base.SnapshotForDriver,
        share_server: base.ShareServerMapping | None = None,
    ) -> base.SnapshotReply:
        item = self._store.snapshot(snapshot['name'])
        with self._store.locked_work_directory(item.name) as work:
            record = item.find()
            if record is None:
                share, now = self._get_share(snapshot['share_name'])
                trees.copy_tree(share.data_path(now), work / 'data')
                record = {
                    'size': now['size'],
                    'of': share.relative_data_path(now),
                    'share_proto': now['share_proto'],
                }
                item.publish(work, record)
        return {
            'provider_location': item.name,
            'size': record['size'],
            'export_locations': export_locations(item.data_path(record)),
        }

    def delete_snapshot(
        self,
        context: RequestContext,
        snapshot: base.SnapshotForDriver,
        share_server: base.ShareServerMapping | None = None,
    ) -> None:
        self._store.remove(self._store.snapshot(snapshot['name']))

    def get_snapshot_status(
        self,
        snapshot: base.SnapshotForDriver,
        share_server: base.ShareServerMapping | None = None,
    ) -> base.StatusReply:
        item, record = self._get_snapshot(snapshot)
        data = item.data_path(record)
        return {
            'status': 'available' if data.is_dir() else 'error',
            'size': record['size'],
            'share_proto': record['share_proto'],
            'provider_location': snapshot['provider_location'] or item.name,
            'export_locations': export_locations(data),
        }

    def revert_to_snapshot(
        self,
        context: RequestContext,
        snapshot: base.SnapshotForDriver,
        share_access_rules: list[base.AccessRuleForDriver],
        snapshot_access_rules: list[base.AccessRuleForDriver],
        share_server: base.ShareServerMapping | None = None,
    ) -> int:
        """Move the content of the snapshot into the share's directory.

        The copy is made first: if there is no room for it, nothing has
        changed. The share's status is error until the last file is in place.
        """
        item, record = self._get_share(snapshot['share_name'])
        source_item, source_record = self._get_snapshot(snapshot)
        data, source = (
            item.data_path(record),
            source_item.data_path(source_record),
        )
        with self._store.locked_work_directory(item.name) as work:
            trees.copy_tree(source, work / 'data')
            (work / 'old').mkdir()
            item.write_record(record | {'reverting_to': snapshot['name']})
            trees.move_content(data, work / 'old')
            trees.move_content(work / 'data', data)
            trees.copy_attributes(source, data)
            item.write_record(
                {
                    name: value
                    for name, value in record.items()
                    if name != 'reverting_to'
                }
                | {'size': source_record['size']}
            )
        return source_record['size']

    # Statistics

    def _update_share_stats(self, data: base.Stats | None = None) -> None:
        disk = os.statvfs(self._root)
        total = disk.f_blocks * disk.f_frsize / GIB
        free = disk.f_bavail * disk.f_frsize / GIB
        if self._capacity_gb is not None:
            total = min(total, self._capacity_gb)
        provisioned = sum(self._provisioned_sizes())
        pool = self.capacity_options() | {
            'pool_name': self.backend_name,
            'total_capacity_gb': round(total, 2),
            'free_capacity_gb': round(min(free, total), 2),
            'allocated_capacity_gb': provisioned,
            'provisioned_capacity_gb': provisioned,
            'thin_provisioning': True,
        }
        super()._update_share_stats(
            {
                'vendor_name': 'manila_lite',
                'storage_protocol': 'NFS_CIFS',
                'replication_type': self.configuration.local_replication_type,
                'pools': [pool],
                **(data or {}),
            }
        )

    def _provisioned_sizes(self) -> Iterator[int]:
        for item in self._store.list_items(SHARES):
            record = item.find()
            if record is not None:  # not deleted meanwhile and not unmanaged
                yield record['size']

    def get_configured_ip_versions(self) -> list[int]:
        return [4, 6]

    # Lookup

    def _get_share(self, name: str) -> tuple[LocalItem, records.Record]:
        item = self._store.share(name)
        record = item.find()
        if record is None:
            raise exception.ShareResourceNotFound(share_id=name)
        return item, record

    def _get_snapshot(
        self, snapshot: base.SnapshotForDriver
    ) -> tuple[LocalItem, records.Record]:
        """Return a snapshot and its record."""
        item = self._store.snapshot(snapshot['name'])
        record = item.find()
        if record is None:
            raise exception.SnapshotResourceNotFound(
                snapshot_id=snapshot['id']
            )
        return item, record


def _share_record(share: base.ShareForDriver) -> records.Record:
    return {'size': share['size'], 'share_proto': share['share_proto']}
