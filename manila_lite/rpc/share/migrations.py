"""Migrate shares to other back ends."""

from manila_lite.context import RequestContext as Ctx
from manila_lite.messages import Action
from manila_lite.rpc.contract import Contract, call, durable
from manila_lite.rpc.share.shares import TOPIC
from manila_lite.states.share_task import SHARE_TASK


class ShareMigrationRpc(Contract):
    """Migrate a share; the back end that it is on does all of it.

    The driver methods are idempotent, so all of this is repeatable.
    """

    topic, version = TOPIC, '1.0'
    repeatable = True

    @durable((SHARE_TASK, 'failed'), Action.UPDATE)
    def start_share_migration(
        self, ctx: Ctx, share_id: str, needs_release_2: bool = False
    ) -> None:
        """Start the first phase.

        `needs_release_2` is set for what release 1 does not support:
        another share type, share servers, and snapshots.
        """

    @durable((SHARE_TASK, 'failed'), Action.UPDATE)
    def continue_share_migration(self, ctx: Ctx, share_id: str) -> None: ...

    @durable((SHARE_TASK, 'failed'), Action.UPDATE)
    def complete_share_migration(self, ctx: Ctx, share_id: str) -> None: ...

    @durable((SHARE_TASK, 'failed'), Action.UPDATE)
    def cancel_share_migration(self, ctx: Ctx, share_id: str) -> None: ...

    @durable((SHARE_TASK, 'failed'), Action.UPDATE)
    def settle_share_migration(self, ctx: Ctx, share_id: str) -> None: ...

    # The last known progress is there already.
    @call(timeout=2)
    def hear_share_migration(self, ctx: Ctx, share_id: str) -> None: ...


class MigrationServersRpc(Contract):
    """Share servers for shares that are migrated to a back end."""

    topic, version = TOPIC, '1.0'

    @durable((SHARE_TASK, 'failed'), Action.UPDATE, repeatable=True)
    def provide_migration_server(self, ctx: Ctx, share_id: str) -> None:
        """Put the destination on a share server, then start the migration.

        Runs on the back end of the destination, which sets up a server
        unless one is suitable.
        """


class HostAssistedMigrationRpc(Contract):
    """The part of back ends in a migration that the data service copies.

    All of it is idempotent.
    """

    topic, version = TOPIC, '1.0'
    repeatable = True

    @durable((SHARE_TASK, 'failed'), Action.UPDATE)
    def create_destination(self, ctx: Ctx, share_id: str, ignored: list[str]) -> None:
        """Create the share on this back end, then let it be filled.

        `ignored` are names at the top of the share that are not copied.
        """

    @durable((SHARE_TASK, 'failed'), Action.UPDATE)
    def resume_share_copy(self, ctx: Ctx, share_id: str) -> None:
        """Submit the copy again; runs on the back end of the source."""

    @durable((SHARE_TASK, 'failed'), Action.UPDATE)
    def remove_destination(self, ctx: Ctx, share_id: str) -> None:
        """Delete the share from this back end; the migration is over."""
