"""What published clients call the states of a server's migration.

The names of the design are kept everywhere else. Shown are the words that
clients wait for; a name of the design is understood as well.
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

_OURS = {word: name for name, word in WIRE_NAMES.items()}


def task_state_to_wire(stored: str | None) -> str | None:
    """The published word for what the column `task_state` has."""
    return None if stored is None else WIRE_NAMES[stored]


def task_state_from_wire(word: str | None) -> str | None:
    """The name in the design of either word, or None for other words.

    Null is the state of no migration, which has a name as well.
    """
    if word in _OURS:
        return _OURS[word]
    return word if word in WIRE_NAMES and word != TaskState.NONE else None
