"""One piece of work: success, and every kind of failure."""

import random

from oslo_db import exception as db_exc
import pytest
import sqlalchemy as sa

from manila_lite import exception
from manila_lite.context import RequestContext
from manila_lite.db.models import services
from manila_lite.db.transitions import fire
from manila_lite.messages import Action
from manila_lite.messages import Detail
from manila_lite.quota import charges
from manila_lite.quota.charges import Owner
from manila_lite.rpc import contract
from manila_lite.rpc.contract import durable
from manila_lite.rpc.contract import implements
from manila_lite.states.share_instance import SHARE_INSTANCE
from manila_lite.work import table
from manila_lite.work.runner import Runner
from manila_lite.work.runner import Settings
from tests.unit.work.builders import row
from tests.unit.work.builders import submit_work
from tests.unit.work.builders import sweep

MESSAGE = services.Message.__table__
CTX = RequestContext(project_id='asking', request_id='req-1')
OWNER = Owner('owner')

pytestmark = pytest.mark.parametrize('database_url', ['sqlite'], indirect=True)


class PaintingRpc(contract.Contract):
    topic, version = 'painters', '1.0'

    @durable(
        failure=(SHARE_INSTANCE, 'extend_failed'),
        action=Action.EXTEND,
        detail=Detail.DRIVER_FAILED_EXTEND,
        refused={
            exception.ShareShrinkingPossibleDataLoss: (
                'extend_refused',
                Detail.DRIVER_REFUSED_SHRINK,
            )
        },
    )
    def widen(self, ctx, instance_id): ...

    @durable(
        failure=(SHARE_INSTANCE, 'delete_failed'),
        action=Action.DELETE,
        repeatable=True,
    )
    def remove(self, ctx, instance_id): ...


@implements(PaintingRpc)
class Painter:
    """Runs the functions in `does` and records its calls."""

    def __init__(self):
        self.calls = []
        self.does = {}

    def called(self, name, *args):
        self.calls.append(name)
        do = self.does.get(name)
        return do and do(*args)

    def prepare_widen(self, session, job):
        return self.called('prepare', session, job)

    def widen(self, job, instance_id):
        self.called('widen', job)
        job.finish(fire, SHARE_INSTANCE, instance_id, 'extended')

    def dropped_widen(self, session, job):
        self.called('dropped', session, job)

    def failed_widen(self, session, job, error):
        return self.called('failed', session, job, error)

    def remove(self, job, instance_id):
        self.called('remove', job)
        job.finish(fire, SHARE_INSTANCE, instance_id, 'deleted')

    def rescue(self, job):
        self.called('rescue', job)
        job.finish(fire, SHARE_INSTANCE, job.resource_id, 'extend_refused')


class Steady(random.Random):
    def uniform(self, low, high):
        return (low + high) / 2


class Clock:
    def __init__(self):
        self.now = 1_800_000_000.0

    def __call__(self):
        self.now += 0.001  # so that later events have later times
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def db(new_database, clock):
    return new_database(clock=clock)


@pytest.fixture
def painter():
    return Painter()


@pytest.fixture
def new_runner(db, painter):
    def make(**settings):
        made = Runner(
            db,
            queues=['blue'],
            handlers=contract.endpoint_handlers(painter),
            owner='me',
            rescue=painter.rescue,
            rng=Steady(),
            settings=Settings(**{'retry_delay': 1.0, **settings}),
        )
        db.deliver = lambda hints: [made.wake(hint.work_id) for hint in hints]
        return made

    return make


@pytest.fixture
def runner(new_runner):
    return new_runner()


@pytest.fixture
def ask(db, add_instance):
    """`ask(method, event)`: submit work together with a transition."""

    def submit(session, method, instance_id, event):
        fire(session, SHARE_INSTANCE, instance_id, event)
        charges.charge(
            session,
            OWNER,
            {'gigabytes': 3},
            limits={'gigabytes': -1},
            reserve=True,
        )
        return table.submit_durable(
            session,
            CTX,
            PaintingRpc.methods[method],
            'blue',
            {'instance_id': instance_id},
        )

    def ask(method='widen', event='extend', instance_id='i'):
        add_instance(instance_id, 'created')
        return db.write(submit, method, instance_id, event)

    return ask


