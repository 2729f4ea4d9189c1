"""The only code that writes status columns.

`insert_row` and `insert_rows` write initial statuses, `fire` makes one
move of a state machine, `fire_all`, `fire_known` and `fire_matching` make the
same move for several rows, and `TransitionBatch` combines inserts and moves of
several tables. Each writes to the journal in the same transaction, and each move
sets `updated_at` of the rows that it leaves in their table.
"""

from collections.abc import Collection, Iterator, Mapping
import functools
import typing

import sqlalchemy as sa

from manila_lite import exception, masking
from manila_lite.db import commits, models, owners
from manila_lite.db.session import ConcurrentChange, Session
from manila_lite.db.tables import JOURNAL
from manila_lite.states import machine as machines

_INSERT_JOURNAL = sa.insert(JOURNAL)

_ONE = (('id', False),)
_AT_ONCE = 500
"""The most ids named in one statement."""

LONGEST_REASON = 1000
"""Characters of a reason that the journal keeps."""


def insert_row(
    session: Session, machine: machines.Machine, event: str, **values: object
) -> None:
    """Insert a row with the initial status that the event gives."""
    values[machine.column] = machine.to_column(machine.initial[event])
    session.run(_insert(machine), **values)
    _write_journal(
        session,
        [
            {
                'resource': machine.resource,
                'resource_id': values['id'],
                'event': event,
                'from_status': None,
                'to_status': machine.initial[event],
                **_initiator_values(session),
            }
        ],
    )


def fire(
    session: Session, machine: machines.Machine, id: str, event: str, **values: object
) -> None:
    """Make one move of a state machine, or change nothing.

    `values` are other columns to change with the status. Raises InvalidStatus
    with the current status, or ResourceNotFound.
    """
    move = machine[event]
    values = _stamped(session, machine, event, values)
    journal, guarded = _statements(machine, event, tuple(sorted(values)), _ONE)
    # The journal row is written first: under a row lock, its SELECT finds
    # which of the source statuses the row is in.
    transaction_id = _unwritten_id(session)
    if (
        session.run(
            journal,
            guard_id=id,
            event=event,
            transaction_id=transaction_id,
            **_initiator_values(session),
        )
        != 1
    ):
        raise _refusal(session, machine, id, move)
    _note_written(session, transaction_id)
    changed = {f'new_{name}': value for name, value in values.items()}
    if session.run(guarded, guard_id=id, **changed) != 1:
        raise _refusal(session, machine, id, move)


def fire_all(
    session: Session,
    machine: machines.Machine,
    ids: Collection[str],
    event: str,
    **values: object,
) -> None:
    """Make the same move for every row, or for none.

    Raises InvalidStatus or ResourceNotFound for one that cannot make it.
    """
    for part in _parts(ids):
        _fire_where(session, machine, event, {'id': part}, values, expected=len(part))


def _parts(ids: Collection[str]) -> Iterator[list[str]]:
    wanted = sorted(set(ids))
    for begin in range(0, len(wanted), _AT_ONCE):
        yield wanted[begin : begin + _AT_ONCE]


def fire_matching(
    session: Session,
    machine: machines.Machine,
    event: str,
    match: Mapping[str, object],
    **values: object,
) -> int:
    """Make a move for all matching rows that may make it; return the count.

    `match` maps columns to a value, or to a list of accepted values. Rows
    in other statuses are left alone. Takes two statements for any number
    of rows, and one at the end of a transaction without other moves.
    """
    return _fire_where(session, machine, event, match, values)


def fire_known(
    session: Session, machine: machines.Machine, event: str, ids: Collection[str]
) -> None:
    """Make the same move for rows that could make it when the caller read them.

    Raises ConcurrentChange if one of them no longer can: the transaction runs
    again.
    """
    for part in _parts(ids):
        moved = _fire_where(session, machine, event, {'id': part}, {}, sample=part[0])
        if moved != len(part):
            raise ConcurrentChange(table=machine.table)


def insert_rows(
    session: Session,
    machine: machines.Machine,
    event: str,
    rows: Collection[dict[str, object]],
) -> None:
    """Insert rows with the initial status that the event gives."""
    status, values = machine.initial[event], _initiator_values(session)
    session.run_many(
        _insert(machine),
        [{**row, machine.column: machine.to_column(status)} for row in rows],
    )
    _write_journal(
        session,
        [
            {
                'resource': machine.resource,
                'resource_id': row['id'],
                'event': event,
                'from_status': None,
                'to_status': status,
                **values,
            }
            for row in rows
        ],
    )


