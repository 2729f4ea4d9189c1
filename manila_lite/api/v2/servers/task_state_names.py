"""What published clients call the states of a server's migration.

The names of the design are kept everywhere else. Shown are the words that
clients wait for; a name of the design is understood as well.
"""

from manila_lite.states.share_server import T

ON_THE_WIRE: dict[str, str | None] = {
    T.NONE: None,
    T.STARTING: 'migration_starting',
    T.MIGRATING: 'migration_driver_in_progress',
    T.PHASE1_DONE: 'migration_driver_phase1_done',
    T.COMPLETING: 'migration_completing',
    T.CANCELLING: 'migration_cancel_in_progress',
    T.COMPLETED: 'migration_success',
    T.CANCELLED: 'migration_cancelled',
    T.ERROR: 'migration_error',
}

_OURS = {word: name for name, word in ON_THE_WIRE.items()}


def task_state_shown(stored: str | None) -> str | None:
    """The published word for what the column `task_state` has."""
    return None if stored is None else ON_THE_WIRE[stored]


def task_state_meant(word: str | None) -> str | None:
    """The name in the design of either word, or None for other words.

    Null is the state of no migration, which has a name as well.
    """
    if word in _OURS:
        return _OURS[word]
    return word if word in ON_THE_WIRE and word != T.NONE else None
