"""Tables of the engine: work, journal, driver calls and data, recovery, samples."""

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


MAX_KEY_LENGTH = 255
MAX_VALUE_LENGTH = 1023


class DriverPrivateData(base.Base):
    """One value of a driver; `entity_uuid` is any id the driver was given.

    The host is no part of the key: the driver of a replica reads what that
    of the active one has stored, and a share server may move to another
    back end.
    """

    __tablename__ = 'drivers_private_data'

    entity_uuid = mapped_column(base.Id, primary_key=True)
    key = mapped_column(sa.String(MAX_KEY_LENGTH), primary_key=True)
    value = mapped_column(sa.String(MAX_VALUE_LENGTH), nullable=False)
    created_at = mapped_column(base.Timestamp, nullable=False)
    updated_at = mapped_column(base.Timestamp)


class ClusterTask(base.Base):
    """A periodic task: when it is due, and the process that runs it.

    `owner` and `lease_until` are null while no process runs it. The lease
    of a process that died expires, and another one continues. `position`
    is where a task began or goes on, if it reads a table in order.
    """

    __tablename__ = 'cluster_tasks'

    name = mapped_column(base.Name, primary_key=True)
    due_at = mapped_column(base.EpochSeconds, nullable=False)
    owner = mapped_column(base.Name)
    lease_until = mapped_column(base.EpochSeconds)
    position = mapped_column(base.BigInteger)


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


class Sample(base.Base):
    """What was measured of a source in a slot of time.

    A slot has the number of its beginning, in units of `resolution` seconds.
    `source` is a pool, or empty for the whole cloud. The key lets one of the
    processes that measure the same slot write it.
    """

    __tablename__ = 'samples'
    __table_args__ = base.table_args(sa.Index(None, 'resolution', 'slot'))

    source = mapped_column(base.Name, primary_key=True)
    resolution = mapped_column(sa.Integer, primary_key=True, autoincrement=False)
    slot = mapped_column(sa.Integer, primary_key=True, autoincrement=False)
    figures = mapped_column(base.Document, nullable=False)
