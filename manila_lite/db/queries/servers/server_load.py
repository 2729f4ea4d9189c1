"""The load of a share server, and its limits."""

import typing

import orjson
import sqlalchemy as sa

from manila_lite.db.session import Session
from manila_lite.db.tables import (
    INSTANCE,
    SERVER,
    SHARE,
    SNAPSHOT,
    SNAPSHOT_INSTANCE,
    WORK,
)
from manila_lite.states.share_instance import InstanceStatus
from manila_lite.states.share_server import ServerStatus

_SOURCE = INSTANCE.alias('source')


def snapshots_on(server_id: sa.ColumnElement[str]) -> sa.ScalarSelect[int]:
    """Return the GiB of all snapshots on a server, as a subquery."""
    return (
        sa.select(sa.func.coalesce(sa.func.sum(SNAPSHOT.c.size), 0))
        .select_from(
            _SOURCE.join(
                SNAPSHOT_INSTANCE, SNAPSHOT_INSTANCE.c.share_instance_id == _SOURCE.c.id
            ).join(SNAPSHOT, SNAPSHOT.c.id == SNAPSHOT_INSTANCE.c.snapshot_id)
        )
        .where(_SOURCE.c.share_server_id == server_id)
        .scalar_subquery()
    )


_ON = INSTANCE.c.share_server_id == sa.bindparam('of_server')
_LOAD = (
    sa.select(
        sa.func.count(),
        sa.func.coalesce(sa.func.sum(SHARE.c.size), 0)
        + snapshots_on(sa.bindparam('of_server')),
    )
    .select_from(INSTANCE.join(SHARE))
    .where(_ON)
)
_GROWING = (
    sa.select(WORK.c.args)
    .select_from(
        INSTANCE.join(
            WORK,
            sa.and_(
                WORK.c.resource == 'share_instance',
                WORK.c.resource_id == INSTANCE.c.id,
                WORK.c.state == 'running',
            ),
        )
    )
    .where(
        _ON,
        INSTANCE.c.status == InstanceStatus.EXTENDING,
        INSTANCE.c.id != sa.bindparam('but'),
    )
)
_USE = (
    sa.update(SERVER)
    .where(
        SERVER.c.id == sa.bindparam('server_id'), SERVER.c.status == ServerStatus.ACTIVE
    )
    .values(idle_since=None)
)


class ServerLimits(typing.NamedTuple):
    """The most shares and GiB that a server may have; -1 is unlimited."""

    shares: int = -1
    gigabytes: int = -1

    def allows(self, shares: int, gigabytes: int) -> bool:
        return (self.shares < 0 or shares <= self.shares) and (
            self.gigabytes < 0 or gigabytes <= self.gigabytes
        )


NO_LIMITS = ServerLimits()


def get_load(session: Session, server_id: str) -> tuple[int, int]:
    """Return the number of instances on a server, and the GiB on it.

    These are the sizes of instances and of their snapshots.
    """
    count, size = session.rows(_LOAD, of_server=server_id)[0]
    return count, int(size)


def lock_for_use(session: Session, server_id: str) -> bool:
    """Lock an active server to put something on it; False if it is not active.

    A concurrent transaction that calls this waits, and then counts what
    this one has added.
    """
    return bool(session.run(_USE, server_id=server_id))


def get_growth(session: Session, server_id: str, but: str | None = None) -> int:
    """Return the GiB by which shares on a server are being extended now.

    `but` is the id of an instance that is not counted.
    """
    rows = session.rows(_GROWING, of_server=server_id, but=but or '')
    return sum(orjson.loads(row.args).get('growth', 0) for row in rows)


def can_grow(
    session: Session,
    server_id: str,
    instance_id: str,
    growth: int,
    limits: ServerLimits,
) -> bool:
    """Whether an instance on this server may be extended by `growth` GiB.

    An instance that is alone on its server may exceed the limit, as a new
    share gets a server of its own however large it is. Call it in the
    transaction that claims the work, so that of concurrent extensions each
    counts the others.
    """
    if limits.gigabytes < 0 or not lock_for_use(session, server_id):
        return True
    count, gigabytes = get_load(session, server_id)
    return count == 1 or limits.allows(
        0, gigabytes + growth + get_growth(session, server_id, but=instance_id)
    )
