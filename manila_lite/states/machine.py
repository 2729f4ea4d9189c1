"""State machines: statuses, the moves between them, and the rescues.

A machine describes one status column of one table. A status is either at
rest or in flight, that is, some work owes the next move. For every status
in flight the machine names a rescue: what recovery does when that work is
lost. Nothing here touches a database.
"""

from collections.abc import Collection, Iterable, Mapping
import dataclasses
import enum

GONE = None
"""The target of a move that deletes the row."""


@dataclasses.dataclass(frozen=True)
class Ask:
    """Ask the back end through a driver method; fire what it reports.

    With `repeats` the work whose process was killed runs again if the back
    end says that it has nothing.
    """

    driver_method: str
    yes: str
    no: str
    repeats: bool = False

    @property
    def events(self) -> tuple[str, ...]:
        return (self.yes, self.no)

    @property
    def description(self) -> str:
        """The rescue in words, for operators."""
        asked = f'the back end is asked: {self.driver_method}'
        if self.repeats:
            return f'{asked}; killed work runs again if it has nothing'
        return asked


@dataclasses.dataclass(frozen=True)
class Repeat:
    """Submit work of this kind again; the work is idempotent."""

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
    """Fire this event, which makes the loss of the work visible."""

    event: str

    @property
    def events(self) -> tuple[str, ...]:
        return (self.event,)

    @property
    def description(self) -> str:
        return f'it is given up: {self.event}'


@dataclasses.dataclass(frozen=True)
class Resume:
    """Submit work of this kind; the work itself finds what is left to do.

    The event first moves a row that was being processed back to its
    queue; a status that only waits needs no event.
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


class Decision(enum.StrEnum):
    """What a rescue has done, as the recovery log names it."""

    CONVERGED = 'converged'
    GIVEN_UP = 'given up'
    REPEATED = 'repeated'
    RESUMED = 'resumed'
    CORRECTED = 'corrected'
    NOT_CORRECTED = 'not corrected'
    LEFT_ALONE = 'left alone'


@dataclasses.dataclass(frozen=True)
class Move:
    """A named move: the statuses it may leave and the one it enters."""

    event: str
    sources: frozenset[str]
    target: str | None

    def can_leave(self, status: str) -> bool:
        return status in self.sources


class Machine:
    """The state machine of one status column.

    `initial` maps the events that create a row to the status they give.
    `resets` are the statuses that an administrator may set; each becomes
    the move `reset_<status>`, which may leave every status except those
    of `final`. The status `null`, if any, is stored as NULL. `stamps` maps
    events to the column that has the time of the move. An inconsistent
    table raises ValueError when it is built, on import.
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
        stamps: Mapping[str, str] | None = None,
    ):
        self.resource = resource
        self.table = table
        self.column = column
        self.null = null
        self.stamps = dict(stamps or {})
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

    def _add(self, event: str, sources: Collection[str], target: str | None) -> None:
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
        """Return the column value that stands for a status."""
        return None if status == self.null else status

    def from_column(self, stored: str | None) -> str | None:
        """Return the status that a column value stands for."""
        return self.null if stored is None else stored

    def reset_event(self, status: str) -> str:
        """Return the event that resets to this status.

        Raises KeyError when the status may not be set.
        """
        if status not in self.resets:
            raise KeyError(status)
        return f'reset_{status}'

    def rescue_targets(self, status: str) -> tuple[str | None, ...]:
        """Return the statuses that the rescue of a status may lead to."""
        return tuple(
            self._moves[event].target for event in self.in_flight[status].events
        )

    def moves_from(self, status: str) -> list[Move]:
        """Return the moves that may leave a status, without resets."""
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
                continue  # resets leave every status
            used |= move.sources
            if move.target is not GONE:
                used.add(move.target)
        if used != self.statuses:
            raise ValueError(
                f'{self!r}: moves and statuses disagree about {used ^ self.statuses}'
            )
        unknown = self.stamps.keys() - self._moves.keys()
        if unknown:
            raise ValueError(f'{self!r}: stamps without a move: {unknown}')
        for status, rescue in self.in_flight.items():
            for event in rescue.events:
                known = self._moves.get(event)
                if known is None or not known.can_leave(status):
                    raise ValueError(
                        f'{self!r}: the rescue of {status} cannot fire {event}'
                    )
