"""A filter of many pairs takes no more steps than one of a single pair."""

import pytest

from manila_lite.api import paging
from manila_lite.api.v2 import literals
from manila_lite.db.queries.access import views as access_views
from manila_lite.db.queries.replicas import replicas
from manila_lite.db.queries.shares import views as share_views
from manila_lite.db.queries.snapshots import views as snapshot_views
from tests.functional.db.query_plans import plans

MANY = {f'key {number}': 'value' for number in range(literals.MAX_KEYS)}
ONE = {'key 1': 'value'}


def plans_of_shares(db, **criteria):
    return plans(
        db,
        share_views.list_page,
        share_views.ShareFilter(**criteria),
        paging.parse({'limit': '10'}),
    )


def plans_of_snapshots(db, **criteria):
    return plans(
        db,
        snapshot_views.list_page,
        snapshot_views.SnapshotFilter(**criteria),
        paging.parse({'limit': '10'}),
    )


def plans_of_replicas(db, **criteria):
    return plans(
        db,
        replicas.list_page,
        replicas.ShareReplicaFilter(**criteria),
        paging.parse({'limit': '10'}),
    )


def plans_of_rules(db, **criteria):
    return plans(
        db,
        access_views.list_for_share,
        'share',
        access_views.AccessRuleFilter(**criteria),
    )


@pytest.mark.parametrize(
    'plans_of, name, others',
    [
        (plans_of_shares, 'metadata', {}),
        (plans_of_shares, 'metadata', {'project_id': 'project'}),
        (plans_of_shares, 'extra_specs', {}),
        (plans_of_shares, 'extra_specs', {'project_id': 'project'}),
        (plans_of_snapshots, 'metadata', {}),
        (plans_of_snapshots, 'metadata', {'project_id': 'project'}),
        (plans_of_replicas, 'metadata', {}),
        (plans_of_replicas, 'metadata', {'project_id': 'project'}),
        (plans_of_rules, 'metadata', {}),
    ],
)
def test_plan_does_not_grow_with_the_number_of_pairs(db, plans_of, name, others):
    def steps(pairs):
        found = plans_of(db, **{name: pairs}, **others)
        return [len(plan.splitlines()) for plan in found]

    # A few steps may differ, such as those of another kind of index scan.
    for many, one in zip(steps(MANY), steps(ONE), strict=True):
        assert many < one + len(MANY) // 4
