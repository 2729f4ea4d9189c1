"""Rescue of share transfers whose work was lost.

Nothing has changed hands, so the share is offered again.
"""

import dataclasses
from typing import Annotated

from manila_lite import messages
from manila_lite.conf import Option
from manila_lite.db.queries.shares import transfers
from manila_lite.db.rows import AcceptedTransferRow
from manila_lite.db.session import Session
from manila_lite.share.manager.recovery.base import RescueCase, ResourceRecovery
from manila_lite.share.manager.shares.transfers import withdraw_acceptance
from manila_lite.states.share_transfer import SHARE_TRANSFER
from manila_lite.work.table import Claim

TransferCase = RescueCase[AcceptedTransferRow, None]


@dataclasses.dataclass(eq=False)
class ShareTransferRecovery(ResourceRecovery[AcceptedTransferRow, None]):
    machine = SHARE_TRANSFER

    message_ttl: Annotated[int, Option('message_ttl')]

    def find(self, session: Session, id: str) -> TransferCase | None:
        row = transfers.find_accepted(session, id)
        return None if row is None else RescueCase(row, None)

    def give_up(
        self,
        session: Session,
        job: Claim,
        case: TransferCase,
        event: str,
        explanation: str,
    ) -> None:
        row = case.row
        if withdraw_acceptance(session, row.id) and row.project_id:
            messages.record(
                session,
                project_id=row.project_id,
                request_id=job.request_id,
                action=messages.Action.TRANSFER_ACCEPT,
                detail=messages.Detail.UNKNOWN_ERROR,
                resource_type='SHARE',
                resource_id=row.share_id,
                ttl=self.message_ttl,
                explanation=explanation,
            )
