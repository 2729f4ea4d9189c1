"""Choose or build the share server for a new share or share group.

The driver chooses among suitable servers. A share or group is bound to its
server by a guarded UPDATE, and the choice is repeated when another one was
faster. Without a suitable server, one is built: of all work that needs
the same server, the first builds it and the others wait and then choose.
"""

from collections.abc import Iterable, Mapping
import dataclasses
import functools
import typing

from manila_lite import exception
from manila_lite.db.queries.groups import share_groups
from manila_lite.db.queries.servers import share_servers
from manila_lite.db.queries.servers.server_load import NO_LIMITS, ServerLimits
from manila_lite.db.rows import InstanceRow
from manila_lite.db.session import Database, Session
from manila_lite.db.transitions import fire, insert_row
from manila_lite.messages import Action, Detail, explanation_in
from manila_lite.network.base import NetworkPlugin
from manila_lite.share.drivers.base import NetworkInfo, ShareDriver, ShareServerSupport
from manila_lite.share.manager.driver_view import server_view, share_view
from manila_lite.share.manager.driver_view.group_view import CloneSource, LoadedGroup
from manila_lite.share.manager.driver_view.server_view import LoadedServer
from manila_lite.share.manager.endpoint import undo_if_gone
from manila_lite.share.manager.servers.demand import (
    failure_detail,
    key_for_driver,
    no_server,
    reported_details,
)
from manila_lite.share.manager.servers.occupants import (
    NewGroup,
    NewShare,
    Occupant,
    Offer,
    StayingShare,
)
from manila_lite.states.machine import Machine
from manila_lite.states.share_group import SHARE_GROUP
from manila_lite.states.share_instance import SHARE_INSTANCE
from manila_lite.states.share_server import SHARE_SERVER, ServerStatus
from manila_lite.work import table
from manila_lite.work.job import JobContext
from manila_lite.work.notify import notify_user
from manila_lite.work.table import Claim


class ServerNetworks(typing.NamedTuple):
    """The network plug-ins that allocate addresses for share servers."""

    user: NetworkPlugin
    admin: NetworkPlugin | None = None

    def deallocate(self, session: Session, share_server_id: str) -> int:
        """Release all addresses of a server; return the count."""
        return sum(
            plugin.deallocate_network(session, share_server_id)
            for plugin in self
            if plugin is not None
        )


def with_servers(
    stats: Mapping[str, typing.Any],
    networks: ServerNetworks,
    driver: ShareDriver,
    servers: Iterable[LoadedServer],
) -> dict[str, typing.Any]:
    """Return statistics with the IP versions and the pools of servers."""
    versions = networks.user.ip_versions
    return {
        **stats,
        **{
            name: bool(stats.get(name)) and version in versions
            for name, version in (('ipv4_support', 4), ('ipv6_support', 6))
        },
        'server_pools_mapping': {
            server.row.id: driver.get_share_server_pools(
                server_view.server_for_driver(server)
            )
            for server in servers
        },
    }


RETRY_PAUSE = 0.5
"""Seconds until a retry while other work builds the server."""

_CHOICES = 10
"""Number of choices by the driver before the work has to wait."""


class _ServerAppeared(exception.ManilaLiteError):
    message = 'Another share server has become available.'


