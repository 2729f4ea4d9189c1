"""Transactions as functions, and the session passed to them.

`Database.write` runs a function in one transaction, and runs it again
from the beginning after a transient error (deadlock, serialization
failure, busy). The function must therefore have no effects outside its
session. Hints about new work are collected in the session and delivered
after the commit.
"""

from collections.abc import Callable, Iterator
import contextlib
import contextvars
import datetime
import functools
import random
import time
import typing
import uuid

from oslo_db import exception as db_exc
import sqlalchemy as sa

from manila_lite import exception
from manila_lite.db import commits, engines, errors, read_limit, write_limit

T = typing.TypeVar('T')


class Initiator(typing.Protocol):
    """The initiator of a transaction: a request context, or a job."""

    @property
    def request_id(self) -> str | None: ...

    @property
    def actor(self) -> str | None: ...


class CommitWatch:
    """Whether a transaction with moves was committed in this context.

    `with` it around a request: after a commit, an error of a later read does
    not mean that nothing has been done.
    """

    def __init__(self) -> None:
        self.has_committed = False

    def __enter__(self) -> 'CommitWatch':
        self._token = _watch.set(self)
        return self

    def __exit__(self, *error: object) -> None:
        _watch.reset(self._token)


_watch: contextvars.ContextVar[CommitWatch | None] = contextvars.ContextVar(
    'commit_watch', default=None
)


class Hint(typing.NamedTuple):
    """A message about new work to the service that may claim it."""

    topic: str
    queue: str
    work_id: str


class Session:
    """One transaction. `now` is naive UTC and constant throughout.

    `reason` is why it makes its moves, if that is worth recording.
    """

    def __init__(self, db: 'Database', connection: sa.Connection, by: Initiator | None):
        self.db = db
        self.connection = connection
        self.dialect = db.dialect
        self.by = by
        self.reason: str | None = None
        self.now = db.utcnow()
        self.new_id = db.new_id
        self.hints: list[Hint] = []
        self._after_commit: list[Callable[[], object]] = []
        # Reservations made here; the work submitted next owns them.
        self.charges: list[typing.Any] = []
        # The id that the journal has of it, see `commits`.
        self.transaction_id: str | None = None
        self.has_moves = False
        self.has_run = False  # any statement

    def after_commit(self, function: Callable[..., object], *args: object) -> None:
        """Call a function once this transaction is committed."""
        self._after_commit.append(functools.partial(function, *args))

    def committed(self) -> None:
        for function in self._after_commit:
            function()

    def run(self, statement: sa.Executable, **params: object) -> int:
        """Run one statement; return the number of rows it matched."""
        return self.execute(statement, params).rowcount

    def run_many(self, statement: sa.Executable, rows: list[dict[str, object]]) -> None:
        """Run one statement for every row of parameters."""
        if rows:
            self.execute(statement, rows)

    def insert_unique(self, statement: sa.Insert, **values: object) -> None:
        """Insert a row that another transaction may insert at the same time.

        The transaction that comes second runs again and finds the row.
        """
        self.insert_unique_rows(statement, [values])

    def insert_unique_rows(
        self, statement: sa.Insert, rows: list[dict[str, object]]
    ) -> None:
        """Do the same with some rows, each of which may be inserted."""
        try:
            self.run_many(statement, rows)
        except db_exc.DBDuplicateEntry as error:
            raise ConcurrentChange(table=statement.table.name) from error

    def rows(
        self, statement: sa.Executable, **params: object
    ) -> typing.Sequence[typing.Any]:
        """Return all rows; `db.rows` has their types."""
        return self.execute(statement, params).all()

    def first(self, statement: sa.Executable, **params: object) -> typing.Any:
        """Return the first row, or None."""
        return self.execute(statement, params).first()

    def value(self, statement: sa.Executable, **params: object) -> typing.Any:
        """Return the first column of the first row, or None."""
        return self.execute(statement, params).scalar()

    def execute(self, statement: sa.Executable, params: typing.Any) -> sa.CursorResult:
        self.db.on_step('statement')
        try:
            result = self.connection.execute(statement, params or None)
        except db_exc.DBConnectionError as error:
            if not self.has_run:
                raise errors.stale(error) from error
            raise
        self.has_run = True
        return result


