"""Latency for users while thousands of resources are rescued.

A service is started on a database with resources in flight without work. A
third each is probed, deleted and given up.
"""

from collections.abc import Iterator
import contextlib
import itertools
import pathlib
import statistics
import tempfile
import time
import typing

import sqlalchemy as sa

from benchmarks import service
from benchmarks.creation import QUIET_READS, _read
from benchmarks.verdict import Verdict, percentile
from manila_lite.db.models import engine, quotas, services, shares
from manila_lite.db.session import Session
from manila_lite.share.drivers.dummy import state
from tests.support.installation import Installation

RESOURCES = 10_000
BATCH = 1000
CREATE_EVERY = 50
"""Number of reads for every created share."""

TIMEOUT = 1200.0
POLL_INTERVAL = 0.005

CASES = (
    ('extend', 'extending'),
    ('reset_deleting', 'deleting'),
    ('reset_migrating', 'migrating'),
)

_SHARE = shares.Share.__table__
_INSTANCE = shares.ShareInstance.__table__
_JOURNAL = engine.Transition.__table__
_USAGE = quotas.QuotaUsage.__table__
_POOL = services.Pool.__table__


def run(verdict: Verdict) -> None:
    with tempfile.TemporaryDirectory() as folder:
        installation = Installation(
            pathlib.Path(folder),
            options='default_share_type = default\n'
            'startup_reconciliation_wait_seconds = 0\n',
            sections='[quota]\nshares = -1\ngigabytes = -1\n',
        )
        try:
            _measure(verdict, installation)
        finally:
            installation.close()


def _measure(verdict: Verdict, installation: Installation) -> None:
    installation.start()
    with contextlib.closing(service.Client(installation)) as client:
        client.request(
            'POST',
            '/types',
            {
                'share_type': {
                    'name': 'default',
                    'extra_specs': {'driver_handles_share_servers': 'False'},
                }
            },
        )
        path = f'/shares/{_create(client)}'
    installation.stop()
    ids = _fill(installation)
    installation.start()
    with contextlib.closing(service.Client(installation)) as client:
        _create(client)  # fills the statement caches
        baseline_times = list(
            itertools.islice(_read_and_create(client, path), QUIET_READS + CREATE_EVERY)
        )
    installation.stop()
    for number in range(0, RESOURCES, BATCH):
        installation.db.write(_put_in_flight, ids[number : number + BATCH])
    installation.start()
    began = time.perf_counter()
    with contextlib.closing(service.Client(installation)) as client:
        load_times = list(
            itertools.takewhile(
                lambda _: _has_resources_in_flight(installation, began),
                _read_and_create(client, path),
            )
        )
    seconds = time.perf_counter() - began
    (alone_read, alone_created), (read, created) = map(
        _split, (baseline_times, load_times)
    )
    verdict.record(
        f'reader while {RESOURCES} resources are rescued, 95th percentile, to alone',
        percentile(read, 95) / percentile(alone_read, 95),
        'times',
        at_most=3,
        alone_ms=round(percentile(alone_read, 95), 2),
        among_ms=round(percentile(read, 95), 2),
        reads=len(read),
    )
    verdict.record(
        'share to available meanwhile, median',
        statistics.median(created),
        'ms',
        shares=len(created),
        alone_ms=round(statistics.median(alone_created), 1),
    )
    verdict.record(
        f'{RESOURCES} resources rescued',
        seconds,
        's',
        a_second=round(RESOURCES / seconds, 1),
    )
    verdict.record(
        'wrong after it', len(installation.problems()), 'problems', at_most=0
    )


def _read_and_create(
    client: service.Client, path: str
) -> Iterator[tuple[float, float | None]]:
    """Yield the milliseconds of a read, and sometimes of a new share."""
    for number in itertools.count():
        read = _read(client, path)
        if number % CREATE_EVERY:
            yield read, None
        else:
            began = time.perf_counter()
            _create(client)
            yield read, (time.perf_counter() - began) * 1e3


def _split(taken: list[tuple[float, float | None]]) -> tuple[list[float], list[float]]:
    """Return the sorted times of reads, and the times of new shares."""
    return (
        sorted(read for read, _ in taken),
        [created for _, created in taken if created is not None],
    )


def _create(client: service.Client) -> str:
    share = client.request(
        'POST', '/shares', {'share': {'share_proto': 'NFS', 'size': 1}}
    )['share']['id']
    deadline = time.monotonic() + service.TIMEOUT
    while client.get(f'/shares/{share}')['share']['status'] == 'creating':
        if time.monotonic() > deadline:
            raise RuntimeError('a share stays in creating')
        time.sleep(POLL_INTERVAL)
    return share


def _has_resources_in_flight(installation: Installation, began: float) -> bool:
    if time.perf_counter() - began > TIMEOUT:
        raise RuntimeError(f'{installation.in_flight()[:3]} stay in flight')
    return bool(
        installation.db.read(
            lambda session: session.value(
                sa.select(_INSTANCE.c.id)
                .where(_INSTANCE.c.status.in_([status for _, status in CASES]))
                .limit(1)
            )
        )
    )


# Rows as if they had been created one by one


def _fill(installation: Installation) -> list[str]:
    """Copy the first share, its rows and its record on the back end."""
    back_end = state.DummyState(installation.dummy_state_dir('dummy'))
    ((first, record),) = back_end.shares.records()
    ids: list[str] = []
    for _ in range(0, RESOURCES, BATCH):
        ids += installation.db.write(_copy, first)
    for id in ids:
        back_end.shares.put(id, record)
    return ids


def _copy(session: Session, first: str) -> list[str]:
    instance = _values(session, _INSTANCE, first)
    share = _values(session, _SHARE, instance['share_id'])
    ids = [(session.new_id(), session.new_id()) for _ in range(BATCH)]
    session.run_many(
        sa.insert(_SHARE), [share | {'id': share_id} for share_id, _ in ids]
    )
    session.run_many(
        sa.insert(_INSTANCE),
        [instance | {'id': id, 'share_id': share_id} for share_id, id in ids],
    )
    journal = session.rows(
        sa.select(_JOURNAL)
        .where(_JOURNAL.c.resource_id == first, _JOURNAL.c.resource == 'share_instance')
        .order_by(_JOURNAL.c.id)
    )
    for move in journal:
        values = dict(move._mapping)
        del values['id']
        session.run_many(
            sa.insert(_JOURNAL), [values | {'resource_id': id} for _, id in ids]
        )
    for resource in ('shares', 'gigabytes'):
        session.run(
            sa.update(_USAGE)
            .where(_USAGE.c.resource == resource)
            .values(in_use=_USAGE.c.in_use + BATCH)
        )
    session.run(sa.update(_POOL).values(allocated_gb=_POOL.c.allocated_gb + BATCH))
    return [id for _, id in ids]


def _values(session: Session, table: sa.Table, id: str) -> dict[str, typing.Any]:
    return dict(session.first(sa.select(table).where(table.c.id == id))._mapping)


def _put_in_flight(session: Session, ids: list[str]) -> None:
    """Put these in flight, a third in each status."""
    for place, (event, status) in enumerate(CASES):
        part = ids[place :: len(CASES)]
        session.run(
            sa.update(_INSTANCE).where(_INSTANCE.c.id.in_(part)).values(status=status)
        )
        session.run_many(
            sa.insert(_JOURNAL),
            [
                {
                    'resource': 'share_instance',
                    'resource_id': id,
                    'event': event,
                    'from_status': 'available',
                    'to_status': status,
                    'made_at': session.now,
                }
                for id in part
            ],
        )
