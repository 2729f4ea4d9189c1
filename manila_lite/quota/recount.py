"""Recounts: the usage computed from the resources themselves."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
import itertools
import typing

import orjson
import sqlalchemy as sa

from manila_lite.db.models import engine
from manila_lite.db.models import networks
from manila_lite.db.models import shares
from manila_lite.db.models import snapshots
from manila_lite.db.queries.admin import quotas
from manila_lite.db.queries.admin.quotas import Key
from manila_lite.db.queries.admin.quotas import Owner
from manila_lite.db.session import Session
from manila_lite.quota import sets
from manila_lite.states.share_instance import HIDDEN_FROM_TENANTS

SHARE = shares.Share.__table__
INSTANCE = shares.ShareInstance.__table__
SNAPSHOT = snapshots.Snapshot.__table__
NETWORK = networks.ShareNetwork.__table__
WORK = engine.Work.__table__

Charge = tuple[Owner, Mapping[str, int]]


class Usage(typing.NamedTuple):
    in_use: int = 0
    reserved: int = 0


class Difference(typing.NamedTuple):
    """A usage row that differs from a recount."""

    key: Key
    stored: Usage
    counted: Usage


def to_reservation(owner: Owner, deltas: Mapping[str, int]) -> list:
    """Return a JSON entry for the `charges` of a work row."""
    return [*owner, dict(deltas)]


def from_reservation(entry: Iterable[typing.Any]) -> Charge:
    *owner, deltas = entry
    return Owner(*owner), deltas


def recount(
    session: Session, project_id: str | None = None
) -> dict[Key, Usage]:
    """Return the usage of a project, or of all, without zero entries."""
    in_use = _sum(
        itertools.chain(
            _used(session, _SHARES, SHARE, project_id),
            _used(session, _SNAPSHOTS, SNAPSHOT, project_id),
            _used(session, _NETWORKS, NETWORK, project_id),
        )
    )
    reserved = _sum(_owed(session, project_id))
    return {
        key: Usage(in_use[key], reserved[key])
        for key in sorted({*in_use, *reserved})
        if in_use[key] or reserved[key]
    }


def differences(
    session: Session, project_id: str | None = None
) -> list[Difference]:
    """Return the differences of usage rows and a recount; none if correct."""
    stored = {
        Key(row.project_id, row.scope, row.scope_id, row.resource): Usage(
            row.in_use, row.reserved
        )
        for row in quotas.list_all_usages(session, project_id)
    }
    counted = recount(session, project_id)
    pairs = (
        (key, stored.get(key, Usage()), counted.get(key, Usage()))
        for key in sorted({*stored, *counted})
    )
    return [Difference(*pair) for pair in pairs if pair[1] != pair[2]]


def correct(
    session: Session,
    defaults: Mapping[str, int],
    project_id: str | None = None,
) -> list[Difference]:
    """Write a recount to the usage rows; return the differences found."""
    quotas.lock_limits(session)
    quotas.list_all_usages(session, project_id, lock=True)
    found = differences(session, project_id)
    sets.create_usages(session, defaults, [wrong.key for wrong in found])
    quotas.set_usages(
        session, [(wrong.key, *wrong.counted) for wrong in found]
    )
    return found


def _sum(charges: Iterable[Charge]) -> Counter[Key]:
    total: Counter[Key] = Counter()
    for owner, deltas in charges:
        for key in owner.keys(deltas):
            total[key] += deltas[key.resource]
    return total


# Deferred deletion gives back the quota when the request is accepted.
_COUNTING = (
    sa.select(
        INSTANCE.c.share_id,
        sa.func.min(INSTANCE.c.share_type_id).label('share_type_id'),
        sa.func.count().label('instances'),
    )
    .where(INSTANCE.c.status.not_in(sorted(HIDDEN_FROM_TENANTS)))
    .group_by(INSTANCE.c.share_id)
    .subquery()
)
_REPLICAS = sa.case(
    (SHARE.c.replication_type.is_(None), 0), else_=_COUNTING.c.instances
)
_SHARES = (
    sa.select(
        SHARE.c.project_id,
        SHARE.c.user_id,
        _COUNTING.c.share_type_id,
        sa.func.count().label('shares'),
        sa.func.sum(SHARE.c.size).label('gigabytes'),
        sa.func.sum(_REPLICAS).label('share_replicas'),
        sa.func.sum(_REPLICAS * SHARE.c.size).label('replica_gigabytes'),
    )
    .join(_COUNTING, _COUNTING.c.share_id == SHARE.c.id)
    # Resources that were never successfully managed have no size.
    .where(SHARE.c.size > 0)
    .group_by(SHARE.c.project_id, SHARE.c.user_id, _COUNTING.c.share_type_id)
)
# A snapshot is charged to the share type of its share.
_TYPES = (
    sa.select(
        INSTANCE.c.share_id,
        sa.func.min(INSTANCE.c.share_type_id).label('share_type_id'),
    )
    .group_by(INSTANCE.c.share_id)
    .subquery()
)
_SNAPSHOTS = (
    sa.select(
        SNAPSHOT.c.project_id,
        SNAPSHOT.c.user_id,
        _TYPES.c.share_type_id,
        sa.func.count().label('snapshots'),
        sa.func.sum(SNAPSHOT.c.size).label('snapshot_gigabytes'),
    )
    .join(_TYPES, _TYPES.c.share_id == SNAPSHOT.c.share_id)
    # Resources that were never successfully managed have no size.
    .where(SNAPSHOT.c.size > 0)
    .group_by(
        SNAPSHOT.c.project_id, SNAPSHOT.c.user_id, _TYPES.c.share_type_id
    )
)
_NETWORKS = sa.select(
    NETWORK.c.project_id,
    NETWORK.c.user_id,
    sa.null().label('share_type_id'),
    sa.func.count().label('share_networks'),
).group_by(NETWORK.c.project_id, NETWORK.c.user_id)
_OWED = sa.select(WORK.c.charges).where(WORK.c.charges.is_not(None))


def _used(
    session: Session,
    statement: sa.Select,
    table: sa.Table,
    project_id: str | None,
) -> Iterator[Charge]:
    if project_id is not None:
        statement = statement.where(table.c.project_id == project_id)
    for row in session.rows(statement):
        counted = row._asdict()
        owner = Owner(*(counted.pop(name) for name in Owner._fields))
        yield owner, {name: int(n) for name, n in counted.items()}


def _owed(session: Session, project_id: str | None) -> Iterator[Charge]:
    for row in session.rows(_OWED):
        for owner, deltas in map(from_reservation, orjson.loads(row.charges)):
            if project_id in (None, owner.project_id):
                yield owner, deltas
