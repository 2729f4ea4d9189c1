"""Work that waits for something that it does not control."""

from collections.abc import Collection, Sequence
import typing

import sqlalchemy as sa

from manila_lite.db.session import Session
from manila_lite.db.tables import WORK
from manila_lite.work import table
from manila_lite.work.table import Claim

_CREATED_AT = sa.select(WORK.c.created_at).where(WORK.c.id == sa.bindparam('work_id'))
_EXPLAIN = (
    sa.update(WORK)
    .where(
        WORK.c.id == sa.bindparam('work_id'), WORK.c.fence == sa.bindparam('held_fence')
    )
    .values(error=sa.bindparam('reason'))
)
_WITHDRAW = sa.delete(WORK).where(
    WORK.c.resource == sa.bindparam('of_resource'),
    WORK.c.resource_id == sa.bindparam('of_id'),
    WORK.c.kind.in_(sa.bindparam('kinds', expanding=True)),
    WORK.c.state == table.QUEUED,
    WORK.c.attempt == 0,
)

_BEGUN = sa.select(WORK.c.kind).where(
    WORK.c.resource == sa.bindparam('of_resource'),
    WORK.c.resource_id == sa.bindparam('of_id'),
    WORK.c.attempt > 0,
)
_PENDING = (
    sa.select(WORK.c.id)
    .where(
        WORK.c.resource == sa.bindparam('of_resource'),
        WORK.c.resource_id == sa.bindparam('of_id'),
        WORK.c.kind == sa.bindparam('of_kind'),
    )
    .limit(1)
)


class KindRow(typing.Protocol):
    """Work, by its kind."""

    kind: str


def list_begun(session: Session, resource: str, resource_id: str) -> Sequence[KindRow]:
    """Return the unfinished work of a resource that was ever claimed."""
    return session.rows(_BEGUN, of_resource=resource, of_id=resource_id)


def is_pending(session: Session, resource: str, resource_id: str, kind: str) -> bool:
    """Whether a resource has work of this kind that is not finished."""
    found = session.value(
        _PENDING, of_resource=resource, of_id=resource_id, of_kind=kind
    )
    return found is not None


def seconds_since_request(session: Session, claim: Claim) -> float:
    """Return the age of the request, not negative."""
    created_at = session.value(_CREATED_AT, work_id=claim.id)
    if created_at is None:
        return 0.0  # the claim is lost; whatever follows will find out
    return max(0.0, (session.now - created_at).total_seconds())


def explain(session: Session, claim: Claim, reason: str) -> None:
    """Show administrators what released work waits for."""
    session.run(
        _EXPLAIN, work_id=claim.id, held_fence=claim.fence, reason=reason[:1000]
    )


def withdraw_unclaimed(
    session: Session, resource: str, resource_id: str, kinds: Collection[str]
) -> bool:
    """Delete work that no worker of its queue has tried; else False.

    Only for work without quota.
    """
    return (
        session.run(
            _WITHDRAW, of_resource=resource, of_id=resource_id, kinds=list(kinds)
        )
        > 0
    )
