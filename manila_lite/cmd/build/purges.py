"""Build the purges of rows that have been kept long enough."""

from collections.abc import Callable, Iterable
import dataclasses
import datetime
import functools

from oslo_config import cfg

from manila_lite.cmd.build.process import Process
from manila_lite.db.queries.work import retention
from manila_lite.db.session import Database, Session
from manila_lite.periodic import Task
from manila_lite.scheduler.purge import Deletion, Purge

LOOK_INTERVAL = 60.0
"""Seconds between looks whether a purge is due or was left unfinished."""


@dataclasses.dataclass(frozen=True)
class Retention:
    """Rows of a table that are kept until they have an age, in seconds."""

    table: str
    age: float
    delete: Callable[[Session, float, int], int]
    count: Callable[[Session, float], int]


def build_purges(process: Process, owner: str) -> list[Purge]:
    """Build the purges of a scheduler."""
    return [
        *purges_of(process.conf, process.db, owner),
        *_surplus_purges(process.conf, process.db, owner),
    ]


def _surplus_purges(conf: cfg.ConfigOpts, db: Database, owner: str) -> Iterable[Purge]:
    """Yield what keeps the journal within its limit, if there is one."""
    kept = conf.retention.journal_rows
    if kept:
        yield Purge(
            db,
            'surplus history',
            owner,
            LOOK_INTERVAL,
            {
                # First, because the moves tell which are too old.
                retention.DRIVER_CALLS.table: _surplus(
                    kept, functools.partial(_delete_until, retention.DRIVER_CALLS)
                ),
                retention.MOVES.table: _surplus(
                    kept,
                    retention.delete_sent_moves
                    if conf.events.enabled
                    else functools.partial(_delete_until, retention.MOVES),
                ),
            },
            batch=retention.BATCH,
        )


def _surplus(
    kept: int, delete: Callable[[Session, datetime.datetime, int], int]
) -> Deletion:
    def delete_surplus(session: Session, batch: int) -> int:
        until = retention.find_surplus(session, kept)
        return 0 if until is None else delete(session, until, batch)

    return delete_surplus


def _delete_until(
    rows: retention.ExpiredRows, session: Session, until: datetime.datetime, batch: int
) -> int:
    return retention.delete_until(session, rows, until, batch)


def purges_of(
    conf: cfg.ConfigOpts, db: Database, owner: str, age: float | None = None
) -> Iterable[Purge]:
    """Yield the purges; an age of 0 keeps rows for ever.

    `age` replaces all ages of the options.
    """
    rows = {
        kept.table: _deletion(kept) for kept in _list_retentions(conf, age) if kept.age
    }
    services = rows.pop(retention.SERVICE.name, None)
    yield Purge(
        db,
        'old rows',
        owner,
        conf.message_reap_interval,
        {retention.MESSAGES.table: _delete_expired_messages, **rows},
        batch=retention.BATCH,
    )
    if services is not None:
        yield Purge(
            db,
            'dead services',
            owner,
            conf.cleanup_interval,
            {retention.SERVICE.name: services},
            batch=retention.BATCH,
        )


def count_old_rows(
    session: Session, conf: cfg.ConfigOpts, age: float | None = None
) -> dict[str, int]:
    """Return per table how many rows the purges would delete."""
    return {
        retention.MESSAGES.table: retention.count_until(
            session, retention.MESSAGES, session.now
        ),
        **{
            kept.table: kept.count(session, kept.age)
            for kept in _list_retentions(conf, age)
            if kept.age
        },
    }


def purge_tasks(purges: list[Purge]) -> list[Task]:
    """Return the tasks of a scheduler that run the purges."""
    return [
        Task(purge.name, min(purge.interval, LOOK_INTERVAL), purge.run_pass)
        for purge in purges
    ]


def _list_retentions(conf: cfg.ConfigOpts, age: float | None) -> Iterable[Retention]:
    for kept in (
        _until(retention.DECISIONS, conf.recovery.log_retention),
        _until(retention.DRIVER_CALLS, conf.retention.driver_calls),
        _until(retention.SERVER_MIGRATIONS, conf.retention.server_migrations),
        _of_journal(conf),
        Retention(
            retention.SERVICE.name,
            conf.retention.services,
            retention.delete_dead_services,
            retention.count_dead_services,
        ),
    ):
        yield kept if age is None else dataclasses.replace(kept, age=age)


def _until(rows: retention.ExpiredRows, age: float) -> Retention:
    def delete(session: Session, age: float, batch: int) -> int:
        return retention.delete_until(session, rows, _before(session, age), batch)

    def count(session: Session, age: float) -> int:
        return retention.count_until(session, rows, _before(session, age))

    return Retention(rows.table, age, delete, count)


def _of_journal(conf: cfg.ConfigOpts) -> Retention:
    age = conf.work.journal_retention
    if not conf.events.enabled:
        return _until(retention.MOVES, age)

    def delete(session: Session, age: float, batch: int) -> int:
        return retention.delete_sent_moves(session, _before(session, age), batch)

    def count(session: Session, age: float) -> int:
        return retention.count_sent_moves(session, _before(session, age))

    return Retention(retention.MOVES.table, age, delete, count)


def _before(session: Session, age: float) -> datetime.datetime:
    return session.now - datetime.timedelta(seconds=age)


def _deletion(kept: Retention) -> Deletion:
    def delete(session: Session, batch: int) -> int:
        return kept.delete(session, kept.age, batch)

    return delete


def _delete_expired_messages(session: Session, batch: int) -> int:
    # Each has its own time.
    return retention.delete_until(session, retention.MESSAGES, session.now, batch)
