"""The last step of every authentication: the caller's context."""

from collections.abc import Callable, Iterable
import typing

from manila_lite import context
from manila_lite.api import wsgi
from manila_lite.context import RequestContext
from manila_lite.policies.enforcer import Enforcer

App = Callable[..., Iterable[bytes]]
Run = Callable[..., typing.Any]
"""Calls a function with arguments, maybe in another thread."""


class Authenticated(typing.NamedTuple):
    """An app behind authentication, and the identity API if there is one."""

    app: App
    identity_api: App | None = None


def run_here(function: Callable[..., typing.Any], *args: object) -> typing.Any:
    """Call the function in this thread."""
    return function(*args)


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
    set_caller(ctx, environ)
    return app(environ, start_response)


def set_caller(ctx: RequestContext, environ: dict) -> None:
    """Make this the caller of the request, and of the log lines from now."""
    environ[wsgi.CONTEXT] = ctx
    ctx.update_store()
