"""What the pool of an engine sends to the server beside our statements.

By default it asks at each checkout whether the connection is alive, and sends
a rollback after each commit. Both are left out where nothing depends on them:
a round trip takes as long as a short statement.
"""

import time
import typing

import sqlalchemy as sa
from sqlalchemy import event, exc

IDLE = 5.0
"""Seconds after its last checkout at which a connection is asked.

One that was in use a moment ago is not. If the server has closed it, the first
statement of a transaction fails, and the transaction runs again, see
`errors.StaleConnection`.
"""

_CHECKED = 'manila_lite_checked_at'
_COMMITTED = 'manila_lite_committed'


def ping_idle_only(engine: sa.Engine) -> None:
    """Ask connections that were idle, in place of each at each checkout."""
    pool: typing.Any = engine.pool
    pool._pre_ping = False

    @event.listens_for(engine, 'checkout')
    def ping(connection: typing.Any, record: typing.Any, _: object) -> None:
        now = time.monotonic()
        checked = record.info.get(_CHECKED)
        record.info[_CHECKED] = now
        if checked is None or now - checked < IDLE:
            return  # it is new, or was in use
        dialect: typing.Any = engine.dialect
        try:
            alive = dialect.do_ping(connection)
        except dialect.loaded_dbapi.Error as error:
            # The pool drops all connections made before, and connects.
            raise exc.InvalidatePoolError from error
        if not alive:
            raise exc.InvalidatePoolError


def roll_back_if_open(engine: sa.Engine) -> None:
    """Roll back at checkin, except after a commit, see `note_commit`."""
    pool: typing.Any = engine.pool
    pool._reset_on_return = None

    @event.listens_for(engine, 'reset')
    def reset(connection: typing.Any, record: typing.Any, state: typing.Any) -> None:
        if state.transaction_was_reset or state.terminate_only:
            return
        if not record.info.pop(_COMMITTED, False):
            connection.rollback()


def note_commit(connection: sa.Connection) -> None:
    """Note that a connection returns to its pool after a commit."""
    connection.info[_COMMITTED] = True
