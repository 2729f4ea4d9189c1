"""The last step of every authentication: the caller's context."""

from collections.abc import Callable, Iterable
import typing

from manila_lite import context
from manila_lite.api import wsgi
from manila_lite.context import RequestContext
from manila_lite.policies.enforcer import Enforcer

App = Callable[..., Iterable[bytes]]


def build_context(
    environ: dict, enforcer: Enforcer, **identity: typing.Any
) -> context.RequestContext:
    """Return the context of a caller authenticated by this service."""
    return context.RequestContext(
        enforcer=enforcer,
        request_id=environ.get('openstack.request_id'),
        global_request_id=environ.get('openstack.global_request_id'),
        **identity,
    )


def call_as(
    ctx: RequestContext, app: App, environ: dict, start_response: Callable
) -> Iterable[bytes]:
    """Call the app with the context, which also goes into its log lines."""
    environ[wsgi.CONTEXT] = ctx
    ctx.update_store()
    return app(environ, start_response)
