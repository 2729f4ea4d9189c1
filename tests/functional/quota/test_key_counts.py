"""The uses of encryption keys are counted by the shares themselves."""

import functools
import random
import uuid

import pytest
import sqlalchemy as sa

from manila_lite import metrics
from manila_lite.db.queries.shares import encryption_keys as key_rows, instances
from manila_lite.quota import charges, encryption_keys, shares as share_quota
from manila_lite.quota.charges import Owner
from tests.functional.quota import quota_rows
from tests.functional.quota.quota_rows import ALICE, DEFAULTS, GOLD, SILVER
from tests.support import invariants, sampling
from tests.support.concurrent_calls import at_once
from tests.support.rows import INSTANCE, delete_share

KEYS = [str(uuid.UUID(int=number)) for number in range(5)]
BOB = Owner('green', 'bob', GOLD)
MANY = {**DEFAULTS, 'shares': 1000, 'encryption_keys': 2}
ROOMY = {**MANY, 'encryption_keys': 99}

pytestmark = pytest.mark.usefixtures('types')


def create(session, owner, key, *, counted=True, status='available'):
    """Create a share; release 1 does not count its key."""
    charges.charge(session, owner, {'shares': 1, 'gigabytes': 1}, limits=MANY)
    if counted:
        encryption_keys.charge_key(session, owner, key, limits=ROOMY)
    share_id = quota_rows.add_share(session, owner, 1, status=status)
    session.run(
        sa.update(INSTANCE).where(INSTANCE.c.share_id == share_id),
        encryption_key_ref=key,
    )
    return share_id


def instance_of(session, share_id):
    return instances.get(
        session,
        session.value(sa.select(INSTANCE.c.id).where(INSTANCE.c.share_id == share_id)),
    )


def delete(session, share_id):
    instance = instance_of(session, share_id)
    delete_share(session, share_id)
    owner = Owner(instance.project_id, instance.user_id, instance.share_type_id)
    charges.credit(session, owner, {'shares': 1, 'gigabytes': 1})
    encryption_keys.release_key(
        session, instance.project_id, instance.encryption_key_ref
    )


def transfer(session, share_id, limits=MANY):
    """Give a share of either project to the other one."""
    instance = instance_of(session, share_id)
    to = BOB if instance.project_id == ALICE.project_id else ALICE
    share_quota.change_owner(
        session,
        instance,
        to._replace(share_type_id=instance.share_type_id),
        reservations=[],
        limits=limits,
    )


def migrate(db, limits=MANY):
    """Run the migration until no key is left; return what it has done."""
    done = 0
    while found := encryption_keys.correct_some_uses(db, limits, 3):
        done += found
    return done


def lost_deadlocks():
    return metrics.DATABASE_DEADLOCKS.family().samples.get((), 0)


def uses(db):
    rows = db.read(lambda session: session.rows(sa.select(key_rows.KEY)))
    return {(row.project_id, row.key_ref): row.uses for row in rows}


def check(db):
    assert db.read(lambda session: list(invariants.key_uses(session))) == []
    assert db.read(key_rows.count_wrong) == 0
    assert quota_rows.differences(db) == []


def used(db, project='blue', **scope):
    return quota_rows.usage(db, 'encryption_keys', project, **scope)[0]


def test_keys_of_uncounted_shares_are_counted_and_charged(db):
    silver = Owner('blue', 'carol', SILVER)
    for owner, key in (
        (ALICE, KEYS[0]),
        (silver, KEYS[0]),
        (silver, KEYS[1]),
        (BOB, KEYS[0]),
    ):
        db.write(create, owner, key, counted=False)
    assert used(db) == 0
    assert db.read(key_rows.count_wrong) == 3
    assert migrate(db) == 3
    assert uses(db) == {
        ('blue', KEYS[0]): 2,
        ('blue', KEYS[1]): 1,
        ('green', KEYS[0]): 1,
    }
    assert (used(db), used(db, 'green')) == (2, 1)
    check(db)
    assert migrate(db) == 0


