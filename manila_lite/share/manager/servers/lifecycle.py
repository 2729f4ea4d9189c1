"""Delete, manage and unmanage share servers.

Each method contains the success path only, as in provisioning. Placing a
share on a server and removing the server both lock its row first.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
import contextlib
import dataclasses
import datetime
import functools
import logging
import typing
from typing import Annotated

from manila_lite import exception
from manila_lite.conf import Option
from manila_lite.db.queries.servers import idle_servers, share_servers
from manila_lite.db.rows import ServerIdRow, ShareServerRow
from manila_lite.db.session import Database, Session
from manila_lite.db.transitions import fire
from manila_lite.host import ServiceHost
from manila_lite.rpc.contract import Client, implements, work
from manila_lite.rpc.share import ShareServersRpc
from manila_lite.share.drivers.base import SecurityServiceForDriver, ShareDriver
from manila_lite.share.manager.driver_view import server_view
from manila_lite.share.manager.driver_view.server_view import LoadedServer
from manila_lite.share.manager.endpoint import (
    owner_context,
    require_status,
    undo_if_gone,
)
from manila_lite.share.manager.guarded_driver import driver_context
from manila_lite.share.manager.servers.setup import ServerSetup
from manila_lite.states.share_server import SHARE_SERVER, ServerStatus
from manila_lite.work.job import JobContext
from manila_lite.work.table import Claim

LOG = logging.getLogger(__name__)

BATCH = 100
"""The number of servers read or marked in one transaction."""


class LockedServer(typing.NamedTuple):
    """The locked server of a row of work, and its security services."""

    server: LoadedServer
    security_services: list[SecurityServiceForDriver]

    @property
    def details(self) -> dict[str, str]:
        return server_view.details_for_driver(self.server)


@implements(ShareServersRpc)
@dataclasses.dataclass(eq=False)
class ShareServersEndpoint:
    """Carries out work on the share servers of one back end.

    With `with_last_share` a server is deleted with its last share.
    """

    db: Database
    driver: ShareDriver
    server_client: Client[ShareServersRpc]
    service_host: ServiceHost
    setup: ServerSetup
    with_last_share: Annotated[bool, Option('delete_share_server_with_last_share')]

    # Called by other components

    def release(self, session: Session, server_id: str | None) -> None:
        """Record that a share has left a server; delete it if configured.

        The server may be on another back end.
        """
        if server_id is None:
            return
        if not idle_servers.mark(session, server_id):
            return
        row = share_servers.get(session, server_id)
        if (
            self.with_last_share
            and row.is_auto_deletable
            and row.status == ServerStatus.ACTIVE
        ):
            self._delete(session, row)

    def disable_auto_delete(self, session: Session, server_id: str | None) -> None:
        """Exclude a server from automatic deletion for good.

        It may contain resources that are no longer managed here.
        """
        if server_id is not None:
            idle_servers.disable_auto_delete(session, server_id)

    def delete_idle(self, idle_for: datetime.timedelta) -> int:
        """Delete servers that have been empty for `idle_for`; count them."""
        for page in self._pages(idle_servers.list_unmarked):
            self.db.write(self._mark_idle, page)
        before = self.db.utcnow() - idle_for
        return sum(
            self.db.write(self._delete_idle, server_id, before)
            for page in self._pages(idle_servers.list_idle, before)
            for server_id in page
        )

    def _pages(
        self, find: Callable[..., Sequence[ServerIdRow]], *args: datetime.datetime
    ) -> Iterator[list[str]]:
        """Yield the ids of servers of this back end, some at a time."""
        after = ''
        while rows := self.db.read(find, self.service_host, *args, after, BATCH):
            yield [row.id for row in rows]
            if len(rows) < BATCH:
                return
            after = rows[-1].id

    def _mark_idle(self, session: Session, server_ids: list[str]) -> None:
        for server_id in server_ids:
            idle_servers.mark(session, server_id)

    def _delete_idle(
        self, session: Session, server_id: str, before: datetime.datetime
    ) -> bool:
        # Checked again under the lock: a share may have been placed on it,
        # or another manager may have deleted it.
        share_servers.lock(session, server_id)
        row = share_servers.find(session, server_id)
        if (
            row is None
            or row.status != ServerStatus.ACTIVE
            or row.idle_since is None
            or row.idle_since > before
            or share_servers.is_used(session, server_id)
        ):
            return False
        LOG.info(
            'Deleting share server %s, which has been idle since %s',
            server_id,
            row.idle_since,
        )
        self._delete(session, row)
        return True

    def _delete(self, session: Session, row: ShareServerRow) -> None:
        fire(session, SHARE_SERVER, row.id, 'delete')
        self.server_client.on(row.host).delete_share_server(
            session, owner_context(row), share_server_id=row.id
        )

    # Delete

    def prepare_delete_share_server(self, session: Session, job: Claim) -> LockedServer:
        locked = self.expect(session, job, ServerStatus.DELETING)
        if share_servers.is_used(session, job.resource_id):
            # Only after `reset_status`: requests are refused while in use.
            raise exception.ShareServerInUse(share_server_id=job.resource_id)
        service_ids = job.args.get('security_service_ids')
        if not service_ids:
            return locked
        # Its network was deleted, or the server was detached from it.
        return locked._replace(
            security_services=[
                server_view.security_service_for_driver(row)
                for row in share_servers.list_security_services_by_id(
                    session, service_ids
                )
            ]
        )

    def delete_share_server(
        self,
        job: JobContext,
        share_server_id: str,
        security_service_ids: Sequence[str] = (),
    ) -> None:
        locked: LockedServer = job.prepared
        self.driver.teardown_server(
            locked.details, security_services=locked.security_services
        )
        job.finish(self._removed, share_server_id, 'deleted')

    def _removed(self, session: Session, server_id: str, event: str) -> None:
        """Remove the rows of a server and release its addresses."""
        self._release_addresses(session, server_id)
        share_servers.delete_dependents(session, server_id)
        fire(session, SHARE_SERVER, server_id, event)

    def _release_addresses(self, session: Session, server_id: str) -> None:
        if self.setup.networks is not None:
            self.setup.networks.deallocate(session, server_id)

    # Manage and unmanage

    @work(expects=ServerStatus.MANAGE_STARTING)
    def manage_share_server(
        self,
        job: JobContext,
        share_server_id: str,
        identifier: str,
        driver_options: dict[str, str],
    ) -> None:
        locked: LockedServer = job.prepared
        server = server_view.server_for_driver(locked.server)
        addresses = self.driver.get_share_server_network_info(
            driver_context(), server, identifier, driver_options
        )
        self._store_addresses(locked.server, addresses)
        # Read again, now with its addresses.
        loaded = job.read(server_view.load_server, share_server_id)
        new_identifier, details = self.driver.manage_server(
            driver_context(),
            server_view.server_for_driver(loaded),
            identifier,
            driver_options,
        )
        undo = functools.partial(
            self.driver.unmanage_server,
            {'server_id': share_server_id, **(details or {})},
            security_services=locked.security_services,
        )
        with undo_if_gone(job, share_servers.find, share_server_id, undo):
            job.finish(
                self._managed,
                share_server_id,
                new_identifier or identifier,
                details or {},
            )

    def _store_addresses(
        self, server: LoadedServer, addresses: typing.Sequence[str]
    ) -> None:
        """Store the addresses of the server; raise if one fits no subnet."""
        networks, rest = self.setup.networks, list(addresses or [])
        if networks is None:
            raise exception.ManageInvalidShareServer(
                reason='the driver does not handle share servers'
            )
        for subnet_id in server.subnet_ids:
            rest = networks.user.manage_network_allocations(
                server.row.id, subnet_id, rest
            )
        if rest and networks.admin is not None:
            rest = networks.admin.manage_network_allocations(server.row.id, None, rest)
        if rest:
            raise exception.ManageInvalidShareServer(
                reason=f'{", ".join(rest)} are in none of its subnets'
            )

    def _managed(
        self,
        session: Session,
        server_id: str,
        identifier: str,
        details: Mapping[str, typing.Any],
    ) -> None:
        fire(
            session,
            SHARE_SERVER,
            server_id,
            'managed',
            identifier=identifier,
            **self.setup.driver_capabilities,
        )
        share_servers.merge_details(session, server_id, details)

    def failed_manage_share_server(
        self, session: Session, job: Claim, error: Exception
    ) -> bool:
        self.setup.give_up(session, job.resource_id, 'manage_failed')
        return True

    def prepare_unmanage_share_server(
        self, session: Session, job: Claim
    ) -> LockedServer:
        locked = self.expect(session, job, ServerStatus.UNMANAGE_STARTING)
        if share_servers.is_used(session, job.resource_id):
            raise exception.ShareServerInUse(share_server_id=job.resource_id)
        return locked

    def unmanage_share_server(
        self, job: JobContext, share_server_id: str, force: bool = False
    ) -> None:
        locked: LockedServer = job.prepared
        with (
            contextlib.suppress(NotImplementedError)
            if force
            else contextlib.nullcontext()
        ):
            self.driver.unmanage_server(
                locked.details, security_services=locked.security_services
            )
        job.finish(self._removed, share_server_id, 'unmanaged')

    # All

    def expect(self, session: Session, job: Claim, status: str) -> LockedServer:
        """Return the locked server if it still waits for this work."""
        server = server_view.load_server(session, job.resource_id, lock_shared=True)
        require_status(job, SHARE_SERVER, server.row.id, server.row.status, status)
        return LockedServer(
            server,
            [
                server_view.security_service_for_driver(row)
                for row in share_servers.list_security_services(
                    session, server.row.share_network_id
                )
            ],
        )
