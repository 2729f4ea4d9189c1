"""The share networks of the world, and what is on them."""

import sqlalchemy as sa

from manila_lite.db.models import share_servers
from tests.support.cloud import ApiClient

NET, SUBNET = (
    '33333333-4444-4555-8666-777777777777',
    '33333333-5555-4555-8666-777777777777',
)
NEUTRON = {'neutron_net_id': NET, 'neutron_subnet_id': SUBNET}


class SampleNetworks:
    """Makes networks and services of the tenant, as requests need them."""

    admin: ApiClient
    member: ApiClient
    apis: dict[str, ApiClient]

    def make_networks(self) -> None:
        """A network with a subnet, one in use, and services."""
        self._named = 0
        self.network = self.new_network(**NEUTRON)
        self.subnet = self.subnet_of(self.network)
        self.security_service = self.new_security_service()
        self.attached_security_service = self.new_security_service(
            type='kerberos'
        )
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
        for api in (self.admin,):  # whose lists are seen as well
            self.new_network(api)
            self.new_security_service(api)

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
        """A subnet of a network, the usual one unless told."""
        return self.member.request(
            'POST',
            f'/share-networks/{network_id or self.network}/subnets',
            {'share-network-subnet': {}},
            expect=200,
        ).json['share_network_subnet']['id']

    def new_security_service(
        self, api: ApiClient | None = None, **body: object
    ) -> str:
        return (
            (api or self.member)
            .request(
                'POST',
                '/security-services',
                {
                    'security_service': {
                        'type': 'ldap',
                        'name': 'directory',
                        **body,
                    }
                },
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
        """A service that a network has, and one that could replace it."""
        current = self.new_security_service(type=type)
        self.act_on_network(
            network_id, 'add_security_service', security_service_id=current
        )
        return {
            'current_service_id': current,
            'new_service_id': self.new_security_service(type=type),
        }

    def insert_server(
        self, network_id: str, subnet_id: str, **columns: object
    ) -> str:
        """A share server as a share on the network would have made it."""
        server = share_servers.ShareServer.__table__
        mapping = share_servers.ShareServerSubnet.__table__

        def plant(session):
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

        return self.cloud.db.write(plant)
