"""Finds or makes the share server that a new share is to be on.

The driver chooses among the servers that fit; a share is put on one by a
guarded UPDATE, and chooses again when another was faster. When none fits,
one is made: of all who need the same one the first makes it, and the
others wait and choose then.
"""

from collections.abc import Mapping
import logging
import typing

from manila_lite import exception
from manila_lite.context import RequestContext
from manila_lite.db.queries.servers import share_servers
from manila_lite.db.queries.servers.share_servers import ServerLimits
from manila_lite.db.session import Database
from manila_lite.db.session import Session
from manila_lite.db.transitions import fire
from manila_lite.db.transitions import insert_row
from manila_lite.messages import Action
from manila_lite.messages import Detail
from manila_lite.network.base import NetworkPlugin
from manila_lite.share.drivers.base import NetworkInfo
from manila_lite.share.drivers.base import ShareDriver
from manila_lite.share.manager.driver_view import server_view
from manila_lite.share.manager.driver_view import share_view
from manila_lite.share.manager.driver_view.server_view import LoadedServer
from manila_lite.share.manager.driver_view.share_view import LoadedInstance
from manila_lite.share.manager.driver_view.share_view import LoadedSnapshot
from manila_lite.share.manager.driver_view.share_view import NameTemplates
from manila_lite.states.share_instance import SHARE_INSTANCE
from manila_lite.states.share_server import SHARE_SERVER
from manila_lite.states.share_server import ServerStatus
from manila_lite.work import table
from manila_lite.work.notify import notify_user

LOG = logging.getLogger(__name__)

RETRY_PAUSE = 0.5
"""Seconds before another look for the server that somebody makes."""

_CHOICES = 10
"""How often a driver is asked to choose before the work waits."""


class ServerNetworks(typing.NamedTuple):
    """Where the servers of a back end get their addresses from."""

    user: NetworkPlugin
    admin: NetworkPlugin | None = None

    def deallocate(self, session: Session, share_server_id: str) -> int:
        """Take all addresses of a server back; how many there were."""
        return sum(
            plugin.deallocate_network(session, share_server_id)
            for plugin in self
            if plugin is not None
        )


class _ServerAppeared(exception.ManilaLiteError):
    message = 'A share server has come since the driver chose.'