class TransitionBatch:
    """Inserts and moves of one transaction with a single journal write.

    Use it for rows whose status the caller has read under a row lock; the
    moves are guarded nevertheless. `write` writes the journal, which cannot say what
    rows belonged to that are gone by then: other functions remove them.
    """

    def __init__(self, session: Session):
        self.session = session
        self._journal: list[dict[str, object]] = []

    def insert_rows(
        self, machine: machines.Machine, event: str, rows: Collection[dict[str, object]]
    ) -> None:
        """Insert rows with the initial status that the event gives."""
        status = machine.initial[event]
        self.session.run_many(
            _insert(machine),
            [{**row, machine.column: machine.to_column(status)} for row in rows],
        )
        for row in rows:
            self._record(machine, row['id'], event, None, status)

    def fire(
        self, machine: machines.Machine, event: str, statuses: Mapping[str, str]
    ) -> None:
        """Make a move for those rows that may make it.

        `statuses` maps the ids of the rows to their statuses.
        """
        move = machine[event]
        leaving = {
            id: status for id, status in statuses.items() if move.can_leave(status)
        }
        if not leaving:
            return
        values = _stamped(self.session, machine, event, {})
        _, guarded = _statements(machine, event, tuple(values), (('id', True),))
        changed = {f'new_{name}': value for name, value in values.items()}
        if self.session.run(guarded, guard_id=sorted(leaving), **changed) != len(
            leaving
        ):
            raise ConcurrentChange(table=machine.table)
        for id, status in sorted(leaving.items()):
            self._record(machine, id, event, status, move.target)

    def fire_one(
        self, machine: machines.Machine, id: str, event: str, **values: object
    ) -> None:
        """Make a move that has one source status, as the function `fire` does.

        The row need not have been read: the guard proves its status.
        """
        move = machine[event]
        (source,) = move.sources
        values = _stamped(self.session, machine, event, values)
        _, guarded = _statements(machine, event, tuple(sorted(values)), _ONE)
        changed = {f'new_{name}': value for name, value in values.items()}
        if self.session.run(guarded, guard_id=id, **changed) != 1:
            raise _refusal(self.session, machine, id, move)
        self._record(machine, id, event, source, move.target)

    def fire_own(
        self,
        machine: machines.Machine,
        event: str,
        match: Mapping[str, object],
        ids: Collection[str],
    ) -> None:
        """Make a move that only the caller can make, for what is left to make it.

        `match` finds no other rows than these that may make it. A row that has
        meanwhile made another move is left alone.
        """
        move = machine[event]
        (source,) = move.sources
        values = _stamped(self.session, machine, event, {})
        _, guarded = _statements(
            machine, event, tuple(values), tuple((name, False) for name in match)
        )
        matched = {f'guard_{name}': value for name, value in match.items()}
        changed = {f'new_{name}': value for name, value in values.items()}
        count = self.session.run(guarded, **matched, **changed)
        moved: Collection[str] = ids
        if count != len(ids):
            # Those at the target have made it now.
            moved = _list_ids_in(self.session, machine, ids, move.target)
        if count != len(moved):
            raise ConcurrentChange(table=machine.table)
        for id in sorted(moved):
            self._record(machine, id, event, source, move.target)

    def fire_unless(
        self,
        machine: machines.Machine,
        id: str,
        event: str,
        obstacle: sa.ColumnElement[bool],
        **params: object,
    ) -> bool:
        """Make such a move if it is possible without the obstacle.

        `obstacle` is a condition with `params`, a constant of a module. It may
        be about other tables, where transactions that run at the same time do
        not see each other: after False, lock the row and look again.
        """
        move = machine[event]
        (source,) = move.sources
        values = _stamped(self.session, machine, event, {})
        guarded = _statements_unless(machine, event, tuple(values), obstacle)
        changed = {f'new_{name}': value for name, value in values.items()}
        if self.session.run(guarded, guard_id=id, **params, **changed) != 1:
            return False
        self._record(machine, id, event, source, move.target)
        return True

    def _record(
        self,
        machine: machines.Machine,
        id: object,
        event: str,
        before: str | None,
        after: str | None,
    ) -> None:
        assert after is not machines.GONE, f'{event} removes the row'
        self._journal.append(
            {
                'resource': machine.resource,
                'resource_id': id,
                'event': event,
                'from_status': before,
                'to_status': after,
                **_initiator_values(self.session),
            }
        )

    def write(self) -> None:
        """Write all inserts and moves to the journal."""
        _write_journal(self.session, self._journal)
        self._journal = []


