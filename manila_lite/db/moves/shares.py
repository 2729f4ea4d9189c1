"""Moves of share instances."""

from manila_lite.db.queries import private_data
from manila_lite.db.queries.access import share_rules
from manila_lite.db.queries.shares import affinity, shares
from manila_lite.db.rows import ReplicaStateRow
from manila_lite.db.session import Session
from manila_lite.db.transitions import fire, fire_matching
from manila_lite.states.access_rule import ACCESS_RULE
from manila_lite.states.share_instance import SHARE_INSTANCE


def remove_instance(
    session: Session, instance: ReplicaStateRow, event: str = 'deleted'
) -> bool:
    """Remove an instance by its last move; True if the share went too.

    `instance` has id, share_id and replica_state. Dependent rows are
    deleted too, rules that no other replica has, and what drivers have
    stored about the instance and the share.
    """
    rules = (
        [row.id for row in share_rules.list_for_instance(session, instance.id)]
        if instance.replica_state is not None
        else []
    )
    if rules:
        share_rules.RULES.lock_rules(session, rules)
    fire_matching(session, ACCESS_RULE, 'removed', {'share_instance_id': instance.id})
    fire(session, SHARE_INSTANCE, instance.id, event)
    has_instances, has_hints = shares.read_remainder(session, instance.share_id)
    if has_instances:
        if rules:
            share_rules.RULES.remove_unmapped(session, rules)
        private_data.delete_all(session, [instance.id])
        return False
    private_data.delete_all(session, [instance.id, instance.share_id])
    if has_hints:
        affinity.forget(session, instance.share_id)
    return shares.remove(session, instance.share_id)
