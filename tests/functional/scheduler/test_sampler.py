"""Samples: one writer per slot, all or nothing, and a bounded ring."""

import concurrent.futures
import contextlib
import datetime
import threading

import pytest
import sqlalchemy as sa

from manila_lite import metrics
from manila_lite.api import request_log
from manila_lite.db.models import engine, services
from manila_lite.db.queries.services import samples
from manila_lite.scheduler.sampler import Sampler
from tests.support import sampling

pytestmark = sampling.dialects

SAMPLE = engine.Sample.__table__
CALL = engine.DriverCall.__table__
POOL = services.Pool.__table__
FINE, DAY = samples.FINE, samples.DAY
ONE_SLOT = {'': {'queued': 1}, 'node@a#b': {'used': 2.0}}


@pytest.fixture
def db(connect):
    return connect()


def count(db):
    return db.read(
        lambda session: session.value(sa.select(sa.func.count()).select_from(SAMPLE))
    )


def insert_calls(session, slot, *seconds, outcome='ok'):
    """Insert calls that have ended within a slot and took so long."""
    end = datetime.datetime.fromtimestamp(slot * FINE + 10, datetime.UTC)
    end = end.replace(tzinfo=None)
    session.run_many(
        sa.insert(CALL),
        [
            {
                'id': session.new_id(),
                'resource': 'share_instance',
                'resource_id': 'x',
                'method': 'create_share',
                'host': 'node@a',
                'work_id': 'x',
                'attempt': 1,
                'started_at': end - datetime.timedelta(seconds=one),
                'ended_at': end,
                'outcome': outcome,
            }
            for one in seconds
        ],
    )


def test_pass_writes_each_slot_once(db):
    assert Sampler(db).run_pass() == 2  # five minutes and a day
    found = count(db)
    assert Sampler(db).run_pass() in (0, 1)  # a slot may begin meanwhile
    assert count(db) <= found + 1


def test_processes_that_measure_the_same_slot_write_it_once(db, connect):
    dbs = [connect() for _ in range(4)]
    with concurrent.futures.ThreadPoolExecutor(len(dbs)) as pool:
        written = list(
            pool.map(lambda one: one.write(samples.record, FINE, 7, ONE_SLOT), dbs)
        )
    assert sorted(written) == [False, False, False, True]
    assert count(db) == len(ONE_SLOT)


def test_writer_that_is_overtaken_after_its_look_writes_nothing(connect):
    dbs = [connect() for _ in range(2)]
    both_have_looked = threading.Barrier(len(dbs))
    for db in dbs:
        db.on_step = Pause(both_have_looked)
    with concurrent.futures.ThreadPoolExecutor(len(dbs)) as pool:
        written = list(
            pool.map(lambda one: one.write(samples.record, FINE, 7, ONE_SLOT), dbs)
        )
    assert sorted(written) == [False, True]
    assert count(dbs[0]) == len(ONE_SLOT)


class Pause:
    """Waits before the second statement, where others can get as far."""

    def __init__(self, barrier):
        self.barrier, self.statements = barrier, 0

    def __call__(self, step):
        self.statements += step == 'statement'
        if self.statements == 2:
            with contextlib.suppress(threading.BrokenBarrierError):
                # Writers of SQLite queue before their first statement.
                self.barrier.wait(timeout=1)


def test_samples_of_a_slot_are_written_all_or_none(db):
    class Killed(Exception):
        pass

    def killed(session):
        samples.record(session, FINE, 7, ONE_SLOT)
        raise Killed

    with pytest.raises(Killed):
        db.write(killed)
    assert count(db) == 0
    assert db.write(samples.record, FINE, 7, ONE_SLOT)


def test_ring_keeps_the_newest_slots_only(db):
    newest = 10_000
    first = newest - samples.KEPT[FINE] - 60
    for slot in (first, first + 55, first + 61, newest):
        db.write(samples.record, FINE, slot, ONE_SLOT)
    while db.write(samples.prune, FINE, newest):
        pass
    kept = [one.slot for one in db.read(samples.read, '', FINE, 0)]
    assert kept == [first + 61, newest]
    assert count(db) == 2 * len(ONE_SLOT)


