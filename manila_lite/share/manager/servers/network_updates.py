"""Update share servers when their share network changes.

Each server is updated by its own work, and the network is at rest when
the last server is. Whatever ends the update of a server also finishes the
change of its network, in the same transaction.
"""

from collections.abc import Mapping
import dataclasses
import typing
from typing import Annotated

from manila_lite import exception, messages
from manila_lite.conf import Option
from manila_lite.db.moves import servers
from manila_lite.db.queries.access import share_rules
from manila_lite.db.queries.networks import security_services, share_networks, subnets
from manila_lite.db.queries.servers import share_servers
from manila_lite.db.queries.shares import instances as share_instances
from manila_lite.db.queries.snapshots import exports as snapshot_exports, snapshots
from manila_lite.db.session import Session
from manila_lite.db.transitions import fire, fire_matching
from manila_lite.messages import Action, Detail, detail_in
from manila_lite.rpc.contract import implements
from manila_lite.rpc.share import NetworkUpdatesRpc
from manila_lite.share.drivers.base import (
    AccessReplies,
    SecurityServiceForDriver,
    SnapshotForDriver,
    normalise_export_locations,
)
from manila_lite.share.manager.driver_view import server_view, share_view
from manila_lite.share.manager.driver_view.server_view import LoadedServer
from manila_lite.share.manager.driver_view.share_view import RuleView
from manila_lite.share.manager.endpoint import require_status
from manila_lite.share.manager.guarded_driver import driver_context
from manila_lite.share.manager.servers.network_checks import (
    NetworkChecks,
    ServerWithShares,
    load_server_with_shares,
)
from manila_lite.share.manager.servers.setup import ServerSetup
from manila_lite.states.access_rule import ACCESS_RULE, SHARE_INSTANCE_ACCESS, RuleState
from manila_lite.states.share_instance import SHARE_INSTANCE
from manila_lite.states.share_server import SHARE_SERVER, ServerStatus
from manila_lite.states.snapshot_instance import SNAPSHOT_INSTANCE
from manila_lite.work.job import JobContext
from manila_lite.work.table import Claim

Details = Mapping[str, typing.Any]


class SecurityUpdate(typing.NamedTuple):
    """A server, the security service it gets, and the one it had."""

    server: ServerWithShares
    new: SecurityServiceForDriver
    current: SecurityServiceForDriver | None


class SubnetUpdate(typing.NamedTuple):
    """A server, and one of its subnets with its network."""

    network: dict[str, typing.Any]
    subnet: dict[str, typing.Any]
    server: LoadedServer


