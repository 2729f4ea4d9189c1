"""Shares on a share network or a share server, by the index of these.

The list of shares finds few among all shares of a deployment by reading all
of them, if the database does not know that they are few.
"""

from collections.abc import Sequence

import sqlalchemy as sa

from manila_lite.db.models import shares
from manila_lite.db.rows import ShareOnRow
from manila_lite.db.session import Session
from manila_lite.states.share_instance import HIDDEN_FROM_TENANTS

SHARE = shares.Share.__table__
INSTANCE = shares.ShareInstance.__table__


def _on(column: sa.Column) -> sa.Select:
    these = (
        sa.select(INSTANCE.c.share_id, INSTANCE.c.status)
        .where(
            column == sa.bindparam('of'),
            INSTANCE.c.status.not_in(sorted(HIDDEN_FROM_TENANTS)),
        )
        .order_by(INSTANCE.c.id)
        .limit(sa.bindparam('most', type_=sa.Integer()))
        .subquery()
    )
    return (
        sa.select(
            SHARE.c.id,
            SHARE.c.display_name.label('name'),
            SHARE.c.size,
            SHARE.c.share_proto,
            SHARE.c.project_id,
            these.c.status,
        )
        .select_from(these.join(SHARE, SHARE.c.id == these.c.share_id))
        .order_by(SHARE.c.created_at.desc(), SHARE.c.id)
    )


_ON_NETWORK = _on(INSTANCE.c.share_network_id)
_ON_SERVER = _on(INSTANCE.c.share_server_id)


def list_on_network(
    session: Session, network_id: str, *, most: int
) -> Sequence[ShareOnRow]:
    """Return share instances on a network with their shares."""
    return session.rows(_ON_NETWORK, of=network_id, most=most)


def list_on_server(
    session: Session, server_id: str, *, most: int
) -> Sequence[ShareOnRow]:
    """Return share instances on a server with their shares."""
    return session.rows(_ON_SERVER, of=server_id, most=most)
