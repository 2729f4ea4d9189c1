"""What a recount counts, and for which owners."""

import pytest
import sqlalchemy as sa

from manila_lite.db.queries.quotas.quotas import USAGE, Key
from manila_lite.quota import charges, recount
from manila_lite.quota.charges import Owner
from manila_lite.quota.recount import Usage
from tests.functional.quota import quota_rows
from tests.functional.quota.quota_rows import ALICE, DEFAULTS, GOLD
from tests.support import sampling

RED = Owner('red', 'carol', GOLD)

pytestmark = pytest.mark.usefixtures('types')


def of_project(db, project_id='blue'):
    return {
        key.resource: usage
        for key, usage in db.read(recount.recount).items()
        if key.project_id == project_id and key.scope == 'project'
    }


def add_work(session, *reservations):
    quota_rows.add_work(session, [recount.to_reservation(*one) for one in reservations])


def test_shares_count_for_project_user_and_type(db):
    db.write(quota_rows.add_share, ALICE, 3)
    db.write(quota_rows.add_share, Owner('blue', 'bob', quota_rows.SILVER), 4)
    db.write(quota_rows.add_share, Owner('blue', None, None), 5)
    assert db.read(recount.recount) == {
        Key('blue', *scope, resource): Usage(used, 0)
        for scope, shares, gigabytes in (
            (('project', ''), 3, 12),
            (('share_type', GOLD), 1, 3),
            (('share_type', quota_rows.SILVER), 1, 4),
            (('user', 'alice'), 1, 3),
            (('user', 'bob'), 1, 4),
        )
        for resource, used in (('shares', shares), ('gigabytes', gigabytes))
    }


def test_share_counts_once_and_every_replica_counts(db):
    db.write(quota_rows.add_share, ALICE, 3, replicas=2)
    db.write(quota_rows.add_share, ALICE, 4, replicas=1)
    assert of_project(db) == {
        'shares': (2, 0),
        'gigabytes': (7, 0),
        'share_replicas': (3, 0),
        'replica_gigabytes': (10, 0),
    }


@pytest.mark.parametrize(
    'status, counts',
    [
        ('creating', True),
        ('error', True),
        ('deleting', True),
        ('error_deleting', True),
        ('deferred_deleting', False),
        ('error_deferred_deleting', False),
    ],
)
def test_share_counts_until_its_deletion_is_deferred(db, status, counts):
    db.write(quota_rows.add_share, ALICE, 3, status=status)
    assert of_project(db) == ({'shares': (1, 0), 'gigabytes': (3, 0)} if counts else {})


@pytest.mark.parametrize(
    'status, counts',
    [
        ('creating', True),
        ('deleting', True),
        ('error_deleting', True),
        ('deferred_deleting', False),
        ('error_deferred_deleting', False),
    ],
)
def test_snapshot_counts_until_its_deletion_is_deferred(db, status, counts):
    share = db.write(quota_rows.add_share, ALICE, 0)
    db.write(quota_rows.add_snapshot, ALICE, share, 3, status)
    assert of_project(db) == (
        {'snapshots': (1, 0), 'snapshot_gigabytes': (3, 0)} if counts else {}
    )
    assert of_project(db) == {
        key.resource: usage
        for key, usage in db.read(recount.recount, 'blue').items()
        if key.scope == 'project'
    }


def test_shares_in_the_recycle_bin_count(db):
    db.write(quota_rows.add_share, ALICE, 3, soft_deleted=True)
    assert of_project(db)['gigabytes'] == (3, 0)


def test_charges_of_work_count_as_reserved(db):
    db.write(add_work, (ALICE, {'gigabytes': 2}), (RED, {'gigabytes': 3}))
    db.write(add_work, (ALICE, {'gigabytes': 4, 'shares': 1}))
    assert of_project(db) == {'shares': (0, 1), 'gigabytes': (0, 6)}
    assert of_project(db, 'red') == {'gigabytes': (0, 3)}


def test_recount_of_one_project(db):
    for owner in (ALICE, RED):
        db.write(quota_rows.add_share, owner, 1)
        db.write(add_work, (owner, {'gigabytes': 1}))
    found = db.read(recount.recount, 'red')
    assert {key.project_id for key in found} == {'red'}
    assert found[Key('red', 'project', '', 'gigabytes')] == (1, 1)


@sampling.dialects
@pytest.mark.parametrize('project', ['a"b', 'a\\b', 'é', '100%', 'a_b', '/'])
def test_recount_of_a_project_with_an_unusual_id(db, project):
    db.write(add_work, (Owner(project, 'carol', GOLD), {'gigabytes': 1}))
    found = db.read(recount.recount, project)
    assert found[Key(project, 'project', '', 'gigabytes')] == (0, 1)


def test_differences_have_the_key_and_both_usages(db):
    assert db.read(recount.differences) == []
    db.write(quota_rows.create_share, ALICE, 3)
    assert db.read(recount.differences) == []
    db.write(
        lambda session: session.run(
            sa.update(USAGE)
            .where(USAGE.c.scope == 'user', USAGE.c.resource == 'shares')
            .values(reserved=7)
        )
    )
    assert db.read(recount.differences) == [
        recount.Difference(
            Key('blue', 'user', 'alice', 'shares'), Usage(1, 7), Usage(1, 0)
        )
    ]


def test_correct_also_creates_missing_rows(db):
    db.write(quota_rows.create_share, ALICE, 3)
    db.write(quota_rows.add_share, RED, 5)
    db.write(charges.charge, ALICE, {'backups': 1}, limits=DEFAULTS)
    wrong = db.write(recount.correct, DEFAULTS)
    assert {one.key.project_id for one in wrong} == {'blue', 'red'}
    assert db.read(recount.differences) == []
    assert quota_rows.usage(db, 'gigabytes', 'red') == (5, 0)
    assert quota_rows.effective_limit(db, 'gigabytes', 'red') == DEFAULTS['gigabytes']
    assert quota_rows.usage(db, 'backups') == (0, 0)
    assert db.write(recount.correct, DEFAULTS) == []
