"""Send the moves of the journal as events.

A move is sent after its commit and marked afterwards. If the process dies
in between, it is sent once more; it is never left out. Moves of one resource
are sent in their order.
"""

from collections.abc import Callable, Iterable, Sequence
import itertools
import logging
import operator
import time
import typing

from manila_lite import exception, metrics
from manila_lite.db.queries.services import services
from manila_lite.db.queries.work import events
from manila_lite.db.rows import MoveOwnerRow, UnsentMoveRow
from manila_lite.db.session import Database, Session
from manila_lite.scheduler.event_kinds import KINDS, payload_of

LOG = logging.getLogger(__name__)

LEASE = 20.0
"""Seconds after which another process continues if this one has died."""

BATCH = 100
"""The number of moves that are read and marked by one transaction each."""

SENDING_TIME = 5.0
"""Seconds of sending after which what was sent is marked and the lease
renewed. One send may then take most of the lease and is not overtaken."""

FIRST_PAUSE = 1.0
LONGEST_PAUSE = 30.0
"""Seconds until the next try when the bus has refused an event. The pause
doubles as long as nothing can be sent."""

Send = Callable[[str, dict[str, typing.Any]], None]
"""Sends an event type and a payload, or raises ServiceUnavailable."""

Event = tuple[int, str, dict[str, typing.Any]]
"""The id of a move, its event type and its payload."""


class EventSender:
    """Sends what has not been sent; one process of the cluster does it."""

    def __init__(
        self,
        db: Database,
        owner: str,
        send: Send,
        close: Callable[[], None] = lambda: None,
        *,
        longest_pause: float = LONGEST_PAUSE,
        clock: Callable[[], float] = time.monotonic,
    ):
        self.db = db
        self.owner = owner
        self.send = send
        self.close = close
        self.clock = clock
        self._longest_pause = longest_pause
        self._pause = 0.0

    def run_pass(self) -> int:
        """Send all moves, unless another process does; return the count.

        When the bus refuses one, no process sends until a pause is over.
        Without moves to send, or while another process does, this only
        reads.
        """
        start = self.db.read(events.find_start)
        if start is not None and not self.db.read(events.list_unsent, start, 1):
            return 0
        if not self.db.read(
            services.is_claimable, events.TASK_NAME
        ) or not self.db.write(services.claim, events.TASK_NAME, self.owner, LEASE):
            return 0
        if start is None:
            start = self.db.write(events.set_start)
        try:
            return self._send_all(start)
        finally:
            self.db.write(services.finish, events.TASK_NAME, self.owner, self._pause)

    def _send_all(self, start: int) -> int:
        count = 0
        while True:
            batch = self.db.read(_load, start)
            sent, is_refused = self._send_batch(batch)
            count += len(sent)
            if sent:
                self._pause = 0.0
            # Lost marks would only let them be sent once more.
            is_mine = self.db.write(self._mark, sent, fsync=False)
            if is_refused:
                longer = max(FIRST_PAUSE, 2 * self._pause)
                self._pause = min(longer, self._longest_pause)
            is_last = len(batch) < BATCH and len(sent) == len(batch)
            if is_refused or is_last or not is_mine:
                return count

    def _send_batch(self, batch: Sequence[Event]) -> tuple[list[int], bool]:
        """Send events in order for some time, or until one is refused.

        Returns the ids of those that were sent, and whether one was refused.
        """
        sent: list[int] = []
        until = self.clock() + SENDING_TIME
        for id, event_type, payload in batch:
            try:
                self.send(event_type, payload)
            except exception.ServiceUnavailable as error:
                metrics.EVENTS_FAILED.increment()
                LOG.warning('Events from %d on wait for the message bus: %s', id, error)
                return sent, True
            metrics.EVENTS_SENT.increment()
            sent.append(id)
            if self.clock() > until:
                break
        return sent, False

    def _mark(self, session: Session, ids: list[int]) -> bool:
        """Mark moves as sent; return False if another process took over."""
        if ids:
            events.mark_sent(session, ids)
        return services.renew(session, events.TASK_NAME, self.owner, LEASE)


def _load(session: Session, start: int) -> list[Event]:
    moves = events.list_unsent(session, start, BATCH)
    owners = _owners(session, moves)
    return [
        (
            move.id,
            f'{move.resource}.{move.event}',
            payload_of(move, owners.get((_table(move), move.resource_id))),
        )
        for move in moves
    ]


def _owners(
    session: Session, moves: Iterable[UnsentMoveRow]
) -> dict[tuple[str, str], MoveOwnerRow]:
    """Return parent and project of resources, by table and id."""
    found: dict[tuple[str, str], MoveOwnerRow] = {}
    known = sorted((move for move in moves if _table(move)), key=_table)
    for table, of_table in itertools.groupby(known, key=_table):
        resources = [name for name, kind in KINDS.items() if kind.table == table]
        ids = set(map(operator.attrgetter('resource_id'), of_table))
        rows = events.find_owners(session, table, resources, ids)
        found |= {(table, id): row for id, row in rows.items()}
    return found


def _table(move: UnsentMoveRow) -> str:
    """Return the table of the resource; empty if a newer release has it."""
    kind = KINDS.get(move.resource)
    return kind.table if kind else ''
