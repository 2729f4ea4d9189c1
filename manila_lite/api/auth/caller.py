"""What every sign-in ends with: a caller who is known."""

from manila_lite import context
from manila_lite.api import wsgi


def build_context(environ, enforcer, **identity):
    """The context of a request from somebody we know by ourselves."""
    return context.RequestContext(
        enforcer=enforcer,
        request_id=environ.get('openstack.request_id'),
        global_request_id=environ.get('openstack.global_request_id'),
        **identity,
    )


def call_as(ctx, app, environ, start_response):
    """The app's answer to the caller, who is named in its log lines."""
    environ[wsgi.CONTEXT] = ctx
    ctx.update_store()
    return app(environ, start_response)
