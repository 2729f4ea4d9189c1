"""Send the access rules of replicas to their back ends again."""

from collections.abc import Iterable, Mapping
import typing

from manila_lite.context import RequestContext
from manila_lite.db.queries.access import share_rules
from manila_lite.db.session import Session
from manila_lite.db.transitions import fire_matching
from manila_lite.rpc.contract import Client
from manila_lite.states.access_rule import SHARE_INSTANCE_ACCESS
from manila_lite.states.access_rule import RulesStatus
from manila_lite.states.share_replica import ReplicaState

# The published example of a driver uses the second value.
_IN_FORCE = (RulesStatus.ACTIVE, ReplicaState.IN_SYNC)


class RuleResync:
    """Resyncs access rules, in two steps because of the lock order.

    Rows of work are locked before the instances they are about.
    """

    def __init__(self, sync_client: Client):
        self.sync_client = sync_client

    def submit(
        self,
        session: Session,
        ctx: RequestContext,
        replicas: Iterable[typing.Any],
    ) -> None:
        """Submit the work; call `mark_stale` in the same transaction."""
        for row in sorted(replicas, key=lambda row: row.id):
            if row.host:
                self.sync_client.on(row.host).sync_access(
                    session, ctx, instance_id=row.id
                )

    def mark_stale(
        self, session: Session, instance_ids: Iterable[str]
    ) -> None:
        """Make the next sync of these instances send the full set."""
        for instance_id in sorted(instance_ids):
            share_rules.mark_stale(session, instance_id)
            fire_matching(
                session, SHARE_INSTANCE_ACCESS, 'change', {'id': instance_id}
            )


def rules_in_force(reply: Mapping[str, typing.Any] | None) -> bool:
    """Return whether a driver reports the rules it was given as in force."""
    return bool(reply) and reply.get('access_rules_status') in _IN_FORCE
