"""Every operation of the route table is protected by a policy."""

import pytest

from manila_lite import policies
from manila_lite.api import wsgi
from manila_lite.api.router import ACTION
from manila_lite.api.routes import ROUTES

OPEN = {
    'VersionsController.index': 'clients discover versions before signing in',
    'ExtensionsController.index': 'published without a policy; empty',
    'ExtensionsController.show': 'published without a policy; always 404',
    'LimitsController.index': 'published without a policy; own project only',
}
"""Operations without a policy, and why they need none."""

IN_HANDLER = {
    'SharesController.show',
    'ShareReplicasController.show',
    'SnapshotsController.show',
}
"""Operations that read their target and its view in one query.

tests/functional/api/test_published_policies.py holds that they check their
policies.
"""


def declarations():
    """Yield the name and declaration of every handler that a route serves."""
    for route in ROUTES:
        controller = route.controller
        if route.handler != ACTION:
            yield (
                f'{controller.__name__}.{route.handler}',
                wsgi.declaration(controller, route.handler),
            )
            continue
        for name in dir(controller):
            for action in getattr(getattr(controller, name), 'actions', ()):
                yield (
                    f'{controller.__name__}.{name}',
                    wsgi.with_policy(controller, action.declared),
                )


@pytest.mark.parametrize(
    'marker, expected', [(wsgi.OPEN, set(OPEN)), (wsgi.IN_HANDLER, IN_HANDLER)]
)
def test_operations_without_a_policy_have_a_reason(marker, expected):
    found = {name for name, declared in declarations() if declared.policy is marker}
    assert found == expected


def test_policies_of_operations_are_registered():
    rules = {rule.name for rule in policies.list_rules()}
    unknown = {
        (name, declared.policy)
        for name, declared in declarations()
        if not isinstance(declared.policy, wsgi.Unchecked)
        and declared.policy not in rules
    }
    assert unknown == set()


@pytest.mark.parametrize('declare', [wsgi.method, wsgi.action])
def test_a_declaration_needs_a_policy(declare):
    arguments = ('extend',) if declare is wsgi.action else ()
    with pytest.raises(TypeError, match='policy'):
        declare(*arguments)


@pytest.mark.parametrize('policy', [None, '', False, ()])
def test_only_the_marker_declares_an_open_operation(policy):
    with pytest.raises(TypeError, match='neither a policy nor OPEN'):
        wsgi.method(policy)
    with pytest.raises(TypeError, match='neither a policy nor OPEN'):
        wsgi.action('extend', policy=policy)