@pytest.fixture
def messages(db):
    """`messages()`: the user messages that were written."""
    return lambda: db.read(
        lambda session: [
            tuple(one)
            for one in session.rows(
                sa.select(
                    MESSAGE.c.project_id,
                    MESSAGE.c.action_id,
                    MESSAGE.c.detail_id,
                    MESSAGE.c.resource_id,
                    MESSAGE.c.request_id,
                )
            )
        ]
    )


def reserved(db):
    return db.read(
        lambda session: session.value(
            sa.text(
                'SELECT reserved FROM quota_usages '
                "WHERE resource = 'gigabytes'"
            )
        )
    )


def raising(error):
    def do(*args):
        raise error

    return do


def run_all(runner):
    while runner.step():
        pass


def abandon(db, work_id):
    """Claim the work for a dead owner, with an expired lease."""
    assert db.write(table.claim, work_id, ['blue'], 'dead', -1.0)


FAILED = (
    'asking',
    Action.EXTEND.value,
    Detail.DRIVER_FAILED_EXTEND.value,
    'share-of-i',
    'req-1',
)


# How work reaches the runner


def test_hinted_work_is_run(runner, ask, painter, status_of):
    ask()
    assert runner.step()
    assert painter.calls == ['prepare', 'widen']
    assert status_of('i') == 'available'
    assert not runner.step()


def test_a_hint_that_comes_twice_runs_work_once(runner, ask, painter):
    work_id = ask()
    runner.wake(work_id)
    run_all(runner)
    runner.wake(work_id)
    run_all(runner)
    assert painter.calls == ['prepare', 'widen']


def test_work_without_a_hint_is_found(runner, ask, painter, db):
    db.deliver = lambda hints: None
    ask()
    assert runner.step()
    assert painter.calls == ['prepare', 'widen']


def test_work_of_an_unknown_kind_stays_queued(runner, db):
    work_id = submit_work(db, kind='gilding.gild')
    runner.wake(work_id)
    assert runner.step()
    assert not runner.step()
    found = row(db, work_id)
    assert (found.state, found.attempt, found.fence) == ('queued', 0, 0)


# Success


def test_the_handler_gets_what_was_prepared(runner, ask, painter):
    seen = []
    painter.does = {
        'prepare': lambda session, job: f'for {job.id}',
        'widen': lambda job: seen.append(job.prepared),
    }
    work_id = ask()
    run_all(runner)
    assert seen == [f'for {work_id}']


def test_the_journal_names_the_owner_and_the_request(runner, ask, db):
    ask()
    run_all(runner)
    made = db.read(
        lambda session: session.one(
            sa.text(
                'SELECT made_by, request_id FROM transitions '
                "WHERE event = 'extended'"
            )
        )
    )
    assert tuple(made) == ('me', 'req-1')


# Failure


def test_an_error_fires_the_failure_and_releases_quota(
    runner, ask, painter, db, status_of, messages
):
    painter.does['widen'] = raising(RuntimeError('out of paint'))
    work_id = ask()
    run_all(runner)
    assert painter.calls == ['prepare', 'widen', 'dropped', 'failed']
    assert status_of('i') == 'extending_error'
    assert messages() == [FAILED]
    assert reserved(db) == 0
    assert row(db, work_id) is None


def test_some_errors_fire_their_own_event(
    runner, ask, painter, status_of, messages
):
    painter.does['widen'] = raising(
        exception.ShareShrinkingPossibleDataLoss(share_id='i')
    )
    ask()
    run_all(runner)
    assert status_of('i') == 'available'
    assert messages()[0][2] == Detail.DRIVER_REFUSED_SHRINK.value


