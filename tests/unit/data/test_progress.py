from oslo_db import exception as db_exc
import pytest

from manila_lite import exception
from manila_lite.data.progress import CopyProgress
from manila_lite.work import job as jobs, lease, table
from tests.unit.work.builders import claim, submit_work


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def claimed(db):
    return claim(db, submit_work(db, resource_id='share'))


@pytest.fixture
def recorded():
    """The percentages that were recorded."""
    return []


@pytest.fixture
def progress_of(db, claimed, recorded, clock):
    job = jobs.JobContext(db, claimed, jobs.Settings(), lease.Lease(60, clock))
    return lambda total: CopyProgress(
        job, total, lambda session, percent: recorded.append(percent)
    )


def test_percentage_is_recorded_at_intervals_also_if_it_is_the_same(
    progress_of, recorded, clock
):
    progress = progress_of(200)
    progress.add(20)
    progress.check()  # too early
    assert recorded == []
    for clock.now in (1.0, 1.5, 2.0):
        progress.check()
    assert recorded == [10, 10]
    progress.add(100)
    clock.now = 3.0
    progress.check()
    assert recorded == [10, 10, 60]


def test_copy_ends_when_the_work_is_no_longer_held(
    db, claimed, progress_of, recorded, clock
):
    progress = progress_of(10)
    db.write(table.finish, claimed)
    clock.now = 1.0
    with pytest.raises(exception.ClaimLost):
        progress.check()
    assert recorded == []


def test_only_the_end_is_100_percent(progress_of):
    progress = progress_of(10)
    progress.add(25)
    assert progress.percent == 99


def test_nothing_to_copy_has_no_percentage(progress_of):
    progress = progress_of(0)
    progress.add(1)
    assert progress.percent == 0


def test_copy_goes_on_while_the_database_does_not_answer(db, claimed, recorded, clock):
    outages = [db_exc.DBConnectionError(), exception.DatabaseBusy()]

    def record(session, percent):
        if outages:
            raise outages.pop()
        recorded.append(percent)

    job = jobs.JobContext(db, claimed, jobs.Settings(), lease.Lease(60, clock))
    progress = CopyProgress(job, 10, record)
    for clock.now in (1.0, 2.0, 3.0):
        progress.check()
    assert recorded == [0]