def test_pruning_one_resolution_keeps_the_other(db):
    db.write(samples.record, DAY, 1, ONE_SLOT)
    db.write(samples.prune, FINE, 10_000)
    assert count(db) == len(ONE_SLOT)


def test_operations_are_counted_when_they_end(db):
    slot = 1_000_000
    db.write(insert_calls, slot, *range(1, 21))
    db.write(insert_calls, slot, 400, outcome='failed')
    db.write(insert_calls, slot + 1, 5)
    db.write(insert_calls, slot - 1, 5)
    cloud = db.read(samples.measure, FINE, slot)['']
    assert cloud['per_minute'] == pytest.approx(21 / 5)
    assert cloud['failures'] == 1
    assert cloud['p95'] == 20
    assert cloud['queued'] == 0


def test_slot_without_operations_has_no_duration(db):
    cloud = db.read(samples.measure, FINE, 1_000_000)['']
    assert (cloud['per_minute'], cloud['p95']) == (0, None)


def test_day_is_the_summary_of_its_slots(db):
    day = 3000
    first = day * DAY // FINE
    for place, (rate, p95, queued) in enumerate([(2, 1.0, 4), (4, None, 9)]):
        figures = {'per_minute': rate, 'p95': p95, 'failures': 1, 'queued': queued}
        figures['api_p95'] = p95 and 2 * p95
        db.write(samples.record, FINE, first + place, {'': figures})
    db.write(samples.record, FINE, first - 1, {'': {'per_minute': 100}})
    db.write(samples.record, FINE, first + 288, {'': {'per_minute': 100}})
    assert db.read(samples.measure, DAY, day)[''] == {
        'per_minute': 3,
        'p95': 1.0,
        'api_p95': 2.0,
        'failures': 2,
        'queued': 9,
    }


BOUNDS = [0.01, 0.1, 1.0]


@pytest.mark.parametrize(
    'counts, part, expected',
    [
        ([0, 0, 0, 0], 0.95, None),
        ([100, 0, 0, 0], 0.95, 0.0095),
        ([90, 10, 0, 0], 0.95, 0.055),
        ([0, 0, 1, 0], 0.95, 0.955),
        # What took longer than all bounds took at least the last one.
        ([90, 0, 0, 10], 0.95, 1.0),
    ],
)
def test_quantile_lies_within_the_bounds_of_its_requests(counts, part, expected):
    found = samples.Latencies(BOUNDS, counts).quantile(part)
    assert found == (expected and pytest.approx(expected))


def test_sample_of_the_cloud_has_the_latency_of_all_api_processes(db):
    def add(process_id, *counts):
        db.write(samples.add_latencies, process_id, samples.Latencies(BOUNDS, counts))

    add('one', 40, 0, 0, 0)
    add('one', 50, 0, 0, 0)
    add('two', 0, 10, 0, 0)
    assert count(db) == 2
    slot = db.read(samples.find_missing)[FINE] + 1
    figures = db.read(samples.measure, FINE, slot)
    assert figures[samples.CLOUD]['api_p95'] == pytest.approx(0.055)
    assert db.write(samples.record, FINE, slot, figures)
    # The counts of the processes are not kept.
    assert count(db) == len(figures)


def test_process_reports_what_it_has_answered_since_its_last_report(db):
    reports = request_log.LatencyReports(db, 'one')
    assert not reports.run_pass()
    metrics.REQUESTS.observe(0.003, ('GET', '/v2/shares', '200'))
    metrics.REQUESTS.observe(0.003, ('GET', '/ui/', '200'))
    assert reports.run_pass()
    assert not reports.run_pass()
    slot = db.read(samples.find_missing)[FINE] + 1
    figures = db.read(samples.measure, FINE, slot)[samples.CLOUD]
    assert 0 < figures['api_p95'] <= 0.005
