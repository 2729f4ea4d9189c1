"""Transactions as functions, and the session they are given.

A function that writes is run by `Database.write`: whole, in one
transaction, and again from its beginning when the database asks for that
(deadlock, lost serialisation, busy). It must therefore do nothing but
talk to its session. What is to happen after the commit, such as sending
hints about new work, is left with the session.
"""

from collections.abc import Callable, Iterator
import contextlib
import datetime
import functools
import logging
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

LOG = logging.getLogger(__name__)

T = typing.TypeVar('T')

MAX_ATTEMPTS = 5

# 1213 deadlock, 1205 lock wait, 1020 record changed since last read.
_MYSQL_CODES = {1213, 1205, 1020}
_POSTGRESQL_STATES = {'40P01', '40001'}


class Initiator(typing.Protocol):
    """Who makes the moves of a transaction: a context, or a job."""

    @property
    def request_id(self) -> str | None: ...

    @property
    def actor(self) -> str | None: ...


class Hint(typing.NamedTuple):
    """Word of new work for the service that may claim it."""

    topic: str
    queue: str
    work_id: str


class Session:
    """One transaction. `now` is naive UTC, one moment for all of it."""

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
        # Reservations made here; the work submitted next will own them.
        self.charges: list[typing.Any] = []
        self._after: list[Callable[[], object]] = []

    def run(self, statement: sa.Executable, **params: object) -> int:
        """Run one statement; the number of rows it matched."""
        return self.execute(statement, params).rowcount

    def run_many(
        self, statement: sa.Executable, rows: list[dict[str, object]]
    ) -> None:
        """Run one statement for every row of parameters."""
        if rows:
            self.execute(statement, rows)

    def insert_unique(self, statement: sa.Insert, **values: object) -> None:
        """Insert a row that somebody else may be inserting just now.

        Whoever is second begins the whole transaction anew, and finds it.
        """
        try:
            self.execute(statement, values)
        except db_exc.DBDuplicateEntry as error:
            raise ConcurrentChange(table=statement.table.name) from error

    def rows(
        self, statement: sa.Executable, **params: object
    ) -> typing.Sequence[sa.Row]:
        return self.execute(statement, params).all()

    def one(self, statement: sa.Executable, **params: object) -> sa.Row | None:
        """The first row, or None."""
        return self.execute(statement, params).first()

    def value(self, statement: sa.Executable, **params: object) -> typing.Any:
        """The first column of the first row, or None."""
        return self.execute(statement, params).scalar()

    def execute(
        self, statement: sa.Executable, params: typing.Any
    ) -> sa.CursorResult:
        self.db.on_step('statement')
        return self.connection.execute(statement, params or None)

    def after_commit(self, call: Callable[[], object]) -> None:
        self._after.append(call)


class ConcurrentChange(exception.ManilaLiteError):
    """A row came into being since it was looked for."""

    message = 'Somebody else was faster to insert into {table}.'

    def repair(self, db: 'Database') -> None:
        """Nothing to mend: the next try finds the row."""


class Database:
    """Runs functions in transactions on one database.

    `clock` (seconds since 1970), `new_id` and `chance` come from outside,
    so that a simulation can own them. `deliver` takes the hints of a
    transaction after its commit. `probe` is called with a name before
    every statement and around every commit.
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
        self._writing = engines.create_engine(
            url, 'write', clock=clock, **engine_options
        )
        if self.dialect == 'sqlite':
            self._reading = self._writing
            self._turn: contextlib.AbstractContextManager = fifo.FifoLock()
        else:
            self._reading = engines.create_engine(
                url, 'read', clock=clock, **engine_options
            )
            self._turn = contextlib.nullcontext()
        self._writer: sa.Connection | None = None

    def utcnow(self) -> datetime.datetime:
        return datetime.datetime.fromtimestamp(
            self.clock(), datetime.UTC
        ).replace(tzinfo=None)

    @property
    def engine(self) -> sa.Engine:
        """The engine for writers; migrations use it."""
        return self._writing

    def write(
        self,
        function: Callable[..., T],
        *args: typing.Any,
        by: Initiator | None = None,
        fsync: bool = True,
        **kwargs: typing.Any,
    ) -> T:
        """Run the function in one transaction and return its answer.

        It is run again, whole, when the database says so, and when it
        raises an error with a method `repair(db)`, after that was called.

        Without `synced`, SQLite does not wait for the disk, and a power
        cut, but no death of the process, may take the transaction back:
        for what would simply be done again. The next transaction that is
        synced brings all before it to the disk.
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
        """Run a function that only reads, in one snapshot."""
        with self._reading.connect() as connection, connection.begin():
            return function(Session(self, connection, by), *args, **kwargs)

    def _write_once(
        self,
        function: Callable[..., T],
        args: tuple,
        kwargs: dict[str, typing.Any],
        by: Initiator | None,
        fsync: bool,
    ) -> T:
        with self._turn, self._connection(fsync) as connection:
            session = Session(self, connection, by)
            with connection.begin():
                answer = function(session, *args, **kwargs)
                self.on_step('commit')
        self.on_step('committed')
        if session.hints:
            self.deliver(session.hints)
        for call in session._after:
            call()
        return answer

    @contextlib.contextmanager
    def _connection(self, fsync: bool) -> Iterator[sa.Connection]:
        if self.dialect != 'sqlite':
            with self._writing.connect() as connection:
                yield connection
            return
        # One kept connection: only the holder of the turn uses it.
        if self._writer is None:
            self._writer = self._writing.connect().execution_options(
                **{engines.WRITE: True}
            )
        engines.set_synchronous(self._writer, fsync)
        yield self._writer

    def _is_transient(self, error: Exception) -> bool:
        """Whether the same transaction may well pass when run again."""
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
        self._writing.dispose()
        self._reading.dispose()


def transaction(method: Callable[..., T]) -> Callable[..., T]:
    """Make a method a transaction: `def f(self, session, ctx, ...)`.

    It is called without the session, runs whole in `self.db.write`, and
    the context it is given first is who makes its moves.
    """

    @functools.wraps(method)
    def run(self: typing.Any, *args: typing.Any, **kwargs: typing.Any) -> T:
        by = args[0] if args and hasattr(args[0], 'request_id') else None
        return self.db.write(
            functools.partial(method, self), *args, by=by, **kwargs
        )

    return run


def read_transaction(method: Callable[..., T]) -> Callable[..., T]:
    """Like `transaction`, for a method that only reads."""

    @functools.wraps(method)
    def run(self: typing.Any, *args: typing.Any, **kwargs: typing.Any) -> T:
        return self.db.read(functools.partial(method, self), *args, **kwargs)

    return run
