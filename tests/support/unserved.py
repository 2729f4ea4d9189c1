"""Back ends whose processes are gone."""

import typing

import sqlalchemy as sa

from manila_lite.db.models import services

SERVICE = services.Service.__table__


def lose(cloud: typing.Any, host: str) -> None:
    """Make the last heartbeat of a back end old."""
    cloud.db.write(
        lambda session: session.run(
            sa.update(SERVICE)
            .where(SERVICE.c.host == host)
            .values(heartbeat_at=0.0)
        )
    )
