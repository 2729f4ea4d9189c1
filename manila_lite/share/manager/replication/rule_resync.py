"""Send the access rules of replicas to their back ends again."""

from collections.abc import Iterable
import dataclasses

from manila_lite.context import RequestContext
from manila_lite.db.queries.access import snapshot_rules
from manila_lite.db.rows import InstanceRow, ReplicaRow
from manila_lite.db.session import Session
from manila_lite.rpc.contract import Client
from manila_lite.rpc.share import AccessRpc, SnapshotAccessRpc
from manila_lite.share.drivers.base import ReplicaReply
from manila_lite.states.access_rule import RulesStatus
from manila_lite.states.share_replica import ReplicaState

# The published example of a driver uses the second value.
_IN_FORCE = (RulesStatus.ACTIVE, ReplicaState.IN_SYNC)


@dataclasses.dataclass(eq=False)
class RuleResync:
    """Submits the work that resyncs access rules of replicas."""

    sync_client: Client[AccessRpc]
    snapshot_client: Client[SnapshotAccessRpc]

    def submit(
        self,
        session: Session,
        ctx: RequestContext,
        replicas: Iterable[ReplicaRow | InstanceRow],
    ) -> None:
        """Submit the work; `mark_for_resync` follows in the transaction."""
        for row in sorted(replicas, key=lambda row: row.id):
            if row.host:
                self.sync_client.on(row.host).sync_access(
                    session, ctx, instance_id=row.id
                )

    def resync_snapshots(
        self,
        session: Session,
        ctx: RequestContext,
        replicas: Iterable[ReplicaRow | InstanceRow],
    ) -> None:
        """Submit the work that resyncs all snapshots on the replicas."""
        hosts = {row.id: row.host for row in replicas if row.host}
        # Same lock order as in requests: the work, then the instance.
        for id, replica_id in snapshot_rules.list_with_rules_on(session, hosts).items():
            self.snapshot_client.on(hosts[replica_id]).sync_snapshot_access(
                session, ctx, snapshot_instance_id=id
            )
        snapshot_rules.mark_stale_on_share_instances(session, hosts)


def rules_in_force(reply: ReplicaReply | None) -> bool:
    """Return whether a driver reports the rules it was given as in force."""
    return reply is not None and (reply.get('access_rules_status') in _IN_FORCE)
