"""Counts of the resources that quota is charged for."""

from collections.abc import Iterator, Mapping

import sqlalchemy as sa

from manila_lite.db.models import engine
from manila_lite.db.models import networks
from manila_lite.db.models import shares
from manila_lite.db.models import snapshots
from manila_lite.db.queries.admin.quotas import Owner
from manila_lite.db.session import Session
from manila_lite.states.share_instance import HIDDEN_FROM_TENANTS

SHARE = shares.Share.__table__
INSTANCE = shares.ShareInstance.__table__
SNAPSHOT = snapshots.Snapshot.__table__
NETWORK = networks.ShareNetwork.__table__
WORK = engine.Work.__table__

Charge = tuple[Owner, Mapping[str, int]]
"""An owner and amounts of resources."""

# Deferred deletion gives back the quota when the request is accepted.
_COUNTING = (
    sa.select(
        INSTANCE.c.share_id,
        sa.func.min(INSTANCE.c.share_type_id).label('share_type_id'),
        sa.func.count().label('instances'),
    )
    .where(INSTANCE.c.status.not_in(sorted(HIDDEN_FROM_TENANTS)))
    .group_by(INSTANCE.c.share_id)
    .subquery()
)
_REPLICAS = sa.case(
    (SHARE.c.replication_type.is_(None), 0), else_=_COUNTING.c.instances
)
_SHARES = (
    sa.select(
        SHARE.c.project_id,
        SHARE.c.user_id,
        _COUNTING.c.share_type_id,
        sa.func.count().label('shares'),
        sa.func.sum(SHARE.c.size).label('gigabytes'),
        sa.func.sum(_REPLICAS).label('share_replicas'),
        sa.func.sum(_REPLICAS * SHARE.c.size).label('replica_gigabytes'),
    )
    .join(_COUNTING, _COUNTING.c.share_id == SHARE.c.id)
    # Resources that were never successfully managed have no size.
    .where(SHARE.c.size > 0)
    .group_by(SHARE.c.project_id, SHARE.c.user_id, _COUNTING.c.share_type_id)
)
# A snapshot is charged to the share type of its share.
_TYPES = (
    sa.select(
        INSTANCE.c.share_id,
        sa.func.min(INSTANCE.c.share_type_id).label('share_type_id'),
    )
    .group_by(INSTANCE.c.share_id)
    .subquery()
)
_SNAPSHOTS = (
    sa.select(
        SNAPSHOT.c.project_id,
        SNAPSHOT.c.user_id,
        _TYPES.c.share_type_id,
        sa.func.count().label('snapshots'),
        sa.func.sum(SNAPSHOT.c.size).label('snapshot_gigabytes'),
    )
    .join(_TYPES, _TYPES.c.share_id == SNAPSHOT.c.share_id)
    # Resources that were never successfully managed have no size.
    .where(SNAPSHOT.c.size > 0)
    .group_by(
        SNAPSHOT.c.project_id, SNAPSHOT.c.user_id, _TYPES.c.share_type_id
    )
)
_NETWORKS = sa.select(
    NETWORK.c.project_id,
    NETWORK.c.user_id,
    sa.null().label('share_type_id'),
    sa.func.count().label('share_networks'),
).group_by(NETWORK.c.project_id, NETWORK.c.user_id)
_OWED = sa.select(WORK.c.charges).where(WORK.c.charges.is_not(None))


def count_shares(session: Session, project_id: str | None) -> Iterator[Charge]:
    """Return the usage by shares of a project, or of all."""
    return _used(session, _SHARES, SHARE, project_id)


def count_snapshots(
    session: Session, project_id: str | None
) -> Iterator[Charge]:
    """Return the usage by snapshots of a project, or of all."""
    return _used(session, _SNAPSHOTS, SNAPSHOT, project_id)


def count_networks(
    session: Session, project_id: str | None
) -> Iterator[Charge]:
    """Return the usage by share networks of a project, or of all."""
    return _used(session, _NETWORKS, NETWORK, project_id)


def list_charges(session: Session) -> list[str]:
    """Return the reservations of all work, each as JSON text."""
    return [row.charges for row in session.rows(_OWED)]


def _used(
    session: Session,
    statement: sa.Select,
    table: sa.Table,
    project_id: str | None,
) -> Iterator[Charge]:
    if project_id is not None:
        statement = statement.where(table.c.project_id == project_id)
    for row in session.rows(statement):
        counted = row._asdict()
        owner = Owner(*(counted.pop(name) for name in Owner._fields))
        yield owner, {name: int(n) for name, n in counted.items()}
