"""Takes the access rules of a share instance away before it goes."""

import typing

from manila_lite.context import RequestContext
from manila_lite.db.queries.access import share_rules
from manila_lite.db.session import Session
from manila_lite.db.transitions import fire_matching
from manila_lite.share.drivers.base import ShareDriver
from manila_lite.share.drivers.base import ShareForDriver
from manila_lite.share.drivers.base import ShareServerMapping
from manila_lite.share.manager.driver_view import access_view
from manila_lite.share.manager.driver_view.access_view import RuleView
from manila_lite.share.manager.driver_view.share_view import LoadedInstance
from manila_lite.states.access_rule import ACCESS_RULE
from manila_lite.states.access_rule import SHARE_INSTANCE_ACCESS


class Teardown(typing.NamedTuple):
    """An instance that goes, and the rules that go before it."""

    found: LoadedInstance
    rules: list[RuleView]

    @property
    def row(self) -> typing.Any:
        return self.found.row


def queue_denials(
    session: Session, found: LoadedInstance, driver: ShareDriver
) -> Teardown:
    """Have every rule of the instance be denied."""
    rows = share_rules.list_for_instance(session, found.row.id)
    if rows:
        for event in ('deny', 'withdraw'):
            fire_matching(
                session,
                ACCESS_RULE,
                event,
                {'share_instance_id': found.row.id},
            )
    return Teardown(found, access_view.rule_views(found.row, rows, driver))


def deny_all(
    driver: ShareDriver,
    share: ShareForDriver,
    leaving: Teardown,
    share_server: ShareServerMapping | None = None,
) -> None:
    """Tell the driver that nobody may use the share any longer."""
    shown = [rule.shown for rule in leaving.rules if not rule.hidden]
    if shown:
        driver.apply_access(
            RequestContext(),
            share,
            [],
            delete_rules=shown,
            share_server=share_server,
        )


def fail_denials(session: Session, instance_id: str) -> None:
    """The instance stays; its rules are in error, and none is in force.

    Where it can still be reached, the back end is told so in a while.
    """
    if fire_matching(
        session,
        ACCESS_RULE,
        'deny_failed',
        {'share_instance_id': instance_id},
        updated_at=session.now,
    ):
        fire_matching(
            session, SHARE_INSTANCE_ACCESS, 'failed', {'id': instance_id}
        )
        share_rules.mark_stale(session, instance_id)
