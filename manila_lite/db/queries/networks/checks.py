"""What back ends say of changes that share networks may be put to."""

from collections.abc import Collection

import sqlalchemy as sa

from manila_lite.db.models import networks
from manila_lite.db.session import Session

CHECK = networks.ShareNetworkCheck.__table__

_OF = (
    CHECK.c.share_network_id == sa.bindparam('network_id'),
    CHECK.c.operation == sa.bindparam('of_operation'),
)
_ANSWERS = (
    sa.select(CHECK.c.host, CHECK.c.compatible)
    .where(*_OF)
    .order_by(CHECK.c.host)
)
_NOTE = (
    sa.update(CHECK)
    .where(*_OF, CHECK.c.host == sa.bindparam('of_host'))
    .values(compatible=sa.bindparam('answer'))
)
_FORGET = sa.delete(CHECK).where(*_OF)
_FORGET_ALL = sa.delete(CHECK).where(
    CHECK.c.share_network_id == sa.bindparam('network_id')
)


def get_results(
    session: Session, network_id: str, operation: str
) -> dict[str, bool | None]:
    """What each back end has said, by its host; None is not yet.

    Empty when none was asked. `operation` is a digest of the change.
    """
    return {
        row.host: row.compatible
        for row in session.rows(
            _ANSWERS, network_id=network_id, of_operation=operation
        )
    }


def start(
    session: Session, network_id: str, operation: str, hosts: Collection[str]
) -> None:
    """Have these back ends be asked, whatever was said before."""
    session.run(_FORGET, network_id=network_id, of_operation=operation)
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
    session: Session,
    network_id: str,
    operation: str,
    host: str,
    compatible: bool,
) -> None:
    """Write an answer down, unless nobody waits for it any more."""
    session.run(
        _NOTE,
        network_id=network_id,
        of_operation=operation,
        of_host=host,
        answer=compatible,
    )


def delete_all(session: Session, network_id: str) -> None:
    """Nothing is known any more: the network has changed."""
    session.run(_FORGET_ALL, network_id=network_id)
