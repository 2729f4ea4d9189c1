"""Share servers without shares and groups, which are deleted after a while."""

from collections.abc import Sequence
import datetime

import sqlalchemy as sa

from manila_lite.db.queries.servers.share_servers import lock
from manila_lite.db.rows import ServerIdRow
from manila_lite.db.session import Session
from manila_lite.db.tables import GROUP, INSTANCE, SERVER
from manila_lite.states.share_server import ServerStatus

_IS_EMPTY = sa.and_(
    ~sa.exists().where(INSTANCE.c.share_server_id == SERVER.c.id),
    ~sa.exists().where(GROUP.c.share_server_id == SERVER.c.id),
)
_MARK = (
    sa.update(SERVER)
    .where(
        SERVER.c.id == sa.bindparam('server_id'),
        SERVER.c.idle_since.is_(None),
        _IS_EMPTY,
    )
    .values(idle_since=sa.bindparam('now'))
)
_PAGE = (
    sa.select(SERVER.c.id)
    .where(
        SERVER.c.host == sa.bindparam('of_host'),
        SERVER.c.status == ServerStatus.ACTIVE,
        SERVER.c.id > sa.bindparam('after'),
    )
    .order_by(SERVER.c.id)
    .limit(sa.bindparam('most'))
)
_UNMARKED = _PAGE.where(SERVER.c.idle_since.is_(None), _IS_EMPTY)
_IDLE = _PAGE.where(
    SERVER.c.is_auto_deletable.is_(True), SERVER.c.idle_since <= sa.bindparam('before')
)


def mark(session: Session, server_id: str) -> bool:
    """Set `idle_since` if a server is empty; True if it was set."""
    lock(session, server_id)
    return bool(session.run(_MARK, server_id=server_id, now=session.now))


def list_unmarked(
    session: Session, service_host: str, after: str, most: int
) -> Sequence[ServerIdRow]:
    """Return active, empty servers without `idle_since`.

    They are up to `most`, ordered by id, after the id `after`.
    """
    return session.rows(_UNMARKED, of_host=service_host, after=after, most=most)


def list_idle(
    session: Session,
    service_host: str,
    before: datetime.datetime,
    after: str,
    most: int,
) -> Sequence[ServerIdRow]:
    """Return auto-deletable servers that have been idle since `before`.

    They are up to `most`, ordered by id, after the id `after`.
    """
    return session.rows(
        _IDLE, of_host=service_host, before=before, after=after, most=most
    )


def disable_auto_delete(session: Session, server_id: str) -> None:
    """Prevent a server from being deleted except by a request."""
    session.run(
        sa.update(SERVER)
        .where(SERVER.c.id == server_id)
        .values(is_auto_deletable=False)
    )
