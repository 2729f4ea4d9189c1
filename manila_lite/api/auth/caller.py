"""The last step of every authentication: the caller's context."""

from manila_lite import context
from manila_lite.api import wsgi


def build_context(environ, enforcer, **identity):
    """Return the context of a caller authenticated by this service."""
    return context.RequestContext(
        enforcer=enforcer,
        request_id=environ.get('openstack.request_id'),
        global_request_id=environ.get('openstack.global_request_id'),
        **identity,
    )


def call_as(ctx, app, environ, start_response):
    """Call the app with the context, which also goes into its log lines."""
    environ[wsgi.CONTEXT] = ctx
    ctx.update_store()
    return app(environ, start_response)
