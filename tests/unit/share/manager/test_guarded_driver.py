"""A driver is called only under a valid claim, and gets its fence."""

import contextlib

import pytest
import sqlalchemy as sa

from manila_lite import context, exception, metrics
from manila_lite.db.queries.recovery.recovery import CALL
from manila_lite.db.session import Database
from manila_lite.rpc.share import AccessRpc, ProvisioningRpc
from manila_lite.share.drivers import base
from manila_lite.share.manager.guarded_driver import GuardedDriver, driver_context
from manila_lite.work import job as jobs, lease, table
from tests.support.databases import create_tables
from tests.unit.work.builders import claim, row, submit_work


class Driver:
    """Records the tokens it is given; refuses those below `seen`."""

    backend_name = 'plain'

    def __init__(self):
        self.tokens = []
        self.seen = 0

    def delete_share(self, context, share):
        self._check(context.fencing_token)

    def extend_share(self, share, new_size):
        self._check(context.current_fencing_token())

    def get_share_status(self, share):
        return {'status': 'available'}

    def _check(self, token):
        self.tokens.append(token)
        if token and token.value < self.seen:
            raise exception.StaleFencingToken(resource=token.resource, seen=self.seen)


@pytest.fixture
def db(tmp_path):
    url = f'sqlite:///{tmp_path}/db'
    create_tables(url)
    db = Database(url)
    yield db
    db.dispose()


@pytest.fixture
def driver():
    return Driver()


@pytest.fixture
def guarded(driver):
    return GuardedDriver(driver)


@pytest.fixture
def job(db):
    claimed = claim(
        db,
        submit_work(
            db,
            resource='share_instance',
            resource_id='i',
            context={'request_id': 'req-1', 'project_id': 'p'},
        ),
    )
    return jobs.JobContext(
        db, claimed, jobs.Settings(), lease.Lease(lease.boot_time() + 30)
    )


def test_a_driver_gets_the_request_and_the_fence(guarded, driver, job):
    with jobs.running(job):
        given = driver_context()
        guarded.delete_share(given, {})
    assert (given.request_id, given.project_id) == ('req-1', 'p')
    assert driver.tokens == [('share_instance:i', job.claim.fence)]


def test_a_method_without_context_finds_the_fence(guarded, driver, job):
    with jobs.running(job):
        guarded.extend_share({}, 2)
    assert driver.tokens == [('share_instance:i', job.claim.fence)]
    assert context.current_fencing_token() is None


def test_a_call_outside_of_a_job_has_no_fence(guarded, driver, job):
    guarded.delete_share(driver_context(), {})
    with jobs.running(job), jobs.outside_of_jobs():
        guarded.delete_share(driver_context(), {})
    assert driver.tokens == [None, None]


def test_no_call_is_made_for_a_lost_claim(guarded, driver, job, db):
    db.write(table.expire_leases, ['blue'])
    claim(db, job.id, 'another', abandoned=True)
    job.lease.lose()
    with jobs.running(job), pytest.raises(exception.ClaimLost):
        guarded.delete_share(driver_context(), {})
    assert driver.tokens == []


def test_a_claim_that_holds_overtakes_a_clock_that_was_set_back(
    guarded, driver, job, db
):
    driver.seen = job.claim.fence + 10**9
    with jobs.running(job):
        guarded.delete_share(driver_context(), {})
    assert driver.tokens[-1].value > driver.seen
    assert row(db, job.id).fence == driver.tokens[-1].value
    assert job.renew()


def test_a_lost_claim_does_not_overtake(guarded, driver, job, db):
    driver.seen = job.claim.fence + 1
    db.write(table.expire_leases, ['blue'])
    claim(db, job.id, 'another', abandoned=True)
    with jobs.running(job), pytest.raises(exception.ClaimLost):
        guarded.delete_share(driver_context(), {})
    assert len(driver.tokens) == 1


def test_only_calls_with_effects_count_as_such(guarded, job):
    with jobs.running(job):
        guarded.get_share_status({})
        assert not job.has_effects
        guarded.delete_share(driver_context(), {})
        assert job.has_effects


def test_a_call_that_failed_may_have_had_effects(guarded, driver, job):
    driver.delete_share = lambda *args: 1 / 0
    with jobs.running(job):
        with contextlib.suppress(ZeroDivisionError):
            guarded.delete_share(driver_context(), {})
        assert job.has_effects


def test_the_guard_supports_what_the_driver_supports(guarded):
    assert isinstance(guarded, Driver)
    assert not isinstance(guarded, base.ShareServerSupport)
    assert guarded.backend_name == 'plain'


def test_attributes_are_those_of_the_driver(guarded, driver):
    guarded.initialized = True
    assert driver.initialized


def test_work_on_a_share_and_on_its_rules_has_one_fence_name():
    assert (
        AccessRpc.methods['sync_access'].exclusion
        == ProvisioningRpc.methods['delete_share_instance'].resource_name
    )


def test_an_undo_outside_of_jobs_has_no_fence(guarded, driver, job):
    """Its context was made inside; a later worker may have come since."""
    with jobs.running(job):
        given = driver_context()
        guarded.delete_share(given, {})
        with jobs.outside_of_jobs():
            guarded.delete_share(given, {})
    assert driver.tokens == [('share_instance:i', job.claim.fence), None]


def test_a_driver_that_asks_to_be_called_again_has_done_nothing(guarded, driver, job):
    def be_busy(*args):
        raise exception.ServiceUnavailable

    driver.delete_share = be_busy
    with jobs.running(job):
        with pytest.raises(exception.ServiceUnavailable):
            guarded.delete_share(driver_context(), {})
        assert not job.has_effects


@pytest.mark.parametrize(
    'error, outcome',
    [
        (None, 'ok'),
        (exception.ServiceUnavailable(), 'unavailable'),
        (exception.StaleFencingToken(resource='share', seen=2), 'stale'),
        (OSError(), 'failed'),
    ],
)
def test_every_call_is_counted_with_its_outcome(driver, error, outcome):
    guarded = GuardedDriver(driver, 'fast')
    running = 'fast', 'get_share_status'
    seen = []

    def answer(share):
        seen.append(metrics.DRIVER_CALLS_RUNNING.family().samples[running])
        if error:
            raise error

    driver.get_share_status = answer

    def count():
        found = metrics.DRIVER_CALLS.family().samples.get((*running, outcome))
        return sum(found.counts) if found else 0

    before = count()
    with contextlib.suppress(exception.ManilaLiteError, OSError):
        guarded.get_share_status({})
    assert count() == before + 1
    assert seen == [1]
    assert metrics.DRIVER_CALLS_RUNNING.family().samples[running] == 0


def test_calls_of_a_job_are_recorded_with_their_outcome(guarded, driver, job, db):
    driver.delete_share = fail
    with jobs.running(job):
        guarded.extend_share({}, 2)
        guarded.get_share_status({})
        with pytest.raises(ValueError, match='pool'):
            guarded.delete_share(driver_context(), {})
        with jobs.outside_of_jobs():
            guarded.extend_share({}, 3)
    job.finish()
    found = db.read(
        lambda session: session.rows(sa.select(CALL).order_by(CALL.c.started_at))
    )
    assert [(row.method, row.outcome, row.error) for row in found] == [
        ('extend_share', 'ok', None),
        ('delete_share', 'failed', 'no such pool'),
    ]


def fail(*given):
    raise ValueError('no such pool')
