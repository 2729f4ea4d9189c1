"""Build the purges of rows that have been kept long enough."""

import datetime
import typing

from manila_lite.cmd.build.process import Process
from manila_lite.db.queries.admin import retention
from manila_lite.db.session import Session
from manila_lite.periodic import Task
from manila_lite.scheduler.purge import Deletion
from manila_lite.scheduler.purge import Purge

LOOK_INTERVAL = 60.0
"""Seconds between looks whether a purge is due or was left unfinished."""


def build_purges(process: Process, owner: str) -> list[Purge]:
    """Build the purges; an age of 0 keeps rows for ever."""
    conf = process.conf
    kept = [
        (retention.DECISIONS, conf.recovery.log_retention),
        (retention.DRIVER_CALLS, conf.retention.driver_calls),
        (retention.SERVER_MIGRATIONS, conf.retention.server_migrations),
    ]
    deletions = [_delete_older(rows, age) for rows, age in kept if age]
    if conf.work.journal_retention:
        deletions.append(_delete_moves(conf))
    purges = [
        Purge(
            process.db,
            'old rows',
            owner,
            conf.message_reap_interval,
            [_delete_expired_messages, *deletions],
            batch=retention.BATCH,
        )
    ]
    if conf.retention.services:
        purges.append(
            Purge(
                process.db,
                'dead services',
                owner,
                conf.cleanup_interval,
                [_delete_dead_services(conf.retention.services)],
                batch=retention.BATCH,
            )
        )
    return purges


def purge_tasks(purges: list[Purge]) -> list[Task]:
    """Return the tasks of a scheduler that run the purges."""
    return [
        Task(purge.name, min(purge.interval, LOOK_INTERVAL), purge.run_pass)
        for purge in purges
    ]


def _delete_older(rows: retention.ExpiredRows, age: float) -> Deletion:
    def delete(session: Session, batch: int) -> int:
        until = session.now - datetime.timedelta(seconds=age)
        return retention.delete_until(session, rows, until, batch)

    return delete


def _delete_moves(conf: typing.Any) -> Deletion:
    age = conf.work.journal_retention
    if not conf.events.enabled:
        return _delete_older(retention.JOURNAL, age)

    def delete(session: Session, batch: int) -> int:
        until = session.now - datetime.timedelta(seconds=age)
        return retention.delete_sent_moves(session, until, batch)

    return delete


def _delete_expired_messages(session: Session, batch: int) -> int:
    return retention.delete_until(
        session, retention.MESSAGES, session.now, batch
    )


def _delete_dead_services(silence: float) -> Deletion:
    def delete(session: Session, batch: int) -> int:
        return retention.delete_dead_services(session, silence, batch)

    return delete
