"""Remove the access rules of an instance before the instance."""

from collections.abc import Callable, Sequence
import contextlib
import typing

from manila_lite import exception
from manila_lite.db.moves.access_rules import fire_on
from manila_lite.db.queries.access import share_rules, snapshot_rules
from manila_lite.db.queries.access.rules import RuleTables
from manila_lite.db.rows import AccessRuleRow, InstanceRow
from manila_lite.db.session import Session
from manila_lite.db.transitions import fire_matching
from manila_lite.share.drivers import base
from manila_lite.share.manager.driver_view import share_view
from manila_lite.share.manager.guarded_driver import driver_context
from manila_lite.share.manager.removal import begin
from manila_lite.states.access_rule import SHARE_INSTANCE_ACCESS
from manila_lite.work.job import JobContext


class Teardown(typing.NamedTuple):
    """A share instance to be removed, and its rules.

    `awaits_snapshots` is set if it has any in deferred deletion.
    """

    instance: share_view.LoadedInstance
    rules: list[share_view.RuleView]
    awaits_snapshots: bool = False

    @property
    def row(self) -> InstanceRow:
        return self.instance.row


class SnapshotTeardown(typing.NamedTuple):
    """A snapshot instance to be removed, and its rules."""

    snapshot: share_view.LoadedSnapshot
    rules: list[share_view.RuleView]


def queue_denials(
    session: Session, instance: share_view.LoadedInstance, driver: base.ShareDriver
) -> Teardown:
    """Move all rules of the instance to denying."""
    rules = _deny_rules(session, share_rules.RULES, instance.row.id)
    return Teardown(instance, share_view.rule_views(instance.row, rules, driver))


def queue_snapshot_denials(
    session: Session, snapshot: share_view.LoadedSnapshot, driver: base.ShareDriver
) -> SnapshotTeardown:
    """Do the same with the rules of a snapshot instance, if it has any."""
    if not snapshot.row.mount_snapshot_support:
        return SnapshotTeardown(snapshot, [])
    rules = _deny_rules(session, snapshot_rules.RULES, snapshot.row.id)
    return SnapshotTeardown(
        snapshot, share_view.rule_views(snapshot.share.row, rules, driver)
    )


def _deny_rules(
    session: Session, rules: RuleTables, instance_id: str
) -> Sequence[AccessRuleRow]:
    """Move the rules of an instance to denying; return them as they were."""
    rows = rules.list_for_instance(session, instance_id)
    if rows:
        for event in ('deny', 'withdraw'):
            fire_on(session, rules, instance_id, event)
    return rows


def deny_all(
    driver: base.ShareDriver,
    share: base.ShareForDriver,
    removal: Teardown,
    share_server: base.ShareServerMapping | None = None,
) -> None:
    """Remove all access to the share on the back end."""
    denied = _visible(removal.rules)
    if denied:
        driver.apply_access(
            driver_context(), share, [], delete_rules=denied, share_server=share_server
        )


def deny_all_to_snapshot(
    driver: base.ShareDriver,
    snapshot: base.SnapshotForDriver,
    removal: SnapshotTeardown,
) -> None:
    """Remove all access to the snapshot on the back end."""
    denied = _visible(removal.rules)
    if denied:
        with contextlib.suppress(NotImplementedError):
            update_snapshot_access(
                driver, snapshot, removal.snapshot.share_server, [], [], denied
            )


def _visible(rules: Sequence[share_view.RuleView]) -> base.AccessRules:
    return [rule.for_driver for rule in rules if not rule.hidden]


def update_snapshot_access(
    driver: base.ShareDriver,
    snapshot: base.SnapshotForDriver,
    share_server: base.ShareServerMapping | None,
    rules: base.AccessRules,
    add: base.AccessRules,
    delete: base.AccessRules,
) -> dict[str, base.AccessReply]:
    """Return the replies of a driver with mountable snapshots."""
    if not isinstance(driver, base.MountSnapshotSupport):
        raise NotImplementedError
    return base.normalise_access_replies(
        driver.snapshot_update_access(
            driver_context(), snapshot, rules, add, delete, share_server=share_server
        )
    )


def remove_denied(
    job: JobContext,
    driver: base.ShareDriver,
    share: base.ShareForDriver,
    removal: Teardown,
    share_server: base.ShareServerMapping | None,
    remove: Callable[[], object],
    force: bool,
) -> None:
    """Remove all access to a share, then the share.

    Raises ShareResourceNotFound if the back end lacks a share that it should
    have. With force that is success, and the share is removed even if
    removing the access fails.
    """
    if force:
        with (
            contextlib.suppress(exception.ShareResourceNotFound),
            contextlib.ExitStack() as cleanup,
        ):
            cleanup.callback(remove)
            deny_all(driver, share, removal, share_server)
        return
    removing = begin(job, driver, removal.row, share, share_server)
    with removing():
        deny_all(driver, share, removal, share_server)
    with removing():
        remove()


def fail_denials(session: Session, instance_id: str) -> None:
    """Mark the rules of an instance that could not be removed as failed.

    A rule in error is not in force: a later resync removes it from a back
    end that can still be reached.
    """
    if fire_on(session, share_rules.RULES, instance_id, 'deny_failed'):
        fire_matching(session, SHARE_INSTANCE_ACCESS, 'failed', {'id': instance_id})
        share_rules.mark_stale(session, instance_id)


def fail_snapshot_denials(session: Session, snapshot_instance_id: str) -> None:
    """Do the same with the rules of a snapshot instance."""
    if fire_on(session, snapshot_rules.RULES, snapshot_instance_id, 'deny_failed'):
        snapshot_rules.mark_stale(session, snapshot_instance_id)