@dataclasses.dataclass(eq=False)
class ServerSetup:
    """Provides share servers for shares and groups of one back end.

    `networks` is None for a driver that does not handle share servers.
    """

    db: Database
    driver: ShareDriver
    service_host: str
    _: dataclasses.KW_ONLY
    names: share_view.NameTemplates
    networks: ServerNetworks | None = None
    limits: ServerLimits = NO_LIMITS
    backend_name: str = ''
    message_ttl: int = 0

    def complete_stats(self, stats: Mapping[str, typing.Any]) -> dict[str, typing.Any]:
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

    # A server for a share or a share group

    def provide_server(
        self,
        job: JobContext,
        instance: share_view.LoadedInstance,
        source: CloneSource | None = None,
        stays_on: str | None = None,
    ) -> share_view.LoadedInstance | None:
        """Return the new share with its server; None when it has to wait.

        In the latter case the work has been released. `source` is the
        snapshot that the share is created from, if any, and `stays_on` the
        server that it must be on.
        """
        if self.networks is not None:
            self._require_security_services(job, instance.row)
        occupant = (
            NewShare(instance, source, self.names)
            if stays_on is None
            else StayingShare(instance, stays_on, self.names)
        )
        server = self._provide(job, occupant)
        return None if job.closed else instance._replace(server=server)

    def _require_security_services(self, job: JobContext, row: InstanceRow) -> None:
        """Raise if the network lacks what the protocol of a share needs."""
        needed = self.driver.dhss_mandatory_security_service_association.get(
            row.share_proto.lower()
        )
        if not needed or row.share_network_id is None:
            return
        attached = {
            service.type
            for service in job.read(
                share_servers.list_security_services, row.share_network_id
            )
        }
        if missing := sorted(set(needed) - attached):
            raise exception.InvalidShareServer(
                reason=f'share network {row.share_network_id} has no '
                f'security service of type {", ".join(missing)}',
                message_detail=Detail.MISSING_SECURITY_SERVICE,
            )

    def provide_server_for_group(
        self, job: JobContext, group: LoadedGroup
    ) -> LoadedGroup | None:
        """Return the new group with its server, as for a share."""
        server = self._provide(job, NewGroup(group))
        return None if job.closed else group._replace(server=server)

    def _provide(self, job: JobContext, occupant: Occupant) -> LoadedServer | None:
        """Return its server; None without one, or if the work has to wait."""
        if self.networks is None:
            if occupant.share_network_id is not None:
                raise exception.InvalidShareServer(
                    reason='the driver does not handle share servers',
                    message_detail=Detail.UNEXPECTED_NETWORK,
                )
            return None
        for _ in range(_CHOICES):
            server = self._choose_or_build(job, occupant)
            if server is not None:
                self._require_usable(server)
                if server.row.status == ServerStatus.CREATING:
                    server = self._build(job, server, occupant)
                return server
            if job.closed:
                return None
        self._wait(job)
        return None

    def _choose_or_build(
        self, job: JobContext, occupant: Occupant
    ) -> LoadedServer | None:
        """Return the server of the occupant; None to choose again."""
        if occupant.server is not None:
            return occupant.server
        offer = job.read(occupant.offer, self.service_host, self.limits)
        chosen = self._choose(occupant, offer)
        if chosen is not None:
            return self.db.write(self._bind, job.claim, occupant, chosen, by=job.claim)
        try:
            server_id = self.db.write(
                self._start_build, job.claim, occupant, offer, by=job.claim
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

    def _require_usable(self, server: LoadedServer) -> None:
        """Raise if an administrator has reset the server meanwhile."""
        if server.row.status not in (ServerStatus.ACTIVE, ServerStatus.CREATING):
            raise no_server(f'share server {server.row.id} is {server.row.status}')

    def _choose(self, occupant: Occupant, offer: Offer) -> str | None:
        """Return the id of the candidate chosen by the driver, if any."""
        if not offer.candidates:
            return None
        chosen = occupant.choose(self.driver, offer)
        if chosen is None:
            return None
        if chosen['id'] not in {each.row.id for each in offer.candidates}:
            raise no_server('the driver chose a share server that was not offered')
        server_id: str = chosen['id']
        return server_id

    def _bind(
        self, session: Session, job: Claim, occupant: Occupant, server_id: str
    ) -> LoadedServer | None:
        table.checkpoint(session, job, f'on share server {server_id}')
        if not occupant.bind(session, server_id, self.limits):
            return None
        return server_view.load_server(session, server_id)

    # Building a server

    def _start_build(
        self, session: Session, job: Claim, occupant: Occupant, offer: Offer
    ) -> str | None:
        """Insert a new server with the occupant on it, and return its id.

        Returns None when other work builds this server, and raises when a
        suitable server has appeared since the offer.
        """
        table.checkpoint(session, job, 'building a share server')
        demand = offer.demand
        if share_servers.is_being_built(session, demand.build_key):
            return None
        server_id = session.new_id()
        share_servers.insert_unique(
            session,
            lambda: insert_row(
                session,
                SHARE_SERVER,
                'create',
                **self.initial_columns(session, server_id, occupant.share_network_id),
                encryption_key_ref=demand.encryption_key_ref,
                build_key=demand.build_key,
            ),
        )
        # The build key excludes other builds from here on. A build that
        # began after the choice and was faster has finished.
        suitable = demand.list_suitable(session, self.limits)
        if not offer.known.issuperset(suitable):
            raise _ServerAppeared()
        share_servers.add_subnets(session, server_id, demand.subnet_ids)
        if not occupant.attach(session, server_id):
            raise exception.InvalidStatus(
                resource=occupant.resource,
                id=occupant.id,
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
            'updated_at': session.now,
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
        self, job: JobContext, server: LoadedServer, occupant: Occupant
    ) -> LoadedServer:
        self.allocate(server)
        network_info = job.read(self.network_info, server.row.id)
        details = self.set_up(
            network_info, occupant.metadata, server.row.encryption_key_ref
        )
        undo = functools.partial(
            self.driver.teardown_server,
            {'server_id': server.row.id, **details},
            security_services=network_info[0]['security_services'],
        )
        with undo_if_gone(
            job, share_servers.find, server.row.id, undo, given_up=[ServerStatus.ERROR]
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
            self.networks.user.allocate_network(server.row.id, subnet_id, number)
        for_admins = self.driver.get_admin_network_allocations_number()
        if for_admins:
            if self.networks.admin is None:
                raise exception.NetworkBadConfigurationException(
                    reason='admin_network_config_group is not set, and the '
                    f'driver needs {for_admins} addresses there'
                )
            self.networks.admin.allocate_network(server.row.id, None, for_admins)

    def network_info(self, session: Session, server_id: str) -> list[NetworkInfo]:
        """Read the desired network setup of a server, by subnet."""
        server = server_view.load_server(session, server_id)
        return server_view.network_info(session, server, self.backend_name)

    def set_up(
        self,
        network_info: list[NetworkInfo],
        metadata: Mapping[str, typing.Any],
        encryption_key_ref: str | None,
    ) -> dict[str, typing.Any]:
        """Set up a server by the driver; return the details to store."""
        details = self.driver.setup_server(
            network_info, metadata={**metadata, **key_for_driver(encryption_key_ref)}
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
        )
        share_servers.merge_details(session, server_id, details)
        return server_view.load_server(session, server_id)

    # Failure

    def record_failure(self, session: Session, job: Claim, error: Exception) -> bool:
        """Fail the share together with the server built for it.

        Returns False when there is no such server.
        """
        return self._record_failure(
            session,
            job,
            error,
            SHARE_INSTANCE,
            share_servers.find_server_id(session, job.resource_id),
        )

    def record_failure_of_group(
        self, session: Session, job: Claim, error: Exception
    ) -> bool:
        """Fail the group together with the server built for it."""
        group = share_groups.find(session, job.resource_id)
        return self._record_failure(
            session,
            job,
            error,
            SHARE_GROUP,
            None if group is None else group.share_server_id,
        )

    def _record_failure(
        self,
        session: Session,
        job: Claim,
        error: Exception,
        machine: Machine,
        server_id: str | None,
    ) -> bool:
        # An earlier attempt may have left a server with these addresses.
        if not self.fail_build(
            session, server_id, error, keep_addresses=job.attempt > 1
        ):
            return False
        fire(session, machine, job.resource_id, 'create_failed')
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
        self,
        session: Session,
        server_id: str | None,
        error: Exception,
        *,
        keep_addresses: bool = False,
    ) -> bool:
        """Fail a server while it is built; return False if it is not.

        Stores the details in the error, and releases its addresses unless
        they are kept until it is deleted.
        """
        if (
            server_id is None
            or share_servers.lock(session, server_id) != ServerStatus.CREATING
        ):
            return False
        self.give_up(session, server_id, 'create_failed', keep_addresses=keep_addresses)
        share_servers.merge_details(session, server_id, reported_details(error))
        return True

    def give_up(
        self,
        session: Session,
        server_id: str,
        event: str,
        *,
        keep_addresses: bool = False,
    ) -> None:
        """Mark a server that was not built or managed as failed."""
        fire(session, SHARE_SERVER, server_id, event, build_key=None)
        if self.networks is not None and not keep_addresses:
            self.networks.deallocate(session, server_id)
