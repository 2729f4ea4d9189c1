"""How charges change usage, and when they are refused."""

import logging

import pytest
import sqlalchemy as sa

from manila_lite import exception
from manila_lite.db.queries.quotas.quotas import USAGE
from manila_lite.quota import charges, sets
from manila_lite.quota.charges import Owner
from tests.functional.quota import quota_rows
from tests.functional.quota.quota_rows import ALICE, DEFAULTS, GOLD
from tests.support import sampling
from tests.support.rows import delete_share

pytestmark = [sampling.dialects, pytest.mark.usefixtures('types')]


def charge(db, deltas, owner=ALICE, **kwargs):
    db.write(charges.charge, owner, deltas, limits=DEFAULTS, **kwargs)


def limit(db, values, **scope):
    db.write(sets.change, DEFAULTS, sets.scope_of('blue', **scope), values)


def test_first_charge_creates_rows_of_all_scopes(db):
    limit(db, {'shares': 3}, user_id='alice')
    charge(db, {'shares': 1})
    for scope, expected in (
        ({}, 5),
        ({'user_id': 'alice'}, 3),
        ({'share_type_id': GOLD}, -1),
    ):
        assert quota_rows.usage(db, 'shares', **scope) == (1, 0)
        assert quota_rows.effective_limit(db, 'shares', **scope) == expected


@pytest.mark.parametrize(
    'owner, rows',
    [
        (ALICE, 3),
        (Owner('blue', 'alice'), 2),
        (Owner('blue', None, GOLD), 2),
        (Owner('blue'), 1),
    ],
)
def test_owner_without_user_or_type_is_charged_in_fewer_scopes(db, owner, rows):
    charge(db, {'shares': 1}, owner)
    assert (
        db.read(
            lambda session: session.rows(
                sa.select(USAGE.c.in_use).where(USAGE.c.project_id == 'blue')
            )
        )
        == [(1,)] * rows
    )


def test_charge_on_existing_rows_takes_one_statement(db):
    charge(db, {'shares': 1, 'gigabytes': 1})
    seen = []
    db.on_step = seen.append
    charge(db, {'shares': 1, 'gigabytes': 1}, size=1)
    del seen[:]
    charge(db, {'shares': 1, 'gigabytes': 1}, size=1)
    assert seen.count('statement') == 1


@pytest.mark.parametrize(
    'resource, error, message',
    [
        (
            'shares',
            exception.ShareLimitExceeded,
            'Maximum number of shares allowed (5) exceeded: 4 are in use',
        ),
        (
            'gigabytes',
            exception.ShareSizeExceedsAvailableQuota,
            'exceeds allowed gigabytes quota: 97 GiB asked, 4 GiB of 100 GiB',
        ),
        ('share_replicas', exception.ShareReplicasLimitExceeded, '(5)'),
        (
            'replica_gigabytes',
            exception.ShareReplicaSizeExceedsAvailableQuota,
            '97 GiB asked',
        ),
        (
            'encryption_keys',
            exception.EncryptionKeysLimitExceeded,
            'Maximum number of encryption keys allowed (3) exceeded',
        ),
    ],
)
def test_exceeded_limit_is_named_and_nothing_changes(db, resource, error, message):
    most = DEFAULTS[resource]
    used = min(4, most)
    charge(db, {resource: used, 'snapshots': 1})
    with pytest.raises(error) as refused:
        charge(db, {resource: most - used + 1, 'snapshots': 1})
    assert message in str(refused.value)
    assert refused.value.params['resource'] == resource
    assert refused.value.params['asked'] == most - used + 1
    assert quota_rows.usage(db, resource) == (used, 0)
    assert quota_rows.usage(db, 'snapshots') == (1, 0)


@pytest.mark.parametrize(
    'scope, word',
    [({'user_id': 'alice'}, 'user '), ({'share_type_id': GOLD}, 'share type ')],
)
def test_limit_of_user_or_type_applies_below_the_project(db, scope, word):
    limit(db, {'gigabytes': 10}, **scope)
    charge(db, {'gigabytes': 10})
    with pytest.raises(exception.ShareSizeExceedsAvailableQuota) as refused:
        charge(db, {'gigabytes': 1})
    assert f'allowed {word}gigabytes' in str(refused.value)
    charge(db, {'gigabytes': 1}, Owner('blue', 'bob', quota_rows.SILVER))
    assert quota_rows.usage(db, 'gigabytes') == (11, 0)


def test_reservations_count_towards_the_limit(db):
    charge(db, {'shares': 3}, reserve=True)
    charge(db, {'shares': 2})
    with pytest.raises(exception.ShareLimitExceeded):
        charge(db, {'shares': 1})


