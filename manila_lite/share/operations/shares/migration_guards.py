"""What is refused while a share is migrated, alone or with its server."""

from manila_lite import exception
from manila_lite.db.queries.servers import share_servers
from manila_lite.db.queries.shares import instances as share_instances, migrations
from manila_lite.db.session import Session
from manila_lite.states import share_server
from manila_lite.states.share_task import RUNNING, ShareTask


def refuse_migrating(
    session: Session,
    share_id: str,
    error: type[exception.ManilaLiteError] = exception.InvalidShare,
) -> None:
    """Raise an error while a migration of the share is running.

    Most operations are refused by the status of the share already. This is
    for those that any status allows, and for those that would make the copy
    wrong: an administrator may reset the status. They must move an instance
    first, so that no migration begins before the transaction ends.
    """
    task = migrations.find_task(session, share_id, lock_shared=True)
    if task is not None:
        refuse_running(share_id, task.task_state, error)


def refuse_running(
    share_id: str,
    task_state: str | None,
    error: type[exception.ManilaLiteError] = exception.InvalidShare,
) -> None:
    """Raise an error if this is the state of a running migration."""
    if task_state in RUNNING:
        raise error(reason=f'share {share_id} is busy: {task_state}')


def refuse_reset(session: Session, share_instance_id: str) -> None:
    """Raise InvalidShare if a reset would take part of a migration.

    It is for resets of a share instance and of what is on it. The reset has
    moved a row that the start of a migration has to move, too: none begins
    before the transaction ends.
    """
    instance = share_instances.get(session, share_instance_id)
    if instance.task_state in RUNNING:
        raise exception.InvalidShare(
            reason=f'share {instance.share_id} is being migrated '
            f'({instance.task_state}); to reset a status of it, first cancel '
            f'the migration, or set task_state to {ShareTask.ERROR}, which '
            'ends it'
        )
    server = instance.share_server_id and share_servers.find(
        session, instance.share_server_id
    )
    if server and server.task_state in share_server.RUNNING:
        raise exception.InvalidShare(
            reason=f'share {instance.share_id} is being migrated with share '
            f'server {server.id}; to reset a status of it, first cancel that '
            'migration, or set task_state of the share server to '
            f'{ShareTask.ERROR}, which ends it'
        )
