"""Commits whose connections are lost while the server is busy with them.

A relay before the database withholds each commit of a transaction that makes
moves, and breaks its connection. The server gets the commit, or loses the
connection as well, once the outcome is waited for, or when it is given up.
"""

import collections
from collections.abc import Callable
import contextlib
import functools
import itertools
import threading
import typing

import pytest
import sqlalchemy as sa

from manila_lite import exception
from manila_lite.db import commits, engines
from manila_lite.db.models import engine
from tests.support import databases, sampling
from tests.support.cloud import Cloud
from tests.support.processes import wait_until
from tests.support.relay import HeldRequest, Relay, before_database

KINDS = (*databases.KINDS[1:], databases.GALERA)
JOURNAL = engine.Transition.__table__
ENDS = ('committed', 'rolled back', 'committed too late')

# MariaDB looks for waiting transactions again if that was not asked for 0.1 s.
_INTERVAL = 0.15
_MOST = 500
"""No run commits so often."""


Begin = Callable[[], tuple[typing.Any, typing.Any]]
Verb = Callable[[typing.Any, typing.Any], object]


def commit_slowly(
    begin: Begin,
    verb: Verb,
    name: str,
    shared_database: Callable[[str], str],
    check: Callable[[typing.Any], object],
) -> None:
    """Run a verb with slow commits on the database servers.

    `begin()` returns a cloud and what was prepared on it, always in the same
    state. Each move is made as often as without slow commits; where an
    outcome stays unknown, `check(cloud)` finds nothing. Where all cases are
    tried it is a part of these, else creating a share stands for all verbs.
    """
    cases = list(itertools.product(KINDS, ENDS))
    if name != 'shares create':
        cases = sampling.part(cases, name, of=6)
    for kind, end in sampling.sample(cases, 1):
        run = functools.partial(_run, begin, verb, shared_database(kind), check)
        try:
            _compare(run, end)
        except AssertionError as error:
            pytest.fail(f'{name} on {kind}, {end}: {error}')


def _compare(run: Callable, end: str) -> None:
    expected, count = run(None, [])
    if end == 'committed too late':
        for number in sampling.sample(range(count), 1):
            run(end, [number])
        return
    moves, _ = run(end, range(_MOST))
    assert moves == expected


def _run(
    begin: Begin,
    verb: Verb,
    url: str,
    check: Callable[[typing.Any], object],
    end: str | None,
    slow: typing.Container[int],
) -> tuple[collections.Counter, int]:
    """Return the moves of a run and the number of commits with moves."""
    cloud, prepared = begin()
    with (
        before_database(url) as (relay, relayed),
        _short_lock_timeout(end == 'committed too late'),
        cloud.moved_to(url, relayed),
    ):
        slowly = SlowCommits(cloud, relay, url, end, slow)
        if end == 'committed too late':
            cloud.db.retry_limit = 0.0
            # The API answers 503; a worker goes on with other work.
            with contextlib.suppress(AssertionError, exception.OutcomeUnknown):
                verb(cloud, prepared)
        else:
            verb(cloud, prepared)
        slowly.end()
        cloud.settle()
        check(cloud)
        return cloud.db.read(_list_moves), slowly.count


@contextlib.contextmanager
def _short_lock_timeout(wanted: bool) -> typing.Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        if wanted:
            patch.setattr(engines, 'LOCK_TIMEOUT', 0.1)
        yield


def _list_moves(session: typing.Any) -> collections.Counter:
    return collections.Counter(
        (row.resource, row.event)
        for row in session.rows(
            sa.select(JOURNAL.c.resource, JOURNAL.c.event).where(
                JOURNAL.c.resource != commits.RESOURCE
            )
        )
    )


class SlowCommits:
    """Lets commits with these numbers of a cloud be slow."""

    def __init__(
        self,
        cloud: Cloud,
        relay: Relay,
        url: str,
        end: str | None,
        slow: typing.Container[int],
    ):
        self.count = 0
        self._url = url
        self._relay = relay
        self._ends_by = end
        self._slow = slow
        self._held: HeldRequest | None = None
        self._statements = 0
        self._makes_moves = False
        self._is_quick = False
        self._waiting: threading.Thread | None = None
        self._is_over = threading.Event()
        self._next = cloud.db.on_step
        cloud.db.on_step = self._on_step
        sa.event.listen(cloud.db.engine, 'begin', self._forget_moves)
        sa.event.listen(cloud.db.engine, 'after_cursor_execute', self._note_moves)

    def _forget_moves(self, connection: object) -> None:
        self._makes_moves = False

    def _note_moves(
        self, connection: object, cursor: typing.Any, statement: str, *rest: object
    ) -> None:
        if statement.startswith('INSERT INTO transitions') and cursor.rowcount:
            self._makes_moves = True

    def _on_step(self, name: str) -> None:
        self._next(name)
        if name == 'statement' and self._held is not None:
            self._statements += 1
            if self._ends_by != 'committed too late':
                self._decide_when_waited_for()
            elif self._statements > 1:  # the first asks for the outcome
                self._decide()
        if name == 'commit':
            self._on_commit()

    def _on_commit(self) -> None:
        if self._held is not None:
            self._decide()
            # It asked for the outcome; a transaction runs again after that.
            self._is_quick = self._ends_by == 'rolled back'
        elif self._makes_moves and self._is_quick:
            self._is_quick = False
        elif self._makes_moves:
            if self.count in self._slow:
                self._held = self._relay.hold_next_request()
                self._statements = 0
            self.count += 1

    def _decide_when_waited_for(self) -> None:
        """Let the commit end when the statement that follows waits for it."""
        if self._waiting is not None:
            return

        def wait() -> None:
            wait_until(
                lambda: self._is_over.is_set() or databases.count_lock_waits(self._url),
                'the outcome is waited for',
                interval=_INTERVAL,
            )
            self._end_held()

        self._is_over.clear()
        self._waiting = threading.Thread(target=wait)
        self._waiting.start()

    def _decide(self) -> None:
        if self._waiting is not None:
            self._is_over.set()
            self._waiting.join()
            self._waiting = None
        else:
            self._end_held()
        self._held = None

    def _end_held(self) -> None:
        if self._held is not None:
            if self._ends_by == 'rolled back':
                self._held.drop()
            else:
                self._held.pass_on()

    def end(self) -> None:
        """Let the last slow commit end, and be quick from now on."""
        if self._held is not None:
            self._decide()
        self._slow = ()
