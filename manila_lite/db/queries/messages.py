"""User messages: what a project was told, until it expires."""

import sqlalchemy as sa

from manila_lite.db.models import services
from manila_lite.db.session import Session

MESSAGE = services.Message.__table__


def insert(session: Session, **values: object) -> None:
    session.run(sa.insert(MESSAGE), id=session.new_id(),
                created_at=session.now, **values)


def purge_expired(session: Session) -> int:
    """Remove what has expired; how many there were."""
    return session.run(sa.delete(MESSAGE).where(
        MESSAGE.c.expires_at <= session.now))
