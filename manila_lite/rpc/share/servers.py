"""Manage, change and migrate share servers."""

import typing

from manila_lite.context import RequestContext as Ctx
from manila_lite.rpc.contract import call, durable
from manila_lite.rpc.share.shares import ShareServiceContract
from manila_lite.states.share_server import SHARE_SERVER, SHARE_SERVER_TASK


class ShareServersRpc(ShareServiceContract):
    """Delete, manage and unmanage share servers."""

    @durable((SHARE_SERVER, 'delete_failed'), repeatable=True)
    def delete_share_server(
        self, ctx: Ctx, share_server_id: str, security_service_ids: tuple[str, ...] = ()
    ) -> None: ...

    @durable((SHARE_SERVER, 'manage_failed'))
    def manage_share_server(
        self,
        ctx: Ctx,
        share_server_id: str,
        identifier: str,
        driver_options: dict[str, typing.Any],
    ) -> None: ...

    @durable((SHARE_SERVER, 'unmanage_failed'))
    def unmanage_share_server(
        self, ctx: Ctx, share_server_id: str, force: bool = False
    ) -> None: ...


class NetworkUpdatesRpc(ShareServiceContract):
    """Apply changes of share networks to the share servers on them.

    The driver methods are idempotent, so all of this is repeatable.
    """

    repeatable = True

    @durable((SHARE_SERVER, 'network_change_failed'))
    def update_security_service(
        self,
        ctx: Ctx,
        share_server_id: str,
        share_network_id: str,
        new_id: str,
        current_id: str | None,
    ) -> None: ...

    @durable((SHARE_SERVER, 'network_change_failed'))
    def update_allocations(
        self, ctx: Ctx, share_server_id: str, share_network_id: str, subnet_id: str
    ) -> None: ...

    @durable()
    def tell_subnet_metadata(
        self,
        ctx: Ctx,
        share_server_id: str,
        share_network_id: str,
        subnet_id: str,
        metadata: dict[str, str],
    ) -> None: ...

    @durable()
    def check_security_service(
        self,
        ctx: Ctx,
        share_network_id: str,
        operation: str,
        new_id: str,
        current_id: str | None,
    ) -> None: ...

    @durable()
    def check_allocations(
        self,
        ctx: Ctx,
        share_network_id: str,
        operation: str,
        zone_id: str | None,
        neutron_net_id: str | None,
        neutron_subnet_id: str | None,
    ) -> None: ...


class ServerMigrationRpc(ShareServiceContract):
    """Migrate a share server; the destination back end does all of it.

    `share_server_id` is the id of the source. The driver methods are
    idempotent, so all of this is repeatable.
    """

    repeatable = True

    @durable((SHARE_SERVER_TASK, 'failed'))
    def start_server_migration(self, ctx: Ctx, share_server_id: str) -> None: ...

    @durable((SHARE_SERVER_TASK, 'failed'))
    def continue_server_migration(self, ctx: Ctx, share_server_id: str) -> None: ...

    @durable((SHARE_SERVER_TASK, 'failed'))
    def complete_server_migration(self, ctx: Ctx, share_server_id: str) -> None: ...

    @durable((SHARE_SERVER_TASK, 'failed'))
    def cancel_server_migration(self, ctx: Ctx, share_server_id: str) -> None: ...

    @durable((SHARE_SERVER_TASK, 'failed'))
    def settle_server_migration(self, ctx: Ctx, share_server_id: str) -> None: ...

    @call(timeout=90)
    def check_server_migration(
        self,
        ctx: Ctx,
        share_server_id: str,
        dest_host: str,
        writable: bool,
        nondisruptive: bool,
        preserve_snapshots: bool,
        new_share_network_id: str | None = None,
    ) -> dict[str, typing.Any]:
        raise NotImplementedError

    # The last known progress is there already.
    @call(timeout=2)
    def hear_server_migration(self, ctx: Ctx, share_server_id: str) -> None: ...
