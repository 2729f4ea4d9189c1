"""What users notice while thousands of resources are rescued.

A service is started on a database in which they are in flight, and
nobody works on them: to be asked about, to be deleted, to be given up.
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
from benchmarks.creation import QUIET_READS
from benchmarks.creation import _percentile
from benchmarks.creation import _read
from benchmarks.verdict import Verdict
from manila_lite.db.models import engine
from manila_lite.db.models import quotas
from manila_lite.db.models import services
from manila_lite.db.models import shares
from manila_lite.db.session import Session
from manila_lite.share.drivers.dummy import state
from tests.support.installation import Installation

STUCK = 10_000
AT_ONCE = 1000
CREATE_EVERY = 50
"""One share is made among so many reads."""

TIMEOUT = 1200.0
POLL_INTERVAL = 0.005

WAYS = (
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
        installed = Installation(
            pathlib.Path(folder),
            options='default_share_type = default\n'
            'startup_reconciliation_wait_seconds = 0\n',
            sections='[quota]\nshares = -1\ngigabytes = -1\n',
        )
        try:
            _measure(verdict, installed)
        finally:
            installed.close()


def _measure(verdict: Verdict, installed: Installation) -> None:
    installed.start()
    with contextlib.closing(service.Client(installed)) as client:
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
    installed.stop()
    ids = _fill(installed)
    installed.start()
    with contextlib.closing(service.Client(installed)) as client:
        _create(client)  # fills caches of statements
        quiet = list(
            itertools.islice(_used(client, path), QUIET_READS + CREATE_EVERY)
        )
    installed.stop()
    for number in range(0, STUCK, AT_ONCE):
        installed.db.write(_disturb, ids[number : number + AT_ONCE])
    installed.start()
    began = time.perf_counter()
    with contextlib.closing(service.Client(installed)) as client:
        among = list(
            itertools.takewhile(
                lambda _: _is_disturbed(installed, began), _used(client, path)
            )
        )
    seconds = time.perf_counter() - began
    (alone_read, alone_made), (read, made) = map(_split, (quiet, among))
    verdict.record(
        f'reader while {STUCK} resources are rescued, 95th percentile, to '
        'alone',
        _percentile(read, 95) / _percentile(alone_read, 95),
        'times',
        at_most=3,
        alone_ms=round(_percentile(alone_read, 95), 2),
        among_ms=round(_percentile(read, 95), 2),
        reads=len(read),
    )
    verdict.record(
        'share to available meanwhile, median',
        statistics.median(made),
        'ms',
        shares=len(made),
        alone_ms=round(statistics.median(alone_made), 1),
    )
    verdict.record(
        f'{STUCK} resources rescued',
        seconds,
        's',
        a_second=round(STUCK / seconds, 1),
    )
    verdict.record(
        'wrong after it', len(installed.problems()), 'problems', at_most=0
    )


def _used(
    client: service.Client, path: str
) -> Iterator[tuple[float, float | None]]:
    """Milliseconds of a read each, now and then also of a new share."""
    for number in itertools.count():
        read = _read(client, path)
        if number % CREATE_EVERY:
            yield read, None
        else:
            began = time.perf_counter()
            _create(client)
            yield read, (time.perf_counter() - began) * 1e3


def _split(
    taken: list[tuple[float, float | None]],
) -> tuple[list[float], list[float]]:
    """The reads in order of time, and the shares that were made."""
    return (
        sorted(read for read, _ in taken),
        [made for _, made in taken if made is not None],
    )


def _create(client: service.Client) -> str:
    share = client.request(
        'POST', '/shares', {'share': {'share_proto': 'NFS', 'size': 1}}
    )['share']['id']
    deadline = time.monotonic() + service.TIMEOUT
    while client.get(f'/shares/{share}')['share']['status'] == 'creating':
        if time.monotonic() > deadline:
            raise RuntimeError('a share is created for ever')
        time.sleep(POLL_INTERVAL)
    return share


def _is_disturbed(installed: Installation, began: float) -> bool:
    if time.perf_counter() - began > TIMEOUT:
        raise RuntimeError(f'{installed.in_flight()[:3]} for ever')
    return bool(
        installed.db.read(
            lambda session: session.value(
                sa.select(_INSTANCE.c.id)
                .where(_INSTANCE.c.status.in_([status for _, status in WAYS]))
                .limit(1)
            )
        )
    )


# Rows as if they had been made one after the other


def _fill(installed: Installation) -> list[str]:
    """Copies of the first share, in the rows and on the back end."""
    back_end = state.DummyState(installed.dummy_state_dir('dummy'))
    ((first, record),) = back_end.shares.records()
    ids: list[str] = []
    for _ in range(0, STUCK, AT_ONCE):
        ids += installed.db.write(_copy, first)
    for id in ids:
        back_end.shares.put(id, record)
    return ids


def _copy(session: Session, first: str) -> list[str]:
    instance = _values(session, _INSTANCE, first)
    share = _values(session, _SHARE, instance['share_id'])
    ids = [(session.new_id(), session.new_id()) for _ in range(AT_ONCE)]
    session.run_many(
        sa.insert(_SHARE), [share | {'id': share_id} for share_id, _ in ids]
    )
    session.run_many(
        sa.insert(_INSTANCE),
        [instance | {'id': id, 'share_id': share_id} for share_id, id in ids],
    )
    born = session.rows(
        sa.select(_JOURNAL)
        .where(
            _JOURNAL.c.resource_id == first,
            _JOURNAL.c.resource == 'share_instance',
        )
        .order_by(_JOURNAL.c.id)
    )
    for move in born:
        values = dict(move._mapping)
        del values['id']
        session.run_many(
            sa.insert(_JOURNAL),
            [values | {'resource_id': id} for _, id in ids],
        )
    for resource in ('shares', 'gigabytes'):
        session.run(
            sa.update(_USAGE)
            .where(_USAGE.c.resource == resource)
            .values(in_use=_USAGE.c.in_use + AT_ONCE)
        )
    session.run(
        sa.update(_POOL).values(allocated_gb=_POOL.c.allocated_gb + AT_ONCE)
    )
    return [id for _, id in ids]


def _values(
    session: Session, table: sa.Table, id: str
) -> dict[str, typing.Any]:
    return dict(session.one(sa.select(table).where(table.c.id == id))._mapping)


def _disturb(session: Session, ids: list[str]) -> None:
    """Put these in flight, a third in each of the ways."""
    for place, (event, status) in enumerate(WAYS):
        some = ids[place :: len(WAYS)]
        session.run(
            sa.update(_INSTANCE)
            .where(_INSTANCE.c.id.in_(some))
            .values(status=status)
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
                for id in some
            ],
        )
