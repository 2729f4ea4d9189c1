"""A lock and what it forbids, asked for at the same moment.

One of the two is accepted and the other is refused, on each database.
"""

import concurrent.futures
import functools
import threading

import pytest

from manila_lite import exception
from manila_lite.context import RequestContext
from manila_lite.db.queries.access import locks as lock_rows
from manila_lite.policies.enforcer import Enforcer
from manila_lite.share.operations.access.locks import LockRequest
from manila_lite.share.operations.access.locks import Locks
from manila_lite.share.operations.access.share_rules import RuleLockOptions

ROUNDS = 8


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
    """Have a resource locked."""
    operations = Locks(node.db)
    return lambda id, kind='share', action='delete': operations.create(
        ctx, LockRequest(id, kind, action)
    )


def at_once(*calls):
    """Which of the calls, begun at the same moment, are accepted."""
    start = threading.Barrier(len(calls))

    def accepted(call):
        start.wait()
        try:
            call()
        except (
            exception.Forbidden,
            exception.Conflict,
            exception.Invalid,
            exception.NotFound,
        ):
            return False
        return True

    with concurrent.futures.ThreadPoolExecutor(len(calls)) as pool:
        return list(pool.map(accepted, calls))


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
def test_share_is_locked_or_goes(node, lock, verb):
    for share in shares(node):
        locked, gone = at_once(
            functools.partial(lock, share),
            functools.partial(node.ask, verb, share),
        )
        assert locked != gone
        assert bool(locks_of(node, share)) == locked
        assert not locked or node.status(share) == 'available'


def test_share_is_locked_or_its_instance_goes(node, ctx, lock):
    for share in shares(node):
        locked, gone = at_once(
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


def test_rule_is_locked_or_denied(node, ctx, lock):
    for share in shares(node):
        rule = allow(node, ctx, share)
        locked, denied = at_once(
            functools.partial(lock, rule, 'access_rule'),
            functools.partial(node.access.deny, ctx, node.target(share), rule),
        )
        assert locked != denied
    node.quiet()
    assert node.problems() == []


def test_rule_with_a_lock_comes_or_its_share_goes(node, ctx):
    for share in shares(node):
        allowed, gone = at_once(
            functools.partial(
                allow, node, ctx, share, locked=RuleLockOptions(deletion=True)
            ),
            functools.partial(node.ask, 'delete', share),
        )
        assert allowed != gone
    node.quiet()
    assert node.problems() == []


def test_rule_is_hidden_by_one_lock(node, ctx, lock):
    for share in shares(node):
        rule = allow(node, ctx, share)
        hide = functools.partial(lock, rule, 'access_rule', 'show')
        assert sum(at_once(hide, hide, hide)) == 1


def test_locks_of_many_are_all_made(node, lock):
    for share in shares(node)[:2]:
        assert all(at_once(*[functools.partial(lock, share)] * 5))
        assert len(locks_of(node, share)) == 5
