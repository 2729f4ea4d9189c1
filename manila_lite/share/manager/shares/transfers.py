"""Carry out share transfers, and end those that have expired."""

import dataclasses
import logging
import typing
from typing import Annotated

from manila_lite import exception
from manila_lite.conf import Option
from manila_lite.context import RequestContext
from manila_lite.db.queries import pages
from manila_lite.db.queries.access import share_rules
from manila_lite.db.queries.shares import transfers
from manila_lite.db.rows import AcceptedTransferRow, ExpiredTransferRow
from manila_lite.db.session import Database, Session, transaction
from manila_lite.db.transitions import fire, fire_matching
from manila_lite.host import ServiceHost
from manila_lite.messages import Action, Detail, detail_in
from manila_lite.quota.charges import Owner
from manila_lite.quota.limits import DefaultLimits
from manila_lite.quota.shares import change_owner
from manila_lite.rpc.contract import implements
from manila_lite.rpc.share import ShareTransfersRpc
from manila_lite.share.drivers.base import ShareDriver
from manila_lite.share.manager.driver_view import share_view
from manila_lite.share.manager.driver_view.share_view import LoadedInstance, RuleView
from manila_lite.share.manager.endpoint import require_status
from manila_lite.share.manager.guarded_driver import driver_context
from manila_lite.states.access_rule import RuleState
from manila_lite.states.share_instance import SHARE_INSTANCE, InstanceStatus
from manila_lite.states.share_transfer import SHARE_TRANSFER
from manila_lite.work.job import JobContext
from manila_lite.work.notify import notify_user
from manila_lite.work.table import Claim

LOG = logging.getLogger(__name__)

RULES_PAUSE = 0.2
"""Seconds until work that waits for the removal of rules is run again."""


class Acceptance(typing.NamedTuple):
    """A share that is accepted by another project, with its rules."""

    transfer: AcceptedTransferRow
    instance: LoadedInstance
    rules: list[RuleView]


class RulesNotRemoved(exception.DriverError):
    message = 'Access rules of the share could not be removed.'


@implements(ShareTransfersRpc)
@dataclasses.dataclass(eq=False)
class ShareTransfersEndpoint:
    """Carries out the transfers of the shares on one back end."""

    db: Database
    driver: ShareDriver
    service_host: ServiceHost
    name_template: Annotated[str, Option('share_name_template')]
    message_ttl: Annotated[int, Option('message_ttl')]
    limits: DefaultLimits

    # Accept

    def prepare_accept_transfer(self, session: Session, job: Claim) -> Acceptance:
        instance = share_view.load_instance(session, job.resource_id, lock_shared=True)
        require_status(
            job,
            SHARE_INSTANCE,
            instance.row.id,
            instance.row.status,
            InstanceStatus.AWAITING_TRANSFER,
        )
        transfer_id = job.args['transfer_id']
        transfer = transfers.find_accepted(session, transfer_id)
        if transfer is None or transfer.project_id is None:
            raise exception.ResourceNotFound(
                resource='Accepted share transfer', id=transfer_id
            )
        rules = share_rules.list_for_instance(session, instance.row.id)
        return Acceptance(
            transfer, instance, share_view.rule_views(instance.row, rules, self.driver)
        )

    def accept_transfer(
        self, job: JobContext, share_instance_id: str, transfer_id: str
    ) -> None:
        acceptance: Acceptance = job.prepared
        transfer, instance, rules = acceptance
        if transfer.clear_access_rules and rules:
            # Other work, submitted with this, removes them.
            if any(rule.state == RuleState.ERROR for rule in rules):
                raise RulesNotRemoved()
            job.release(RULES_PAUSE)
            return
        self.driver.transfer_accept(
            driver_context(),
            share_view.share_for_driver(instance, self.name_template),
            transfer.user_id,
            transfer.project_id,
            access_rules=[rule.for_driver for rule in rules if not rule.hidden],
            share_server=instance.share_server,
        )
        job.finish(self._accepted, job.claim, acceptance)

    def _accepted(self, session: Session, job: Claim, acceptance: Acceptance) -> None:
        row, transfer = acceptance.instance.row, acceptance.transfer
        fire(session, SHARE_INSTANCE, row.id, 'transferred')
        fire(session, SHARE_TRANSFER, transfer.id, 'accepted')
        change_owner(
            session,
            row,
            Owner(transfer.project_id, transfer.user_id, row.share_type_id),
            reservations=job.charges,
            limits=self.limits,
        )

    def dropped_accept_transfer(self, session: Session, job: Claim) -> None:
        """Let the transfer be accepted again, as long as it exists."""
        withdraw_acceptance(session, job.args['transfer_id'])

    def failed_accept_transfer(
        self, session: Session, job: Claim, error: Exception
    ) -> bool:
        """Notify the project that has accepted."""
        notify_user(
            session,
            job,
            Action.TRANSFER_ACCEPT,
            _message_detail(error),
            self.message_ttl,
        )
        return True

    # Expire

    def expire(self) -> None:
        """End the transfers that were not accepted in time.

        Their shares become available again.
        """
        after = pages.BEGINNING
        while expired := self.db.read(transfers.list_expired, self.service_host, after):
            for row in expired:
                try:
                    self._expire(RequestContext(), row)
                except (exception.InvalidStatus, exception.ResourceNotFound) as error:
                    LOG.info('Share transfer %s: %s', row.id, error)
            after = (expired[-1].expires_at, expired[-1].id)

    @transaction
    def _expire(
        self, session: Session, ctx: RequestContext, row: ExpiredTransferRow
    ) -> None:
        # An administrator may have reset the status of the share.
        fire_matching(
            session, SHARE_INSTANCE, 'withdraw_offer', {'id': row.instance_id}
        )
        fire(session, SHARE_TRANSFER, row.id, 'expire')


def withdraw_acceptance(session: Session, transfer_id: str) -> bool:
    """Make a transfer pending that is not carried out; False if it is not."""
    return (
        fire_matching(
            session,
            SHARE_TRANSFER,
            'accept_failed',
            {'id': transfer_id},
            destination_project_id=None,
            destination_user_id=None,
        )
        == 1
    )


def _message_detail(error: Exception) -> Detail:
    """Return the user message detail for an error of the driver."""
    if isinstance(error, exception.DriverCannotTransferShareWithRules):
        return Detail.DRIVER_FAILED_TRANSFER_ACCEPT
    return detail_in(error) or Detail.UNKNOWN_ERROR
