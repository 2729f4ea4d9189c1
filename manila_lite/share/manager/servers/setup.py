"""Choose or build the share server for a new share.

The driver chooses among suitable servers. A share is bound to its server
by a guarded UPDATE, and the choice is repeated when another share was
faster. Without a suitable server, one is built: of all work that needs
the same server, the first builds it and the others wait and then choose.
"""

from collections.abc import Mapping
import functools
import typing

from manila_lite import exception
from manila_lite.db.queries.servers import share_servers
from manila_lite.db.queries.servers.server_load import NO_LIMITS
from manila_lite.db.queries.servers.server_load import ServerLimits
from manila_lite.db.rows import InstanceRow
from manila_lite.db.session import Database
from manila_lite.db.session import Session
from manila_lite.db.transitions import fire
from manila_lite.db.transitions import insert_row
from manila_lite.messages import Action
from manila_lite.messages import Detail
from manila_lite.messages import explanation_in
from manila_lite.share.drivers.base import NetworkInfo
from manila_lite.share.drivers.base import ShareDriver
from manila_lite.share.drivers.base import ShareServerSupport
from manila_lite.share.manager.driver_view import server_view
from manila_lite.share.manager.driver_view import share_view
from manila_lite.share.manager.driver_view.server_view import LoadedServer
from manila_lite.share.manager.driver_view.share_view import LoadedInstance
from manila_lite.share.manager.driver_view.share_view import LoadedSnapshot
from manila_lite.share.manager.driver_view.share_view import NameTemplates
from manila_lite.share.manager.endpoint import is_on
from manila_lite.share.manager.endpoint import undo_if_gone
from manila_lite.share.manager.guarded_driver import driver_context
from manila_lite.share.manager.servers.demand import ServerDemand
from manila_lite.share.manager.servers.demand import demand_of
from manila_lite.share.manager.servers.demand import key_for_driver
from manila_lite.share.manager.servers.failures import failure_detail
from manila_lite.share.manager.servers.failures import no_server
from manila_lite.share.manager.servers.failures import reported_details
from manila_lite.share.manager.servers.networks import ServerNetworks
from manila_lite.share.manager.servers.networks import with_servers
from manila_lite.states.share_instance import SHARE_INSTANCE
from manila_lite.states.share_server import SHARE_SERVER
from manila_lite.states.share_server import ServerStatus
from manila_lite.work import table
from manila_lite.work.job import JobContext
from manila_lite.work.notify import notify_user
from manila_lite.work.table import Claim

RETRY_PAUSE = 0.5
"""Seconds until a retry while other work builds the server."""

_CHOICES = 10
"""Number of choices by the driver before the work has to wait."""


class _ServerAppeared(exception.ManilaLiteError):
    message = 'Another share server has become available.'


