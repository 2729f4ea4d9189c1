"""Rules of a share that has changed since the request was authorized.

What the request has read only says how to begin; the guard decides.
"""

import pytest
import sqlalchemy as sa

from manila_lite import exception
from manila_lite.context import RequestContext
from manila_lite.db.models import networks
from manila_lite.states.access_rule import RulesStatus
from manila_lite.states.share_instance import InstanceStatus
from manila_lite.states.share_network import NetworkStatus
from manila_lite.states.share_replica import ReplicaState
from tests.support import sampling
from tests.support.service_process import INSTANCE

pytestmark = sampling.dialects

NETWORK = networks.ShareNetwork.__table__
CONTEXT = RequestContext(project_id='project', user_id='user', request_id='req-of-it')


@pytest.fixture
def node(build_node):
    # Admission control reads the queue once a second, in any request.
    node = build_node(work='max_queue = 0')
    node.register()
    return node


@pytest.fixture
def share(node):
    share = node.create()
    node.run()
    return share


def change(node, share, **values):
    statement = sa.update(INSTANCE).where(INSTANCE.c.share_id == share)
    node.db.write(lambda session: session.run(statement.values(values)))


def allow(node, target, to='10.0.0.1'):
    return node.access.allow(CONTEXT, target, access_type='ip', access_to=to, target=to)


def rules_status(node, share):
    return node.value(
        sa.select(INSTANCE.c.access_rules_status).where(INSTANCE.c.share_id == share)
    )


def test_rule_of_a_share_at_rest_marks_its_rules(node, share):
    rule = allow(node, node.target(share))
    assert rule.access_rules_status == RulesStatus.OUT_OF_SYNC
    assert rules_status(node, share) == RulesStatus.OUT_OF_SYNC
    # The next one finds them marked.
    assert allow(node, node.target(share), '10.0.0.2').access_rules_status == (
        RulesStatus.OUT_OF_SYNC
    )
    node.run()
    assert rules_status(node, share) == RulesStatus.ACTIVE
    assert node.problems() == []


@pytest.mark.parametrize('status', [InstanceStatus.EXTENDING, InstanceStatus.MIGRATING])
def test_share_that_has_become_busy_refuses_rules(node, share, status):
    rule = allow(node, node.target(share))
    node.run()
    target = node.target(share)
    change(node, share, status=status)
    with pytest.raises(exception.InvalidShare):
        allow(node, target, '10.0.0.2')
    with pytest.raises(exception.InvalidShare):
        node.access.deny(CONTEXT, target, rule.id)
    with pytest.raises(exception.InvalidShare):
        node.access.change_level(CONTEXT, target, rule.id, 'ro')
    assert rules_status(node, share) == RulesStatus.ACTIVE


@pytest.mark.parametrize('status', [NetworkStatus.ACTIVE, NetworkStatus.ERROR])
def test_network_of_the_share_must_be_active(node, share, status):
    target = node.target(share)
    node.db.write(
        lambda session: session.run(
            sa.insert(NETWORK).values(
                id='network',
                project_id='project',
                user_id='user',
                status=status,
                created_at=session.now,
            )
        )
    )
    change(node, share, share_network_id='network')
    if status == NetworkStatus.ACTIVE:
        allow(node, target)
        return
    with pytest.raises(exception.InvalidShareNetwork):
        allow(node, target)
    assert rules_status(node, share) == RulesStatus.ACTIVE


def test_share_that_has_become_a_replica_is_looked_at_as_a_whole(node, share):
    """The statement that takes the short way sees no other replica."""
    usual = statements_of(node, share, '10.0.0.1')
    node.run()
    replicated = {'replica_state': ReplicaState.ACTIVE}
    assert statements_of(node, share, '10.0.0.2', **replicated) == usual + 2
    assert rules_status(node, share) == RulesStatus.OUT_OF_SYNC


def statements_of(node, share, to, **changes):
    target = node.target(share)
    if changes:
        change(node, share, **changes)
    seen = []
    node.db.on_step = seen.append
    allow(node, target, to)
    node.db.on_step = lambda name: None
    return seen.count('statement')
