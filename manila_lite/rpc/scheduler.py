"""The RPC contract of the scheduler."""

import typing

from manila_lite.context import RequestContext as Ctx
from manila_lite.messages import Action, Detail
from manila_lite.rpc.contract import Contract, call, durable
from manila_lite.states.share_group import SHARE_GROUP
from manila_lite.states.share_instance import SHARE_INSTANCE
from manila_lite.states.share_task import SHARE_TASK

TOPIC = 'manila-scheduler'


class PlacementRpc(Contract):
    """Choose a pool, then hand the work over to its share service.

    The scheduler does not touch back ends, so all of its work is
    repeatable.
    """

    topic, version = TOPIC, '1.0'
    repeatable = True

    @durable(
        (SHARE_INSTANCE, 'create_failed'), Action.ALLOCATE_HOST, Detail.NO_VALID_HOST
    )
    def create_share_instance(
        self,
        ctx: Ctx,
        instance_id: str,
        zones: list[str],
        hints: dict[str, typing.Any],
        snapshot_id: str | None = None,
        source_host: str | None = None,
        attempted: list[str] | None = None,
        refusal: str | None = None,
    ) -> None:
        """Place a share; not on the pools in `attempted`, which refused it.

        `refusal` is the message detail of the last one, if it gave any.
        """

    @durable(
        (SHARE_INSTANCE, 'create_failed'), Action.ALLOCATE_HOST, Detail.NO_VALID_HOST
    )
    def create_share_replica(
        self, ctx: Ctx, instance_id: str, zones: list[str], hints: dict[str, typing.Any]
    ) -> None: ...

    @durable((SHARE_INSTANCE, 'extend_refused'), Action.EXTEND, Detail.NO_VALID_HOST)
    def extend_share_instance(
        self, ctx: Ctx, instance_id: str, new_size: int, growth: int
    ) -> None: ...

    @durable(
        (SHARE_INSTANCE, 'manage_failed'), Action.ALLOCATE_HOST, Detail.NO_VALID_HOST
    )
    def manage_share_instance(
        self, ctx: Ctx, instance_id: str, driver_options: dict[str, typing.Any]
    ) -> None: ...

    @durable((SHARE_GROUP, 'create_failed'), Action.ALLOCATE_HOST, Detail.NO_VALID_HOST)
    def create_share_group(
        self, ctx: Ctx, share_group_id: str, zones: list[str], on_network: bool = False
    ) -> None:
        """`on_network` is set for a group on a share network.

        Processes of release 1 do not know such groups.
        """

    @durable((SHARE_TASK, 'failed'), Action.ALLOCATE_HOST, Detail.NO_VALID_HOST)
    def migrate_share_to_host(
        self, ctx: Ctx, share_id: str, host: str, needs_release_2: bool = False
    ) -> None:
        """Allocate capacity on the destination of a migration.

        `needs_release_2` is that of `start_share_migration`.
        """

    @call(timeout=30)
    def check_server_destination(
        self, ctx: Ctx, host: str, needs: list[dict[str, typing.Any]]
    ) -> list[str]:
        raise NotImplementedError

    @call(timeout=30)
    def plan_server_destination(
        self, ctx: Ctx, host: str, needs: list[dict[str, typing.Any]]
    ) -> dict[str, typing.Any]:
        raise NotImplementedError
