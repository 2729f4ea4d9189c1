"""The running work that queued work waits for.

Two works with one exclusion key do not run at a time.
"""

import sqlalchemy as sa

from manila_lite.db.models import engine

WORK = engine.Work.__table__
BLOCKER = WORK.alias('blocker')

IS_BLOCKER = sa.and_(
    BLOCKER.c.running_key == engine.EXCLUSION_KEY, WORK.c.state == 'queued'
)
"""The condition of a join of work with what it waits for."""

SHOWN = (BLOCKER.c.kind.label('blocker_kind'), BLOCKER.c.owner.label('blocker_owner'))
"""Columns of that work; null if nothing is waited for."""
