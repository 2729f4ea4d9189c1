"""Concurrent requests for a lock and for the action it forbids.

One of the two is accepted and the other refused, on each database.
"""

import functools

import pytest

from manila_lite.context import RequestContext
from manila_lite.db.queries.access import locks as lock_rows
from manila_lite.policies.enforcer import Enforcer
from manila_lite.share.operations.access.locks import LockRequest, Locks
from manila_lite.share.operations.access.rules import RuleLockOptions
from tests.support import sampling
from tests.support.concurrent_calls import are_accepted

pytestmark = sampling.dialects


ROUNDS = 8


@pytest.fixture
def node(build_node):
    """A process with services that run in threads."""
    return build_node().start()


@pytest.fixture
def ctx(node):
    """A member of the project of all shares."""
    return RequestContext(
        project_id='project',
        user_id='user',
        roles=['member', 'reader'],
        request_id='req-of-the-test',
        enforcer=Enforcer(node.conf),
    )


@pytest.fixture
def lock(node, ctx):
    """Lock a resource."""
    operations = Locks(node.db)
    return lambda id, kind='share', action='delete': operations.create(
        ctx, LockRequest(id, kind, action)
    )


def shares(node):
    found = [node.create() for _ in range(ROUNDS)]
    node.quiet()
    return found


def allow(node, ctx, share, **more):
    return node.access.allow(
        ctx,
        node.target(share),
        access_type='ip',
        access_to='10.0.0.1',
        target='10.0.0.1',
        **more,
    ).id


def locks_of(node, id):
    return node.db.read(lock_rows.list_for_resource, id)


@pytest.mark.parametrize('verb', ['delete', 'force_delete', 'soft_delete'])
def test_either_lock_or_deletion_of_a_share_is_accepted(node, lock, verb):
    for share in shares(node):
        locked, gone = are_accepted(
            functools.partial(lock, share), functools.partial(node.ask, verb, share)
        )
        assert locked != gone
        assert bool(locks_of(node, share)) == locked
        assert not locked or node.status(share) == 'available'


def test_either_lock_or_deletion_of_its_instance_is_accepted(node, ctx, lock):
    for share in shares(node):
        locked, gone = are_accepted(
            functools.partial(lock, share),
            functools.partial(
                node.operations.force_delete_instance,
                ctx,
                node.target(share).instance_id,
            ),
        )
        assert locked != gone
        assert bool(locks_of(node, share)) == locked
    node.quiet()
    assert node.problems() == []


def test_either_lock_or_denial_of_a_rule_is_accepted(node, ctx, lock):
    for share in shares(node):
        rule = allow(node, ctx, share)
        locked, denied = are_accepted(
            functools.partial(lock, rule, 'access_rule'),
            functools.partial(node.access.deny, ctx, node.target(share), rule),
        )
        assert locked != denied
    node.quiet()
    assert node.problems() == []


def test_either_locked_rule_or_deletion_of_its_share_is_accepted(node, ctx):
    for share in shares(node):
        allowed, gone = are_accepted(
            functools.partial(
                allow, node, ctx, share, locked=RuleLockOptions(deletion=True)
            ),
            functools.partial(node.ask, 'delete', share),
        )
        assert allowed != gone
    node.quiet()
    assert node.problems() == []


def test_concurrent_requests_create_one_visibility_lock(node, ctx, lock):
    for share in shares(node):
        rule = allow(node, ctx, share)
        hide = functools.partial(lock, rule, 'access_rule', 'show')
        assert sum(are_accepted(hide, hide, hide)) == 1


def test_concurrent_lock_requests_all_succeed(node, lock):
    for share in shares(node)[:2]:
        assert all(are_accepted(*[functools.partial(lock, share)] * 5))
        assert len(locks_of(node, share)) == 5
