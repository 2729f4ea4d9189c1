"""Recovery finds the access rules whose work was lost, on every database."""

import pytest
import sqlalchemy as sa

from manila_lite.db.models import engine
from manila_lite.db.queries.access import share_rules, snapshot_rules
from tests.support.access import ShareRules
from tests.support.snapshot_access import (
    create_mountable_snapshot,
    enable_snapshot_mounts,
)


@pytest.fixture
def cloud(build_cloud, database_url):
    cloud = build_cloud(url=database_url, backends=['alpha'])
    enable_snapshot_mounts(cloud)
    return cloud


@pytest.fixture
def share(cloud):
    share_id = cloud.api.create()['id']
    cloud.settle()
    return ShareRules(cloud, share_id)


@pytest.fixture
def snapshot(cloud):
    return create_mountable_snapshot(cloud)


@pytest.fixture(params=['share', 'snapshot'])
def rules(request):
    """The rules of a share or of a snapshot."""
    return request.getfixturevalue(request.param)


def lose_work(cloud):
    cloud.db.write(lambda session: session.run(sa.delete(engine.Work)))


def recover(cloud):
    """Run one pass of recovery, and its work; return the number found."""
    found = cloud.share.backends[0].endpoints.reconciliation.run_pass()
    cloud.run_pending()
    return found


def mark_stale(cloud, rules):
    module = share_rules if isinstance(rules, ShareRules) else snapshot_rules
    cloud.db.write(module.mark_stale, rules.instance_id)


def id_of(rule):
    return rule if isinstance(rule, str) else rule['id']


def test_queued_rule_without_work_is_applied(cloud, rules):
    rules.allow('10.0.0.1')
    lose_work(cloud)
    assert recover(cloud)
    assert rules.states == {'10.0.0.1': 'active'}
    assert set(rules.clients) == {'10.0.0.1'}
    assert not recover(cloud)


def test_denied_rule_without_work_is_removed(cloud, rules):
    rule = rules.allow('10.0.0.1')
    cloud.run_pending()
    rules.deny(id_of(rule))
    lose_work(cloud)
    assert recover(cloud)
    assert rules.states == {}
    assert not rules.clients
    assert not recover(cloud)


def test_stale_rules_are_sent_again(cloud, rules):
    rules.allow('10.0.0.1')
    cloud.run_pending()
    mark_stale(cloud, rules)
    calls = len(rules.calls)
    assert recover(cloud) == 1
    last = rules.calls[calls:][-1]
    assert (last.rules, last.added, last.deleted) == (1, [], [])
    assert not recover(cloud)


def test_stale_set_without_rules_is_sent_too(cloud, rules):
    """The back end may still let a client in that no rule names."""
    assert rules.states == {}
    mark_stale(cloud, rules)
    assert recover(cloud) == 1
    last = rules.calls[-1]
    assert (last.rules, last.added, last.deleted) == (0, [], [])
    assert not recover(cloud)


def test_rules_with_work_are_left_to_it(cloud, rules):
    rules.allow('10.0.0.1')
    assert not recover(cloud)
    mark_stale(cloud, rules)
    rules.allow('10.0.0.2')
    assert not recover(cloud)


def test_rules_of_a_resource_that_is_being_deleted_wait(cloud, share):
    share.allow('10.0.0.1')
    cloud.api.delete(share.share_id)
    lose_work(cloud)
    # Only the deletion is rescued, which removes the rules.
    assert recover(cloud) == 1
    cloud.settle()
    cloud.check_invariants()


def test_stale_rules_are_shown_to_administrators(cloud, rules):
    mark_stale(cloud, rules)
    found = [
        one
        for one in cloud.services.recovery.in_flight(limit=10)
        if one.resource_id == rules.instance_id
    ]
    assert [one.next_step for one in found] == ['its access rules are sent again']
    assert found[0].is_candidate
