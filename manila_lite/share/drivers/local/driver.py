"""Plain directories of this machine as shares: no root, nothing to set up.

Sizes are promises: plain directories have no quota. A snapshot of a share
in use holds each file as it was when its turn came. Whom access rules let
in stands in files that an NFS server or Samba reads. Where everything lies
is told in `local_places`.
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
        self._places = LocalStore(self._root)
        self._capacity_gb: float | None = self.configuration.local_capacity_gb

    # Start

    def check_for_setup_error(self) -> None:
        """Refuse a root that is not an absolute path of ours to write."""
        if not self._root.is_absolute():
            raise self._bad_root('is not an absolute path')
        try:
            self._places.make()
        except OSError as error:
            raise self._bad_root(f'cannot be used: {error}') from error
        options = self.configuration.local_export_options
        if not _EXPORT_OPTIONS.fullmatch(options):
            raise exception.BadConfiguration(
                reason=f'back end "{self.configuration.config_group}": '
                f'local_export_options {options!r} cannot stand in '
                'one pair of brackets'
            )
        self._check_replication()
        self._see_who_leads()

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
        return {share['id']: self._ensured(share) for share in shares}

    def _ensured(self, share: base.ShareForDriver) -> base.EnsureReply:
        try:
            status = self.get_share_status(share)
        except exception.ShareResourceNotFound:
            return {'status': 'error'}
        # The files for servers may have been written for other paths.
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
        home = self._places.share(share['name'])
        with self._places.work(home.name) as work:
            record = home.find()
            if record is None:
                (work / 'data').mkdir()
                record = _new_share(share)
                home.publish(work, record)
        return export_locations(home.data(record))

    def create_share_from_snapshot(
        self,
        context: RequestContext,
        share: base.ShareForDriver,
        snapshot: base.SnapshotForDriver,
        share_server: base.ShareServerMapping | None = None,
        parent_share: base.ShareForDriver | None = None,
    ) -> base.ExportLocationsReply:
        home = self._places.share(share['name'])
        with self._places.work(home.name) as work:
            record = home.find()
            if record is None:
                taken, saved = self._snapshot(snapshot)
                trees.copy_tree(taken.data(saved), work / 'data')
                record = _new_share(share)
                home.publish(work, record)
        return export_locations(home.data(record))

    def delete_share(
        self,
        context: RequestContext,
        share: base.ShareForDriver,
        share_server: base.ShareServerMapping | None = None,
    ) -> None:
        self._places.remove(self._places.share(share['name']))

    def extend_share(
        self,
        share: base.ShareForDriver,
        new_size: int,
        share_server: base.ShareServerMapping | None = None,
    ) -> None:
        home, record = self._share(share['name'])
        if record['size'] < new_size:
            home.note(record | {'size': new_size})

    def shrink_share(
        self,
        share: base.ShareForDriver,
        new_size: int,
        share_server: base.ShareServerMapping | None = None,
    ) -> None:
        home, record = self._share(share['name'])
        if record['size'] <= new_size:
            return
        if trees.used_bytes(home.data(record)) > new_size * GIB:
            raise exception.ShareShrinkingPossibleDataLoss(
                share_id=share['id']
            )
        home.note(record | {'size': new_size})

    def get_share_status(
        self,
        share: base.ShareForDriver,
        share_server: base.ShareServerMapping | None = None,
    ) -> base.StatusReply:
        home, record = self._share(share['name'])
        data = home.data(record)
        whole = 'reverting_to' not in record and data.is_dir()
        return {
            'status': 'available' if whole else 'error',
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
        """Write the file of the share anew; what it was does not matter."""
        home = self._places.share(share['name'])
        if not access_rules:
            self._places.shut(home)
            return {}
        _, record = self._share(share['name'])
        role = None
        try:
            # One that is promoted meanwhile may not be left open to write.
            while role != (role := self._role(share)):
                answers = self._let_in(home, record, share, access_rules, role)
        except FileNotFoundError as error:  # deleted meanwhile
            raise exception.ShareResourceNotFound(
                share_id=share['id']
            ) from error
        return answers

    def _let_in(
        self,
        home: LocalItem,
        record: records.Record,
        share: base.ShareForDriver,
        rules: list[base.AccessRuleForDriver],
        role: str,
    ) -> base.AccessReplies:
        if role == ReplicaRole.ACTIVE:
            return self._export(home, record, rules)
        if share['replication_type'] == READABLE:
            return self._export(home, record, rules, read_only=True)
        self._places.shut(home)  # until it is promoted
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
        """The same for a snapshot, which nobody may write to."""
        home = self._places.snapshot(snapshot['name'])
        if not access_rules:
            self._places.shut(home)
            return {}
        _, record = self._snapshot(snapshot)
        if self._keeps_out(snapshot['share']):
            self._places.shut(home)
            return {}
        try:
            return self._export(home, record, access_rules, read_only=True)
        except FileNotFoundError as error:  # deleted meanwhile
            raise exception.SnapshotResourceNotFound(
                snapshot_id=snapshot['id']
            ) from error

    def _export(
        self,
        home: LocalItem,
        record: records.Record,
        rules: list[base.AccessRuleForDriver],
        read_only: bool = False,
    ) -> base.AccessReplies:
        data = home.data(record)
        if record.get('share_proto') == 'CIFS':
            file = home.samba
            text, answers = samba.format_section(
                home.name, data, rules, read_only=read_only
            )
        else:
            file = home.exports
            text, answers = format_exports(
                data,
                rules,
                self.configuration.local_export_options,
                read_only=read_only,
            )
        if text is None:
            self._places.shut(home)
        else:
            self._places.open(home, file, text)
        return answers

    # Snapshots

    def create_snapshot(
        self,
        context: RequestContext,
        snapshot: base.SnapshotForDriver,
        share_server: base.ShareServerMapping | None = None,
    ) -> base.SnapshotReply:
        home = self._places.snapshot(snapshot['name'])
        with self._places.work(home.name) as work:
            record = home.find()
            if record is None:
                share, now = self._share(snapshot['share_name'])
                trees.copy_tree(share.data(now), work / 'data')
                record = {
                    'size': now['size'],
                    'of': share.directory(now),
                    'share_proto': now['share_proto'],
                }
                home.publish(work, record)
        return {
            'provider_location': home.name,
            'size': record['size'],
            'export_locations': export_locations(home.data(record)),
        }

    def delete_snapshot(
        self,
        context: RequestContext,
        snapshot: base.SnapshotForDriver,
        share_server: base.ShareServerMapping | None = None,
    ) -> None:
        self._places.remove(self._places.snapshot(snapshot['name']))

    def get_snapshot_status(
        self,
        snapshot: base.SnapshotForDriver,
        share_server: base.ShareServerMapping | None = None,
    ) -> base.StatusReply:
        home, record = self._snapshot(snapshot)
        data = home.data(record)
        return {
            'status': 'available' if data.is_dir() else 'error',
            'size': record['size'],
            'share_proto': record['share_proto'],
            'provider_location': snapshot['provider_location'] or home.name,
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
        """Put the content of the snapshot into the directory of the share.

        The copy is made first: when there is no room for it, nothing has
        changed yet. Until the last file is in place the share says error.
        """
        home, record = self._share(snapshot['share_name'])
        taken, saved = self._snapshot(snapshot)
        data, source = home.data(record), taken.data(saved)
        with self._places.work(home.name) as work:
            trees.copy_tree(source, work / 'data')
            (work / 'old').mkdir()
            home.note(record | {'reverting_to': snapshot['name']})
            trees.move_content(data, work / 'old')
            trees.move_content(work / 'data', data)
            trees.copy_attributes(source, data)
            home.note(
                {
                    name: value
                    for name, value in record.items()
                    if name != 'reverting_to'
                }
                | {'size': saved['size']}
            )
        return saved['size']

    # Statistics

    def _update_share_stats(self, data: base.Stats | None = None) -> None:
        disk = os.statvfs(self._root)
        total = disk.f_blocks * disk.f_frsize / GIB
        free = disk.f_bavail * disk.f_frsize / GIB
        if self._capacity_gb is not None:
            total = min(total, self._capacity_gb)
        promised = sum(self._promised())
        pool = self.capacity_options() | {
            'pool_name': self.backend_name,
            'total_capacity_gb': round(total, 2),
            'free_capacity_gb': round(min(free, total), 2),
            'allocated_capacity_gb': promised,
            'provisioned_capacity_gb': promised,
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

    def _promised(self) -> Iterator[int]:
        for home in self._places.homes(SHARES):
            record = home.find()
            if record is not None:  # neither deleted meanwhile nor let go
                yield record['size']

    def get_configured_ip_versions(self) -> list[int]:
        return [4, 6]

    # What is there

    def _share(self, name: str) -> tuple[LocalItem, records.Record]:
        home = self._places.share(name)
        record = home.find()
        if record is None:
            raise exception.ShareResourceNotFound(share_id=name)
        return home, record

    def _snapshot(
        self, snapshot: base.SnapshotForDriver
    ) -> tuple[LocalItem, records.Record]:
        """A snapshot, and what share it is of."""
        home = self._places.snapshot(snapshot['name'])
        record = home.find()
        if record is None:
            raise exception.SnapshotResourceNotFound(
                snapshot_id=snapshot['id']
            )
        return home, record


def _new_share(share: base.ShareForDriver) -> records.Record:
    return {'size': share['size'], 'share_proto': share['share_proto']}