def test_the_detail_of_an_error_replaces_the_declared_one(
    runner, ask, painter, messages
):
    painter.does['widen'] = raising(
        exception.NoValidHost(
            reason='full', message_detail=Detail.FILTER_CAPACITY
        )
    )
    ask()
    run_all(runner)
    assert messages()[0][2] == Detail.FILTER_CAPACITY.value


def test_a_failed_hook_may_replace_the_declared_failure(
    runner, ask, painter, db, status_of, messages
):
    painter.does['widen'] = raising(RuntimeError('out of paint'))
    painter.does['failed'] = lambda session, job, error: (
        not fire(session, SHARE_INSTANCE, 'i', 'extended')
    )
    ask()
    run_all(runner)
    assert status_of('i') == 'available'
    assert messages() == []
    assert (reserved(db), sweep(db)) == (0, [])


def test_a_hook_that_fails_does_not_hide_the_failure(
    runner, ask, painter, db, status_of, messages
):
    painter.does['widen'] = raising(RuntimeError('out of paint'))
    painter.does['failed'] = raising(TypeError('and of words'))
    work_id = ask()
    run_all(runner)
    assert status_of('i') == 'extending_error'
    assert messages() == [FAILED]
    assert (reserved(db), row(db, work_id)) == (0, None)


def test_a_handler_that_does_not_end_its_job_fails(
    runner, ask, painter, status_of
):
    painter.widen = lambda job, instance_id: None
    runner.handlers = contract.endpoint_handlers(painter)
    ask()
    run_all(runner)
    assert status_of('i') == 'extending_error'


def test_no_message_when_the_status_has_changed_meanwhile(
    runner, ask, painter, db, status_of, messages
):
    def reset_and_fail(job):
        db.write(fire, SHARE_INSTANCE, 'i', 'reset_error')
        raise RuntimeError('out of paint')

    painter.does['widen'] = reset_and_fail
    work_id = ask()
    run_all(runner)
    assert status_of('i') == 'error'
    assert messages() == []
    assert (reserved(db), row(db, work_id)) == (0, None)


def test_an_error_in_prepare_fails_the_work(
    runner, ask, painter, status_of, messages
):
    painter.does['prepare'] = raising(KeyError('canvas'))
    ask()
    run_all(runner)
    assert painter.calls == ['prepare', 'dropped', 'failed']
    assert status_of('i') == 'extending_error'
    assert messages() == [FAILED]


def test_work_without_a_project_ends_too(
    runner, ask, painter, monkeypatch, messages
):
    monkeypatch.setattr(CTX, 'project_id', None)
    painter.does['widen'] = raising(RuntimeError('out of paint'))
    ask()
    run_all(runner)
    assert messages() == [('owner', *FAILED[1:])]


# Stale work


def stale(session, *args):
    raise exception.InvalidStatus(
        resource='share instance',
        id='i',
        status='error',
        event='x',
        allowed='y',
    )


@pytest.mark.parametrize(
    'where, calls',
    [
        ('prepare', ['prepare', 'dropped']),
        ('widen', ['prepare', 'widen', 'dropped']),
    ],
)
def test_stale_work_is_dropped(
    runner, ask, painter, db, status_of, messages, where, calls
):
    painter.does[where] = stale
    work_id = ask()
    run_all(runner)
    assert painter.calls == calls
    assert status_of('i') == 'extending'  # not its business any more
    assert messages() == []
    assert (reserved(db), row(db, work_id)) == (0, None)


def test_results_for_another_status_are_not_written(
    runner, ask, painter, db, status_of
):
    painter.does['widen'] = lambda job: db.write(
        fire, SHARE_INSTANCE, 'i', 'force_delete'
    )
    work_id = ask()
    run_all(runner)
    assert status_of('i') == 'deleting'
    assert painter.calls[-1] == 'dropped'
    assert (reserved(db), row(db, work_id)) == (0, None)


# Transient errors

AWAY = exception.ServiceUnavailable()


def delays_until_the_end(runner, db, clock, work_id):
    """Run until the work is gone; return the delays between attempts."""
    delays = []
    while True:
        run_all(runner)
        found = row(db, work_id)
        if found is None:
            return delays
        assert found.state == 'queued'
        delays.append(round(found.next_try_at - clock.now, 1))
        clock.now = found.next_try_at


