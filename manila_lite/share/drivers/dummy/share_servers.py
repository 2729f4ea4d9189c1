"""Share servers of the dummy back end.

A server is a record of its addresses, subnets and security services. Shares
on it are exported at its addresses.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from manila_lite import exception
from manila_lite.share.drivers import base, records
from manila_lite.share.drivers.contract.share_servers import ServerDetails
from manila_lite.share.drivers.dummy.backend import DummyBackend
from manila_lite.share.drivers.dummy.state import DummyState, share_exports

ServerPredicate = Callable[[base.ShareServerMapping, Mapping[str, Any]], bool]
"""Whether a share or a share group may be on a server."""


class DummyServers:
    def __init__(self, backend: DummyBackend):
        self._backend = backend
        self._server_filter: ServerPredicate | None = None

    # Controls for tests

    def restrict_servers(self, fits: ServerPredicate | None) -> None:
        """Place shares and groups only on servers that fit; or on any."""
        self._server_filter = fits

    def add_unmanaged_server(
        self, identifier: str, addresses: Sequence[str] = ('10.0.0.99',)
    ) -> str:
        """Add an unmanaged server; return its identifier."""
        self._backend.state.unmanaged_servers.put(
            identifier,
            {
                'identifier': identifier,
                'addresses': list(addresses),
                'admin_addresses': [],
                'subnets': {},
                'security_services': {},
                'status': 'active',
            },
        )
        return identifier

    # Life cycle

    def _setup_server(self, network_info: list[base.NetworkInfo]) -> dict[str, str]:
        """Create a server with its addresses; return its details."""
        id = network_info[0]['server_id']
        with self._backend.lock:
            record = self._backend.state.servers.find(id)
            if record is None or record['status'] == 'error':
                record = _server_from_network_info(network_info)
                self._backend.state.servers.put(id, record | {'status': 'error'})
                self._backend.faults.midway()
                self._backend.state.servers.put(id, record)
        return _details(id, record)

    def _teardown_server(self, server_details: ServerDetails) -> None:
        """Delete a server; one that still has shares is refused."""
        id = server_details['server_id']
        with self._backend.lock:
            record = self._backend.state.servers.find(id)
            if record is None:
                return
            if any(True for _ in self._shares_on(id)):
                raise exception.ShareBackendException(
                    msg=f'share server {id} still has shares'
                )
            self._backend.state.servers.put(id, record | {'status': 'error'})
            self._backend.faults.midway()
            self._backend.state.discard_incoming(id)
            # What is left of share groups is lost with their server.
            for group_id, group in list(self._backend.state.groups.records()):
                if group.get('server') == id:
                    self._backend.state.groups.drop(group_id)
            self._backend.state.servers.drop(id)

    def choose_share_server_compatible_with_share(
        self,
        share_servers: Sequence[base.ShareServerMapping],
        share: base.ShareForDriver,
    ) -> base.ShareServerMapping | None:
        return self._first_that_fits(share_servers, share)

    def choose_share_server_compatible_with_share_group(
        self,
        share_servers: Sequence[base.ShareServerMapping],
        share_group_ref: base.ShareGroupForDriver,
    ) -> base.ShareServerMapping | None:
        return self._first_that_fits(share_servers, share_group_ref)

    def _first_that_fits(
        self,
        share_servers: Sequence[base.ShareServerMapping],
        occupant: Mapping[str, Any],
    ) -> base.ShareServerMapping | None:
        return next(
            (
                server
                for server in share_servers
                if self._server_filter is None or self._server_filter(server, occupant)
            ),
            None,
        )

    def get_share_server_pools(
        self, share_server: base.ShareServerMapping
    ) -> list[dict[str, Any]]:
        used = {record['pool'] for _, record in self._shares_on(share_server['id'])}
        return [
            {'pool_name': pool}
            for pool in self._backend.options.dummy_driver_pools
            if pool in used
        ]

    # Managing existing servers

    def get_share_server_network_info(
        self, share_server: base.ShareServerMapping, identifier: str
    ) -> list[str]:
        return list(self._get_manageable(share_server, identifier)['addresses'])

    def manage_server(
        self, share_server: base.ShareServerMapping, identifier: str
    ) -> tuple[str, dict[str, str]]:
        id = share_server['id']
        with self._backend.lock:
            record = self._get_manageable(share_server, identifier)
            self._backend.state.servers.put(id, record)
            self._backend.faults.midway()
            self._backend.state.unmanaged_servers.drop(identifier)
        return record['identifier'], _details(id, record)

    def _get_manageable(
        self, share_server: base.ShareServerMapping, identifier: str
    ) -> records.Record:
        record = self._backend.state.servers.find(
            share_server['id']
        ) or self._backend.state.unmanaged_servers.find(identifier)
        if record is None:
            raise exception.ManageInvalidShareServer(
                reason=f'server {identifier} does not exist'
            )
        return record

    def unmanage_server(self, server_details: ServerDetails) -> None:
        id = server_details['server_id']
        with self._backend.lock:
            record = self._backend.state.servers.find(id)
            if record is not None:
                self._backend.state.unmanaged_servers.put(record['identifier'], record)
                self._backend.faults.midway()
                self._backend.state.servers.drop(id)

    # Changing networks

    def update_share_server_security_service(
        self,
        share_server: base.ShareServerMapping,
        new_security_service: base.SecurityServiceForDriver,
        current_security_service: base.SecurityServiceForDriver | None = None,
    ) -> None:
        with self._backend.lock:
            record = self._server_record(share_server['id'])
            services = dict(record['security_services'])
            if current_security_service is not None:
                services.pop(current_security_service['type'], None)
            self._backend.faults.midway()
            services[new_security_service['type']] = new_security_service['id']
            self._backend.state.servers.put(
                share_server['id'], record | {'security_services': services}
            )

    def check_update_share_server_security_service(self) -> bool:
        return self._backend.options.dummy_driver_network_updates

    def update_share_server_network_allocations(
        self,
        share_server: base.ShareServerMapping,
        new_network_allocations: Mapping[str, Any],
    ) -> dict[str, Any]:
        id = share_server['id']
        new = [
            each['ip_address']
            for each in new_network_allocations['network_allocations']
        ]
        with self._backend.lock:
            record = self._server_record(id)
            subnets = record['subnets'] | {
                new_network_allocations['share_network_subnet_id']: new
            }
            record |= {
                'subnets': subnets,
                'addresses': list(dict.fromkeys([*record['addresses'], *new])),
            }
            self._backend.state.servers.put(id, record)
            self._backend.faults.midway()
            exports = {}
            for name, share in list(self._shares_on(id)):
                share |= {'addresses': record['addresses']}
                self._backend.state.shares.put(name, share)
                exports[name] = share_exports(share)
        return {
            'share_updates': exports,
            'snapshot_updates': {},
            'server_details': _details(id, record),
        }

    def check_update_share_server_network_allocations(self) -> bool:
        return self._backend.options.dummy_driver_network_updates

    def update_share_network_subnet_from_metadata(
        self, share_server: base.ShareServerMapping, metadata: Mapping[str, str]
    ) -> None:
        with self._backend.lock:
            record = self._server_record(share_server['id'])
            self._backend.state.servers.put(
                share_server['id'],
                record | {'metadata': record.get('metadata', {}) | dict(metadata)},
            )

    # Lookup

    def _server_record(self, server_id: str) -> records.Record:
        return _record_of(self._backend.state, server_id)

    def _shares_on(self, server_id: str) -> list[tuple[str, records.Record]]:
        return [
            (name, record)
            for name, record in self._backend.state.shares.records()
            if record.get('server') == server_id
        ]

    def id_for(self, share_server: base.ShareServerMapping | None) -> str | None:
        """Return the id of the server that a share group has to be on."""
        return self.fields_for(share_server).get('server')

    def fields_for(
        self, share_server: base.ShareServerMapping | None
    ) -> records.Record:
        """Return the record fields of a share that name its server."""
        if not self._backend.options.driver_handles_share_servers:
            return {}
        if share_server is None:
            raise exception.ShareBackendException(
                msg='a share server is needed, and none was given'
            )
        return server_fields(self._backend.state, share_server)


SERVER_FIELDS = ('server', 'addresses', 'admin_addresses')
"""The record fields of a share that name its server."""


def server_fields(
    state: DummyState, share_server: base.ShareServerMapping | None
) -> records.Record:
    """Return these fields for a share on a server of this state, if any."""
    if share_server is None:
        return {}
    server = _record_of(state, share_server['id'])
    return {
        'server': share_server['id'],
        'addresses': server['addresses'],
        'admin_addresses': server['admin_addresses'],
    }


def _record_of(state: DummyState, server_id: str) -> records.Record:
    record = state.servers.find(server_id)
    if record is None:
        raise exception.ShareBackendException(
            msg=f'share server {server_id} does not exist'
        )
    return record


def _server_from_network_info(network_info: list[base.NetworkInfo]) -> records.Record:
    subnets = {
        info['share_network_subnet_id']: [
            each['ip_address'] for each in info['network_allocations']
        ]
        for info in network_info
    }
    return {
        'identifier': f'dummy-{network_info[0]["server_id"]}',
        'subnets': subnets,
        'addresses': [each for found in subnets.values() for each in found],
        'admin_addresses': [
            each['ip_address'] for each in network_info[0]['admin_network_allocations']
        ],
        'security_services': {
            each['type']: each['id'] for each in network_info[0]['security_services']
        },
        'status': 'active',
    }


def _details(id: str, record: records.Record) -> dict[str, str]:
    """Return the details to store for a server."""
    return {
        'server_id': id,
        'identifier': record['identifier'],
        'primary_public_ip': ','.join(record['addresses']),
        'service_ip': ','.join(record['admin_addresses']),
    }
