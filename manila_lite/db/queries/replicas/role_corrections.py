"""Corrections of the roles of replicas, as the recovery log has them."""

import datetime
import typing

import sqlalchemy as sa

from manila_lite.db.models import recovery
from manila_lite.db.session import Session
from manila_lite.states.share_replica import SHARE_REPLICA

LOG = recovery.RecoveryLogEntry.__table__

_TIMES = (
    sa.select(LOG.c.made_at)
    .where(
        LOG.c.resource_id == sa.bindparam('replica_id'),
        LOG.c.resource == SHARE_REPLICA.resource,
        LOG.c.made_at >= sa.bindparam('since'),
        LOG.c.action.in_(sa.bindparam('actions', expanding=True)),
    )
    .order_by(LOG.c.id.desc())
)


def list_times(
    session: Session,
    replica_id: str,
    actions: typing.Collection[str],
    since: datetime.datetime,
) -> list[datetime.datetime]:
    """Return when the log had these actions on a replica, newest first."""
    return [
        row.made_at
        for row in session.rows(
            _TIMES, replica_id=replica_id, actions=sorted(actions), since=since
        )
    ]
