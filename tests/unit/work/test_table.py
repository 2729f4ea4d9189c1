"""Work is claimed once, protected by its fence, and never lost."""

from concurrent import futures
import functools
import threading

import pytest
import sqlalchemy as sa

from manila_lite import context, exception
from manila_lite.db.session import Hint
from manila_lite.rpc.contract import Contract, durable
from manila_lite.rpc.share import ProvisioningRpc, ReconciliationRpc
from manila_lite.work import table
from tests.support import sampling
from tests.support.concurrent_calls import at_once
from tests.unit.work.builders import claim, row, submit, submit_work, sweep, taken_over

pytestmark = sampling.dialects


THREADS = 8
SOON = 3600.0


@pytest.fixture
def hints(db):
    """The hints that have been sent, in order."""
    sent = []
    db.deliver = sent.extend
    return sent


# Submitting


def test_work_and_its_hint_appear_with_the_commit(db, hints):
    def interrupted(session):
        submit(session)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        db.write(interrupted)
    assert (hints, sweep(db)) == ([], [])
    work_id = submit_work(db)
    assert hints == [Hint('painters', 'blue', work_id)]
    assert sweep(db) == [(work_id, False)]


def test_a_job_carries_what_was_submitted(db):
    work_id = submit_work(
        db,
        args={'colour': 'red'},
        charges=[['p', None, None, {}]],
        context={'request_id': 'req-1', 'project_id': 'p', 'user_id': 'u'},
    )
    job = claim(db, work_id)
    assert (job.id, job.kind, job.args) == (
        work_id,
        'painting.paint',
        {'colour': 'red'},
    )
    assert job.charges == [['p', None, None, {}]]
    assert (job.request_id, job.project_id, job.user_id, job.actor) == (
        'req-1',
        'p',
        'u',
        'me',
    )
    assert (job.attempt, job.abandoned) == (1, False)


def test_work_of_a_contract_owns_the_reservations_made_before(db):
    durable = ProvisioningRpc.methods['extend_share_instance']
    ctx = context.RequestContext(project_id='p', request_id='req-1')

    def ask(session):
        session.charges.append(['p', None, None, {'gigabytes': 1}])
        first = table.submit_durable(
            session, ctx, durable, 'blue', {'instance_id': 'i', 'new_size': 2}
        )
        second = table.submit_durable(
            session, ctx, durable, 'blue', {'instance_id': 'j', 'new_size': 2}
        )
        return first, second

    first, second = db.write(ask)
    job = claim(db, first)
    assert job.charges == [['p', None, None, {'gigabytes': 1}]]
    assert (job.resource, job.resource_id) == ('share_instance', 'i')
    assert (job.kind, job.topic) == (durable.kind, durable.topic)
    assert claim(db, second).charges == []


def test_arguments_with_their_defaults_are_not_stored(db):
    """A process of the previous release may not know them."""
    work_id = db.write(
        table.submit_durable,
        context.RequestContext(project_id='p'),
        ProvisioningRpc.methods['delete_share_instance'],
        'blue',
        {'instance_id': 'i', 'force': False},
    )
    assert claim(db, work_id).args == {'instance_id': 'i'}


def test_work_of_a_contract_is_coalesced_as_declared(db):
    durable = ReconciliationRpc.methods['rescue_share_instance']
    ctx = context.RequestContext(project_id='p')
    ids = {
        db.write(
            table.submit_durable, ctx, durable, 'blue', {'share_instance_id': instance}
        )
        for instance in ('i', 'i', 'j')
    }
    assert len(ids) == 2


# The fence


class GildingRpc(Contract):
    topic, version = 'gilders', '1.0'

    @durable(repeatable=True)
    def gild(self, ctx, leaves, thin=False): ...


def renew(session, job):
    if not table.renew(session, job, 60.0):
        raise exception.ClaimLost(id=job.id)


WRITES = {
    'renew': renew,
    'raise_fence': lambda session, job: table.raise_fence(session, job, job.fence + 1),
    'abandon': lambda session, job: table.abandon(session, job, 0.0, 'wet'),
    'release_waiting': lambda session, job: table.release_waiting(
        session, job, 0.0, 'wet'
    ),
    'checkpoint': lambda session, job: table.checkpoint(session, job, 'half'),
    'finish': table.finish,
    'continue_with': lambda session, job: table.continue_with(session, job, {'n': 1}),
    'release': lambda session, job: table.release(session, job, 0.0),
    'retry': lambda session, job: table.retry(session, job, 0.0, 'wet'),
    'hand_over': lambda session, job: table.hand_over(
        session, job, GildingRpc.methods['gild'], 'q', {'leaves': 1}
    ),
}


