"""What is refused while a share is migrated."""

from manila_lite import exception
from manila_lite.db.queries.shares import migrations
from manila_lite.db.session import Session
from manila_lite.states.share_task import RUNNING


def refuse_migrating(session: Session, share_id: str) -> None:
    """Raise InvalidShare while a migration of the share is running.

    Most operations are refused by the status of the share already. This is
    for those that any status allows, and for those that would make the copy
    wrong: an administrator may reset the status. They must move an instance
    first, so that no migration begins before the transaction ends.
    """
    task = migrations.find_task(session, share_id, lock_shared=True)
    if task is not None:
        refuse_running(share_id, task.task_state)


def refuse_running(share_id: str, task_state: str | None) -> None:
    """Raise InvalidShare if this is the state of a running migration."""
    if task_state in RUNNING:
        raise exception.InvalidShare(
            reason=f'share {share_id} is busy: {task_state}'
        )
