"""The log of recovery: decisions about resources whose work was lost."""

import sqlalchemy as sa
from sqlalchemy.orm import mapped_column

from manila_lite.db.models import base


class RecoveryLogEntry(base.Base):
    """One decision of recovery and its result.

    `evidence` is what the decision was based on, `reason` why the
    operation could not be completed. `status_after` is null when the
    resource is gone. `made_by` names the service and its incarnation,
    `asked_by` the administrator, if one requested it.
    """

    __tablename__ = 'recovery_log'
    __table_args__ = base.table_args(
        sa.Index(None, 'resource_id', 'id'),
        sa.Index(None, 'service_host', 'id'),
        sa.Index(None, 'made_at'),
    )

    id = mapped_column(base.AutoIncrement, primary_key=True, autoincrement=True)
    resource = mapped_column(sa.String(64), nullable=False)
    resource_id = mapped_column(base.Id, nullable=False)
    host = mapped_column(base.Name)
    status_before = mapped_column(base.Name)
    evidence = mapped_column(base.MaskedText)
    action = mapped_column(sa.String(32), nullable=False)
    status_after = mapped_column(base.Name)
    reason = mapped_column(base.MaskedText)
    duration = mapped_column(sa.Double, nullable=False)
    made_by = mapped_column(base.Name)
    asked_by = mapped_column(base.Name)
    request_id = mapped_column(base.Name)
    made_at = mapped_column(base.Timestamp, nullable=False)
    service_host = base.service_host_column()