@pytest.mark.parametrize('by', ['another', 'me'])
@pytest.mark.parametrize('name', WRITES)
def test_a_lost_claim_writes_nothing(db, hints, name, by):
    """Also if its process has claimed its overdue work again."""
    lost, held = taken_over(db, by)
    before = row(db, held.id)
    hints.clear()
    with pytest.raises(exception.ClaimLost):
        db.write(WRITES[name], lost)
    assert row(db, held.id) == before
    assert hints == []
    db.write(table.finish, held)
    with pytest.raises(exception.ClaimLost):
        db.write(WRITES[name], lost)
    assert row(db, held.id) is None


@pytest.mark.parametrize('name', ['release', 'retry', 'hand_over', 'continue_with'])
def test_a_released_claim_writes_nothing(db, name):
    job = claim(db, submit_work(db))
    db.write(WRITES[name], job)
    with pytest.raises(exception.ClaimLost):
        db.write(table.finish, job)


def test_the_end_and_its_results_are_one_transaction(db, add_instance, status_of):
    add_instance('i')
    job = claim(db, submit_work(db))

    def half(session):
        table.finish(session, job)
        session.run(sa.text("UPDATE share_instances SET status = 'error'"))
        raise exception.InvalidStatus(
            resource='x', id='i', status='y', event='z', allowed=''
        )

    with pytest.raises(exception.InvalidStatus):
        db.write(half)
    assert status_of('i') == 'creating'
    assert row(db, job.id).state == 'running'


# Coalesced work


def test_many_requests_of_one_key_are_one_row(db):
    ids = at_once(
        *[
            functools.partial(submit_work, db, one_key='wall-1', resource_id='w')
            for _ in range(THREADS)
        ]
    )
    assert len(set(ids)) == 1
    assert row(db, ids[0]).asked == THREADS
    assert len(sweep(db)) == 1


def test_a_request_during_a_run_causes_another_run(db, hints):
    work_id = submit_work(db, one_key='wall-1', args={'n': 1})
    job = claim(db, work_id)
    hints.clear()
    assert submit_work(db, one_key='wall-1', args={'n': 2}) == work_id
    assert hints == []  # the worker that runs it sees the request
    db.write(table.finish, job)
    again = claim(db, work_id)
    assert (again.attempt, again.args) == (1, {'n': 2})
    db.write(table.finish, again)
    assert row(db, work_id) is None


def test_the_next_run_waits_for_the_pause(db):
    job = claim(db, submit_work(db, one_key='wall-1'))
    submit_work(db, one_key='wall-1')
    db.write(table.finish, job, pause=SOON)
    assert claim(db, job.id) is None


def test_a_request_after_the_end_is_a_new_row(db):
    job = claim(db, submit_work(db, one_key='wall-1'))
    db.write(table.finish, job)
    assert submit_work(db, one_key='wall-1') != job.id


def test_concurrent_requests_and_ends_lose_no_request(db):
    """A request made after a claim is seen by a later claim."""
    seen, asked = [], iter(range(1000))

    def ask():
        for _ in range(12):
            submit_work(db, one_key='wall-1', args={'n': next(asked)})

    def work(done):
        while True:
            last = done.is_set()
            for work_id, _ in sweep(db):
                job = claim(db, work_id)
                if job:
                    seen.append(job.args['n'])
                    db.write(table.finish, job)
            if last and not sweep(db):
                return

    done = threading.Event()
    with futures.ThreadPoolExecutor(5) as pool:
        workers = [pool.submit(work, done) for _ in range(2)]
        for asking in [pool.submit(ask) for _ in range(3)]:
            asking.result()
        final = submit_work(db, one_key='wall-1', args={'n': 'final'})
        done.set()
        for worker in workers:
            worker.result()
    assert seen[-1] == 'final'
    assert row(db, final) is None


# Continuing, handing over, releasing


def test_work_continues_with_other_arguments(db, hints):
    job = claim(db, submit_work(db, args={'after': ''}))
    hints.clear()
    db.write(table.continue_with, job, {'after': 'm'})
    assert hints == [Hint('painters', 'blue', job.id)]
    again = claim(db, job.id)
    assert (again.args, again.attempt) == ({'after': 'm'}, 1)
    assert again.fence > job.fence


