"""Calls of drivers, as operators look back at them."""

import sqlalchemy as sa
from sqlalchemy.orm import mapped_column

from manila_lite.db.models import base


class DriverCall(base.Base):
    """A call of a driver that work has made; queries are not recorded.

    `work_id` and `attempt` say for which work. `ended_at` and `outcome`
    are null while the call runs, and remain so if its process ends.
    """

    __tablename__ = 'driver_calls'
    __table_args__ = base.table_args(
        sa.Index(None, 'resource', 'resource_id', 'started_at'),
        sa.Index(None, 'started_at'),
    )

    id = mapped_column(base.Id, primary_key=True)
    resource = mapped_column(sa.String(64), nullable=False)
    resource_id = mapped_column(base.Id, nullable=False)
    method = mapped_column(sa.String(128), nullable=False)
    host = mapped_column(base.Name, nullable=False)
    work_id = mapped_column(base.Id, nullable=False)
    attempt = mapped_column(sa.Integer, nullable=False)
    request_id = mapped_column(base.Name)
    started_at = mapped_column(base.Timestamp, nullable=False)
    ended_at = mapped_column(base.Timestamp)
    outcome = mapped_column(sa.String(16))
    error = mapped_column(base.MaskedText)
