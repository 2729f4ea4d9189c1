"""The share networks of the sample cloud, with subnets and servers."""

import sqlalchemy as sa

from manila_lite.db.models import share_servers
from tests.support.api_client import ApiClient

NET, SUBNET = (
    '33333333-4444-4555-8666-777777777777',
    '33333333-5555-4555-8666-777777777777',
)
NEUTRON = {'neutron_net_id': NET, 'neutron_subnet_id': SUBNET}


class SampleNetworks:
    """Creates networks and security services of the tenant."""

    admin: ApiClient
    member: ApiClient
    apis: dict[str, ApiClient]

    def make_networks(self) -> None:
        """Create a network with a subnet, one in use, and services."""
        self._named = 0
        self.network = self.new_network(**NEUTRON)
        self.subnet = self.subnet_of(self.network)
        self.security_service = self.new_security_service()
        self.attached_security_service = self.new_security_service(type='kerberos')
        self.act_on_network(
            self.network,
            'add_security_service',
            security_service_id=self.attached_security_service,
        )
        self.used_network = self.new_network()
        self.used_subnet = self.subnet_of(self.used_network)
        self.used_security_service = self.new_security_service()
        self.act_on_network(
            self.used_network,
            'add_security_service',
            security_service_id=self.used_security_service,
        )
        self.server = self.insert_server(self.used_network, self.used_subnet)
        # The lists of the administrator are tested as well.
        self.new_network(self.admin)
        self.new_security_service(self.admin)

    def new_network(self, api: ApiClient | None = None, **body: object) -> str:
        self._named += 1
        return (
            (api or self.member)
            .request(
                'POST',
                '/share-networks',
                {'share_network': {'name': f'network-{self._named}', **body}},
                expect=200,
            )
            .json['share_network']['id']
        )

    def subnet_of(self, network_id: str) -> str:
        return self.admin.get(f'/share-networks/{network_id}/subnets')[
            'share_network_subnets'
        ][0]['id']

    def new_subnet(self, network_id: str | None = None) -> str:
        """Create a subnet of a network, `network` by default."""
        return self.member.request(
            'POST',
            f'/share-networks/{network_id or self.network}/subnets',
            {'share-network-subnet': {}},
            expect=200,
        ).json['share_network_subnet']['id']

    def new_security_service(self, api: ApiClient | None = None, **body: object) -> str:
        return (
            (api or self.member)
            .request(
                'POST',
                '/security-services',
                {'security_service': {'type': 'ldap', 'name': 'directory', **body}},
                expect=200,
            )
            .json['security_service']['id']
        )

    def act_on_network(
        self, network_id: str, action: str, expect: int = 200, **args: object
    ) -> None:
        self.admin.request(
            'POST',
            f'/share-networks/{network_id}/action',
            {action: args},
            expect=expect,
        )

    def service_replacement(
        self, network_id: str, type: str = 'ldap'
    ) -> dict[str, str]:
        """Return a service of the network and one that could replace it."""
        current = self.new_security_service(type=type)
        self.act_on_network(
            network_id, 'add_security_service', security_service_id=current
        )
        return {
            'current_service_id': current,
            'new_service_id': self.new_security_service(type=type),
        }

    def insert_server(self, network_id: str, subnet_id: str, **columns: object) -> str:
        """Insert a share server, as if for a share on the network."""
        server = share_servers.ShareServer.__table__
        mapping = share_servers.ShareServerSubnet.__table__

        def insert(session):
            id = session.new_id()
            session.run(
                sa.insert(server),
                **{
                    'id': id,
                    'host': 'node@alpha',
                    'status': 'active',
                    'share_network_id': network_id,
                    'is_auto_deletable': True,
                    'security_service_update_support': True,
                    'network_allocation_update_support': True,
                    'share_replicas_migration_support': False,
                    'created_at': session.now,
                    **columns,
                },
            )
            session.run(
                sa.insert(mapping),
                share_server_id=id,
                share_network_subnet_id=subnet_id,
            )
            return id

        return self.cloud.db.write(insert)
