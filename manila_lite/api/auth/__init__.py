"""Authentication: sets the request context before the API runs."""

import importlib
import typing

from oslo_config import cfg

from manila_lite.api.auth.caller import App, Authenticated, Run, run_here
from manila_lite.policies.enforcer import Enforcer

# By value of auth_strategy. Only the chosen module is imported: Keystone's
# middleware is large, and only one of the modules needs bcrypt.
_STRATEGIES = {
    'noauth': 'manila_lite.api.auth.noauth',
    'noauthv2': 'manila_lite.api.auth.noauth',
    'http_basic': 'manila_lite.api.auth.http_basic',
    'keystone': 'manila_lite.api.auth.keystone',
}


def pipeline(
    conf: cfg.ConfigOpts, app: App, enforcer: Enforcer, run: Run = run_here
) -> Authenticated:
    """Wrap the WSGI app in the authentication chosen by auth_strategy.

    The app finds the caller in `environ['manila_lite.context']`. Refusals are
    raised, for the fault middleware around the pipeline. `/` and
    `/healthcheck`, which need no authentication, belong outside it. `run`
    calls functions that take long.
    """
    module = importlib.import_module(_STRATEGIES[conf.auth_strategy])
    options: dict[str, typing.Any] = {}
    if conf.auth_strategy == 'http_basic':
        options['run'] = run
    return module.authenticate(conf, app, enforcer, **options)
