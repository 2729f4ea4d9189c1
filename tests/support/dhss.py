"""A cloud whose back ends create share servers, and networks for them.

The standalone network plug-in allocates addresses from one network for all
back ends.
"""

import typing

import sqlalchemy as sa

from manila_lite.db.models import share_servers, shares, types
from manila_lite.db.session import Session
from tests.support import dhss_invariants
from tests.support.cloud import Cloud
from tests.support.cloud_images import prepared

SECTION = """
driver_handles_share_servers = true
standalone_network_plugin_gateway = 10.10.0.1
standalone_network_plugin_mask = 24
"""
ADMIN_NETWORK = """
[admin_network]
standalone_network_plugin_gateway = 10.99.0.1
standalone_network_plugin_mask = 24
"""

SERVER = share_servers.ShareServer.__table__
ALLOCATION = share_servers.NetworkAllocation.__table__
INSTANCE = shares.ShareInstance.__table__
_SPEC = types.ShareTypeExtraSpec.__table__


class ShareServersCloud(Cloud):
    """A `Cloud` whose default share type uses share networks."""

    def configure(self, *, backend_conf: str = '', extra_conf: str = '') -> None:
        super().configure(backend_conf=SECTION + backend_conf, extra_conf=extra_conf)

    def _fill(self, session: Session) -> None:
        super()._fill(session)
        session.run(
            sa.update(_SPEC)
            .where(_SPEC.c.spec_key == 'driver_handles_share_servers')
            .values(spec_value='True')
        )

    @prepared
    def add_network(self, *zones: str | None) -> str:
        """Create a network with a subnet per zone, or one for all zones.

        Return its id.
        """
        first, *others = zones or (None,)
        network = self.api.request(
            'POST',
            '/share-networks',
            {'share_network': ({'availability_zone': first} if first else {})},
            expect=200,
        ).json['share_network']
        for zone in others:
            self.add_subnet(network['id'], zone)
        return network['id']

    def add_subnet(self, network_id: str, zone: str | None = None) -> str:
        """Add a subnet to a network and return its id."""
        return self.api.request(
            'POST',
            f'/share-networks/{network_id}/subnets',
            {'share-network-subnet': ({'availability_zone': zone} if zone else {})},
            expect=200,
        ).json['share_network_subnet']['id']

    def create_share_on_network(self, network_id: str, **body: object) -> str:
        """Create a share on a network and wait until it is available."""
        return self.create_share(share_network_id=network_id, **body)

    def rows(self, statement: sa.Select) -> typing.Sequence[sa.Row]:
        return self.db.read(lambda session: session.rows(statement))

    def servers(self) -> typing.Sequence[sa.Row]:
        """The share servers, oldest first."""
        return self.rows(sa.select(SERVER).order_by(SERVER.c.created_at))

    def server_of(self, share_id: str) -> str | None:
        (row,) = self.rows(
            sa.select(INSTANCE.c.share_server_id).where(INSTANCE.c.share_id == share_id)
        )
        return row.share_server_id

    def addresses(self) -> dict[str, set[str]]:
        """Return the allocated addresses by share server."""
        allocated: dict[str, set[str]] = {}
        for row in self.rows(sa.select(ALLOCATION)):
            allocated.setdefault(row.share_server_id, set()).add(row.ip_address)
        return allocated

    def check_invariants(self) -> None:
        super().check_invariants()
        for problem in self.db.read(
            dhss_invariants.problems,
            {
                f'node@{name}': (self.folder / 'dummy' / name, self.driver(name))
                for name in self.backend_names
            },
        ):
            raise AssertionError(problem)