@pytest.mark.parametrize('where', ['prepare', 'widen'])
def test_transient_errors_are_retried_with_growing_delays(
    runner, ask, painter, db, clock, status_of, messages, where
):
    painter.does[where] = raising(AWAY)
    work_id = ask()
    assert delays_until_the_end(runner, db, clock, work_id) == [1, 2, 4, 8]
    assert painter.calls.count(where) == 5
    assert painter.calls.count('failed') == 1
    assert status_of('i') == 'extending_error'
    assert messages() == [FAILED]
    assert reserved(db) == 0


@pytest.mark.parametrize(
    'error', [AWAY, db_exc.DBConnectionError(), db_exc.DBDeadlock()]
)
def test_the_work_succeeds_after_a_transient_error(
    runner, ask, painter, db, clock, status_of, messages, error
):
    errors = iter([error])

    def fail_once(job):
        for one in errors:
            raise one

    painter.does['widen'] = fail_once
    work_id = ask()
    run_all(runner)
    assert status_of('i') == 'extending'
    assert reserved(db) == 3
    assert delays_until_the_end(runner, db, clock, work_id) == [1]
    assert status_of('i') == 'available'
    assert messages() == []


def test_a_lost_database_connection_costs_no_attempt(runner, ask, painter, db):
    """The error is not caused by the work; the sweep retries."""
    painter.does['prepare'] = raising(db_exc.DBConnectionError())
    work_id = ask()
    with pytest.raises(db_exc.DBConnectionError):
        runner.step()
    found = row(db, work_id)
    assert (found.state, found.attempt) == ('queued', 0)
    painter.does.clear()
    assert runner.step()
    assert row(db, work_id) is None


# Abandoned work


def test_abandoned_work_is_rescued(runner, ask, painter, db, status_of):
    abandon(db, ask())
    run_all(runner)
    assert painter.calls == ['rescue']
    assert status_of('i') == 'available'


def test_abandoned_work_that_is_repeatable_runs_again(
    runner, ask, painter, db, status_of
):
    abandon(db, ask('remove', 'delete'))
    run_all(runner)
    assert painter.calls == ['remove']
    assert status_of('i') is None


def test_without_a_rescue_abandoned_work_runs_again(runner, ask, painter, db):
    runner.rescue = None
    abandon(db, ask())
    run_all(runner)
    assert painter.calls == ['prepare', 'widen']


def test_a_rescue_that_fails_fires_the_failure(
    runner, ask, painter, db, status_of, messages
):
    painter.does['rescue'] = raising(RuntimeError('no answer'))
    abandon(db, ask())
    run_all(runner)
    assert status_of('i') == 'extending_error'
    assert messages() == [FAILED]
    assert reserved(db) == 0


def test_a_retried_rescue_is_still_a_rescue(runner, ask, painter, db, clock):
    errors = iter([AWAY])

    def fail_once(job):
        for one in errors:
            raise one

    painter.does['rescue'] = fail_once
    work_id = ask()
    abandon(db, work_id)
    run_all(runner)
    assert row(db, work_id).error
    clock.now += 10
    run_all(runner)
    assert painter.calls == ['rescue', 'rescue']
    assert row(db, work_id) is None


def test_released_abandoned_work_stays_abandoned(
    runner, ask, painter, db, clock
):
    turns = iter([lambda job: job.release(5.0)])
    runner.rescue = lambda job: next(turns, painter.rescue)(job)
    work_id = ask()
    abandon(db, work_id)
    run_all(runner)
    assert row(db, work_id) is not None
    assert painter.calls == []
    clock.now += 6
    run_all(runner)
    assert painter.calls == ['rescue']
    assert row(db, work_id) is None


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


def test_a_lost_job_does_not_discard_its_successor(
    runner, ask, painter, db, clock
):
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


def test_without_running_work_nothing_is_renewed(runner, db):
    statements = []
    db.on_step = statements.append
    runner.renew()
    assert statements == []