class ServerSetup:
    """The share servers of a back end that shares are put on.

    `networks` is None for a driver that handles no share servers, whose
    shares have none.
    """

    def __init__(
        self,
        db: Database,
        driver: ShareDriver,
        service_host: str,
        *,
        names: NameTemplates,
        networks: ServerNetworks | None = None,
        limits: ServerLimits = share_servers.NO_LIMITS,
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

    def complete(
        self, stats: Mapping[str, typing.Any]
    ) -> dict[str, typing.Any]:
        """What a driver reports, with what only the manager knows.

        Exports have the IP versions that the network plug-in gives, too;
        and schedulers are told which pools each server uses.
        """
        if self.networks is None:
            return dict(stats)
        versions = self.networks.user.ip_versions
        servers = self.db.read(self._active)
        return {
            **stats,
            **{
                name: bool(stats.get(name)) and version in versions
                for name, version in (('ipv4_support', 4), ('ipv6_support', 6))
            },
            'server_pools_mapping': {
                server.row.id: self.driver.get_share_server_pools(
                    server_view.server_for_driver(server)
                )
                for server in servers
            },
        }

    def _active(self, session: Session) -> list[LoadedServer]:
        return list(
            server_view.load_servers(
                session,
                share_servers.list_ids_on_host(
                    session, self.service_host, [ServerStatus.ACTIVE]
                ),
            ).values()
        )

    # A server for a share

    def provide(
        self,
        job,
        found: LoadedInstance,
        snapshot: LoadedSnapshot | None = None,
    ) -> LoadedInstance | None:
        """The new share with its server; None when it has to wait.

        Then the work is put back already. `snapshot` is what the share is
        made of.
        """
        if self.networks is None:
            if found.row.share_network_id is not None:
                raise exception.InvalidShareServer(
                    reason='the driver makes none on share networks',
                    message_detail=Detail.UNEXPECTED_NETWORK,
                )
            return found
        for _ in range(_CHOICES):
            server = self._server(job, found, snapshot)
            if (
                server is not None
                and server.row.status == ServerStatus.CREATING
            ):
                server = self._make(job, server, found)
            if server is not None:
                return found._replace(server=server)
            if job.closed:
                return None
        self._wait(job)
        return None

    def _server(
        self, job, found: LoadedInstance, snapshot: LoadedSnapshot | None
    ) -> LoadedServer | None:
        """The server it is on now; None when others were faster."""
        if found.server is not None:
            return self._usable(found.server)
        candidates, known, subnet_ids = job.read(
            self._candidates, found, snapshot
        )
        chosen = self._choose(candidates, found, snapshot)
        if chosen is not None:
            return self.db.write(
                self._bind, job.claim, found, chosen, by=job.claim
            )
        try:
            server_id = self.db.write(
                self._found, job.claim, found, subnet_ids, known, by=job.claim
            )
        except _ServerAppeared:
            return None
        if server_id is None:
            self._wait(job)
            return None
        return job.read(server_view.load_server, server_id)

    def _wait(self, job) -> None:
        job.release(RETRY_PAUSE)
        job.wake_after = RETRY_PAUSE

    def _usable(self, server: LoadedServer) -> LoadedServer:
        """The one that it was put on before, by this same work."""
        if server.row.status not in (
            ServerStatus.ACTIVE,
            ServerStatus.CREATING,
        ):
            raise _none(f'share server {server.row.id} is {server.row.status}')
        return server

    def _candidates(
        self,
        session: Session,
        found: LoadedInstance,
        snapshot: LoadedSnapshot | None,
    ) -> tuple[list[LoadedServer], set[str], list[str]]:
        """The servers that would do, and the subnets it takes.

        Between them stand the ids of all servers that have room for it.
        """
        row = found.row
        if row.share_network_id is None:
            raise _none('the share has no share network')
        subnet_ids = [
            subnet.id
            for subnet in share_servers.list_zone_subnets(
                session, row.share_network_id, row.availability_zone
            )
        ]
        if not subnet_ids:
            raise _none(
                f'share network {row.share_network_id} has no '
                f'subnet for {row.availability_zone}'
            )
        ids = share_servers.list_suitable(
            session, self.service_host, subnet_ids, row.size, self.limits
        )
        known = set(ids)
        if snapshot is not None and self._is_here(snapshot):
            # What a snapshot is on cannot be reached from elsewhere.
            ids = [
                id for id in ids if id == snapshot.share.row.share_server_id
            ]
            if not ids:
                raise _none(
                    'the share server of the snapshot cannot take the share'
                )
        servers = server_view.load_servers(session, ids)
        return (
            [servers[id] for id in ids if id in servers],
            known,
            subnet_ids,
        )

    def _is_here(self, snapshot: LoadedSnapshot) -> bool:
        row = snapshot.share.row
        return (
            row.share_server_id is not None
            and row.host.partition('#')[0] == self.service_host
        )

    def _choose(
        self,
        candidates: list[LoadedServer],
        found: LoadedInstance,
        snapshot: LoadedSnapshot | None,
    ) -> str | None:
        """The id of the server that the driver wants, if any of these."""
        if not candidates:
            return None
        chosen = self.driver.choose_share_server_compatible_with_share(
            RequestContext(),
            [server_view.server_for_driver(each) for each in candidates],
            share_view.share_for_driver(found, self.names.share),
            snapshot=snapshot
            and share_view.snapshot_for_driver(snapshot, self.names),
        )
        if chosen is None:
            return None
        if chosen['id'] not in {each.row.id for each in candidates}:
            raise _none('the driver chose a share server that was not offered')
        return chosen['id']

    def _bind(
        self, session: Session, job, found: LoadedInstance, server_id: str
    ) -> LoadedServer | None:
        table.checkpoint(session, job, f'on share server {server_id}')
        if not share_servers.bind(
            session, found.row.id, server_id, found.row.size, self.limits
        ):
            return None
        return server_view.load_server(session, server_id)

    # A server that is made

    def _found(
        self,
        session: Session,
        job,
        found: LoadedInstance,
        subnet_ids: list[str],
        known: set[str],
    ) -> str | None:
        """Begin a server and put the share on it; None: another does.

        Raises when a server that has room for it is none of the known.
        """
        table.checkpoint(session, job, 'a share server is made')
        key = share_servers.make_build_key(self.service_host, subnet_ids)
        if share_servers.is_being_built(session, key):
            return None
        server_id = session.new_id()
        share_servers.insert_unique(
            session,
            lambda: insert_row(
                session,
                SHARE_SERVER,
                'create',
                **self.values(session, server_id, found.row.share_network_id),
                build_key=key,
            ),
        )
        # Nobody else can begin one now; one who began after the choice was
        # offered, and was faster still, has ended.
        if not known.issuperset(
            share_servers.list_suitable(
                session,
                self.service_host,
                subnet_ids,
                found.row.size,
                self.limits,
            )
        ):
            raise _ServerAppeared()
        share_servers.add_subnets(session, server_id, subnet_ids)
        if not share_servers.attach(session, found.row.id, server_id):
            raise exception.InvalidStatus(
                resource='share instance',
                id=found.row.id,
                status='on a share server',
                event='place',
                allowed='on none',
            )
        return server_id

    def values(
        self, session: Session, server_id: str, share_network_id: str | None
    ) -> dict[str, typing.Any]:
        """The columns that a server of this back end is born with."""
        return {
            'id': server_id,
            'host': self.service_host,
            'share_network_id': share_network_id,
            'identifier': server_id,
            'is_auto_deletable': True,
            'created_at': session.now,
            **self.support,
        }

    @property
    def support(self) -> dict[str, bool]:
        """What the driver can do to its servers, noted at each of them."""
        return {
            name: bool(getattr(self.driver, name))
            for name in (
                'security_service_update_support',
                'network_allocation_update_support',
                'share_replicas_migration_support',
            )
        }

    def _make(
        self, job, server: LoadedServer, found: LoadedInstance
    ) -> LoadedServer:
        self.allocate(server)
        network_info = job.read(self.network_info, server.row.id)
        details = self.set_up(network_info, found.row)
        try:
            return self.db.write(
                self._made, job.claim, server.row.id, details, by=job.claim
            )
        except (exception.ClaimLost, exception.ResourceNotFound):
            # Given up meanwhile: nobody will ever use it.
            self.driver.teardown_server(
                {'server_id': server.row.id, **details},
                security_services=network_info[0]['security_services'],
            )
            raise

    def allocate(self, server: LoadedServer) -> None:
        """Have a server have all the addresses that it needs.

        Raises NetworkException; asked again, it gives no more.
        """
        assert self.networks is not None
        number = self.driver.get_network_allocations_number()
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
        """What a server is to be, as drivers are told: by its subnets."""
        server = server_view.load_server(session, server_id)
        return server_view.network_info(session, server, self.backend_name)

    def set_up(
        self, network_info: list[NetworkInfo], instance: typing.Any
    ) -> dict[str, typing.Any]:
        """Have the driver make a server; what it wants remembered."""
        details = self.driver.setup_server(
            network_info,
            metadata={
                'request_host': instance.host,
                'share_type_id': instance.share_type_id,
            },
        )
        return dict(details or {})

    def _made(
        self,
        session: Session,
        job,
        server_id: str,
        details: Mapping[str, typing.Any],
    ) -> LoadedServer:
        table.checkpoint(session, job, f'share server {server_id} is made')
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

    # The unhappy end

    def failed(self, session: Session, job, error: Exception) -> bool:
        """Give up the share with the server that was made for it.

        False when there is no such server. Its addresses go back; what an
        error tells of it is remembered.
        """
        server_id = share_servers.find_server_id(session, job.resource_id)
        if (
            server_id is None
            or share_servers.lock(session, server_id) != ServerStatus.CREATING
        ):
            return False
        self.give_up(session, server_id, 'create_failed')
        told = getattr(error, 'detail_data', None)
        details = isinstance(told, Mapping) and told.get('server_details')
        if isinstance(details, Mapping):
            share_servers.merge_details(session, server_id, details)
        fire(
            session,
            SHARE_INSTANCE,
            job.resource_id,
            'create_failed',
            updated_at=session.now,
        )
        notify_user(
            session, job, Action.CREATE, _detail_of(error), self.message_ttl
        )
        return True

    def give_up(self, session: Session, server_id: str, event: str) -> None:
        """The visible end of a server that did not come to be."""
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


def _detail_of(error: Exception) -> Detail:
    """What to tell the user of a server that could not be made."""
    own = getattr(error, 'params', {}).get('message_detail')
    if own is not None:
        return own
    return (
        Detail.NEUTRON_SUBNET_FULL
        if isinstance(error, exception.NoFreeAddress)
        else Detail.NO_SHARE_SERVER
    )


def _none(reason: str) -> exception.ManilaLiteError:
    return exception.InvalidShareServer(
        reason=reason, message_detail=Detail.NO_SHARE_SERVER
    )
