"""Create, change, manage, ensure, transfer and reach share instances."""

import typing

from manila_lite import exception
from manila_lite.context import RequestContext as Ctx
from manila_lite.messages import Action, Detail
from manila_lite.rpc.contract import Contract, call, durable
from manila_lite.rpc.share.topic import TOPIC
from manila_lite.states.share_instance import SHARE_INSTANCE
from manila_lite.states.snapshot_instance import SNAPSHOT_INSTANCE


class ProvisioningRpc(Contract):
    """Create, extend, shrink and delete share instances.

    `placement` has the arguments with which the scheduler places the share
    elsewhere when it is refused; None if it is not to be placed again.
    """

    topic, version = TOPIC, '1.0'

    @durable(failure=(SHARE_INSTANCE, 'create_failed'), action=Action.CREATE)
    def create_share_instance(
        self, ctx: Ctx, instance_id: str, placement: dict[str, typing.Any] | None = None
    ) -> None: ...

    @durable(
        failure=(SHARE_INSTANCE, 'create_failed'),
        action=Action.CREATE,
        detail=Detail.DRIVER_FAILED_CREATING_FROM_SNAP,
    )
    def create_share_from_snapshot(
        self,
        ctx: Ctx,
        instance_id: str,
        snapshot_id: str,
        placement: dict[str, typing.Any] | None = None,
    ) -> None: ...

    @durable(
        failure=(SHARE_INSTANCE, 'create_failed'),
        action=Action.CREATE,
        detail=Detail.DRIVER_FAILED_CREATING_FROM_SNAP,
    )
    def create_share_from_group_snapshot(
        self, ctx: Ctx, instance_id: str, member_id: str
    ) -> None: ...

    @durable(
        failure=(SHARE_INSTANCE, 'create_failed'),
        action=Action.CREATE,
        repeatable=True,
        detail=Detail.DRIVER_FAILED_CREATING_FROM_SNAP,
    )
    def await_share_from_snapshot(self, ctx: Ctx, instance_id: str) -> None: ...

    @durable(
        failure=(SHARE_INSTANCE, 'extend_failed'),
        action=Action.EXTEND,
        detail=Detail.DRIVER_FAILED_EXTEND,
        refused={exception.NoValidHost: ('extend_refused', Detail.FILTER_CAPACITY)},
    )
    def extend_share_instance(
        self, ctx: Ctx, instance_id: str, new_size: int, growth: int, host: str
    ) -> None: ...

    @durable(
        failure=(SHARE_INSTANCE, 'shrink_failed'),
        action=Action.SHRINK,
        detail=Detail.DRIVER_FAILED_SHRINK,
        refused={
            exception.ShareShrinkingPossibleDataLoss: (
                'shrink_refused',
                Detail.DRIVER_REFUSED_SHRINK,
            ),
            NotImplementedError: ('shrink_refused', Detail.DRIVER_FAILED_SHRINK),
        },
    )
    def shrink_share_instance(
        self, ctx: Ctx, instance_id: str, new_size: int
    ) -> None: ...

    @durable(
        failure=(SHARE_INSTANCE, 'delete_failed'), action=Action.DELETE, repeatable=True
    )
    def delete_share_instance(
        self, ctx: Ctx, instance_id: str, force: bool = False
    ) -> None: ...

    @durable(
        failure=(SHARE_INSTANCE, 'deferred_delete_failed'),
        action=Action.DELETE,
        repeatable=True,
    )
    def delete_share_instance_deferred(self, ctx: Ctx, instance_id: str) -> None: ...


class ManagingRpc(Contract):
    """Manage and unmanage shares and snapshots that exist on a back end."""

    topic, version = TOPIC, '1.0'

    @durable(failure=(SHARE_INSTANCE, 'manage_failed'), action=Action.UPDATE)
    def manage_share_instance(
        self, ctx: Ctx, instance_id: str, driver_options: dict[str, typing.Any]
    ) -> None: ...

    @durable(failure=(SHARE_INSTANCE, 'unmanage_failed'), action=Action.UPDATE)
    def unmanage_share_instance(self, ctx: Ctx, instance_id: str) -> None: ...

    @durable(
        failure=(SNAPSHOT_INSTANCE, 'manage_failed'),
        action=Action.UPDATE,
        resource='snapshot_instance_id',
    )
    def manage_snapshot_instance(
        self, ctx: Ctx, snapshot_instance_id: str, driver_options: dict[str, typing.Any]
    ) -> None: ...

    @durable(
        failure=(SNAPSHOT_INSTANCE, 'unmanage_failed'),
        action=Action.UPDATE,
        resource='snapshot_instance_id',
    )
    def unmanage_snapshot_instance(
        self, ctx: Ctx, snapshot_instance_id: str
    ) -> None: ...


class EnsuringRpc(Contract):
    """Ensure that shares are exported at their export locations."""

    topic, version = TOPIC, '1.0'

    @durable(resource='service_id', one_per='service_id', repeatable=True)
    def ensure_shares(
        self, ctx: Ctx, service_id: int, update_status: bool = True, after: str = ''
    ) -> None: ...


class ConnectionsRpc(Contract):
    topic, version = TOPIC, '1.0'

    @call(timeout=60)
    def get_connection(self, ctx: Ctx, instance_id: str) -> dict[str, typing.Any]:
        """Return the driver's `ConnectionInfo` of a share instance.

        Raises ContentUnreachable if the driver has none.
        """
        raise NotImplementedError


class ShareMetadataRpc(Contract):
    """Pass some metadata of shares to the driver."""

    topic, version = TOPIC, '1.0'

    # The values are those at the time of the call.
    @durable(resource='share_instance_id', one_per='share_instance_id', repeatable=True)
    def update_share_from_metadata(
        self, ctx: Ctx, share_instance_id: str, keys: list[str]
    ) -> None: ...


class ShareTransfersRpc(Contract):
    """Carry out the transfer of a share that has been accepted."""

    topic, version = TOPIC, '1.0'

    # Its handler fires the events of the transfer: the work is on the share
    # instance, which nothing else may work on meanwhile.
    @durable(resource='share_instance_id', repeatable=True)
    def accept_transfer(
        self, ctx: Ctx, share_instance_id: str, transfer_id: str
    ) -> None: ...
