"""Whether a transaction was committed whose commit got no answer.

The connection may be lost between a COMMIT and its answer, and the server may
still be busy with it. So the first row that a transaction writes to the
journal has the id of the transaction, which is unique. To ask for the outcome,
another transaction inserts a row with the same id. A database lets it wait
while the first one may be committed, and refuses it if it was. Once the second
row is there the first one cannot be committed any more; the nodes of Galera,
which do not wait for each other, refuse it then.
"""

from collections.abc import Callable
import datetime
import random
import time
import typing

from oslo_db import exception as db_exc
import sqlalchemy as sa

from manila_lite import exception
from manila_lite.db import errors
from manila_lite.db.tables import JOURNAL

PAUSE = 0.5
"""Seconds between two attempts to ask."""

RESOURCE = 'transaction'
"""The resource of rows of the journal that only have an id of a transaction:
they identify it, or rule it out."""

_RULE_OUT = 'rule_out'
_IDENTIFY = 'commit'

_INSERT = sa.insert(JOURNAL)
_FIND = sa.select(JOURNAL.c.event).where(
    JOURNAL.c.transaction_id == sa.bindparam('of_id')
)


class Lost(Exception):
    """The connection was lost during the commit of a session."""

    def __init__(self, session: typing.Any, result: typing.Any):
        super().__init__()
        self.session = session
        self.result = result


class Runs(typing.Protocol):
    """What is needed of the database."""

    retry_limit: float
    sleep: Callable[[float], None]

    def write_once(self, function: Callable, *args: typing.Any) -> typing.Any: ...


def new_id(now: datetime.datetime, rng: random.Random) -> str:
    """Return an id for a transaction.

    They are made in order, so that a large index grows at its end only.
    """
    return f'{now:%Y%m%d%H%M%S%f}{rng.getrandbits(64):016x}'


def was_committed(db: Runs, transaction_id: str) -> bool:
    """Return whether a transaction was committed, or prevent that it will be.

    Raises OutcomeUnknown if it may still be after `retry_limit` seconds.
    """
    began, slept = time.monotonic(), 0.0
    while True:
        try:
            return _find_outcome(db, transaction_id)
        except (Lost, *errors.UNAVAILABLE) as error:
            # A test may replace `sleep`, so that no time passes in it.
            if max(time.monotonic() - began, slept) >= db.retry_limit:
                raise exception.OutcomeUnknown from error
        db.sleep(PAUSE)
        slept += PAUSE


def _find_outcome(db: Runs, transaction_id: str) -> bool:
    try:
        db.write_once(_rule_out, transaction_id)
    except db_exc.DBDuplicateEntry:
        return db.write_once(_has_moves, transaction_id)
    return False


def _rule_out(session: typing.Any, transaction_id: str) -> None:
    _write(session, _RULE_OUT, transaction_id)


def identify(session: typing.Any) -> None:
    """Write a row for a transaction that has moved rows it does not know."""
    transaction_id = new_id(session.now, session.db.rng)
    _write(session, _IDENTIFY, transaction_id)
    session.transaction_id = transaction_id


def _write(session: typing.Any, event: str, transaction_id: str) -> None:
    session.run(
        _INSERT,
        resource=RESOURCE,
        resource_id=transaction_id,
        event=event,
        made_at=session.now,
        is_sent=True,  # it is not sent as an event
        transaction_id=transaction_id,
    )


def _has_moves(session: typing.Any, transaction_id: str) -> bool:
    """Return what the row with this id says.

    It may be that of an earlier attempt, whose commit got no answer either.
    """
    found = session.value(_FIND, of_id=transaction_id)
    if found is None:
        raise exception.OutcomeUnknown
    return found != _RULE_OUT
