"""State tables: statuses, the moves between them, and the rescues.

A machine describes one status column of one table. A status is either at
rest, or in flight: somebody owes the next move. For every status in
flight the table names a rescue, which says what is done about it when
whoever owed the move is gone. Nothing here touches a database.
"""

from collections.abc import Collection, Iterable, Mapping
import dataclasses

GONE = None
"""The target of a move after which the row no longer exists."""


@dataclasses.dataclass(frozen=True)
class Ask:
    """Ask the back end with a driver method, then fire what it shows."""

    driver_method: str
    yes: str
    no: str

    @property
    def events(self) -> tuple[str, ...]:
        return (self.yes, self.no)

    @property
    def description(self) -> str:
        """What is done, in words."""
        return f'the back end is asked: {self.driver_method}'


@dataclasses.dataclass(frozen=True)
class Repeat:
    """Submit the idempotent work of this kind once more."""

    kind: str
    done: str
    failed: str

    @property
    def events(self) -> tuple[str, ...]:
        return (self.done, self.failed)

    @property
    def description(self) -> str:
        return f'the work is done once more: {self.kind}'


@dataclasses.dataclass(frozen=True)
class GiveUp:
    """Fire this event, which says visibly that the work was lost."""

    event: str

    @property
    def events(self) -> tuple[str, ...]:
        return (self.event,)

    @property
    def description(self) -> str:
        return f'it is given up: {self.event}'


@dataclasses.dataclass(frozen=True)
class Resume:
    """Submit the work of this kind, which finds out what is to be done.

    Whatever was in somebody's hands is first put back by the event; what
    only waits has none.
    """

    kind: str
    event: str | None = None

    @property
    def events(self) -> tuple[str, ...]:
        return (self.event,) if self.event else ()

    @property
    def description(self) -> str:
        return f'the work is asked for again: {self.kind}'


Rescue = Ask | Repeat | GiveUp | Resume


@dataclasses.dataclass(frozen=True)
class Move:
    """One named step: the statuses it may leave and the one it enters."""

    event: str
    sources: frozenset[str]
    target: str | None

    def can_leave(self, status: str) -> bool:
        return status in self.sources


class Machine:
    """The table of one status column.

    `born` names the events that create a row and the status they give.
    `resets` are statuses an administrator may set; each becomes the move
    `reset_<status>`, which leaves every status but those of `final`. The
    status `null`, if there is one, is stored as no value at all. A
    broken table raises ValueError when it is built, that is, imported.
    """

    def __init__(
        self,
        resource: str,
        table: str,
        *,
        initial: Mapping[str, str],
        moves: Iterable[tuple[str, Collection[str], str | None]],
        at_rest: Collection[str],
        in_flight: Mapping[str, Rescue],
        resets: Collection[str] = (),
        final: Collection[str] = (),
        column: str = 'status',
        null: str | None = None,
    ):
        self.resource = resource
        self.table = table
        self.column = column
        self.null = null
        self.initial = dict(initial)
        self.at_rest = frozenset(at_rest)
        self.in_flight = dict(in_flight)
        self.resets = frozenset(resets)
        self._moves: dict[str, Move] = {}
        for event, sources, target in moves:
            self._add(event, sources, target)
        for status in sorted(self.resets):
            self._add(f'reset_{status}', self.statuses - set(final), status)
        self._check()

    def _add(
        self, event: str, sources: Collection[str], target: str | None
    ) -> None:
        if event in self._moves or event in self.initial:
            raise ValueError(f'{self.resource}: {event} is declared twice')
        self._moves[event] = Move(event, frozenset(sources), target)

    def __getitem__(self, event: str) -> Move:
        return self._moves[event]

    def __contains__(self, event: str) -> bool:
        return event in self._moves

    def __repr__(self) -> str:
        return f'<Machine {self.table}.{self.column}>'

    @property
    def moves(self) -> tuple[Move, ...]:
        return tuple(self._moves.values())

    @property
    def statuses(self) -> frozenset[str]:
        return self.at_rest | frozenset(self.in_flight)

    def to_column(self, status: str | None) -> str | None:
        """What the column has for a status."""
        return None if status == self.null else status

    def from_column(self, stored: str | None) -> str | None:
        """The status that the column says."""
        return self.null if stored is None else stored

    def reset_event(self, status: str) -> str:
        """The event that sets this status; KeyError when it may not."""
        if status not in self.resets:
            raise KeyError(status)
        return f'reset_{status}'

    def rescue_targets(self, status: str) -> tuple[str | None, ...]:
        """Where the rescue of a status in flight may lead."""
        return tuple(
            self._moves[event].target
            for event in self.in_flight[status].events
        )

    def moves_from(self, status: str) -> list[Move]:
        """The moves that may leave a status, resets left out."""
        return [
            move
            for move in self.moves
            if move.can_leave(status) and not move.event.startswith('reset_')
        ]

    def _check(self) -> None:
        both = self.at_rest & frozenset(self.in_flight)
        if both:
            raise ValueError(f'{self!r}: at rest and in flight: {both}')
        used = {*self.initial.values(), *self.resets}
        for move in self.moves:
            if move.event.startswith('reset_'):
                continue  # they leave every status there is
            used |= move.sources
            if move.target is not GONE:
                used.add(move.target)
        if used != self.statuses:
            raise ValueError(
                f'{self!r}: moves and statuses disagree about '
                f'{used ^ self.statuses}'
            )
        for status, rescue in self.in_flight.items():
            for event in rescue.events:
                offered = self._moves.get(event)
                if offered is None or not offered.can_leave(status):
                    raise ValueError(
                        f'{self!r}: the rescue of {status} cannot fire {event}'
                    )
