"""Share servers."""

from collections.abc import Callable, Iterable, Sequence
import dataclasses
import typing
from typing import Annotated

from manila_lite import exception
from manila_lite.conf import Option
from manila_lite.context import RequestContext
from manila_lite.db import rows
from manila_lite.db.queries.networks import share_networks, subnets
from manila_lite.db.queries.networks.subnets import Subnet
from manila_lite.db.queries.servers import (
    migrations as server_migrations,
    share_servers,
)
from manila_lite.db.queries.services import services
from manila_lite.db.session import Database, Session, transaction
from manila_lite.db.transitions import fire, fire_all, insert_row
from manila_lite.rpc.contract import Client
from manila_lite.rpc.share import BINARY, ServerMigrationRpc, ShareServersRpc
from manila_lite.share.operations.networks import checks
from manila_lite.share.operations.reset_events import refuse_contradiction, reset_event
from manila_lite.states.share_server import SHARE_SERVER, ServerStatus

_DELETABLE = frozenset({ServerStatus.ACTIVE, ServerStatus.ERROR})
"""Statuses in which users may delete; `inactive` is for migrations."""


@dataclasses.dataclass(frozen=True)
class ManageServerRequest:
    """A request to manage a server that exists on a back end.

    `host` is host@backend, `identifier` the server's name there. Without a
    subnet, the default subnets of the network are used.
    """

    host: str
    share_network_id: str
    identifier: str
    share_network_subnet_id: str | None = None
    driver_options: dict[str, typing.Any] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(eq=False)
class ShareServers:
    """Operations on share servers. Each method is one transaction.

    A status that does not allow a request raises InvalidStatus; the caller
    chooses the HTTP code.
    """

    db: Database
    work: Client[ShareServersRpc]
    migration_work: Client[ServerMigrationRpc]
    down_time: Annotated[float, Option('service_down_time')]

    @transaction
    def delete(
        self, session: Session, ctx: RequestContext, server: rows.ServerTarget
    ) -> None:
        """Request the deletion of a server that nothing is on."""
        status = self._lock(session, server)
        if status not in _DELETABLE:
            raise exception.InvalidStatus(
                resource='share server',
                id=server.id,
                status=status,
                event='delete',
                allowed=', '.join(sorted(_DELETABLE)),
            )
        self._refuse_used(session, server)
        fire(session, SHARE_SERVER, server.id, 'delete')
        self.work.on(server.host).delete_share_server(
            session, ctx, share_server_id=server.id
        )

    @transaction
    def manage(
        self, session: Session, ctx: RequestContext, request: ManageServerRequest
    ) -> str:
        """Accept a server that exists on a back end and return its id."""
        network = checks.lock_active_shared(session, request.share_network_id)
        service = self._service(session, request.host)
        network_subnets = self._subnets(
            session, request, network.id, service.availability_zone_id
        )
        # The row of the service is locked: of two requests for one
        # identifier the second sees the server of the first.
        if share_servers.is_identifier_known(session, service.host, request.identifier):
            raise exception.InvalidShareServer(
                reason=f'{request.identifier} on {service.host} is '
                'already managed, or similar to an identifier that is'
            )
        server_id = session.new_id()
        insert_row(
            session,
            SHARE_SERVER,
            'manage',
            id=server_id,
            host=service.host,
            share_network_id=network.id,
            identifier=request.identifier,
            is_auto_deletable=False,
            security_service_update_support=False,
            network_allocation_update_support=False,
            share_replicas_migration_support=False,
            created_at=session.now,
            updated_at=session.now,
        )
        share_servers.add_subnets(
            session, server_id, [subnet.id for subnet in network_subnets]
        )
        self.work.on(service.host).manage_share_server(
            session,
            ctx,
            share_server_id=server_id,
            identifier=request.identifier,
            driver_options=request.driver_options,
        )
        return server_id

    def _service(self, session: Session, host: str) -> typing.Any:
        service = services.get(session, host, BINARY, lock=True)
        if not services.is_up(service, self.down_time):
            raise exception.ServiceIsDown(binary=BINARY, host=host)
        return service

    def _subnets(
        self,
        session: Session,
        request: ManageServerRequest,
        network_id: str,
        zone_id: str,
    ) -> Sequence[Subnet]:
        """Return the subnets of the server: all of the zone of the named one.

        If none is named, these are the default subnets, or if there are none,
        those of the zone of the back end.
        """
        serving = [
            subnet
            for subnet in subnets.list_for_network(session, network_id)
            if subnet.is_default or subnet.availability_zone_id == zone_id
        ]
        subnet_id = request.share_network_subnet_id
        if subnet_id is None:
            named = min(serving, key=lambda one: not one.is_default, default=None)
        else:
            named = next((one for one in serving if one.id == subnet_id), None)
        if named is None:
            raise exception.InvalidInput(
                reason='share_network_subnet_id must be that of a subnet '
                f'of share network {network_id} which serves the '
                f'zone of {request.host}'
            )
        return [
            one
            for one in serving
            if one.availability_zone_id == named.availability_zone_id
        ]

    @transaction
    def unmanage(
        self,
        session: Session,
        ctx: RequestContext,
        server: rows.ServerTarget,
        *,
        force: bool = False,
    ) -> None:
        """Request that a server is unmanaged; it stays on the back end.

        With `force`, driver errors are ignored.
        """
        self._lock(session, server)
        fire(session, SHARE_SERVER, server.id, 'unmanage')
        self._refuse_used(session, server)
        self.work.on(server.host).unmanage_share_server(
            session, ctx, share_server_id=server.id, force=force
        )

    @transaction
    def reset_status(
        self,
        session: Session,
        ctx: RequestContext,
        server: rows.ServerTarget,
        status: str,
    ) -> None:
        """Set the status by `reset_status`; raises InvalidInput."""
        event = reset_event(SHARE_SERVER, status)
        self._lock(session, server)
        # What builds it is the work of a share or a group.
        is_being_built = share_servers.get(
            session, server.id
        ).build_key is not None and share_servers.has_work_begun(session, server.id)
        # No share waits any longer for this server to be built.
        fire(session, SHARE_SERVER, server.id, event, build_key=None)
        refuse_contradiction(
            session, SHARE_SERVER, server.id, event, exists=not is_being_built
        )
        end_abandoned_migration(session, ctx, self.migration_work, server.id)

    def _lock(self, session: Session, server: rows.ServerTarget) -> str:
        """Lock the server against new shares and return its status."""
        status = share_servers.lock(session, server.id)
        if status is None:
            raise exception.ShareServerNotFound(share_server_id=server.id)
        return status

    def _refuse_used(self, session: Session, server: rows.ServerTarget) -> None:
        if share_servers.is_used(session, server.id):
            raise exception.ShareServerInUse(share_server_id=server.id)


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
        fire_all(session, SHARE_SERVER, ids, 'delete')
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


def end_abandoned_migration(
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
