"""What must hold in every database whenever nothing is owed."""

from collections.abc import Iterator, Mapping
import typing

import sqlalchemy as sa

from manila_lite.db.models import engine
from manila_lite.db.models import services
from manila_lite.db.models import shares
from manila_lite.db.session import Session
from manila_lite.quota import recount
from manila_lite.states.share_instance import MACHINE

INSTANCE = shares.ShareInstance.__table__
SHARE = shares.Share.__table__
JOURNAL = engine.Transition.__table__
SERVICE = services.Service.__table__
POOL = services.Pool.__table__

Inventories = Mapping[str, Mapping[str, int]]
"""By host of a back end: the size of every share instance it has."""


def problems(session: Session, inventories: Inventories) -> list[str]:
    """Everything that is wrong, in words; rightly nothing."""
    rows = session.rows(sa.select(
        INSTANCE.c.id, INSTANCE.c.status, INSTANCE.c.host, SHARE.c.size
    ).select_from(INSTANCE.join(SHARE)))
    return [*at_rest(session, rows), *books(session, rows),
            *back_ends(rows, inventories), *journal(session)]


def at_rest(session: Session, rows: typing.Sequence[sa.Row]
            ) -> Iterator[str]:
    """Nothing is in flight, and nothing is left of what is gone."""
    for row in rows:
        if row.status in MACHINE.in_flight:
            yield f'{row.id} is {row.status} and nobody works on it'
    for row in session.rows(sa.select(SERVICE).where(SERVICE.c.ensuring)):
        yield f'{row.host} is ensuring and nobody works on it'
    orphans = session.value(
        sa.select(sa.func.count()).select_from(SHARE).where(
            ~sa.exists().where(INSTANCE.c.share_id == SHARE.c.id)))
    if orphans:
        yield f'{orphans} shares have no instance'


def books(session: Session, rows: typing.Sequence[sa.Row]) -> Iterator[str]:
    """Quota and pools say what a recount says."""
    for difference in recount.differences(session):
        yield f'quota differs from a recount: {difference}'
    placed: dict[str, int] = {}
    for row in rows:
        placed[row.host] = placed.get(row.host, 0) + row.size
    for pool in session.rows(sa.select(POOL)):
        if pool.allocated_gb != placed.get(pool.host, 0):
            yield (f'{pool.host} has {pool.allocated_gb} GiB allocated, '
                   f'not {placed.get(pool.host, 0)}')
        if pool.pending_gb < 0:
            yield f'{pool.host} has {pool.pending_gb} GiB pending'


def back_ends(rows: typing.Sequence[sa.Row],
              inventories: Inventories) -> Iterator[str]:
    """What is available is there, and nothing else is."""
    real = {id: (host, size) for host, found in inventories.items()
            for id, size in found.items()}
    for row in rows:
        home = row.host and row.host.partition('#')[0]
        if row.status == 'available' and (
                real.get(row.id) != (home, row.size)):
            yield (f'{row.id} should be {row.size} GiB on {home}, '
                   f'there is {real.get(row.id)}')
    for id in real.keys() - {row.id for row in rows}:
        yield f'{id} is on a back end and nobody knows it'


def journal(session: Session) -> Iterator[str]:
    """Every move is one of the table, and begins where the last ended."""
    last: dict[str, str | None] = {}
    for row in session.rows(sa.select(JOURNAL).order_by(JOURNAL.c.id)):
        if row.from_status != last.get(row.resource_id):
            yield (f'{row.resource_id} went from '
                   f'{last.get(row.resource_id)}, the journal says '
                   f'{row.from_status}')
        last[row.resource_id] = row.to_status
        if not _is_legal(row):
            yield (f'{row.resource_id} made {row.event} from '
                   f'{row.from_status} to {row.to_status}')


def _is_legal(row: sa.Row) -> bool:
    if row.from_status is None:
        return MACHINE.born.get(row.event) == row.to_status
    move = MACHINE[row.event]
    return move.leaves(row.from_status) and move.target == row.to_status
