"""Claims that are lost, and leases that are renewed."""

import pytest

from manila_lite.db.transitions import fire
from manila_lite.rpc import contract
from manila_lite.states.share_instance import SHARE_INSTANCE
from manila_lite.work import table
from manila_lite.work.runner import Runner
from tests.unit.work.builders import claim, row, submit_work, sweep
from tests.unit.work.runner.painting import run_all

pytestmark = pytest.mark.parametrize('database_url', ['sqlite'], indirect=True)


# Lost claims


def test_a_worker_that_lost_its_claim_changes_nothing(
    runner, ask, painter, db, status_of, messages
):
    """The worker slept too long; another rescued the instance."""

    def oversleep(job):
        db.write(table.expire_leases, ['blue'])
        another = Runner(
            db,
            queues=['blue'],
            owner='another',
            rescue=painter.rescue,
            handlers=contract.endpoint_handlers(painter),
        )
        run_all(another)
        db.write(fire, SHARE_INSTANCE, 'i', 'extend')

    painter.does['widen'] = oversleep
    ask()
    run_all(runner)
    assert painter.calls == ['prepare', 'widen', 'rescue']
    assert status_of('i') == 'extending'
    assert messages() == []


def test_a_lost_job_does_not_discard_its_successor(runner, ask, painter, db, clock):
    """The runner claimed it again: two jobs run, one holds the fence."""
    rescued = []

    def oversleep(job):
        job.progress_at -= 7200
        db.write(table.expire_leases, ['blue'])
        run_all(runner)

    def rescue(job):
        rescued.append(job.id)
        before = row(db, job.id).lease_until
        clock.now += 5
        runner.renew()
        assert row(db, job.id).lease_until > before

    painter.does = {'widen': oversleep, 'rescue': rescue}
    ask()
    run_all(runner)
    assert len(rescued) == 1


def test_a_runner_does_not_take_over_its_own_running_work(
    runner, ask, painter, db, clock, status_of
):
    """The database was down for longer than a lease."""

    def widen(job):
        db.write(table.expire_leases, ['blue'])
        run_all(runner)
        assert row(db, job.id).lease_until > clock.now

    painter.does['widen'] = widen
    ask()
    run_all(runner)
    assert painter.calls == ['prepare', 'widen']
    assert status_of('i') == 'available'


# Leases


def lease_after_renewal(runner, db, job):
    runner.renew()
    return row(db, job.id).lease_until


def test_running_work_is_renewed_while_it_makes_progress(
    runner, ask, painter, db, clock
):
    leases = []

    def widen(job):
        for prepare in (
            lambda: None,
            lambda: setattr(job, 'progress_at', job.progress_at - 7200),
            lambda: job.checkpoint('half'),
        ):
            clock.now += 5
            prepare()
            leases.append(lease_after_renewal(runner, db, job.claim))

    painter.does['widen'] = widen
    ask()
    run_all(runner)
    first, still, moved = leases
    assert first == still < moved


TAKEN_OVER = 'was taken over while it ran'


def test_work_that_ends_while_it_is_renewed_is_not_reported(runner, ask, db, caplog):
    renewals = []

    def renew_after_the_end(name):
        if name == 'committed' and not renewals and not owed():
            renewals.append(name)
            runner.renew()

    def owed():
        return db.read(table.list_work)

    ask()
    db.on_step = renew_after_the_end
    run_all(runner)
    assert len(renewals) == 1
    assert TAKEN_OVER not in caplog.text


def test_work_that_was_taken_over_and_still_runs_is_reported(
    runner, ask, painter, db, caplog
):
    reported = []

    def oversleep(job):
        db.write(table.expire_leases, ['blue'])
        assert claim(db, job.id, 'another', abandoned=True)
        for _ in range(2):
            runner.renew()
            reported.append(caplog.text.count(TAKEN_OVER))

    painter.does['widen'] = oversleep
    ask()
    run_all(runner)
    assert reported == [0, 1]


def test_without_running_work_nothing_is_renewed(runner, db):
    statements = []
    db.on_step = statements.append
    runner.renew()
    assert statements == []


# Busy resources


def test_work_on_a_busy_resource_is_tried_again_once(runner, db):
    """It may have become free meanwhile; later the sweep finds the work."""
    first, second = (submit_work(db, resource_id='w') for _ in range(2))
    held = claim(db, first, 'another')
    steps = [runner.step() for _ in range(4)]
    assert steps == [True, True, True, False]  # the first hint, and two tries
    db.write(table.finish, held)
    assert sweep(db, kinds=('painting.paint',)) == [(second, False)]
