"""Has the access rules of replicas be told to their back ends again."""

from collections.abc import Iterable, Mapping
import typing

from manila_lite.context import RequestContext
from manila_lite.db.queries.access import share_rules
from manila_lite.db.session import Session
from manila_lite.db.transitions import fire_matching
from manila_lite.rpc.contract import Client
from manila_lite.states.access_rule import SHARE_INSTANCE_ACCESS
from manila_lite.states.access_rule import RulesStatus

_HOLD = (
    RulesStatus.ACTIVE,
    'in_sync',
)  # the design's example has the second word


class RuleResync:
    """Asks for the work; in two steps, for the order of locks.

    Work is taken before the instances that it is about.
    """

    def __init__(self, sync_client: Client):
        self.sync_client = sync_client

    def ask(
        self,
        session: Session,
        ctx: RequestContext,
        replicas: Iterable[typing.Any],
    ) -> None:
        """Submit the work; `doubt` has to follow in the transaction."""
        for row in sorted(replicas, key=lambda row: row.id):
            if row.host:
                self.sync_client.on(row.host).sync_access(
                    session, ctx, instance_id=row.id
                )

    def mark_stale(
        self, session: Session, instance_ids: Iterable[str]
    ) -> None:
        """Have the whole set be told, whatever is known of it."""
        for instance_id in sorted(instance_ids):
            share_rules.mark_stale(session, instance_id)
            fire_matching(
                session, SHARE_INSTANCE_ACCESS, 'change', {'id': instance_id}
            )


def rules_in_force(answer: Mapping[str, typing.Any] | None) -> bool:
    """Whether a driver says that the rules it was shown are in force."""
    return bool(answer) and answer.get('access_rules_status') in _HOLD
