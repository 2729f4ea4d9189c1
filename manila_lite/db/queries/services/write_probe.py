"""A write that leaves nothing behind, to learn whether writes succeed."""

import sqlalchemy as sa

from manila_lite.db.clock import db_now
from manila_lite.db.models import engine
from manila_lite.db.session import Session

TASK = engine.ClusterTask.__table__

_INSERT = sa.insert(TASK).values(due_at=db_now())
_DELETE = sa.delete(TASK).where(TASK.c.name == sa.bindparam('of_task'))


def write(session: Session) -> None:
    """Insert a row and delete it.

    It is a row of its own, so that no other process can hold its lock.
    """
    name = f'write probe {session.new_id()}'
    session.run(_INSERT, name=name)
    session.run(_DELETE, of_task=name)
