"""What is refused while a share is migrated."""

from manila_lite import exception
from manila_lite.db.queries.shares import migrations
from manila_lite.db.session import Session
from manila_lite.states.share_task import RUNNING


def refuse_migrating(session: Session, share_id: str) -> None:
    """Raise InvalidShare while a migration of the share is running.

    Operations that need an available share are refused by its status; this
    is for operations that any status allows. They must move an instance
    first, so that no migration begins before the transaction ends.
    """
    task = migrations.find_task(session, share_id, lock_shared=True)
    if task is not None and task.task_state in RUNNING:
        raise exception.InvalidShare(
            reason=f'share {share_id} is busy: {task.task_state}'
        )