def test_key_is_charged_to_the_share_that_used_it_first(db):
    first = db.write(create, ALICE, KEYS[0], counted=False)
    db.write(create, Owner('blue', 'carol', SILVER), KEYS[0], counted=False)
    table = invariants.SHARE
    db.write(
        lambda session: session.run(
            sa.update(table)
            .where(table.c.id == first)
            .values(created_at=session.now.replace(year=2020))
        )
    )
    migrate(db)
    assert used(db, user_id='alice') == used(db, share_type_id=GOLD) == 1
    assert used(db, user_id='carol') == used(db, share_type_id=SILVER) == 0


def test_keys_past_the_limit_are_charged_since_they_are_in_use(db):
    for key in KEYS:
        db.write(create, ALICE, key, counted=False)
    migrate(db)
    assert used(db) == len(KEYS) > MANY['encryption_keys']
    check(db)


def test_uncounted_share_that_is_deleted_releases_no_other_use(db):
    old, new, third = (
        db.write(create, ALICE, KEYS[0], counted=counted)
        for counted in (False, True, True)
    )
    migrate(db)
    assert uses(db) == {('blue', KEYS[0]): 3}
    for share_id in (old, new):
        db.write(delete, share_id)
        assert used(db) == 1
    db.write(delete, third)
    assert used(db) == 0
    check(db)


def test_uses_that_no_share_has_are_given_back(db):
    db.write(encryption_keys.charge_key, ALICE, KEYS[0], limits=MANY)
    assert used(db) == 1
    migrate(db)
    assert (uses(db), used(db)) == ({}, 0)
    check(db)


@pytest.mark.parametrize('status', ['deferred_deleting', 'error_deferred_deleting'])
def test_share_whose_quota_was_given_back_is_not_counted(db, status):
    db.write(create, ALICE, KEYS[0], counted=False, status=status)
    assert db.read(key_rows.count_wrong) == 0
    db.write(create, ALICE, KEYS[0], counted=False)
    migrate(db)
    assert uses(db) == {('blue', KEYS[0]): 1}


def test_replicas_of_a_share_use_its_key_once(db):
    share_id = db.write(quota_rows.add_share, ALICE, 1, replicas=3)
    db.write(
        lambda session: session.run(
            sa.update(INSTANCE).where(INSTANCE.c.share_id == share_id),
            encryption_key_ref=KEYS[0],
        )
    )
    migrate(db)
    assert uses(db) == {('blue', KEYS[0]): 1}


def test_only_so_many_keys_as_are_wanted_are_corrected(db):
    for key in KEYS:
        db.write(create, ALICE, key, counted=False)
    assert encryption_keys.correct_some_uses(db, MANY, 2) == 2
    assert db.read(key_rows.count_wrong) == len(KEYS) - 2


@sampling.dialects
@pytest.mark.parametrize('seed', range(6))
def test_creations_deletions_and_transfers_meanwhile_are_counted(db, seed):
    rng = random.Random(seed)

    def owner():
        return rng.choice([ALICE, BOB, Owner('blue', 'carol', SILVER)])

    shares = [
        db.write(create, owner(), rng.choice(KEYS), counted=rng.random() < 0.3)
        for _ in range(12)
    ]
    rng.shuffle(shares)
    # A usage row keeps the limit of the call that has inserted it.
    calls = [functools.partial(migrate, db, ROOMY) for _ in range(2)]
    calls += [functools.partial(db.write, delete, one) for one in shares[:4]]
    calls += [functools.partial(db.write, transfer, one, ROOMY) for one in shares[4:8]]
    calls += [
        functools.partial(db.write, create, owner(), rng.choice(KEYS)) for _ in range(4)
    ]
    deadlocks = lost_deadlocks()
    at_once(*calls, rng=rng)
    check(db)
    assert migrate(db) == 0
    assert lost_deadlocks() == deadlocks, 'they take rows in different orders'