def _fire_where(
    session: Session,
    machine: machines.Machine,
    event: str,
    match: Mapping[str, typing.Any],
    values: Mapping[str, object],
    expected: int | None = None,
    sample: str | None = None,
) -> int:
    values = _stamped(session, machine, event, values)
    journal, guarded = _statements(
        machine,
        event,
        tuple(sorted(values)),
        tuple(
            sorted(
                (name, isinstance(value, (list, tuple)))
                for name, value in match.items()
            )
        ),
    )
    matched = {f'guard_{name}': value for name, value in match.items()}
    identified = sample or _identified_row(match, expected)
    transaction_id = _unwritten_id(session) if identified else None
    count = session.run(
        journal,
        **matched,
        **({} if _is_of_one(match) else {'identified_id': identified}),
        event=event,
        transaction_id=transaction_id,
        **_initiator_values(session),
    )
    if count:
        session.has_moves = True
        _note_written(session, transaction_id)
    if expected is not None and count != expected:
        raise _refusal_of_any(session, machine, match['id'], machine[event])
    if not count:
        return 0
    changed = {f'new_{name}': value for name, value in values.items()}
    if session.run(guarded, **matched, **changed) != count:
        raise ConcurrentChange(table=machine.table)
    return count


def _is_of_one(match: Mapping[str, object]) -> bool:
    return tuple(match) == ('id',) and isinstance(match['id'], str)


def _identified_row(
    match: Mapping[str, typing.Any], expected: int | None
) -> str | None:
    """Return a row that makes the move if any does; None if unknown."""
    if _is_of_one(match):
        return match['id']
    return match['id'][0] if expected else None


def _stamped(
    session: Session,
    machine: machines.Machine,
    event: str,
    values: Mapping[str, object],
) -> dict[str, object]:
    """Return the values with the time of the move in the columns that have it."""
    columns = [machine.stamps[event]] if event in machine.stamps else []
    if machine[event].target is not machines.GONE:
        columns.append('updated_at')
    return {**values, **dict.fromkeys(columns, session.now)}


def _write_journal(session: Session, rows: typing.Sequence[dict[str, object]]) -> None:
    """Insert rows, the first of which may identify the transaction."""
    if not rows:
        return
    transaction_id = _unwritten_id(session)
    session.run_many(
        _INSERT_JOURNAL,
        [
            {**row, 'transaction_id': None if number else transaction_id}
            for number, row in enumerate(rows)
        ],
    )
    _note_written(session, transaction_id)


def _unwritten_id(session: Session) -> str | None:
    """Return the id of the transaction unless it is in the journal."""
    if session.transaction_id is not None:
        return None
    return commits.new_id(session.now, session.db.rng)


def _note_written(session: Session, transaction_id: str | None) -> None:
    if transaction_id is not None:
        session.transaction_id = transaction_id


def _initiator_values(session: Session) -> dict[str, object]:
    """Return the journal columns that say who makes a move, and when."""
    by = session.by
    return {
        'request_id': by and by.request_id,
        'made_by': by and by.actor,
        'made_at': session.now,
        'reason': (session.reason and masking.mask(session.reason)[:LONGEST_REASON]),
    }


@functools.cache
def _insert(machine: machines.Machine) -> sa.Insert:
    return sa.insert(models.metadata.tables[machine.table])


