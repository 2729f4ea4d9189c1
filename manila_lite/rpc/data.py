"""The RPC contracts of the data service, one per concern.

Any data service takes the work of the topic. What it does may be killed at
any point and is simply run again, so all of it is repeatable.
"""

from manila_lite.context import RequestContext as Ctx
from manila_lite.messages import Action
from manila_lite.rpc.contract import Contract, durable
from manila_lite.states.share_backup import SHARE_BACKUP
from manila_lite.states.share_task import SHARE_TASK

TOPIC = 'manila-data'
BINARY = 'manila-data'

DRIVER_ONLY = ('writable', 'nondisruptive', 'preserve_snapshots')
"""What a migration that the data service copies cannot offer."""


class BackupsRpc(Contract):
    """Create, restore and delete backups of shares."""

    topic, version = TOPIC, '1.0'
    repeatable = True

    @durable((SHARE_BACKUP, 'create_failed'), Action.CREATE)
    def create_backup(self, ctx: Ctx, share_backup_id: str) -> None: ...

    @durable((SHARE_BACKUP, 'restore_failed'), Action.RESTORE_BACKUP)
    def restore_backup(self, ctx: Ctx, share_backup_id: str) -> None: ...

    @durable((SHARE_BACKUP, 'delete_failed'), Action.DELETE)
    def delete_backup(self, ctx: Ctx, share_backup_id: str) -> None: ...


class MigrationCopiesRpc(Contract):
    """Copy a share that is migrated to its new back end."""

    topic, version = TOPIC, '1.0'

    @durable((SHARE_TASK, 'failed'), Action.UPDATE, repeatable=True)
    def copy_share(self, ctx: Ctx, share_id: str, ignored: list[str]) -> None:
        """Copy all but what is `ignored` at the top of the share."""
