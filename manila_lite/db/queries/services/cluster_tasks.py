"""Claims of the tasks that one process of the cluster runs at a time."""

import sqlalchemy as sa

from manila_lite.db.clock import db_now
from manila_lite.db.models import cluster_tasks
from manila_lite.db.session import Session

TASK = cluster_tasks.ClusterTask.__table__

_IS_TASK = TASK.c.name == sa.bindparam('of_task')
_IS_OWN = (_IS_TASK, TASK.c.owner == sa.bindparam('of_owner'))
_LEASE = db_now() + sa.bindparam('lease', type_=sa.Double())
_IS_FREE = sa.or_(TASK.c.owner.is_(None), TASK.c.lease_until < db_now())
_IS_CLAIMABLE = (TASK.c.due_at <= db_now(), _IS_FREE)

_FIND = sa.select(sa.and_(*_IS_CLAIMABLE)).where(_IS_TASK)
_INSERT = sa.insert(TASK).values(due_at=db_now())
_CLAIM_EARLY = (
    sa.update(TASK)
    .where(_IS_TASK, _IS_FREE)
    .values(owner=sa.bindparam('new_owner'), lease_until=_LEASE)
)
_CLAIM = _CLAIM_EARLY.where(TASK.c.due_at <= db_now())
_RENEW = sa.update(TASK).where(*_IS_OWN).values(lease_until=_LEASE)
_FINISH = (
    sa.update(TASK)
    .where(*_IS_OWN)
    .values(
        owner=None,
        lease_until=None,
        due_at=db_now() + sa.bindparam('pause', type_=sa.Double()),
    )
)


def is_claimable(session: Session, name: str) -> bool:
    """Whether a task is due and no living process runs it."""
    return session.value(_FIND, of_task=name) in (None, True)


def claim(
    session: Session, name: str, owner: str, lease: float, *, early: bool = False
) -> bool:
    """Claim a task for `lease` seconds if it is free.

    It must be due, unless it is claimed `early`.
    """
    if session.value(_FIND, of_task=name) is None:
        session.insert_unique(_INSERT, name=name)
    statement = _CLAIM_EARLY if early else _CLAIM
    return bool(session.run(statement, of_task=name, new_owner=owner, lease=lease))


def renew(session: Session, name: str, owner: str, lease: float) -> bool:
    """Renew the lease; return False if another process has the task.

    In the transaction of a step it makes sure that no other process takes
    the same step: the row stays locked until the commit.
    """
    return bool(session.run(_RENEW, of_task=name, of_owner=owner, lease=lease))


def finish(session: Session, name: str, owner: str, pause: float) -> None:
    """Release a task, which is due again after `pause` seconds."""
    session.run(_FINISH, of_task=name, of_owner=owner, pause=pause)
