"""The wire names of the task states of share server migrations.

The API shows the names that published clients expect and accepts both these
and the names of `TaskState`, which are used everywhere else.
"""

from manila_lite.states.share_server import TaskState

WIRE_NAMES: dict[str, str | None] = {
    TaskState.NONE: None,
    TaskState.STARTING: 'migration_starting',
    TaskState.MIGRATING: 'migration_driver_in_progress',
    TaskState.PHASE1_DONE: 'migration_driver_phase1_done',
    TaskState.COMPLETING: 'migration_completing',
    TaskState.CANCELLING: 'migration_cancel_in_progress',
    TaskState.COMPLETED: 'migration_success',
    TaskState.CANCELLED: 'migration_cancelled',
    TaskState.ERROR: 'migration_error',
}

_TASK_STATES = {name: task_state for task_state, name in WIRE_NAMES.items()}


def task_state_to_wire(stored: str | None) -> str | None:
    """Return the wire name of a value of the column `task_state`."""
    return None if stored is None else WIRE_NAMES[stored]


def task_state_from_wire(name: str | None) -> str | None:
    """Return the `TaskState` of either name, or None for other names.

    Null is `TaskState.NONE`, the state without a migration.
    """
    if name in _TASK_STATES:
        return _TASK_STATES[name]
    return name if name in WIRE_NAMES and name != TaskState.NONE else None
