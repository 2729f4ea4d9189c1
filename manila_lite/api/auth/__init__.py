"""Sign-in: who asks is known, as a request context, before the API runs."""

import importlib

# By value of auth_strategy. Imported when chosen: Keystone's middleware is
# heavy, and bcrypt serves one of them only.
_STRATEGIES = {
    'noauth': 'manila_lite.api.auth.noauth',
    'noauthv2': 'manila_lite.api.auth.noauth',
    'http_basic': 'manila_lite.api.auth.http_basic',
    'keystone': 'manila_lite.api.auth.keystone',
}


def pipeline(conf, app, enforcer):
    """The WSGI app behind the sign-in that auth_strategy names.

    The app finds the caller in `environ['manila_lite.context']`. Refusals
    are raised, for the fault middleware around the pipeline. What needs no
    sign-in, `/` and `/healthcheck`, belongs before it.
    """
    module = importlib.import_module(_STRATEGIES[conf.auth_strategy])
    return module.make_middleware(conf, app, enforcer)
