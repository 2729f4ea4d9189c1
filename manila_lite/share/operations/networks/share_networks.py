"""Accept requests about share networks."""

from collections.abc import Mapping
import dataclasses
import typing

from manila_lite import exception
from manila_lite.context import RequestContext
from manila_lite.db.queries.networks import share_networks, subnets
from manila_lite.db.queries.shares import migrations
from manila_lite.db.session import Database, Session, transaction
from manila_lite.db.transitions import fire, insert_row
from manila_lite.quota import charges
from manila_lite.quota.charges import Owner
from manila_lite.quota.limits import DefaultLimits
from manila_lite.rpc.contract import Client
from manila_lite.rpc.share import ShareServersRpc
from manila_lite.share.operations.networks import checks
from manila_lite.share.operations.reset_events import reset_event
from manila_lite.share.operations.servers.share_servers import release_unused
from manila_lite.states.share_network import SHARE_NETWORK

_QUOTA_DELTAS = {'share_networks': 1}


@dataclasses.dataclass(eq=False)
class ShareNetworks:
    """Operations on share networks. Each method is one transaction."""

    db: Database
    limits: DefaultLimits
    servers: Client[ShareServersRpc]

    # Networks

    @transaction
    def create(
        self,
        session: Session,
        ctx: RequestContext,
        *,
        name: str | None = None,
        description: str | None = None,
        zone: str | None = None,
        subnet: Mapping[str, object],
    ) -> str:
        """Create a network with its first subnet and return its id.

        Without a zone, it is the default subnet, which serves all zones.
        """
        zone_id = checks.find_zone_id(session, zone)
        charges.charge(
            session,
            Owner(typing.cast(str, ctx.project_id), ctx.user_id),
            _QUOTA_DELTAS,
            limits=self.limits,
        )
        network_id = session.new_id()
        insert_row(
            session,
            SHARE_NETWORK,
            'create',
            id=network_id,
            project_id=ctx.project_id,
            user_id=ctx.user_id,
            name=name,
            description=description,
            created_at=session.now,
        )
        subnets.insert(session, network_id, {'availability_zone_id': zone_id, **subnet})
        return network_id

    @transaction
    def update(
        self,
        session: Session,
        ctx: RequestContext,
        network_id: str,
        values: Mapping[str, object],
        subnet: Mapping[str, object],
    ) -> None:
        """Change the network, and the Neutron ids of its default subnet.

        The ids cannot be changed while the network has share servers.
        """
        if values:
            share_networks.update(session, network_id, values)
        if not subnet:
            return
        share_networks.lock(session, network_id)
        if share_networks.has_servers(
            session, network_id
        ) or migrations.is_network_wanted(session, network_id):
            raise exception.ShareNetworkNotModifiable(
                share_network_id=network_id,
                reason='only its name and description can be changed',
            )
        checks.check_neutron_ids(subnet)
        defaults = [
            row
            for row in subnets.list_for_network(session, network_id)
            if row.is_default
        ]
        if len(defaults) != 1:
            raise exception.InvalidShareNetwork(
                reason=f'{network_id} has {len(defaults)} default subnets; '
                'only a single one can be changed'
            )
        subnets.update(session, defaults[0].id, subnet)

    @transaction
    def delete(self, session: Session, ctx: RequestContext, network_id: str) -> None:
        """Delete a network without shares and groups; credit its quota.

        Its idle share servers are deleted too, its security services not.
        """

        def in_use(reason: str) -> exception.ManilaLiteError:
            return exception.ShareNetworkInUse(
                share_network_id=network_id, reason=reason
            )

        network = share_networks.lock(session, network_id)
        if share_networks.has_shares(session, network_id):
            raise in_use('it has shares')
        if migrations.is_network_wanted(session, network_id):
            raise in_use('a share is being migrated to it')
        if share_networks.has_share_groups(session, network_id):
            raise in_use('it has share groups')
        if subnets.count(session, network_id) > 1:
            raise in_use('it has more than one subnet')
        release_unused(
            session,
            ctx,
            self.servers,
            network_id,
            share_networks.list_servers(session, network_id),
            in_use,
        )
        subnets.remove_all(session, network_id)
        try:
            fire(session, SHARE_NETWORK, network_id, 'deleted')
        except exception.InvalidStatus as error:
            raise in_use('it is changing') from error
        charges.credit(
            session, Owner(network.project_id, network.user_id), _QUOTA_DELTAS
        )

    @transaction
    def reset_status(
        self, session: Session, ctx: RequestContext, network_id: str, status: str
    ) -> None:
        """Set the status by `reset_status`; raises InvalidInput."""
        fire(session, SHARE_NETWORK, network_id, reset_event(SHARE_NETWORK, status))
