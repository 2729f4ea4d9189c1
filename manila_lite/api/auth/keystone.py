"""Authentication by tokens of the identity service.

Keystone's own middleware validates the token, refuses invalid ones and
describes the caller in headers that clients cannot set. What it found is kept
for a short time.
"""

from collections.abc import Callable, Iterable
import importlib.util

from keystonemiddleware import auth_token
from oslo_config import cfg

from manila_lite import context
from manila_lite.api.auth import caller, token_cache
from manila_lite.api.auth.caller import App, Authenticated
from manila_lite.policies.enforcer import Enforcer


def authenticate(conf: cfg.ConfigOpts, app: App, enforcer: Enforcer) -> Authenticated:
    """Wrap the app in token authentication."""
    for group, options in auth_token.list_opts():
        conf.register_opts(options, group)
    require_cache_library(conf)
    token_cache_time = conf.keystone_authtoken.token_cache_time
    lifetime = token_cache.lifetime(token_cache_time)
    settings = {
        'oslo_config_config': conf,
        # Requests without a valid token never reach the app.
        'delay_auth_decision': False,
        'token_cache_time': token_cache_time - lifetime,
    }
    behind: App = KeystoneContextMiddleware(app, enforcer)
    if not lifetime:
        return Authenticated(auth_token.AuthProtocol(behind, settings))
    cache = token_cache.TokenCache(lifetime)
    validating = auth_token.AuthProtocol(
        token_cache.RememberMiddleware(behind, cache), settings
    )
    return Authenticated(token_cache.KnownTokenMiddleware(behind, validating, cache))


def require_cache_library(conf: cfg.ConfigOpts) -> None:
    """Raise cfg.Error without a library that the cache of tokens needs.

    keystonemiddleware imports them with the first request, which would fail
    as would all others.
    """
    section = conf.keystone_authtoken
    if not section.memcached_servers:
        return
    if section.memcache_sasl_enabled or section.memcache_tls_enabled:
        module, package = 'bmemcached', 'python-binary-memcached'
    else:
        module, package = 'memcache', 'manila_lite[memcached]'
    needed = [('memcached_servers', module, package)]
    if section.memcache_security_strategy == 'ENCRYPT':
        needed.append(
            (
                'memcache_security_strategy = ENCRYPT',
                'cryptography',
                'manila_lite[memcached]',
            )
        )
    for option, module, package in needed:
        if importlib.util.find_spec(module) is None:
            raise cfg.Error(
                f'{option} in section [keystone_authtoken] needs the '
                f'Python module {module}, which is not installed: '
                f"pip install '{package}'"
            )


class KeystoneContextMiddleware:
    """Turns the headers of a validated token into the request context."""

    def __init__(self, app: App, enforcer: Enforcer):
        self._app = app
        self._enforcer = enforcer

    def __call__(self, environ: dict, start_response: Callable) -> Iterable[bytes]:
        return caller.call_as(
            self._build_context(environ), self._app, environ, start_response
        )

    def _build_context(self, environ: dict) -> context.RequestContext:
        # Tokens are removed because contexts are stored with work.
        ctx = context.RequestContext.from_environ(
            environ, enforcer=self._enforcer, auth_token=None, service_token=None
        )
        ctx.roles = [role.lower() for role in ctx.roles]
        ctx.service_roles = [role.lower() for role in ctx.service_roles]
        ctx.is_admin = self._enforcer.is_admin(ctx)
        return ctx
