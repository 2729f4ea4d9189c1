"""What a runner counts for metrics."""

import pytest

from manila_lite import exception, metrics
from tests.unit.work.runner.painting import abandon, raising, run_all

pytestmark = pytest.mark.parametrize('database_url', ['sqlite'], indirect=True)

KIND = 'painting.widen'


@pytest.fixture
def counted():
    """`counted(metric)`: how much it has grown since the start."""
    known = (metrics.CLAIMS, metrics.RETRIES, metrics.FAILURES, metrics.RESCUES)
    before = {one: one.family().samples.get((KIND,), 0) for one in known}
    return lambda one: one.family().samples.get((KIND,), 0) - before[one]


def test_successful_work_is_claimed_once(runner, ask, counted):
    ask()
    run_all(runner)
    assert counted(metrics.CLAIMS) == 1
    assert counted(metrics.FAILURES) == counted(metrics.RETRIES) == 0


def test_error_that_may_pass_counts_as_a_retry(runner, ask, painter, counted):
    painter.does['widen'] = raising(exception.ServiceUnavailable())
    ask()
    run_all(runner)
    assert counted(metrics.RETRIES) == 1
    assert counted(metrics.FAILURES) == 0


def test_other_error_counts_as_a_failure(runner, ask, painter, counted):
    painter.does['widen'] = raising(exception.ShareBackendException(msg='no'))
    ask()
    run_all(runner)
    assert counted(metrics.FAILURES) == 1


def test_work_of_a_dead_process_counts_as_a_rescue(runner, ask, db, counted):
    abandon(db, ask())
    run_all(runner)
    assert counted(metrics.RESCUES) == 1


def test_lost_claim_is_counted(runner, ask, painter, db):
    before = metrics.LOST_CLAIMS.family().samples[()]
    painter.does['widen'] = raising(exception.ClaimLost(id='work'))
    ask()
    run_all(runner)
    assert metrics.LOST_CLAIMS.family().samples[()] == before + 1
