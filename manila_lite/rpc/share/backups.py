"""Backups that the driver of a share makes and keeps."""

from manila_lite.context import RequestContext as Ctx
from manila_lite.messages import Action
from manila_lite.rpc.contract import Contract, durable
from manila_lite.rpc.share.topic import TOPIC
from manila_lite.states.share_backup import SHARE_BACKUP


class DriverBackupsRpc(Contract):
    """Create, restore and delete the backups that a back end keeps.

    The driver starts a backup, and is then polled until it is complete. Its
    methods are idempotent, so all of this is repeatable.
    """

    topic, version = TOPIC, '1.0'

    @durable(
        failure=(SHARE_BACKUP, 'create_failed'),
        action=Action.CREATE,
        resource='share_backup_id',
        repeatable=True,
    )
    def create_backup(self, ctx: Ctx, share_backup_id: str) -> None: ...

    @durable(
        failure=(SHARE_BACKUP, 'create_failed'),
        action=Action.CREATE,
        resource='share_backup_id',
        repeatable=True,
    )
    def continue_backup(self, ctx: Ctx, share_backup_id: str) -> None: ...

    @durable(
        failure=(SHARE_BACKUP, 'restore_failed'),
        action=Action.RESTORE_BACKUP,
        resource='share_backup_id',
        repeatable=True,
    )
    def restore_backup(self, ctx: Ctx, share_backup_id: str) -> None: ...

    @durable(
        failure=(SHARE_BACKUP, 'restore_failed'),
        action=Action.RESTORE_BACKUP,
        resource='share_backup_id',
        repeatable=True,
    )
    def continue_restore(self, ctx: Ctx, share_backup_id: str) -> None: ...

    @durable(
        failure=(SHARE_BACKUP, 'delete_failed'),
        action=Action.DELETE,
        resource='share_backup_id',
        repeatable=True,
    )
    def delete_backup(self, ctx: Ctx, share_backup_id: str) -> None: ...
