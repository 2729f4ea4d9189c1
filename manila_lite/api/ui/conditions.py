"""How a status is shown: by its word, with a symbol and a colour."""

from manila_lite.db.queries.admin import overview
from manila_lite.db.queries.admin.figures import HEALTHY
from manila_lite.states.share_server import SHARE_SERVER_TASK, TaskState
from manila_lite.states.share_task import SHARE_TASK, ShareTask

SYMBOLS = {
    overview.HEALTHY: '✓',
    overview.WORKING: '↻',
    overview.STUCK: '‖',
    overview.FAILED: '✗',
    'other': '•',
}

_TASKS = (SHARE_TASK, SHARE_SERVER_TASK)
# A resource whose migration has failed may be healthy, its task is not.
_OF_TASKS = {
    ShareTask.SUCCESS: overview.HEALTHY,
    TaskState.COMPLETED: overview.HEALTHY,
    ShareTask.ERROR: overview.FAILED,
    TaskState.ERROR: overview.FAILED,
}

_HEALTHY = {
    status
    for machine, found in HEALTHY.items()
    for status in found
    if machine not in _TASKS
} | {'up', 'enabled', 'succeeded'}
_WORKING = {status for machine in HEALTHY for status in machine.in_flight} | {'running'}
_FAILED = {
    status
    for machine in HEALTHY
    if machine not in _TASKS
    for status in machine.statuses
    if status not in _HEALTHY | _WORKING
} | {'down', 'failed', 'unavailable', 'cut_off'}


def of_status(status: str | None) -> str:
    """Return the condition that a status of any kind is shown as."""
    if status in _OF_TASKS:
        return _OF_TASKS[status]
    if status in _HEALTHY:
        return overview.HEALTHY
    if status in _WORKING:
        return overview.WORKING
    return overview.FAILED if status in _FAILED else 'other'
