"""Transactions as functions, and the session passed to them.

`Database.write` runs a function in one transaction, and runs it again
from the beginning after a transient error (deadlock, serialization
failure, busy). The function must therefore have no effects outside its
session. Hints about new work are collected in the session and delivered
after the commit.
"""

from collections.abc import Callable, Iterator
import contextlib
import datetime
import functools
import random
import time
import typing
import uuid

from oslo_db import exception as db_exc
import sqlalchemy as sa
from sqlalchemy import exc as sa_exc

from manila_lite import exception
from manila_lite.db import engines
from manila_lite.db import fifo

T = typing.TypeVar('T')

MAX_ATTEMPTS = 5

# 1213 deadlock, 1205 lock wait, 1020 record changed since last read.
_MYSQL_CODES = {1213, 1205, 1020}
_POSTGRESQL_STATES = {'40P01', '40001'}


class Initiator(typing.Protocol):
    """The initiator of a transaction: a request context, or a job."""

    @property
    def request_id(self) -> str | None: ...

    @property
    def actor(self) -> str | None: ...


class Hint(typing.NamedTuple):
    """A message about new work to the service that may claim it."""

    topic: str
    queue: str
    work_id: str


class Session:
    """One transaction. `now` is naive UTC and constant throughout."""

    def __init__(
        self, db: 'Database', connection: sa.Connection, by: Initiator | None
    ):
        self.db = db
        self.connection = connection
        self.dialect = db.dialect
        self.by = by
        self.now = db.utcnow()
        self.new_id = db.new_id
        self.hints: list[Hint] = []
        # Reservations made here; the work submitted next owns them.
        self.charges: list[typing.Any] = []

    def run(self, statement: sa.Executable, **params: object) -> int:
        """Run one statement; return the number of rows it matched."""
        return self.execute(statement, params).rowcount

    def run_many(
        self, statement: sa.Executable, rows: list[dict[str, object]]
    ) -> None:
        """Run one statement for every row of parameters."""
        if rows:
            self.execute(statement, rows)

    def insert_unique(self, statement: sa.Insert, **values: object) -> None:
        """Insert a row that another transaction may insert at the same time.

        The transaction that comes second runs again and finds the row.
        """
        try:
            self.execute(statement, values)
        except db_exc.DBDuplicateEntry as error:
            raise ConcurrentChange(table=statement.table.name) from error

    def rows(
        self, statement: sa.Executable, **params: object
    ) -> typing.Sequence[typing.Any]:
        """Return all rows; `db.rows` has their types."""
        return self.execute(statement, params).all()

    def one(self, statement: sa.Executable, **params: object) -> typing.Any:
        """Return the first row, or None."""
        return self.execute(statement, params).first()

    def value(self, statement: sa.Executable, **params: object) -> typing.Any:
        """Return the first column of the first row, or None."""
        return self.execute(statement, params).scalar()

    def execute(
        self, statement: sa.Executable, params: typing.Any
    ) -> sa.CursorResult:
        self.db.on_step('statement')
        return self.connection.execute(statement, params or None)


class ConcurrentChange(exception.ManilaLiteError):
    """Another transaction changed the rows that this one had read."""

    message = 'Another transaction has changed {table} in the meantime.'

    def repair(self, db: 'Database') -> None:
        """Do nothing: the next attempt reads the new rows."""


class Database:
    """Runs functions in transactions on one database.

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
        **engine_options: int,
    ):
        self.url = url
        self.dialect = engines.dialect_of(url)
        self.clock = clock
        self.new_id = new_id
        self.rng = rng or random.Random()
        self.sleep = sleep
        self.deliver: Callable[[list[Hint]], None] = lambda hints: None
        self.on_step: Callable[[str], None] = lambda name: None
        self.retries = 0
        self._write_engine = engines.create_engine(
            url, 'write', clock=clock, **engine_options
        )
        if self.dialect == 'sqlite':
            self._read_engine = self._write_engine
            self._write_lock: contextlib.AbstractContextManager = (
                fifo.FifoLock()
            )
        else:
            self._read_engine = engines.create_engine(
                url, 'read', clock=clock, **engine_options
            )
            self._write_lock = contextlib.nullcontext()
        self._writer: sa.Connection | None = None

    def utcnow(self) -> datetime.datetime:
        return datetime.datetime.fromtimestamp(
            self.clock(), datetime.UTC
        ).replace(tzinfo=None)

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
        **kwargs: typing.Any,
    ) -> T:
        """Run a function in one transaction and return its result.

        The function is run again after a transient error, and after an
        error that has a method `repair(db)`, which is called first.

        Without `fsync`, SQLite does not wait for the disk: a power
        failure, but not the death of the process, may lose the
        transaction. Use it where the work would simply be repeated. The
        next transaction with `fsync` makes all earlier ones durable.
        """
        for attempt in range(1, MAX_ATTEMPTS + 1):
            try:
                return self._write_once(function, args, kwargs, by, fsync)
            except (
                sa_exc.DBAPIError,
                db_exc.DBError,
                exception.ManilaLiteError,
            ) as error:
                repair = getattr(error, 'repair', None)
                if attempt == MAX_ATTEMPTS or not (
                    repair or self._is_transient(error)
                ):
                    raise
                if repair:
                    repair(self)
                    continue
            self.retries += 1
            self.sleep(self.rng.uniform(0.001, 0.01) * 2**attempt)
        raise AssertionError('unreachable')

    def read(
        self,
        function: Callable[..., T],
        *args: typing.Any,
        by: Initiator | None = None,
        **kwargs: typing.Any,
    ) -> T:
        """Run a read-only function on one snapshot; return its result."""
        with self._read_engine.connect() as connection, connection.begin():
            return function(Session(self, connection, by), *args, **kwargs)

    def _write_once(
        self,
        function: Callable[..., T],
        args: tuple,
        kwargs: dict[str, typing.Any],
        by: Initiator | None,
        fsync: bool,
    ) -> T:
        with self._write_lock, self._connection(fsync) as connection:
            session = Session(self, connection, by)
            with connection.begin():
                result = function(session, *args, **kwargs)
                self.on_step('commit')
        self.on_step('committed')
        if session.hints:
            self.deliver(session.hints)
        return result

    @contextlib.contextmanager
    def _connection(self, fsync: bool) -> Iterator[sa.Connection]:
        if self.dialect != 'sqlite':
            with self._write_engine.connect() as connection:
                yield connection
            return
        # One cached connection: only the holder of the lock uses it.
        if self._writer is None:
            self._writer = self._write_engine.connect().execution_options(
                **{engines.WRITE: True}
            )
        engines.set_synchronous(self._writer, fsync)
        yield self._writer

    def _is_transient(self, error: Exception) -> bool:
        """Whether the same transaction may succeed when it is run again."""
        cause: typing.Any = getattr(error, 'inner_exception', error)
        cause = getattr(cause, 'orig', cause)
        if self.dialect == 'sqlite':
            return 'database is locked' in str(cause)
        if self.dialect == 'mysql':
            args: tuple = getattr(cause, 'args', ())
            return bool(args) and args[0] in _MYSQL_CODES
        return getattr(cause, 'pgcode', None) in _POSTGRESQL_STATES

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
        return self.db.write(
            functools.partial(method, self), *args, by=by, **kwargs
        )

    return run


def read_transaction(method: Callable[..., T]) -> Callable[..., T]:
    """Like `transaction`, for a read-only method."""

    @functools.wraps(method)
    def run(self: typing.Any, *args: typing.Any, **kwargs: typing.Any) -> T:
        return self.db.read(functools.partial(method, self), *args, **kwargs)

    return run