@implements(NetworkUpdatesRpc)
@dataclasses.dataclass(eq=False)
class NetworkUpdatesEndpoint(NetworkChecks):
    """Updates the share servers of one back end on network changes."""

    setup: ServerSetup
    message_ttl: Annotated[int, Option('message_ttl')]

    # Security services

    def prepare_update_security_service(
        self, session: Session, job: Claim
    ) -> SecurityUpdate:
        current_id = job.args['current_id']
        current = current_id and security_services.find(session, current_id)
        return SecurityUpdate(
            self._expect(session, job),
            server_view.security_service_for_driver(
                security_services.get(session, job.args['new_id'])
            ),
            server_view.security_service_for_driver(current) if current else None,
        )

    def update_security_service(
        self,
        job: JobContext,
        share_server_id: str,
        share_network_id: str,
        new_id: str,
        current_id: str | None,
    ) -> None:
        update: SecurityUpdate = job.prepared
        server = update.server
        replies = self.setup.driver.update_share_server_security_service(
            driver_context(),
            server.for_driver,
            server.network_info,
            server.shares,
            server.rules,
            update.new,
            current_security_service=update.current,
        )
        job.finish(self._security_service_updated, job.claim, server, replies or {})

    def _security_service_updated(
        self,
        session: Session,
        job: Claim,
        server: ServerWithShares,
        replies: Mapping[str, AccessReplies],
    ) -> None:
        self._changed(session, job)
        for instance_id, rules in server.known_rules.items():
            _record_rules(session, instance_id, rules, replies.get(instance_id) or {})

    def failed_update_security_service(
        self, session: Session, job: Claim, error: Exception
    ) -> bool:
        """Put the server and its shares into error, and notify the user."""
        self._failed(session, job)
        self._notify_project(
            session,
            job,
            Action.ADD_UPDATE_SECURITY_SERVICE,
            detail_in(error) or Detail.UNSUPPORTED_ADD_UDPATE_SECURITY_SERVICE,
            ('SECURITY_SERVICE', job.args['new_id']),
            messages.explanation_in(error),
        )
        return True

    def dropped_update_security_service(self, session: Session, job: Claim) -> None:
        self._finish_change(session, job)

    # Addresses

    def prepare_update_allocations(
        self, session: Session, job: Claim
    ) -> ServerWithShares:
        return self._expect(session, job)

    def update_allocations(
        self,
        job: JobContext,
        share_server_id: str,
        share_network_id: str,
        subnet_id: str,
    ) -> None:
        driver = self.setup.driver
        before: ServerWithShares = job.prepared
        self._allocate(share_server_id, subnet_id)
        new = job.read(self._subnet_entry, share_server_id, subnet_id)
        snapshot_ids = job.read(self._snapshots_on, share_server_id)
        reply = driver.update_share_server_network_allocations(
            driver_context(),
            before.for_driver,
            before.addresses,
            new,
            before.security_services,
            before.shares,
            snapshot_ids,
        )
        job.finish(self._allocations_updated, job.claim, subnet_id, reply or {})

    def _allocate(self, server_id: str, subnet_id: str) -> None:
        if self.setup.networks is None:
            raise exception.NetworkBadConfigurationException(
                reason='the back end no longer handles share servers'
            )
        self.setup.networks.user.allocate_network(
            server_id, subnet_id, self.setup.addresses_per_subnet
        )

    def _subnet_entry(
        self, session: Session, server_id: str, subnet_id: str
    ) -> dict[str, typing.Any]:
        """Return the addresses of a server in its new subnet."""
        server = server_view.load_server(session, server_id)
        (info,) = server_view.network_info(
            session, server._replace(subnet_ids=[subnet_id]), self.setup.backend_name
        )
        return dict(info)

    def _snapshots_on(
        self, session: Session, server_id: str
    ) -> list[SnapshotForDriver]:
        _, snapshot_ids = self._ids_on(session, server_id)
        return [
            share_view.snapshot_for_driver(
                share_view.load_snapshot(session, id), self.setup.names
            )
            for id in sorted(snapshot_ids)
        ]

    def _allocations_updated(
        self, session: Session, job: Claim, subnet_id: str, reply: Details
    ) -> None:
        self._add_subnet(session, job.resource_id, subnet_id)
        share_servers.merge_details(
            session, job.resource_id, reply.get('server_details') or {}
        )
        self._changed(session, job)
        shares, snapshot_ids = self._ids_on(session, job.resource_id)
        for id, exports in (reply.get('share_updates') or {}).items():
            if id in shares:
                share_instances.replace_export_locations(
                    session, id, normalise_export_locations(exports)
                )
        for id, reported in (reply.get('snapshot_updates') or {}).items():
            if id in snapshot_ids:
                _record_snapshot(session, id, reported)

    def _add_subnet(self, session: Session, server_id: str, subnet_id: str) -> None:
        known = share_servers.list_subnet_ids(session, [server_id])[server_id]
        if subnet_id not in known:
            share_servers.add_subnets(session, server_id, [subnet_id])

    def _ids_on(self, session: Session, server_id: str) -> tuple[set[str], set[str]]:
        ids = [
            row.id for row in share_networks.list_share_instances(session, [server_id])
        ]
        return set(ids), set(snapshots.list_ids_on_share_instances(session, ids))

    def failed_update_allocations(
        self, session: Session, job: Claim, error: Exception
    ) -> bool:
        """Put the server, its shares and their snapshots into error.

        The server keeps its addresses in the subnet until it is deleted.
        """
        self._add_subnet(session, job.resource_id, job.args['subnet_id'])
        reported = getattr(error, 'detail_data', None)
        details = isinstance(reported, Mapping) and reported.get('server_details')
        if isinstance(details, Mapping):
            share_servers.merge_details(session, job.resource_id, details)
        _, snapshot_ids = self._ids_on(session, job.resource_id)
        self._failed(session, job)
        if snapshot_ids:
            fire_matching(
                session,
                SNAPSHOT_INSTANCE,
                'network_failed',
                {'id': sorted(snapshot_ids)},
            )
        detail = (
            Detail.NEUTRON_SUBNET_FULL
            if isinstance(error, exception.NoFreeAddress)
            else Detail.UNKNOWN_ERROR
        )
        self._notify_project(
            session,
            job,
            Action.UPDATE,
            detail_in(error) or detail,
            ('SHARE_NETWORK_SUBNET', job.args['subnet_id']),
            messages.explanation_in(error),
        )
        return True

    def dropped_update_allocations(self, session: Session, job: Claim) -> None:
        self._finish_change(session, job)

    # Metadata

    def prepare_tell_subnet_metadata(
        self, session: Session, job: Claim
    ) -> SubnetUpdate:
        network = share_networks.get_target(session, job.args['share_network_id'])
        subnet = subnets.get(session, network.id, job.args['subnet_id'])
        return SubnetUpdate(
            network._asdict(),
            subnet._asdict(),
            server_view.load_server(session, job.resource_id),
        )

    def tell_subnet_metadata(
        self,
        job: JobContext,
        share_server_id: str,
        share_network_id: str,
        subnet_id: str,
        metadata: dict[str, str],
    ) -> None:
        update: SubnetUpdate = job.prepared
        self.setup.driver.update_share_network_subnet_from_metadata(
            driver_context(),
            update.network,
            update.subnet,
            server_view.server_for_driver(update.server),
            metadata,
        )
        job.finish(self._record_metadata, job.claim, Detail.UPDATE_METADATA_SUCCESS)

    def failed_tell_subnet_metadata(
        self, session: Session, job: Claim, error: Exception
    ) -> bool:
        self._record_metadata(session, job, Detail.UPDATE_METADATA_FAILURE)
        return True

    def _record_metadata(self, session: Session, job: Claim, detail: Detail) -> None:
        self._notify_project(
            session,
            job,
            Action.UPDATE_METADATA,
            detail,
            ('SHARE_NETWORK_SUBNET', job.args['subnet_id']),
        )

    # All

    def _expect(self, session: Session, job: Claim) -> ServerWithShares:
        """Return the locked server if it still waits for its change."""
        server = load_server_with_shares(
            session, job.resource_id, self.setup, lock_shared=True
        )
        require_status(
            job,
            SHARE_SERVER,
            job.resource_id,
            server.server.row.status,
            ServerStatus.NETWORK_CHANGE,
        )
        return server

    def _changed(self, session: Session, job: Claim) -> None:
        self._lock_network(session, job)
        fire(session, SHARE_SERVER, job.resource_id, 'network_changed')
        self._finish_change(session, job)

    def _failed(self, session: Session, job: Claim) -> None:
        self._lock_network(session, job)
        fire(session, SHARE_SERVER, job.resource_id, 'network_change_failed')
        fire_matching(
            session,
            SHARE_INSTANCE,
            'network_failed',
            {'share_server_id': job.resource_id},
        )
        self._finish_change(session, job, failed=True)

    def _lock_network(self, session: Session, job: Claim) -> None:
        """Lock the network before its servers, as requests do."""
        share_networks.lock_if_exists(session, job.args['share_network_id'])

    def _finish_change(
        self, session: Session, job: Claim, *, failed: bool = False
    ) -> None:
        servers.finish_network_change(
            session, job.args['share_network_id'], failed=failed
        )

    def _notify_project(
        self,
        session: Session,
        job: Claim,
        action: Action,
        detail: Detail,
        resource: messages.Resource,
        explanation: str | None = None,
    ) -> None:
        """Notify the project of the network, not that of the request."""
        row = share_servers.find(session, job.resource_id)
        project_id = (row and row.project_id) or job.project_id
        if project_id is not None:
            messages.record(
                session,
                project_id,
                action,
                resource,
                self.message_ttl,
                detail=detail,
                request_id=job.request_id,
                explanation=explanation,
            )


def _record_rules(
    session: Session, instance_id: str, rules: list[RuleView], replies: AccessReplies
) -> None:
    """Record the outcome for access rules after a security service update."""
    known = {rule.id: rule for rule in rules}
    reported = {id: reply for id, reply in replies.items() if id in known}
    share_rules.set_access_keys(
        session,
        instance_id,
        {
            id: reply['access_key']
            for id, reply in reported.items()
            if 'access_key' in reply
        },
    )
    broken = [
        known[id].mapping_id
        for id, reply in reported.items()
        if reply.get('state', RuleState.ACTIVE) != RuleState.ACTIVE
    ]
    if broken:
        fire_matching(session, ACCESS_RULE, 'broke', {'id': broken})
        fire_matching(session, SHARE_INSTANCE_ACCESS, 'failed', {'id': instance_id})


def _record_snapshot(session: Session, id: str, reported: typing.Any) -> None:
    """Store the new location and exports of a snapshot."""
    if not isinstance(reported, Mapping):
        reported = {'export_locations': reported}
    snapshots.set_provider_location(session, id, reported.get('provider_location'))
    if reported.get('export_locations') is not None:
        snapshot_exports.replace(
            session, id, normalise_export_locations(reported['export_locations'])
        )
