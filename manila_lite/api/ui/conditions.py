"""How a status is shown: by its word, with a symbol and a colour."""

from manila_lite.db.queries.recovery import overview
from manila_lite.db.queries.recovery.figures import HEALTHY
from manila_lite.states.share_instance import InstanceStatus
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
# A resource whose migration has failed may be healthy; its task is not.
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

NEXT_STEPS: dict[str, str] = {
    InstanceStatus.ERROR: (
        'If the share was new, delete it and create it again. If it has data, '
        'send the request id to your administrator, who can repair it and reset '
        'its status.'
    ),
    InstanceStatus.ERROR_DELETING: (
        'Delete the share again. If that fails too, send the request id to your '
        'administrator.'
    ),
    InstanceStatus.EXTENDING_ERROR: (
        'The share can be used with its old size. Your administrator has to reset '
        'its status before it can be changed.'
    ),
    InstanceStatus.SHRINKING_ERROR: (
        'The data of the share is unchanged. Your administrator has to reset its '
        'status before it can be changed.'
    ),
    InstanceStatus.REVERTING_ERROR: (
        'Do not write to the share: it may have the content of the snapshot in '
        'part. Your administrator has to check it first.'
    ),
    InstanceStatus.BACKUP_RESTORING_ERROR: (
        'Restore the backup again, or ask your administrator.'
    ),
}
"""What a user can do about a share that has failed, by its status."""


def of_status(status: str | None) -> str:
    """Return the condition that a status of any kind is shown as."""
    if status in _OF_TASKS:
        return _OF_TASKS[status]
    if status in _HEALTHY:
        return overview.HEALTHY
    if status in _WORKING:
        return overview.WORKING
    return overview.FAILED if status in _FAILED else 'other'
