"""Share servers after what used them: idle ones, and reset migrations."""

from collections.abc import Callable, Iterable
import typing

from manila_lite import exception
from manila_lite.context import RequestContext
from manila_lite.db.queries.networks import share_networks
from manila_lite.db.queries.servers import (
    migrations as server_migrations,
    share_servers,
)
from manila_lite.db.session import Session
from manila_lite.db.transitions import fire_all
from manila_lite.rpc.contract import Client
from manila_lite.states.share_server import SHARE_SERVER


def release_unused(
    session: Session,
    ctx: RequestContext,
    work: Client,
    network_id: str,
    servers: Iterable[typing.Any],
    in_use: Callable[[str], exception.ManilaLiteError],
) -> None:
    """Request the deletion of servers whose network or subnet is deleted.

    They are detached at once; their addresses are released when they are
    gone. The driver is given the security services that they had joined.
    `in_use` makes the error for a server that cannot be deleted.
    """
    servers = list(servers)
    if not servers:
        return
    if not all(server.is_auto_deletable for server in servers):
        raise in_use('it has share servers that are not deleted automatically')
    ids = [server.id for server in servers]
    try:
        fire_all(session, SHARE_SERVER, ids, 'delete', updated_at=session.now)
    except exception.InvalidStatus as error:
        raise in_use('it has share servers that are busy') from error
    # Nothing new is placed on a server that is not active.
    if share_networks.list_share_instances(session, ids):
        raise in_use('it has shares')
    if share_networks.list_share_groups(session, ids):
        raise in_use('it has share groups')
    share_networks.detach_servers(session, ids)
    service_ids = [
        row.id for row in share_servers.list_security_services(session, network_id)
    ]
    for server in servers:
        work.on(server.host).delete_share_server(
            session, ctx, share_server_id=server.id, security_service_ids=service_ids
        )


def settle_migration(
    session: Session, ctx: RequestContext, work: Client, server_id: str
) -> None:
    """Request that an open migration ends if nothing will continue it.

    The service of the destination decides that when it runs the work.
    """
    migration = server_migrations.find_open(session, server_id)
    if migration is not None:
        work.on(migration.destination_host).settle_server_migration(
            session, ctx, share_server_id=server_id
        )