class ConcurrentChange(exception.ServiceUnavailable):
    """Another transaction changed rows of `table` that this one had read."""

    message = 'Another request has changed the resource; try again later.'

    def repair(self, db: 'Database') -> None:
        """Do nothing: the next attempt reads the new rows."""


class Database:
    """Runs functions in transactions on one database.

    `retry_limit` is the time in seconds for which a transaction that lost
    against others is run again.

    `clock` (seconds since 1970), `new_id` and `rng` are injected so that a
    simulation can control them. `deliver` is called with the hints of a
    transaction after its commit, `on_step` with a name before every
    statement and before and after every commit.
    """

    def __init__(
        self,
        url: str,
        *,
        clock: Callable[[], float] = time.time,
        new_id: Callable[[], str] = lambda: str(uuid.uuid4()),
        rng: random.Random | None = None,
        sleep: Callable[[float], None] = time.sleep,
        retry_limit: float = errors.LIMIT,
        **engine_options: typing.Any,
    ):
        self.url = url
        self.dialect = engines.dialect_of(url)
        self.clock = clock
        self.new_id = new_id
        self.rng = rng or random.Random()
        self.sleep = sleep
        self.retry_limit = retry_limit
        self.deliver: Callable[[list[Hint]], None] = lambda hints: None
        self.on_step: Callable[[str], None] = lambda name: None
        self.retries = 0
        self._write_engine = engines.create_engine(
            url, 'write', clock=clock, **engine_options
        )
        if self.dialect == 'sqlite':
            self._read_engine = self._write_engine
            self._write_lock: contextlib.AbstractContextManager = write_limit.FifoLock()
        else:
            self._read_engine = engines.create_engine(
                url, 'read', clock=clock, **engine_options
            )
            read_limit.prepare(self._read_engine)
            self._write_lock = contextlib.nullcontext()
        self._writer: sa.Connection | None = None

    def utcnow(self) -> datetime.datetime:
        return datetime.datetime.fromtimestamp(self.clock(), datetime.UTC).replace(
            tzinfo=None
        )

    @property
    def engine(self) -> sa.Engine:
        """The engine of writers; migrations use it too."""
        return self._write_engine

    def write(
        self,
        function: Callable[..., T],
        *args: typing.Any,
        by: Initiator | None = None,
        fsync: bool = True,
        retry_limit: float | None = None,
        **kwargs: typing.Any,
    ) -> T:
        """Run a function in one transaction and return its result.

        The function is run again after a transient error, until
        `retry_limit`, by default that of the database, is over (then
        DatabaseBusy is raised), and after an error that has a method
        `repair(db)`, which is called first. One that is the change of a
        request may be refused instead, see `write_limit`.

        If the connection is lost during the commit, its outcome is asked for
        on a new one. Raises OutcomeUnknown if it made no move, or if it may
        still be committed after `retry_limit` seconds.

        Without `fsync`, SQLite does not wait for the disk: a power
        failure, but not the death of the process, may lose the
        transaction. Use it where the work would simply be repeated. The
        next transaction with `fsync` makes all earlier ones durable.
        """
        attempts = errors.Attempts(self, retry_limit)
        with write_limit.current():
            while True:
                try:
                    session, result = self._write_once(
                        function, args, kwargs, by, fsync
                    )
                    break
                except errors.ERRORS as error:
                    attempts.wait_for_next(error)
                except commits.Lost as lost:
                    if self._was_committed(lost):
                        session, result = lost.session, lost.result
                        break
                    attempts.wait_for_next(errors.NotCommitted(lost.__cause__))
        if attempts.primary_moved:
            # Readers would see the old state of the demoted server.
            self._read_engine.dispose()
        if session.transaction_id is not None and (watch := _watch.get()):
            watch.has_committed = True
        self.on_step('committed')
        session.committed()
        if session.hints:
            self.deliver(session.hints)
        return result

    def _was_committed(self, lost: commits.Lost) -> bool:
        if lost.session.transaction_id is None:
            raise exception.OutcomeUnknown from lost.__cause__
        return commits.was_committed(self, lost.session.transaction_id)

    def write_once(self, function: Callable[..., T], *args: object) -> T:
        """Run a function in one transaction, which is not repeated.

        Raises commits.Lost if the connection is lost during the commit.
        """
        return self._write_once(function, args, {}, None, True)[1]

    def read(
        self,
        function: Callable[..., T],
        *args: object,
        by: Initiator | None = None,
        **kwargs: object,
    ) -> T:
        """Run a read-only function on one snapshot; return its result.

        It is run again after the same errors as that of `write`.
        """
        attempts = errors.Attempts(self)
        while True:
            try:
                return self._read_once(function, args, kwargs, by)
            except errors.ERRORS as error:
                attempts.wait_for_next(error)

    def _read_once(
        self,
        function: Callable[..., T],
        args: tuple,
        kwargs: dict[str, typing.Any],
        by: Initiator | None,
    ) -> T:
        with engines.connected(self._read_engine) as connection:
            # Closing ends it by a rollback; after a commit, the pool would
            # send another one.
            connection.begin()
            with read_limit.apply(connection):
                return function(Session(self, connection, by), *args, **kwargs)

    def _write_once(
        self,
        function: Callable[..., T],
        args: tuple,
        kwargs: dict[str, typing.Any],
        by: Initiator | None,
        fsync: bool,
    ) -> tuple[Session, T]:
        """Run the function and commit; raises Lost if that got no answer."""
        with self._write_lock, self._connection(fsync) as connection:
            session = Session(self, connection, by)
            commits_now = False
            try:
                with connection.begin():
                    result = function(session, *args, **kwargs)
                    if session.has_moves and session.transaction_id is None:
                        commits.identify(session)
                    self.on_step('commit')
                    commits_now = True
            except errors.WrongServer:
                raise
            except errors.UNCONFIRMED as error:
                if not commits_now:
                    raise
                if not session.has_run:
                    raise errors.stale(error) from error
                raise commits.Lost(session, result) from error
        return session, result

    @contextlib.contextmanager
    def _connection(self, fsync: bool) -> Iterator[sa.Connection]:
        if self.dialect != 'sqlite':
            with engines.connected(self._write_engine) as connection:
                yield connection
                engines.note_commit(connection)
            return
        # One cached connection: only the holder of the lock uses it.
        if self._writer is None:
            self._writer = self._write_engine.connect()
        # Each time: what it connects to may be new.
        self._writer.info[engines.WRITE] = True
        engines.set_synchronous(self._writer, fsync)
        yield self._writer

    def connections(self) -> dict[tuple[str, str], int]:
        """Return the number of connections by use and state."""
        engines_by_use = {'write': self._write_engine}
        if self._read_engine is not self._write_engine:
            engines_by_use['read'] = self._read_engine
        found = {}
        for use, engine in engines_by_use.items():
            pool = typing.cast(sa.QueuePool, engine.pool)
            found[use, 'in_use'] = pool.checkedout()
            found[use, 'idle'] = pool.checkedin()
        return found

    def start_after_fork(self) -> None:
        """Start in a forked process; its parent has closed the connections.

        What the parent has compiled is used again, its random numbers are
        not: two processes that wait for each other would go on doing so.
        """
        self.rng = random.Random()

    def dispose(self) -> None:
        """Close every connection."""
        if self._writer is not None:
            self._writer.close()
            self._writer = None
        self._write_engine.dispose()
        self._read_engine.dispose()


def transaction(method: Callable[..., T]) -> Callable[..., T]:
    """Make `def f(self, session, ctx, ...)` a transaction.

    Callers omit the session; the method runs in `self.db.write`. The
    context, its first argument, is the initiator of its moves.
    """

    @functools.wraps(method)
    def run(self: typing.Any, *args: typing.Any, **kwargs: typing.Any) -> T:
        by = args[0] if args and hasattr(args[0], 'request_id') else None
        return self.db.write(functools.partial(method, self), *args, by=by, **kwargs)

    return run


def read_transaction(method: Callable[..., T]) -> Callable[..., T]:
    """Like `transaction`, for a read-only method."""

    @functools.wraps(method)
    def run(self: typing.Any, *args: typing.Any, **kwargs: typing.Any) -> T:
        return self.db.read(functools.partial(method, self), *args, **kwargs)

    return run
