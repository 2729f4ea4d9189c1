"""Sign-in by the tokens of the identity service.

Keystone's own middleware checks the token, refuses those it does not know
and describes the caller in headers that no client can set.
"""

from keystonemiddleware import auth_token

from manila_lite import context
from manila_lite.api.auth import caller


def make_middleware(conf, app, enforcer):
    """The app behind a sign-in by token."""
    return auth_token.AuthProtocol(
        KeystoneContextMiddleware(app, enforcer),
        {
            'oslo_config_config': conf,
            # No request is let through for the app to decide about.
            'delay_auth_decision': False,
        },
    )


class KeystoneContextMiddleware:
    """Turns the headers of a checked token into the request context."""

    def __init__(self, app, enforcer):
        self._app = app
        self._enforcer = enforcer

    def __call__(self, environ, start_response):
        return caller.call_as(
            self._context_of(environ), self._app, environ, start_response
        )

    def _context_of(self, environ):
        # Without the tokens: contexts are stored with work.
        ctx = context.RequestContext.from_environ(
            environ,
            enforcer=self._enforcer,
            auth_token=None,
            service_token=None,
        )
        ctx.roles = [role.lower() for role in ctx.roles]
        ctx.service_roles = [role.lower() for role in ctx.service_roles]
        ctx.is_admin = self._enforcer.is_admin(ctx)
        return ctx
