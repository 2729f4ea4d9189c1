"""Checks on migrations of a share: its networks, and what they exclude."""

from manila_lite import exception
from manila_lite.context import RequestContext
from manila_lite.db.queries.networks import share_networks
from manila_lite.db.queries.servers import share_servers
from manila_lite.db.queries.shares import instances as share_instances, migrations
from manila_lite.db.queries.types import types as share_types
from manila_lite.db.queries.types.types import TypeWithSpecs
from manila_lite.db.rows import InstanceRow, ShareNetworkRow
from manila_lite.db.session import Session
from manila_lite.states import share_server
from manila_lite.states.share_network import NetworkStatus
from manila_lite.states.share_server import ServerStatus
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

    Resets of a share instance and of what is on it call this. The reset has
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


def choose_network(
    session: Session,
    instance: InstanceRow,
    new_type: TypeWithSpecs | None,
    requested_id: str | None,
) -> str | None:
    """Return the id of the network of the destination, None without one.

    It is the requested one, or that of the share. It is required if, and
    only if, the type that the share is to have is for share servers.
    """
    if not _needs_network(session, instance, new_type):
        if requested_id is not None:
            raise exception.InvalidInput(
                reason='new_share_network_id cannot be used: '
                'driver_handles_share_servers of the share type is false'
            )
        return None
    network_id = requested_id or instance.share_network_id
    if network_id is None:
        raise exception.InvalidInput(
            reason='new_share_network_id is required: '
            'driver_handles_share_servers of the new share type is true, and '
            'the share has no share network'
        )
    return network_id


def _needs_network(
    session: Session, instance: InstanceRow, new_type: TypeWithSpecs | None
) -> bool:
    if new_type is None and instance.share_type_id is not None:
        new_type = share_types.find_by_id(session, instance.share_type_id)
    if new_type is None:
        return instance.share_network_id is not None
    return new_type.flag('driver_handles_share_servers')


def lock_networks(
    session: Session,
    ctx: RequestContext,
    instance: InstanceRow,
    network_id: str | None,
    *,
    zone: str,
) -> None:
    """Lock what the migration needs of both networks, and check it.

    A change or deletion of a network locks it, too: it either is seen here,
    or sees the migration. The locks are shared, so no order is needed.
    """
    if instance.share_network_id is not None:
        _require_active(share_networks.lock_shared(session, instance.share_network_id))
    if network_id is not None:
        _check_destination(session, ctx, instance, network_id, zone)
    if instance.share_server_id is not None:
        server = share_servers.get(session, instance.share_server_id, lock_shared=True)
        if server.status != ServerStatus.ACTIVE:
            raise exception.InvalidShare(
                reason=f'share {instance.share_id} is on share server '
                f'{server.id}, which is {server.status}, not '
                f'{ServerStatus.ACTIVE}'
            )


def _check_destination(
    session: Session,
    ctx: RequestContext,
    instance: InstanceRow,
    network_id: str,
    zone: str,
) -> None:
    try:
        network = share_networks.lock_shared(session, network_id)
    except exception.ShareNetworkNotFound:
        raise _not_found(network_id) from None
    if network.project_id != instance.project_id:
        if not ctx.is_admin:
            raise _not_found(network_id)
        raise exception.InvalidInput(
            reason=f'new_share_network_id: share network {network_id} '
            'belongs to another project than the share'
        )
    _require_active(network)
    if not share_servers.list_zone_subnets(session, network_id, zone):
        raise exception.InvalidInput(
            reason=f'share network {network_id} has no subnet for '
            f'availability zone {zone}, that of the destination'
        )


def _require_active(network: ShareNetworkRow) -> None:
    if network.status != NetworkStatus.ACTIVE:
        raise exception.InvalidInput(
            reason=f'share network {network.id} must be active, not {network.status}'
        )


def _not_found(network_id: str) -> exception.ManilaLiteError:
    return exception.InvalidInput(
        reason=f'new_share_network_id: share network {network_id} could not be found'
    )