def test_a_request_during_a_run_starts_continued_work_over(db):
    job = claim(db, submit_work(db, one_key='k', args={'after': ''}))
    submit_work(db, one_key='k', args={'after': 'start'})
    db.write(table.continue_with, job, {'after': 'm'})
    assert claim(db, job.id).args == {'after': 'start'}


def test_handed_over_work_keeps_its_id_and_drops_the_fence(db, hints):
    job = claim(db, submit_work(db, charges=[['p', None, None, {}]]))
    hints.clear()
    db.write(
        table.hand_over,
        job,
        GildingRpc.methods['gild'],
        'gold',
        {'leaves': 3, 'thin': False},
    )
    assert hints == [Hint('gilders', 'gold', job.id)]
    with pytest.raises(exception.ClaimLost):
        db.write(table.checkpoint, job, 'late')
    given = claim(db, job.id, queues=('gold',))
    assert (given.kind, given.topic, given.args, given.charges) == (
        'gilding.gild',
        'gilders',
        {'leaves': 3},
        [['p', None, None, {}]],
    )
    assert (given.attempt, given.abandoned) == (1, False)
    assert given.fence > job.fence


def test_retried_work_keeps_attempts_and_error(db):
    job = claim(db, submit_work(db))
    db.write(table.retry, job, 0.0, 'x' * 5000)
    assert row(db, job.id).error == 'x' * 1000
    assert claim(db, job.id).attempt == 2


@pytest.mark.parametrize('name', ['release', 'retry'])
def test_released_abandoned_work_stays_abandoned(db, name):
    """Otherwise the next claim would run again what has to be rescued."""
    _, held = taken_over(db)
    db.write(getattr(table, name), held, SOON, *['wet'] if name == 'retry' else [])
    assert claim(db, held.id) is None
    assert claim(db, held.id, abandoned=True) is None
    db.write(table.expire_leases, ['blue'])
    assert sweep(db) == [(held.id, True)]
    assert claim(db, held.id, abandoned=True).abandoned


# Queries


def test_a_sweep_finds_the_oldest_of_known_kinds_first(db):
    ids = [submit_work(db) for _ in range(4)]
    submit_work(db, kind='gilding.gild')
    submit_work(db, queue='green')
    claim(db, ids[1], lease=-1.0)
    claim(db, ids[2])
    assert sweep(db) == [(ids[0], False), (ids[1], True), (ids[3], False)]
    assert sweep(db, batch=2) == [(ids[0], False), (ids[1], True)]


def test_leases_of_one_owner_can_be_expired(db):
    dead, living = submit_work(db), submit_work(db)
    claim(db, dead, 'dead')
    claim(db, living, 'living')
    assert db.write(table.expire_leases, ['blue'], 'dead') == 1
    assert sweep(db) == [(dead, True)]


def test_only_leases_of_the_given_queues_are_expired(db):
    mine, others = submit_work(db), submit_work(db, queue='green')
    claim(db, mine)
    claim(db, others, queues=('green',))
    submit_work(db)
    assert db.write(table.expire_leases, ['blue', 'red']) == 1
    assert claim(db, mine, 'another', abandoned=True)
    assert claim(db, others, queues=('green',), abandoned=True) is None


def test_listed_work_has_the_rest_of_its_lease(db):
    ids = [submit_work(db) for _ in range(2)]
    claim(db, ids[0], 'someone', lease=100.0)
    held, waiting = db.read(table.list_work)
    assert [held.id, waiting.id] == ids
    assert (held.state, held.owner) == ('running', 'someone')
    assert 50 < held.lease_left <= 100
    assert waiting.lease_left is None


def test_work_of_a_queue_is_counted_per_kind_and_state(db):
    first, *_ = (submit_work(db) for _ in range(3))
    submit_work(db, queue='red')
    claim(db, first)
    found = db.read(table.count_by_kind, 'blue')
    assert [tuple(one) for one in found] == [
        ('painting.paint', 'queued', 2),
        ('painting.paint', 'running', 1),
    ]


def test_other_work_is_found_by_resource(db):
    job = claim(db, submit_work(db, resource_id='w'))
    submit_work(db, resource='ceiling', resource_id='w')
    assert not db.read(table.has_other_work, job)
    submit_work(db, resource_id='w')
    assert db.read(table.has_other_work, job)
