"""The records of driver calls."""

from collections.abc import Collection

import sqlalchemy as sa

from manila_lite.db.models import engine
from manila_lite.db.session import Session

CALL = engine.DriverCall.__table__

_INSERT = sa.insert(CALL)
_DELETE = sa.delete(CALL).where(CALL.c.id.in_(sa.bindparam('ids', expanding=True)))


def replace(
    session: Session, calls: list[dict[str, object]], *, written: Collection[str]
) -> None:
    """Insert calls; those with the ids `written` may have a row already."""
    if written:
        session.run(_DELETE, ids=sorted(written))
    session.run_many(_INSERT, calls)
