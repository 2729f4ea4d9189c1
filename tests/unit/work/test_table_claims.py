"""Claims of work: exactly one wins, and its lease protects it."""

import functools

import pytest
import sqlalchemy as sa

from manila_lite import exception
from manila_lite.db.models import snapshots
from manila_lite.db.transitions import insert_row
from manila_lite.states.snapshot_instance import SNAPSHOT_INSTANCE
from manila_lite.work import table
from manila_lite.work.statements import WORK
from tests.support import sampling
from tests.support.concurrent_calls import at_once
from tests.unit.work.builders import claim, row, submit_work, sweep, taken_over

pytestmark = sampling.dialects

SNAPSHOT = snapshots.Snapshot.__table__

THREADS = 8
ROUNDS = 20
"""The first ones are slower, so that claims do not meet."""

SOON = 3600.0


def test_of_concurrent_claims_exactly_one_wins(db):
    for _ in range(ROUNDS):
        work_id = submit_work(db)
        jobs = at_once(
            *[
                functools.partial(claim, db, work_id, f'worker-{n}')
                for n in range(THREADS)
            ]
        )
        (winner,) = filter(None, jobs)
        found = row(db, work_id)
        assert (found.owner, found.fence, found.attempt) == (
            winner.owner,
            winner.fence,
            1,
        )


def test_of_concurrent_takeovers_exactly_one_wins(db):
    work_id = submit_work(db)
    claim(db, work_id, lease=-1.0)
    jobs = at_once(
        *[
            functools.partial(claim, db, work_id, f'worker-{n}', abandoned=True)
            for n in range(THREADS)
        ]
    )
    (winner,) = filter(None, jobs)
    assert (winner.attempt, winner.abandoned) == (2, True)


def test_only_work_in_the_given_queues_is_claimed(db):
    work_id = submit_work(db, queue='green')
    assert claim(db, work_id) is None
    assert claim(db, work_id, queues=('blue', 'green')).queue == 'green'


def test_only_work_that_is_due_is_claimed(db):
    job = claim(db, submit_work(db))
    db.write(table.retry, job, SOON, 'wet')
    assert claim(db, job.id) is None
    assert sweep(db) == []


def test_claim_is_the_row_as_it_has_become(db):
    work_id = submit_work(db, args={'color': 'green'}, one_key='wall')
    job = claim(db, work_id)
    found = row(db, work_id)
    assert (job.fence, job.attempt, job.owner, job.exclusion_key) == (
        found.fence,
        found.attempt,
        found.owner,
        found.running_key,
    )
    assert (found.state, job.args, found.one_key) == (
        'running',
        {'color': 'green'},
        'wall',
    )


def test_claim_names_the_share(db, add_instance):
    add_instance('one', 'created')
    add_instance('two', 'created')

    def add_snapshot(session):
        session.run(
            sa.insert(SNAPSHOT),
            id='snapshot',
            share_id='share-of-two',
            project_id='owner',
            size=1,
            share_size=1,
            share_proto='NFS',
            created_at=session.now,
        )
        insert_row(
            session,
            SNAPSHOT_INSTANCE,
            'create',
            id='snapshot-instance',
            snapshot_id='snapshot',
            share_instance_id='two',
            created_at=session.now,
        )

    db.write(add_snapshot)
    shares = {
        resource_id: claim(db, submit_work(db, resource_id=resource_id)).share_id
        for resource_id in ('one', 'snapshot-instance', 'other')
    }
    assert shares == {
        'one': 'share-of-one',
        'snapshot-instance': 'share-of-two',
        'other': None,
    }


def test_work_that_is_gone_is_not_claimed(db):
    assert claim(db, 'nothing') is None


def test_an_unexpired_lease_protects_work(db):
    work_id = submit_work(db)
    claim(db, work_id)
    assert claim(db, work_id, 'another', abandoned=True) is None
    assert sweep(db) == []


def test_work_with_an_expired_lease_is_abandoned(db):
    work_id = submit_work(db)
    claim(db, work_id, lease=-1.0)
    assert claim(db, work_id, 'another') is None  # not simply queued
    assert sweep(db) == [(work_id, True)]
    assert claim(db, work_id, 'another', abandoned=True)


