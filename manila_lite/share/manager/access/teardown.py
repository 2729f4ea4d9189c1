"""Remove the access rules of a share instance before the instance."""

from collections.abc import Callable
import contextlib
import typing

from manila_lite import exception
from manila_lite.db.queries.access import share_rules
from manila_lite.db.rows import InstanceRow
from manila_lite.db.session import Session
from manila_lite.db.transitions import fire_matching
from manila_lite.share.drivers.base import (
    ShareDriver,
    ShareForDriver,
    ShareServerMapping,
)
from manila_lite.share.manager.driver_view import share_view
from manila_lite.share.manager.driver_view.share_view import LoadedInstance, RuleView
from manila_lite.share.manager.guarded_driver import driver_context
from manila_lite.share.manager.removal import begin
from manila_lite.states.access_rule import ACCESS_RULE, SHARE_INSTANCE_ACCESS
from manila_lite.work.job import JobContext


class Teardown(typing.NamedTuple):
    """A share instance to be removed, and its rules.

    `awaits_snapshots` is set if it has any in deferred deletion.
    """

    instance: LoadedInstance
    rules: list[RuleView]
    awaits_snapshots: bool = False

    @property
    def row(self) -> InstanceRow:
        return self.instance.row


def queue_denials(
    session: Session, instance: LoadedInstance, driver: ShareDriver
) -> Teardown:
    """Move all rules of the instance to denying."""
    rows = share_rules.list_for_instance(session, instance.row.id)
    if rows:
        for event in ('deny', 'withdraw'):
            fire_matching(
                session, ACCESS_RULE, event, {'share_instance_id': instance.row.id}
            )
    return Teardown(instance, share_view.rule_views(instance.row, rows, driver))


def deny_all(
    driver: ShareDriver,
    share: ShareForDriver,
    removal: Teardown,
    share_server: ShareServerMapping | None = None,
) -> None:
    """Remove all access to the share on the back end."""
    denied = [rule.for_driver for rule in removal.rules if not rule.hidden]
    if denied:
        driver.apply_access(
            driver_context(), share, [], delete_rules=denied, share_server=share_server
        )


def remove_denied(
    job: JobContext,
    driver: ShareDriver,
    share: ShareForDriver,
    removal: Teardown,
    share_server: ShareServerMapping | None,
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
    if fire_matching(
        session,
        ACCESS_RULE,
        'deny_failed',
        {'share_instance_id': instance_id},
        touch=True,
    ):
        fire_matching(session, SHARE_INSTANCE_ACCESS, 'failed', {'id': instance_id})
        share_rules.mark_stale(session, instance_id)
