"""Whether a transaction was committed whose commit got no answer.

The connection may be lost between a COMMIT and its answer. A move of a state
table stays in the journal, and tells on a new connection what has happened.
"""

from collections.abc import Callable
import datetime
import typing

from oslo_db import exception as db_exc
import sqlalchemy as sa

from manila_lite import exception
from manila_lite.db import errors
from manila_lite.db.models import engine

_JOURNAL = engine.Transition.__table__

PAUSE = 0.5
LOOKS = 2
"""How often to look for a move, with that many seconds in between: another
server may be about to write what it has received."""

_FOUND = (
    sa.select(_JOURNAL.c.id)
    .where(
        _JOURNAL.c.resource == sa.bindparam('of_resource'),
        _JOURNAL.c.resource_id == sa.bindparam('of_id'),
        _JOURNAL.c.event == sa.bindparam('of_event'),
        _JOURNAL.c.made_at == sa.bindparam('at'),
    )
    .limit(1)
    # Waits for a transaction that is still being committed.
    .with_for_update(read=True)
)
_GET_SYNC_WAIT = sa.text('SELECT @@SESSION.wsrep_sync_wait')
_SET_SYNC_WAIT = sa.text('SET SESSION wsrep_sync_wait = :mask')
_SYNC_READS = 1


class Witness(typing.NamedTuple):
    """A move that a transaction has made."""

    resource: str
    resource_id: str
    event: str


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

    def write(self, function: Callable, *args: typing.Any) -> typing.Any: ...


def was_committed(
    db: Runs, witness: Witness, made_at: datetime.datetime
) -> bool:
    """Look for a move of a transaction; wait for a server that answers.

    Raises OutcomeUnknown if none does within `retry_limit` seconds.
    """
    looks, waited = 0, 0.0
    while True:
        try:
            if db.write(_is_there, witness, made_at):
                return True
            looks += 1
        except errors.UNAVAILABLE as error:
            if waited >= db.retry_limit:
                raise exception.OutcomeUnknown from error
        if looks == LOOKS:
            return False
        db.sleep(PAUSE)
        waited += PAUSE


def _is_there(
    session: typing.Any, witness: Witness, made_at: datetime.datetime
) -> bool:
    before = _wait_for_cluster(session)
    found = session.value(
        _FOUND,
        of_resource=witness.resource,
        of_id=witness.resource_id,
        of_event=witness.event,
        at=made_at,
    )
    if before is not None:
        session.run(_SET_SYNC_WAIT, mask=before)
    return found is not None


def _wait_for_cluster(session: typing.Any) -> int | None:
    """Let a node of Galera write first what others have committed.

    Returns the former setting; None where there is none.
    """
    if session.dialect != 'mysql':
        return None
    try:
        before = session.value(_GET_SYNC_WAIT)
    except db_exc.DBConnectionError:
        raise
    except db_exc.DBError:
        return None  # a MariaDB that was built without Galera
    session.run(_SET_SYNC_WAIT, mask=before | _SYNC_READS)
    return before
