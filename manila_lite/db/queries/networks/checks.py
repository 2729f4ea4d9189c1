"""Replies of back ends about possible changes of share networks."""

from collections.abc import Collection

import sqlalchemy as sa

from manila_lite.db.models import networks
from manila_lite.db.session import Session

CHECK = networks.ShareNetworkCheck.__table__

_OF = (
    CHECK.c.share_network_id == sa.bindparam('network_id'),
    CHECK.c.operation == sa.bindparam('of_operation'),
)
_RESULTS = (
    sa.select(CHECK.c.host, CHECK.c.compatible).where(*_OF).order_by(CHECK.c.host)
)
_RECORD = (
    sa.update(CHECK)
    .where(*_OF, CHECK.c.host == sa.bindparam('of_host'))
    .values(compatible=sa.bindparam('reply'))
)
_DELETE = sa.delete(CHECK).where(*_OF)
_DELETE_ALL = sa.delete(CHECK).where(
    CHECK.c.share_network_id == sa.bindparam('network_id')
)


def get_results(
    session: Session, network_id: str, operation: str
) -> dict[str, bool | None]:
    """Return the reply of each back end by host; None is outstanding.

    Empty if none was asked. `operation` is a digest of the change.
    """
    return {
        row.host: row.compatible
        for row in session.rows(_RESULTS, network_id=network_id, of_operation=operation)
    }


def start(
    session: Session, network_id: str, operation: str, hosts: Collection[str]
) -> None:
    """Start a check by these back ends and discard earlier replies."""
    session.run(_DELETE, network_id=network_id, of_operation=operation)
    session.run_many(
        sa.insert(CHECK),
        [
            {
                'share_network_id': network_id,
                'operation': operation,
                'host': host,
                'created_at': session.now,
            }
            for host in sorted(hosts)
        ],
    )


def record_result(
    session: Session, network_id: str, operation: str, host: str, compatible: bool
) -> None:
    """Store a reply, unless the check has been discarded."""
    session.run(
        _RECORD,
        network_id=network_id,
        of_operation=operation,
        of_host=host,
        reply=compatible,
    )


def delete_all(session: Session, network_id: str) -> None:
    """Discard all checks of a network, because it has changed."""
    session.run(_DELETE_ALL, network_id=network_id)
