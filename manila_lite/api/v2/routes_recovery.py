"""Routes of recovery: all our own, no published route begins so."""

from manila_lite.api import wsgi
from manila_lite.api.router import Route
from manila_lite.api.v2.admin import recovery

CONTROLLERS: dict[str, type[wsgi.Controller]] = {
    'recovery': recovery.RecoveryController
}

# fmt: off
ROUTES = [
    Route('GET', '/recovery/in-flight', 'recovery', 'in_flight'),
    Route('GET', '/recovery/preview', 'recovery', 'preview'),
    Route('GET', '/recovery/log', 'recovery', 'log'),
    Route('POST', '/recovery/run', 'recovery', 'run'),
]
# fmt: on
