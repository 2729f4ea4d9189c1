"""Checks on requests to revert a share to a snapshot."""

from collections.abc import Sequence
import typing

from manila_lite import exception
from manila_lite.db import rows
from manila_lite.db.queries.access import snapshot_rules
from manila_lite.db.queries.groups import snapshots as group_snapshots
from manila_lite.db.queries.recovery import recovery
from manila_lite.db.queries.snapshots import snapshots
from manila_lite.db.session import Session
from manila_lite.share.operations.shares.migration_guards import refuse_running
from manila_lite.states.access_rule import RulesStatus
from manila_lite.states.share_instance import SHARE_INSTANCE
from manila_lite.states.snapshot_instance import HIDDEN_FROM_TENANTS, SNAPSHOT_INSTANCE


def get_revertible(
    share: rows.ShareTarget,
    share_instance_id: str,
    snapshot_id: str,
    instances: Sequence[typing.Any],
) -> typing.Any:
    """Return the snapshot instance that the share can be reverted to.

    The error does not reveal whether another share has the snapshot.
    """
    if share.is_soft_deleted:
        raise exception.ShareSoftDeleted(share_id=share.id)
    found = [
        row
        for row in instances
        if row.share_instance_id == share_instance_id
        and row.status not in HIDDEN_FROM_TENANTS
    ]
    if not found:
        raise exception.InvalidInput(
            reason=f'share {share.id} has no snapshot {snapshot_id}'
        )
    if not share.revert_to_snapshot_support:
        raise exception.InvalidInput(
            reason=f'share {share.id} does not support reverting to a snapshot'
        )
    return found[0]


def check(
    session: Session,
    share: rows.ShareTarget,
    parent: rows.SnapshotParentRow,
    instance: rows.SnapshotTarget,
) -> None:
    """Check everything but the statuses, after the guarded moves."""
    refuse_running(parent.share_id, parent.task_state)
    if parent.newest_id != instance.id:
        newest = snapshots.list_instances(session, parent.newest_id or '')
        if any(row.status in HIDDEN_FROM_TENANTS for row in newest):
            raise exception.NewerSnapshotRemaining(share_id=share.id)
        raise exception.NotNewestSnapshot(
            snapshot_id=instance.id, newest_id=parent.newest_id
        )
    if share.share_group_id:
        _refuse_behind_group(session, instance)
    if parent.access_rules_status != RulesStatus.ACTIVE:
        raise exception.AccessRulesNotActive(
            share_id=parent.share_id, status=parent.access_rules_status
        )
    if snapshot_rules.has_rules_in_flight(session, instance.instance_id):
        raise exception.SnapshotAccessRulesChanging(snapshot_id=instance.id)


def _refuse_behind_group(session: Session, instance: rows.SnapshotTarget) -> None:
    """Refuse a snapshot that is older than one of the group of the share."""
    newer_id = group_snapshots.find_newer(
        session, instance.share_instance_id, instance.id
    )
    if newer_id is not None:
        raise exception.NotNewestSnapshot(snapshot_id=instance.id, newest_id=newer_id)


def was_lost(
    session: Session, share_instance_id: str, snapshot_instance_id: str
) -> bool:
    """Whether nothing has happened to both since a revert was lost.

    The same revert ends in the content of the snapshot, however far the
    lost one came.
    """
    return [
        recovery.find_last_event(session, machine.resource, id)
        for machine, id in (
            (SHARE_INSTANCE, share_instance_id),
            (SNAPSHOT_INSTANCE, snapshot_instance_id),
        )
    ] == ['revert_lost', 'restore_lost']
