"""Work that is owed, and the journal of all moves."""

import sqlalchemy as sa
from sqlalchemy.orm import mapped_column

from manila_lite.db.models import base


class Work(base.Base):
    """An accepted request that is still owed.

    `fence` is raised by every claim; the holder of an older one may not
    write. While the work runs, `running_key` is its `exclusion_key`, so
    that no other work with this key can run. `asked` is incremented when a
    request is coalesced into this row. `charges` are the quota reservations
    that this work will commit or release. Processes of a release before
    `needs_release` do not claim it.
    """

    __tablename__ = 'work'
    __table_args__ = base.table_args(
        sa.Index(None, 'state', 'queue', 'created_at'),
        sa.Index(None, 'state', 'lease_until'),
        sa.Index(None, 'resource', 'resource_id'),
        sa.UniqueConstraint('one_key'),
        sa.Index(None, 'running_key', unique=True),
    )

    id = mapped_column(base.Id, primary_key=True)
    kind = mapped_column(sa.String(128), nullable=False)
    queue = mapped_column(base.Name, nullable=False)
    topic = mapped_column(sa.String(64), nullable=False)
    resource = mapped_column(sa.String(64), nullable=False)
    resource_id = mapped_column(base.Id, nullable=False)
    one_key = mapped_column(base.Name)
    args = mapped_column(base.Document, nullable=False)
    context = mapped_column(base.Document, nullable=False)
    charges = mapped_column(base.Document)
    state = mapped_column(sa.String(16), nullable=False)
    attempt = mapped_column(sa.Integer, nullable=False)
    fence = mapped_column(base.BigInteger, nullable=False)
    asked = mapped_column(sa.Integer, nullable=False)
    owner = mapped_column(base.Name)
    lease_until = mapped_column(base.EpochSeconds)
    next_try_at = mapped_column(base.EpochSeconds, nullable=False)
    step = mapped_column(base.Name)
    error = mapped_column(base.MaskedText)
    request_id = mapped_column(base.Name)
    created_at = mapped_column(base.Timestamp, nullable=False)
    exclusion_key = mapped_column(base.Name)
    running_key = mapped_column(base.Name)
    needs_release = mapped_column(sa.Integer)


EXCLUSION_KEY: sa.ColumnElement[str] = sa.func.coalesce(
    Work.__table__.c.exclusion_key,
    Work.__table__.c.resource + ':' + Work.__table__.c.resource_id,
)
"""The key that work runs under.

Rows of the release before this one have no exclusion key.
"""


class Transition(base.Base):
    """The journal: one row per move of any state machine.

    `is_sent` is null until the move has been sent as an event. A move that
    deletes a row keeps its parent and project, which nothing else knows. The
    first move of a transaction has its id, see `commits`.
    """

    __tablename__ = 'transitions'
    __table_args__ = base.table_args(
        sa.Index(None, 'resource', 'resource_id', 'id'),
        sa.Index(None, 'made_at'),
        sa.Index(None, 'is_sent', 'id'),
        sa.Index(None, 'transaction_id', unique=True),
    )

    id = mapped_column(base.AutoIncrement, primary_key=True, autoincrement=True)
    resource = mapped_column(sa.String(64), nullable=False)
    resource_id = mapped_column(base.Id, nullable=False)
    event = mapped_column(sa.String(64), nullable=False)
    from_status = mapped_column(base.Name)
    to_status = mapped_column(base.Name)
    request_id = mapped_column(base.Name)
    made_by = mapped_column(base.Name)
    made_at = mapped_column(base.Timestamp, nullable=False)
    parent_id = mapped_column(base.Id)
    project_id = mapped_column(base.Name)
    reason = mapped_column(base.MaskedText)
    is_sent = mapped_column(sa.Boolean)
    transaction_id = mapped_column(base.Id)
