"""The share networks and the share server of a share that is migrated."""

from manila_lite import exception
from manila_lite.context import RequestContext
from manila_lite.db.queries.networks import share_networks
from manila_lite.db.queries.servers import share_servers
from manila_lite.db.queries.types import types as share_types
from manila_lite.db.queries.types.types import TypeWithSpecs
from manila_lite.db.rows import InstanceRow, ShareNetworkRow
from manila_lite.db.session import Session
from manila_lite.states.share_network import NetworkStatus
from manila_lite.states.share_server import ServerStatus


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
