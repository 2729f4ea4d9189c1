"""Shares, access rules and backups as drivers see them."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
import datetime
import ipaddress
import typing

import orjson

from manila_lite.db.queries.shares import instances as share_instances, shares
from manila_lite.db.queries.snapshots import snapshots
from manila_lite.db.queries.types import qos_types
from manila_lite.db.rows import (
    AccessRuleRow,
    DetailedInstance,
    ExportLocationRow,
    InstanceRow,
    MigratingSnapshotRow,
    ShareBackupRow,
    SnapshotInstanceRow,
)
from manila_lite.db.session import Session
from manila_lite.share.drivers import base
from manila_lite.share.manager.driver_view import server_view
from manila_lite.share.manager.driver_view.server_view import LoadedServer, from_row
from manila_lite.states.snapshot_instance import KNOWN_TO_DRIVERS


class LoadedInstance(typing.NamedTuple):
    """A share instance as read for work, with what belongs to it."""

    row: InstanceRow
    metadata: Mapping[str, str]
    exports: list[ExportLocationRow]
    server: LoadedServer | None = None
    qos_specs: Mapping[str, str] = {}

    @property
    def share_server(self) -> base.ShareServerForDriver | None:
        """Its share server in the form given to drivers."""
        return server_view.optional_server_for_driver(self.server)


def load_instance(
    session: Session, instance_id: str, *, lock_shared: bool = False
) -> LoadedInstance:
    """Read an instance with its metadata, exports and share server.

    With `lock_shared` its row is locked against changes until the
    transaction ends.
    """
    row, metadata, exports = share_instances.get_with_details(
        session, instance_id, lock_shared=lock_shared
    )
    return LoadedInstance(
        row,
        metadata,
        exports,
        server_view.find_server(session, row.share_server_id),
        _qos_specs(session, row),
    )


def load_new_instance(
    session: Session, instance_id: str, *, lock_shared: bool = False
) -> LoadedInstance:
    """Read an instance that has not been created yet: it has no exports."""
    row, metadata = share_instances.get_with_metadata(
        session, instance_id, lock_shared=lock_shared
    )
    return LoadedInstance(
        row,
        metadata,
        [],
        server_view.find_server(session, row.share_server_id),
        _qos_specs(session, row),
    )


def load_instances(
    session: Session, instance_ids: Collection[str]
) -> list[LoadedInstance]:
    """Read several instances; skip those that no longer exist."""
    return complete_instances(
        session, share_instances.list_with_details(session, instance_ids)
    )


def complete_instances(
    session: Session, found: Sequence[DetailedInstance]
) -> list[LoadedInstance]:
    """Read the share servers and QoS types of instances."""
    servers = server_view.load_servers(
        session, {row.share_server_id for row, _, _ in found if row.share_server_id}
    )
    specs = qos_types.list_specs(
        session, {row.qos_type_id for row, _, _ in found if row.qos_type_id}
    )
    return [
        LoadedInstance(
            row,
            metadata,
            exports,
            servers.get(row.share_server_id),
            specs[row.qos_type_id] if row.qos_type_id else {},
        )
        for row, metadata, exports in found
    ]


def _qos_specs(session: Session, row: InstanceRow) -> Mapping[str, str]:
    if row.qos_type_id is None:
        return {}
    return qos_types.list_specs(session, [row.qos_type_id])[row.qos_type_id]


class LoadedSnapshot(typing.NamedTuple):
    """A snapshot instance and the share instance it belongs to."""

    row: SnapshotInstanceRow
    metadata: Mapping[str, str]
    share: LoadedInstance

    @property
    def share_server(self) -> base.ShareServerForDriver | None:
        """The share server of its share in the form given to drivers."""
        return self.share.share_server


class MovingSnapshot(typing.NamedTuple):
    """A snapshot instance on a share server that is migrated."""

    row: MigratingSnapshotRow
    metadata: Mapping[str, str]
    share: LoadedInstance


def load_snapshot(
    session: Session, snapshot_instance_id: str, *, lock_shared: bool = False
) -> LoadedSnapshot:
    """Read a snapshot instance with its metadata and its share.

    With `lock_shared` its row is locked against changes until the
    transaction ends.
    """
    row, metadata = snapshots.get_with_metadata(
        session, snapshot_instance_id, lock_shared=lock_shared
    )
    return LoadedSnapshot(row, metadata, load_instance(session, row.share_instance_id))


def share_for_driver(
    instance: LoadedInstance, name_template: str
) -> base.ShareForDriver:
    row = instance.row
    return from_row(
        base.ShareForDriver,
        row,
        name=name_template % row.id,
        qos_specs=instance.qos_specs,
        share_server=instance.share_server,
        scheduled_at=_scheduled_at(row),
        metadata=instance.metadata,
        export_locations=[
            {'path': export.path, 'is_admin_only': export.is_admin_only, 'metadata': {}}
            for export in instance.exports
        ],
    )


def _scheduled_at(row: InstanceRow) -> datetime.datetime | None:
    """Return when the scheduler, or else the request, chose the host."""
    return row.scheduled_at or (row.created_at if row.host else None)


class NameTemplates(typing.NamedTuple):
    """Templates of the names of shares and snapshots on a back end."""

    share: str
    snapshot: str


def snapshot_for_driver(
    snapshot: LoadedSnapshot | MovingSnapshot, names: NameTemplates
) -> base.SnapshotForDriver:
    row = snapshot.row
    return from_row(
        base.SnapshotForDriver,
        row,
        name=names.snapshot % row.id,
        size=row.share_size,
        share=share_for_driver(snapshot.share, names.share),
        status=KNOWN_TO_DRIVERS.get(row.status, row.status),
        metadata=snapshot.metadata,
    )


READ_ONLY = 'ro'


class RuleView(typing.NamedTuple):
    """A rule on an instance, and its form for the driver.

    A `hidden` rule is not given to the driver, which could not handle it.
    """

    id: str
    mapping_id: str
    state: str
    hidden: bool
    for_driver: base.AccessRuleForDriver


def rule_views(
    instance: InstanceRow,
    rows: Iterable[AccessRuleRow],
    driver: base.ShareDriver,
    *,
    state_of: Callable[[AccessRuleRow], str] = lambda row: row.state,
    read_only: bool | None = None,
) -> list[RuleView]:
    """Return the rules of an instance.

    `rows` come from `share_rules.list_for_instance`. This is the only
    place that applies the cast to read-only; `read_only` overrides the
    flag of the instance.
    """
    if read_only is None:
        read_only = instance.cast_rules_to_readonly
    hides_ipv6 = instance.share_proto.upper() == 'NFS' and not driver.ipv6_implemented
    return [
        RuleView(
            row.id,
            row.mapping_id,
            state_of(row),
            hides_ipv6 and _is_ipv6(row),
            from_row(
                base.AccessRuleForDriver,
                row,
                access_level=READ_ONLY if read_only else row.access_level,
                state=state_of(row),
            ),
        )
        for row in rows
    ]


def _is_ipv6(row: AccessRuleRow) -> bool:
    return (
        row.access_type == 'ip'
        and ipaddress.ip_network(row.access_to, strict=False).version == 6
    )


class LoadedBackup(typing.NamedTuple):
    """A backup, and the share that is read or written."""

    row: ShareBackupRow
    share: LoadedInstance

    def for_driver(self, name_template: str) -> base.ShareBackupForDriver:
        row = self.row
        return from_row(
            base.ShareBackupForDriver,
            row,
            name=name_template % row.id,
            display_name=row.name,
            display_description=row.description,
            backup_options=orjson.loads(row.backup_options or '{}'),
            progress=str(row.progress),
            restore_progress=str(row.restore_progress),
        )


def load_backup(session: Session, row: ShareBackupRow, share_id: str) -> LoadedBackup:
    """Read the share that a backup is made of or restored to."""
    target = shares.get_target(session, share_id)
    return LoadedBackup(row, load_instance(session, target.instance_id))