def test_unlimited_allows_any_amount(db):
    limit(db, {'gigabytes': -1})
    charge(db, {'gigabytes': 10**12})
    charge(db, {'gigabytes': 10**12})
    assert quota_rows.usage(db, 'gigabytes') == (2 * 10**12, 0)


def test_negative_delta_is_never_refused(db):
    charge(db, {'gigabytes': 50})
    db.write(
        sets.change, DEFAULTS, sets.scope_of('blue'), {'gigabytes': 10}, force=True
    )
    charge(db, {'gigabytes': -5, 'shares': 1})
    assert quota_rows.usage(db, 'gigabytes') == (45, 0)
    assert quota_rows.usage(db, 'shares') == (1, 0)


def test_zero_delta_runs_no_statement(db):
    seen = []
    db.on_step = seen.append
    charge(db, {'gigabytes': 0})
    assert 'statement' not in seen


def test_size_of_a_single_share_is_checked_and_not_counted(db):
    limit(db, {'per_share_gigabytes': 10})
    charge(db, {'gigabytes': 10}, size=10)
    with pytest.raises(exception.ShareSizeExceedsLimit) as refused:
        charge(db, {'gigabytes': 1}, size=11)
    assert refused.value.params['size'] == 11
    assert refused.value.params['limit'] == 10
    charge(db, {'gigabytes': 10}, size=10)
    assert quota_rows.usage(db, 'per_share_gigabytes') == (0, 0)
    assert quota_rows.usage(db, 'gigabytes') == (20, 0)


def test_commit_turns_reserved_into_in_use(db):
    charge(db, {'gigabytes': 4}, reserve=True)
    assert quota_rows.usage(db, 'gigabytes') == (0, 4)
    db.write(charges.commit_reservation, ALICE, {'gigabytes': 4})
    for scope in ({}, {'user_id': 'alice'}, {'share_type_id': GOLD}):
        assert quota_rows.usage(db, 'gigabytes', **scope) == (4, 0)


def test_reservation_is_stored_for_the_work_and_can_be_released(db):
    def accept(session):
        charges.charge(
            session,
            ALICE,
            {'shares': 1, 'gigabytes': 2},
            limits=DEFAULTS,
            reserve=True,
            size=2,
        )
        return session.charges

    left = db.write(accept)
    assert left == [['blue', 'alice', GOLD, {'shares': 1, 'gigabytes': 2}]]
    db.write(charges.release_reservations, left)
    assert quota_rows.usage(db, 'gigabytes') == (0, 0)
    assert quota_rows.usage(db, 'shares') == (0, 0)


def test_credit_lowers_usage(db):
    charge(db, {'gigabytes': 4, 'shares': 2})
    db.write(charges.credit, ALICE, {'gigabytes': 3, 'shares': 1})
    assert quota_rows.usage(db, 'gigabytes') == (1, 0)
    assert quota_rows.usage(db, 'shares') == (1, 0)


def test_adjust_ignores_limits(db):
    charge(db, {'gigabytes': 100, 'shares': 1})
    db.write(charges.adjust, ALICE, {'gigabytes': 5})
    assert quota_rows.usage(db, 'gigabytes') == (105, 0)
    db.write(charges.adjust, ALICE, {'gigabytes': -7})
    assert quota_rows.usage(db, 'gigabytes', user_id='alice') == (98, 0)


def test_usage_that_is_too_low_is_recounted_and_logged(db, caplog):
    share_id = db.write(quota_rows.create_share, ALICE, 3)
    db.write(quota_rows.create_share, ALICE, 1)
    db.write(
        lambda session: session.run(
            sa.update(USAGE)
            .where(USAGE.c.scope == 'user', USAGE.c.resource == 'gigabytes')
            .values(in_use=2)
        )
    )

    def delete(session):
        charges.credit(session, ALICE, {'shares': 1, 'gigabytes': 3})
        delete_share(session, share_id)

    with caplog.at_level(logging.ERROR, 'manila_lite.quota'):
        db.write(delete)
    assert 'Usage of project blue was too low to credit' in caplog.text
    assert quota_rows.differences(db) == []
    assert quota_rows.usage(db, 'gigabytes', user_id='alice') == (1, 0)


def test_amounts_never_charged_cannot_be_given_back(db):
    db.write(quota_rows.create_share, ALICE, 3)
    with pytest.raises(charges.ChangeRefused):
        db.write(charges.credit, ALICE, {'gigabytes': 4})
    with pytest.raises(charges.ChangeRefused):
        db.write(charges.commit_reservation, ALICE, {'gigabytes': 1})
    with pytest.raises(charges.ChangeRefused):
        db.write(charges.release_reservation, ALICE, {'backups': 1})
    assert quota_rows.differences(db) == []
