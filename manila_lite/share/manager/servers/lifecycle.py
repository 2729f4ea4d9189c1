"""Removes share servers, takes them over, and lets them go.

Each method holds the happy way only, as in provisioning. Who puts a share
on a server and who removes the server both hold its row first.
"""

from collections.abc import Mapping
import contextlib
import datetime
import logging
import typing

from manila_lite import exception
from manila_lite.context import RequestContext
from manila_lite.db.queries.servers import share_servers
from manila_lite.db.session import Database
from manila_lite.db.session import Session
from manila_lite.db.transitions import fire
from manila_lite.rpc.contract import Client
from manila_lite.rpc.contract import implements
from manila_lite.rpc.share import ShareServersRpc
from manila_lite.share.drivers.base import SecurityServiceForDriver
from manila_lite.share.drivers.base import ShareDriver
from manila_lite.share.manager.driver_view import server_view
from manila_lite.share.manager.driver_view.server_view import LoadedServer
from manila_lite.share.manager.recovery.base import owner_context
from manila_lite.share.manager.servers.setup import ServerSetup
from manila_lite.states.share_server import SHARE_SERVER
from manila_lite.states.share_server import ServerStatus

LOG = logging.getLogger(__name__)


class LockedServer(typing.NamedTuple):
    """A server that work is about, and the directory services it uses."""

    server: LoadedServer
    security_services: list[SecurityServiceForDriver]

    @property
    def details(self) -> dict[str, str]:
        return server_view.details_for_driver(self.server)