def test_renewal_keeps_work(db):
    jobs = [claim(db, submit_work(db), lease=-1.0) for _ in range(3)]
    for job in jobs[:2]:
        assert db.write(table.renew, job, 60.0)
    assert sweep(db) == [(jobs[2].id, True)]


def test_a_lost_claim_cannot_be_renewed(db):
    lost, held = taken_over(db)
    before = row(db, held.id).lease_until
    assert not db.write(table.renew, lost, 9999.0)
    assert row(db, held.id).lease_until == before


@pytest.mark.parametrize('database_url', ['mysql', 'postgresql'], indirect=True)
def test_renewal_need_not_wait_for_locked_work(db):
    """The leases of other work would end meanwhile."""
    locked, free, lost = (claim(db, submit_work(db)) for _ in range(3))
    db.write(table.finish, lost)
    with db.engine.begin() as another:
        another.execute(
            sa.select(WORK.c.id).where(WORK.c.id == locked.id).with_for_update()
        )
        with pytest.raises(table.WorkLocked):
            db.write(table.renew, locked, 60.0, wait=False)
        assert db.write(table.renew, free, 60.0, wait=False)
        assert not db.write(table.renew, lost, 60.0, wait=False)
    assert db.write(table.renew, locked, 60.0, wait=False)


@pytest.mark.parametrize('abandoned', [False, True])
def test_work_waits_while_other_work_on_the_same_resource_runs(db, abandoned):
    first, second = (submit_work(db, resource_id='w') for _ in range(2))
    another = submit_work(db, resource_id='x')
    same_id = submit_work(db, resource='ceiling', resource_id='w')
    job = claim(db, first, lease=-1.0 if abandoned else 60.0)
    with pytest.raises(table.ResourceBusy):
        claim(db, second)
    assert (row(db, second).state, row(db, second).attempt) == ('queued', 0)
    found = dict(sweep(db))
    found.pop(first, None)
    assert found == {another: False, same_id: False}
    if abandoned:
        job = claim(db, first, abandoned=True)
    db.write(table.finish, job)
    assert claim(db, second).attempt == 1


def test_simultaneous_claims_on_one_resource_have_one_winner(db):
    for _ in range(20):
        works = [submit_work(db, resource_id='w') for _ in range(2)]

        def try_to_claim(work_id):
            try:
                return claim(db, work_id)
            except table.ResourceBusy:
                return None

        jobs = at_once(*[functools.partial(try_to_claim, work_id) for work_id in works])
        (winner,) = filter(None, jobs)
        db.write(table.finish, winner)
        (loser,) = set(works) - {winner.id}
        db.write(table.finish, claim(db, loser))


def test_resources_may_exclude_each_other(db):
    claim(db, submit_work(db, resource='wall', resource_id='w'))
    door = submit_work(db, resource='door', resource_id='w', exclusion='wall')
    with pytest.raises(table.ResourceBusy):
        claim(db, door)


def test_work_of_the_previous_release_excludes_by_its_resource(db):
    works = [submit_work(db, resource_id='w') for _ in range(2)]
    db.write(
        lambda session: session.run(sa.update(table.WORK).values(exclusion_key=None))
    )
    assert claim(db, works[0])
    assert sweep(db) == []
    with pytest.raises(table.ResourceBusy):
        claim(db, works[1])


def test_later_claims_have_larger_fences_on_any_work(db):
    """Also where work submitted earlier is claimed later."""
    earlier, later = (submit_work(db, resource_id='w') for _ in range(2))
    fences = []
    for work_id in (later, earlier):
        job = claim(db, work_id)
        fences.append(job.fence)
        db.write(table.release, job, 0.0)
    job = claim(db, later)
    assert fences[0] < fences[1] < job.fence


def test_a_claim_that_a_failover_lost_cannot_be_used(db):
    """The new primary gives the same fence to another owner."""
    job = claim(db, submit_work(db), 'first')
    db.write(lambda session: session.run(sa.update(table.WORK).values(owner='second')))
    with pytest.raises(exception.ClaimLost):
        db.write(table.checkpoint, job, 'late')
