"""Back ends whose processes are gone."""

import sqlalchemy as sa

from manila_lite.db.models import services
from manila_lite.db.session import Database

SERVICE = services.Service.__table__


def lose(db: Database, host: str) -> None:
    """Make the last heartbeat of a service old."""
    db.write(
        lambda session: session.run(
            sa.update(SERVICE).where(SERVICE.c.host == host).values(heartbeat_at=0.0)
        )
    )
