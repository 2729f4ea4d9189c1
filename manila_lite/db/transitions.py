"""The one door to every status column.

`born` writes a first status, `fire` makes one move of a state table, and
`fire_all` makes the same move for several rows. Each leaves a row in the
journal, in the same transaction. Nothing else writes a status.
"""

from collections.abc import Iterable
import functools

import sqlalchemy as sa

from manila_lite import exception
from manila_lite.db import models
from manila_lite.db.models import engine
from manila_lite.db.session import Session
from manila_lite.states import machine as machines

JOURNAL = engine.Transition.__table__

_BIRTH = sa.insert(JOURNAL)


def born(session: Session, machine: machines.Machine, event: str,
         **values: object) -> None:
    """Insert a row with the status its birth event gives."""
    values[machine.column] = machine.born[event]
    session.run(_insert(machine), **values)
    session.run(_BIRTH, resource=machine.resource, resource_id=values['id'],
                event=event, from_status=None,
                to_status=machine.born[event], **_who(session))


def fire(session: Session, machine: machines.Machine, id: str, event: str,
         **values: object) -> None:
    """Make one move of the state table, or refuse; never half of it.

    `values` are further columns that change with it. Raises InvalidStatus
    with the status found, or ResourceNotFound.
    """
    move = machine[event]
    journal, guarded = _statements(machine, event, tuple(sorted(values)))
    # The journal row is written first: it reads, under a row lock, which
    # of the statuses the move may leave is being left.
    if session.run(journal, guard_id=id, event=event, **_who(session)) != 1:
        raise _why_not(session, machine, id, move)
    changed = {f'new_{name}': value for name, value in values.items()}
    if session.run(guarded, guard_id=id, **changed) != 1:
        raise _why_not(session, machine, id, move)


def fire_all(session: Session, machine: machines.Machine,
             ids: Iterable[str], event: str) -> None:
    """Make the same move for every row, or refuse for all."""
    for id in sorted(ids):
        fire(session, machine, id, event)


def _who(session: Session) -> dict[str, object]:
    by = session.by
    return {'request_id': by and by.request_id, 'made_by': by and by.actor,
            'made_at': session.now}


@functools.cache
def _insert(machine: machines.Machine) -> sa.Insert:
    return sa.insert(models.metadata.tables[machine.table])


@functools.cache
def _statements(machine: machines.Machine, event: str,
                names: tuple[str, ...]
                ) -> tuple[sa.Insert, sa.Update | sa.Delete]:
    """The journal insert and the guarded change of one move, prebuilt."""
    move = machine[event]
    table = models.metadata.tables[machine.table]
    column = table.c[machine.column]
    guard = (table.c.id == sa.bindparam('guard_id'),
             column.in_(sorted(move.sources)))
    found = sa.select(
        sa.literal(machine.resource), table.c.id,
        sa.bindparam('event', type_=sa.String()), column,
        sa.literal(move.target, type_=sa.String()),
        sa.bindparam('request_id', type_=sa.String()),
        sa.bindparam('made_by', type_=sa.String()),
        sa.bindparam('made_at', type_=JOURNAL.c.made_at.type),
    ).where(*guard).with_for_update()
    journal = sa.insert(JOURNAL).from_select(
        ['resource', 'resource_id', 'event', 'from_status', 'to_status',
         'request_id', 'made_by', 'made_at'], found)
    if move.target is machines.GONE:
        return journal, sa.delete(table).where(*guard)
    changes = {name: sa.bindparam(f'new_{name}', type_=table.c[name].type)
               for name in names}
    changes[machine.column] = sa.literal(move.target)
    return journal, sa.update(table).where(*guard).values(changes)


def _why_not(session: Session, machine: machines.Machine, id: str,
             move: machines.Move) -> exception.ManilaLiteError:
    table = models.metadata.tables[machine.table]
    status = session.value(
        sa.select(table.c[machine.column]).where(table.c.id == id))
    if status is None:
        return exception.ResourceNotFound(
            resource=machine.resource.replace('_', ' ').capitalize(), id=id)
    return exception.InvalidStatus(
        resource=machine.resource.replace('_', ' '), id=id, status=status,
        event=move.event, allowed=', '.join(sorted(move.sources)))