class ServerSetup:
    """Provides share servers for the shares of one back end.

    `networks` is None for a driver that does not handle share servers.
    """

    def __init__(
        self,
        db: Database,
        driver: ShareDriver,
        service_host: str,
        *,
        names: NameTemplates,
        networks: ServerNetworks | None = None,
        limits: ServerLimits = NO_LIMITS,
        backend_name: str = '',
        message_ttl: int = 0,
    ):
        self.db = db
        self.driver = driver
        self.service_host = service_host
        self.names = names
        self.networks = networks
        self.limits = limits
        self.backend_name = backend_name
        self.message_ttl = message_ttl

    def complete_stats(
        self, stats: Mapping[str, typing.Any]
    ) -> dict[str, typing.Any]:
        """Add to the statistics of a driver what only the manager knows.

        IP versions are limited to those of the network plug-in, and
        `server_pools_mapping` lists for schedulers the pools of each server.
        """
        if self.networks is None:
            return dict(stats)
        return with_servers(
            stats, self.networks, self.driver, self.db.read(self._list_active)
        )

    def _list_active(self, session: Session) -> list[LoadedServer]:
        return list(
            server_view.load_servers(
                session,
                share_servers.list_ids_on_host(
                    session, self.service_host, [ServerStatus.ACTIVE]
                ),
            ).values()
        )

    # A server for a share

    def provide_server(
        self,
        job: JobContext,
        instance: LoadedInstance,
        snapshot: LoadedSnapshot | None = None,
    ) -> LoadedInstance | None:
        """Return the new share with its server; None when it has to wait.

        In the latter case the work has been released. `snapshot` is the
        source of the share, if any.
        """
        if self.networks is None:
            if instance.row.share_network_id is not None:
                raise exception.InvalidShareServer(
                    reason='the driver does not handle share servers',
                    message_detail=Detail.UNEXPECTED_NETWORK,
                )
            return instance
        for _ in range(_CHOICES):
            server = self._choose_or_build(job, instance, snapshot)
            if (
                server is not None
                and server.row.status == ServerStatus.CREATING
            ):
                server = self._build(job, server, instance)
            if server is not None:
                return instance._replace(server=server)
            if job.closed:
                return None
        self._wait(job)
        return None

    def _choose_or_build(
        self,
        job: JobContext,
        instance: LoadedInstance,
        snapshot: LoadedSnapshot | None,
    ) -> LoadedServer | None:
        """Return the server of the share; None to choose again."""
        if instance.server is not None:
            return self._check_usable(instance.server)
        candidates, known, demand = job.read(
            self._candidates, instance, snapshot
        )
        chosen = self._choose(candidates, instance, snapshot, demand)
        if chosen is not None:
            return self.db.write(
                self._bind, job.claim, instance, chosen, by=job.claim
            )
        try:
            server_id = self.db.write(
                self._start_build,
                job.claim,
                instance,
                demand,
                known,
                by=job.claim,
            )
        except _ServerAppeared:
            return None
        if server_id is None:
            self._wait(job)
            return None
        return job.read(server_view.load_server, server_id)

    def _wait(self, job: JobContext) -> None:
        job.release(RETRY_PAUSE)
        job.wake_after = RETRY_PAUSE

    def _check_usable(self, server: LoadedServer) -> LoadedServer:
        """Return a server bound earlier by this work; raise if unusable."""
        if server.row.status not in (
            ServerStatus.ACTIVE,
            ServerStatus.CREATING,
        ):
            raise no_server(
                f'share server {server.row.id} is {server.row.status}'
            )
        return server

    def _candidates(
        self,
        session: Session,
        instance: LoadedInstance,
        snapshot: LoadedSnapshot | None,
    ) -> tuple[list[LoadedServer], set[str], ServerDemand]:
        """Return candidates, ids of all suitable servers, and the demand.

        The candidates are fewer when the share is created from a snapshot.
        """
        demand = demand_of(session, self.service_host, instance.row)
        ids = demand.list_suitable(session, self.limits)
        known = set(ids)
        if snapshot is not None and self._is_here(snapshot):
            # A snapshot is accessible on its own share server only.
            ids = [
                id for id in ids if id == snapshot.share.row.share_server_id
            ]
            if not ids:
                raise no_server(
                    'the share server of the snapshot cannot take the share'
                )
        servers = server_view.load_servers(session, ids)
        return ([servers[id] for id in ids if id in servers], known, demand)

    def _is_here(self, snapshot: LoadedSnapshot) -> bool:
        row = snapshot.share.row
        return row.share_server_id is not None and is_on(
            row, self.service_host
        )

    def _choose(
        self,
        candidates: list[LoadedServer],
        instance: LoadedInstance,
        snapshot: LoadedSnapshot | None,
        demand: ServerDemand,
    ) -> str | None:
        """Return the id of the candidate chosen by the driver, if any."""
        if not candidates:
            return None
        chosen = self.driver.choose_share_server_compatible_with_share(
            driver_context(),
            [server_view.server_for_driver(each) for each in candidates],
            share_view.share_for_driver(instance, self.names.share),
            snapshot=snapshot
            and share_view.snapshot_for_driver(snapshot, self.names),
            **key_for_driver(demand.encryption_key_ref),
        )
        if chosen is None:
            return None
        if chosen['id'] not in {each.row.id for each in candidates}:
            raise no_server(
                'the driver chose a share server that was not offered'
            )
        return chosen['id']

    def _bind(
        self,
        session: Session,
        job: Claim,
        instance: LoadedInstance,
        server_id: str,
    ) -> LoadedServer | None:
        table.checkpoint(session, job, f'on share server {server_id}')
        if not share_servers.bind(
            session, instance.row.id, server_id, instance.row.size, self.limits
        ):
            return None
        return server_view.load_server(session, server_id)

    # Building a server

    def _start_build(
        self,
        session: Session,
        job: Claim,
        instance: LoadedInstance,
        demand: ServerDemand,
        known: set[str],
    ) -> str | None:
        """Insert a new server with the share on it, and return its id.

        Returns None when other work builds this server, and raises when a
        suitable server that is not in `known` has appeared.
        """
        table.checkpoint(session, job, 'building a share server')
        if share_servers.is_being_built(session, demand.build_key):
            return None
        server_id = session.new_id()
        share_servers.insert_unique(
            session,
            lambda: insert_row(
                session,
                SHARE_SERVER,
                'create',
                **self.initial_columns(
                    session, server_id, instance.row.share_network_id
                ),
                encryption_key_ref=demand.encryption_key_ref,
                build_key=demand.build_key,
            ),
        )
        # The build key excludes other builds from here on. A build that
        # began after the choice and was faster has finished.
        if not known.issuperset(demand.list_suitable(session, self.limits)):
            raise _ServerAppeared()
        share_servers.add_subnets(session, server_id, demand.subnet_ids)
        if not share_servers.attach(session, instance.row.id, server_id):
            raise exception.InvalidStatus(
                resource='share instance',
                id=instance.row.id,
                status='on a share server',
                event='place',
                allowed='on none',
            )
        return server_id

    def initial_columns(
        self, session: Session, server_id: str, share_network_id: str | None
    ) -> dict[str, typing.Any]:
        """Return the initial columns of a server of this back end."""
        return {
            'id': server_id,
            'host': self.service_host,
            'share_network_id': share_network_id,
            'identifier': server_id,
            'is_auto_deletable': True,
            'created_at': session.now,
            **self.driver_capabilities,
        }

    @property
    def driver_capabilities(self) -> dict[str, bool]:
        """The capabilities of the driver that each server row stores."""
        return {
            name: bool(getattr(self.driver, name))
            for name in (
                'security_service_update_support',
                'network_allocation_update_support',
                'share_replicas_migration_support',
            )
        }

    def _build(
        self, job: JobContext, server: LoadedServer, instance: LoadedInstance
    ) -> LoadedServer:
        self.allocate(server)
        network_info = job.read(self.network_info, server.row.id)
        details = self.set_up(
            network_info, instance.row, server.row.encryption_key_ref
        )
        undo = functools.partial(
            self.driver.teardown_server,
            {'server_id': server.row.id, **details},
            security_services=network_info[0]['security_services'],
        )
        with undo_if_gone(
            job,
            share_servers.find,
            server.row.id,
            undo,
            given_up=[ServerStatus.ERROR],
        ):
            return self.db.write(
                self._built, job.claim, server.row.id, details, by=job.claim
            )

    @property
    def addresses_per_subnet(self) -> int:
        """The number of addresses of a server in each of its subnets."""
        driver = typing.cast(ShareServerSupport, self.driver)
        return driver.get_network_allocations_number()

    def allocate(self, server: LoadedServer) -> None:
        """Allocate all addresses that a server needs; idempotent.

        Raises NetworkException.
        """
        assert self.networks is not None
        number = self.addresses_per_subnet
        for subnet_id in server.subnet_ids:
            self.networks.user.allocate_network(
                server.row.id, subnet_id, number
            )
        for_admins = self.driver.get_admin_network_allocations_number()
        if for_admins:
            if self.networks.admin is None:
                raise exception.NetworkBadConfigurationException(
                    reason='admin_network_config_group is not set, and the '
                    f'driver needs {for_admins} addresses there'
                )
            self.networks.admin.allocate_network(
                server.row.id, None, for_admins
            )

    def network_info(
        self, session: Session, server_id: str
    ) -> list[NetworkInfo]:
        """Read the desired network setup of a server, by subnet."""
        server = server_view.load_server(session, server_id)
        return server_view.network_info(session, server, self.backend_name)

    def set_up(
        self,
        network_info: list[NetworkInfo],
        row: InstanceRow,
        encryption_key_ref: str | None,
    ) -> dict[str, typing.Any]:
        """Set up a server by the driver; return the details to store."""
        details = self.driver.setup_server(
            network_info,
            metadata={
                'request_host': row.host,
                'share_type_id': row.share_type_id,
                **key_for_driver(encryption_key_ref),
            },
        )
        return dict(details or {})

    def _built(
        self,
        session: Session,
        job: Claim,
        server_id: str,
        details: Mapping[str, typing.Any],
    ) -> LoadedServer:
        table.checkpoint(session, job, f'share server {server_id} is built')
        fire(
            session,
            SHARE_SERVER,
            server_id,
            'created',
            build_key=None,
            identifier=str(details.get('identifier') or server_id),
            updated_at=session.now,
        )
        share_servers.merge_details(session, server_id, details)
        return server_view.load_server(session, server_id)

    # Failure

    def record_failure(
        self, session: Session, job: Claim, error: Exception
    ) -> bool:
        """Fail the share together with the server built for it.

        Returns False when there is no such server.
        """
        server_id = share_servers.find_server_id(session, job.resource_id)
        if not self.fail_build(session, server_id, error):
            return False
        fire(
            session,
            SHARE_INSTANCE,
            job.resource_id,
            'create_failed',
            updated_at=session.now,
        )
        notify_user(
            session,
            job,
            Action.CREATE,
            failure_detail(error),
            self.message_ttl,
            explanation=explanation_in(error),
        )
        return True

    def fail_build(
        self, session: Session, server_id: str | None, error: Exception
    ) -> bool:
        """Fail a server while it is built; return False if it is not.

        Releases its addresses and stores the details in the error.
        """
        if (
            server_id is None
            or share_servers.lock(session, server_id) != ServerStatus.CREATING
        ):
            return False
        self.give_up(session, server_id, 'create_failed')
        share_servers.merge_details(
            session, server_id, reported_details(error)
        )
        return True

    def give_up(self, session: Session, server_id: str, event: str) -> None:
        """Mark a server that was not built or managed as failed."""
        fire(
            session,
            SHARE_SERVER,
            server_id,
            event,
            build_key=None,
            updated_at=session.now,
        )
        if self.networks is not None:
            self.networks.deallocate(session, server_id)
