"""The share servers of the sample cloud."""

from tests.functional.api.samples.networks import SampleNetworks
from tests.support.cloud import Cloud
from tests.support.share_servers import HOST, assign_share_server


class SampleServers(SampleNetworks):
    """Inserts share servers for requests."""

    cloud: Cloud
    grouped_share: str

    def make_servers(self) -> None:
        """Insert a server with a share, besides that of the networks."""
        self._managed_servers = 0
        self.used_server = self.spare_server()
        assign_share_server(
            self.cloud, self.grouped_share, self.used_server, self.used_network
        )

    def spare_server(self, status: str = 'active') -> str:
        """Insert a server that one request may change."""
        return self.insert_server(self.used_network, self.used_subnet, status=status)

    def manage_server_body(self) -> dict:
        """Return a body that manages a server with a new identifier."""
        self._managed_servers += 1
        return {
            'share_server': {
                'host': HOST,
                'share_network_id': self.used_network,
                'share_network_subnet_id': self.used_subnet,
                'identifier': f'vs{self._managed_servers:06}',
                'driver_options': {'key': 'value'},
            }
        }