@functools.cache
def _statements(
    machine: machines.Machine,
    event: str,
    names: tuple[str, ...],
    match: tuple[tuple[str, bool], ...],
) -> tuple[sa.Insert, sa.Update | sa.Delete]:
    """Return the journal insert and the guarded change of a move."""
    move = machine[event]
    table = models.metadata.tables[machine.table]
    column = table.c[machine.column]
    guard = (
        *(_matches(table.c[name], many) for name, many in match),
        _is_one_of(machine, column, move.sources),
    )
    left = column if machine.null is None else sa.func.coalesce(column, machine.null)
    found = (
        sa.select(
            sa.literal(machine.resource),
            table.c.id,
            sa.bindparam('event', type_=sa.String()),
            left,
            sa.literal(move.target, type_=sa.String()),
            sa.bindparam('request_id', type_=sa.String()),
            sa.bindparam('made_by', type_=sa.String()),
            sa.bindparam('made_at', type_=JOURNAL.c.made_at.type),
            sa.bindparam('reason', type_=JOURNAL.c.reason.type),
            _transaction_id_of(table, match),
            *(
                [owners.parent_of(table), owners.project_of(table)]
                if move.target is machines.GONE
                else []
            ),
        )
        .where(*guard)
        .with_for_update()
    )
    if match != _ONE:
        found = found.order_by(table.c.id)  # one lock order for everyone
    journal = sa.insert(JOURNAL).from_select(
        [
            'resource',
            'resource_id',
            'event',
            'from_status',
            'to_status',
            'request_id',
            'made_by',
            'made_at',
            'reason',
            'transaction_id',
            *(['parent_id', 'project_id'] if move.target is machines.GONE else []),
        ],
        found,
    )
    if move.target is machines.GONE:
        return journal, sa.delete(table).where(*guard)
    changes = {
        name: sa.bindparam(f'new_{name}', type_=table.c[name].type) for name in names
    }
    changes[machine.column] = sa.literal(
        machine.to_column(move.target), type_=column.type
    )
    return journal, sa.update(table).where(*guard).values(changes)


@functools.cache
def _statements_unless(
    machine: machines.Machine,
    event: str,
    names: tuple[str, ...],
    obstacle: sa.ColumnElement[bool],
) -> sa.Update | sa.Delete:
    """Return the guarded change of a move that an obstacle prevents."""
    _, guarded = _statements(machine, event, names, _ONE)
    return guarded.where(~obstacle)


def _transaction_id_of(
    table: sa.Table, match: tuple[tuple[str, bool], ...]
) -> sa.ColumnElement[str | None]:
    """Return the id of the transaction for one of the rows, else NULL."""
    transaction_id = sa.bindparam('transaction_id', type_=JOURNAL.c.transaction_id.type)
    if match == _ONE:
        return transaction_id
    return sa.case((table.c.id == sa.bindparam('identified_id'), transaction_id))


def _is_one_of(
    machine: machines.Machine, column: sa.Column, statuses: Collection[str]
) -> sa.ColumnElement[bool]:
    stored = {machine.to_column(status) for status in statuses}
    named = column.in_(sorted(status for status in stored if status))
    return sa.or_(named, column.is_(None)) if None in stored else named


def _matches(column: sa.Column, many: bool) -> sa.ColumnElement[bool]:
    name = f'guard_{column.key}'
    if many:
        return column.in_(sa.bindparam(name, expanding=True))
    return column == sa.bindparam(name)


def _list_ids_in(
    session: Session,
    machine: machines.Machine,
    ids: Collection[str],
    status: str | None,
) -> list[str]:
    """Return those of the ids whose rows are in this status."""
    table = models.metadata.tables[machine.table]
    in_status = sa.select(table.c.id).where(
        table.c[machine.column] == machine.to_column(status)
    )
    return [
        row.id
        for part in _parts(ids)
        for row in session.rows(in_status.where(table.c.id.in_(part)))
    ]


def _refusal_of_any(
    session: Session,
    machine: machines.Machine,
    ids: Collection[str],
    move: machines.Move,
) -> exception.ManilaLiteError:
    table = models.metadata.tables[machine.table]
    found = {
        row[0]: machine.from_column(row[1])
        for row in session.rows(
            sa.select(table.c.id, table.c[machine.column]).where(table.c.id.in_(ids))
        )
    }
    for id in ids:
        if not move.can_leave(found.get(id) or ''):
            return _refusal(session, machine, id, move)
    return ConcurrentChange(table=machine.table)


def _refusal(
    session: Session, machine: machines.Machine, id: str, move: machines.Move
) -> exception.ManilaLiteError:
    table = models.metadata.tables[machine.table]
    found = session.first(sa.select(table.c[machine.column]).where(table.c.id == id))
    if found is None:
        return exception.ResourceNotFound(
            resource=machine.resource.replace('_', ' ').capitalize(), id=id
        )
    return exception.InvalidStatus(
        resource=machine.resource.replace('_', ' '),
        id=id,
        status=machine.from_column(found[0]),
        event=move.event,
        allowed=', '.join(sorted(move.sources)),
    )
