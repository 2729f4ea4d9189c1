"""Authentication by tokens of the identity service.

Keystone's own middleware validates the token, refuses invalid ones and
describes the caller in headers that clients cannot set.
"""

from collections.abc import Callable, Iterable
import importlib.util

from keystonemiddleware import auth_token
from oslo_config import cfg

from manila_lite import context
from manila_lite.api.auth import caller
from manila_lite.api.auth.caller import App
from manila_lite.api.auth.caller import Authenticated
from manila_lite.policies.enforcer import Enforcer


def authenticate(
    conf: cfg.ConfigOpts, app: App, enforcer: Enforcer
) -> Authenticated:
    """Wrap the app in token authentication."""
    validating = auth_token.AuthProtocol(
        KeystoneContextMiddleware(app, enforcer),
        {
            'oslo_config_config': conf,
            # Requests without a valid token never reach the app.
            'delay_auth_decision': False,
        },
    )
    require_cache_library(conf)
    return Authenticated(validating)


def require_cache_library(conf: cfg.ConfigOpts) -> None:
    """Raise cfg.Error without the library of the cache of tokens.

    keystonemiddleware imports it with the first request, which would fail
    as would all others.
    """
    section = conf.keystone_authtoken
    if not section.memcached_servers:
        return
    if section.memcache_sasl_enabled or section.memcache_tls_enabled:
        module, package = 'bmemcached', 'python-binary-memcached'
    else:
        module, package = 'memcache', 'manila_lite[memcached]'
    if importlib.util.find_spec(module) is None:
        raise cfg.Error(
            'memcached_servers in section [keystone_authtoken] needs the '
            f'Python module {module}, which is not installed: '
            f"pip install '{package}'"
        )


class KeystoneContextMiddleware:
    """Turns the headers of a validated token into the request context."""

    def __init__(self, app: App, enforcer: Enforcer):
        self._app = app
        self._enforcer = enforcer

    def __call__(
        self, environ: dict, start_response: Callable
    ) -> Iterable[bytes]:
        return caller.call_as(
            self._build_context(environ), self._app, environ, start_response
        )

    def _build_context(self, environ: dict) -> context.RequestContext:
        # Tokens are removed because contexts are stored with work.
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