@implements(ShareServersRpc)
class ShareServersEndpoint:
    """The share servers of one back end.

    With `with_last_share` a server goes together with its last share.
    """

    def __init__(
        self,
        db: Database,
        driver: ShareDriver,
        works: Client,
        service_host: str,
        setup: ServerSetup,
        *,
        with_last_share: bool,
    ):
        self.db = db
        self.driver = driver
        self.works = works.on(service_host)
        self.service_host = service_host
        self.setup = setup
        self.with_last_share = with_last_share

    # What others call

    def release(self, session: Session, server_id: str | None) -> None:
        """Note that a share is gone from a server; perhaps it goes too."""
        if server_id is None:
            return
        if not share_servers.mark_idle(session, server_id):
            return
        row = share_servers.get(session, server_id)
        if (
            self.with_last_share
            and row.is_auto_deletable
            and row.status == ServerStatus.ACTIVE
        ):
            self._delete(session, row)

    def keep(self, session: Session, server_id: str | None) -> None:
        """Never delete a server by oneself again.

        There may be something on it that is not known here any more.
        """
        if server_id is not None:
            share_servers.disable_auto_delete(session, server_id)

    def delete_idle(self, idle_for: datetime.timedelta) -> int:
        """Delete servers that nothing has been on for so long."""
        self.db.write(share_servers.mark_all_idle, self.service_host)
        before = self.db.utcnow() - idle_for
        idle = self.db.read(share_servers.list_idle, self.service_host, before)
        return sum(
            self.db.write(self._delete_idle, row.id, before) for row in idle
        )

    def _delete_idle(
        self, session: Session, server_id: str, before: datetime.datetime
    ) -> bool:
        # Looked for once more: a share may have come, or another manager.
        share_servers.lock(session, server_id)
        row = share_servers.find(session, server_id)
        if (
            row is None
            or row.status != ServerStatus.ACTIVE
            or row.idle_since is None
            or row.idle_since > before
            or share_servers.has_instances(session, server_id)
        ):
            return False
        LOG.info(
            'Share server %s has been idle since %s and is deleted',
            server_id,
            row.idle_since,
        )
        self._delete(session, row)
        return True

    def _delete(self, session: Session, row: typing.Any) -> None:
        fire(session, SHARE_SERVER, row.id, 'delete', updated_at=session.now)
        self.works.delete_share_server(
            session, owner_context(row), share_server_id=row.id
        )

    # Delete

    def prepare_delete_share_server(
        self, session: Session, job
    ) -> LockedServer:
        kept = self._expect(session, job, ServerStatus.DELETING)
        if share_servers.has_instances(session, job.resource_id):
            # By decree only: no request is accepted while it is.
            raise exception.ShareServerInUse(share_server_id=job.resource_id)
        left = job.args.get('security_service_ids')
        if not left:
            return kept
        # Its network is gone, or it has left it.
        return kept._replace(
            security_services=[
                server_view.security_service_for_driver(row)
                for row in share_servers.list_security_services_by_id(
                    session, left
                )
            ]
        )

    def delete_share_server(
        self, job, share_server_id, security_service_ids=()
    ):
        kept = job.prepared
        self.driver.teardown_server(
            kept.details, security_services=kept.security_services
        )
        job.finish(self._gone, share_server_id, 'deleted')

    def _gone(self, session: Session, server_id: str, event: str) -> None:
        """Remove the rows of a server, its addresses given back."""
        self._give_back(session, server_id)
        share_servers.delete_dependents(session, server_id)
        fire(session, SHARE_SERVER, server_id, event)

    def _give_back(self, session: Session, server_id: str) -> None:
        if self.setup.networks is not None:
            self.setup.networks.deallocate(session, server_id)

    # Servers that are there already

    def prepare_manage_share_server(
        self, session: Session, job
    ) -> LockedServer:
        return self._expect(session, job, ServerStatus.MANAGE_STARTING)

    def manage_share_server(
        self, job, share_server_id, identifier, driver_options
    ):
        server = server_view.server_for_driver(job.prepared.server)
        addresses = self.driver.get_share_server_network_info(
            RequestContext(), server, identifier, driver_options
        )
        self._note_addresses(job.prepared.server, addresses)
        found = job.read(server_view.load_server, share_server_id)
        new_identifier, details = self.driver.manage_server(
            RequestContext(),
            server_view.server_for_driver(found),
            identifier,
            driver_options,
        )
        try:
            job.finish(
                self._managed,
                share_server_id,
                new_identifier or identifier,
                details or {},
            )
        except (exception.ClaimLost, exception.ResourceNotFound):
            if job.read(share_servers.find, share_server_id) is None:
                # Given up and removed meanwhile: nobody would let it go.
                self.driver.unmanage_server(
                    {'server_id': share_server_id, **(details or {})},
                    security_services=job.prepared.security_services,
                )
            raise

    def _note_addresses(
        self, server: LoadedServer, addresses: typing.Sequence[str]
    ) -> None:
        """Note what the server has; raises when it fits no network."""
        networks, rest = self.setup.networks, list(addresses or [])
        if networks is None:
            raise exception.ManageInvalidShareServer(
                reason='the driver handles no share servers'
            )
        for subnet_id in server.subnet_ids:
            rest = networks.user.manage_network_allocations(
                server.row.id, subnet_id, rest
            )
        if rest and networks.admin is not None:
            rest = networks.admin.manage_network_allocations(
                server.row.id, None, rest
            )
        if rest:
            raise exception.ManageInvalidShareServer(
                reason=f'{", ".join(rest)} are in no subnet of it'
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
            updated_at=session.now,
            **self.setup.support,
        )
        share_servers.merge_details(session, server_id, details)

    def failed_manage_share_server(self, session, job, error):
        self.setup.give_up(session, job.resource_id, 'manage_failed')
        return True

    def prepare_unmanage_share_server(
        self, session: Session, job
    ) -> LockedServer:
        kept = self._expect(session, job, ServerStatus.UNMANAGE_STARTING)
        if share_servers.has_instances(session, job.resource_id):
            raise exception.ShareServerInUse(share_server_id=job.resource_id)
        return kept

    def unmanage_share_server(self, job, share_server_id, force=False):
        kept = job.prepared
        with (
            contextlib.suppress(NotImplementedError)
            if force
            else contextlib.nullcontext()
        ):
            self.driver.unmanage_server(
                kept.details, security_services=kept.security_services
            )
        job.finish(self._gone, share_server_id, 'unmanaged')

    # All

    def _expect(self, session: Session, job, status: str) -> LockedServer:
        """The server, kept, if it still waits for this work."""
        server = server_view.load_server(
            session, job.resource_id, lock_shared=True
        )
        if server.row.status != status:
            raise exception.InvalidStatus(
                resource='share server',
                id=server.row.id,
                status=server.row.status,
                event=job.kind,
                allowed=status,
            )
        return LockedServer(
            server,
            [
                server_view.security_service_for_driver(row)
                for row in share_servers.list_security_services(
                    session, server.row.share_network_id
                )
            ],
        )
