"""How a status is shown: by its word, with a symbol and a colour."""

from manila_lite.db.queries.admin import overview
from manila_lite.db.queries.admin.figures import HEALTHY

SYMBOLS = {
    overview.HEALTHY: '✓',
    overview.WORKING: '↻',
    overview.STUCK: '‖',
    overview.FAILED: '✗',
    'other': '•',
}

_HEALTHY = {status for found in HEALTHY.values() for status in found} | {
    'up',
    'enabled',
    'succeeded',
}
_WORKING = {status for machine in HEALTHY for status in machine.in_flight} | {
    'running'
}
_FAILED = {
    status
    for machine in HEALTHY
    for status in machine.statuses
    if status not in _HEALTHY | _WORKING
} | {'down', 'failed', 'unavailable', 'cut_off'}


def of_status(status: str | None) -> str:
    """Return the condition that a status of any kind is shown as."""
    if status in _HEALTHY:
        return overview.HEALTHY
    if status in _WORKING:
        return overview.WORKING
    return overview.FAILED if status in _FAILED else 'other'
