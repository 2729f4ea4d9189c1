"""Takes the access rules of a share instance away before it goes."""

import typing

from manila_lite.context import RequestContext
from manila_lite.db.queries.access import share_rules as access
from manila_lite.db.session import Session
from manila_lite.db.transitions import fire_matching
from manila_lite.share.drivers.base import ShareDriver
from manila_lite.share.drivers.base import ShareForDriver
from manila_lite.share.drivers.base import ShareServer
from manila_lite.share.manager.driver_view import access_view
from manila_lite.share.manager.driver_view.access_view import Rule
from manila_lite.share.manager.driver_view.share_view import Found
from manila_lite.states.access_rule import MACHINE
from manila_lite.states.access_rule import STATUS_MACHINE


class Leaving(typing.NamedTuple):
    """An instance that goes, and the rules that go before it."""

    found: Found
    rules: list[Rule]

    @property
    def row(self) -> typing.Any:
        return self.found.row


def take_all(session: Session, found: Found, driver: ShareDriver) -> Leaving:
    """Have every rule of the instance be denied."""
    rows = access.of_instance(session, found.row.id)
    if rows:
        for event in ('deny', 'withdraw'):
            fire_matching(
                session, MACHINE, event, {'share_instance_id': found.row.id}
            )
    return Leaving(found, access_view.rules(found.row, rows, driver))


def deny_all(
    driver: ShareDriver,
    share: ShareForDriver,
    leaving: Leaving,
    share_server: ShareServer | None = None,
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


def give_up(session: Session, instance_id: str) -> None:
    """The instance stays; its rules are in error, and none is in force.

    Where it can still be reached, the back end is told so in a while.
    """
    if fire_matching(
        session,
        MACHINE,
        'deny_failed',
        {'share_instance_id': instance_id},
        updated_at=session.now,
    ):
        fire_matching(session, STATUS_MACHINE, 'failed', {'id': instance_id})
        access.doubt(session, instance_id)
