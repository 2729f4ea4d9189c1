"""Moves of access rules."""

from collections.abc import Collection, Mapping

from manila_lite.db.queries.access import share_rules
from manila_lite.db.queries.access.rules import RuleTables
from manila_lite.db.session import Session
from manila_lite.db.transitions import fire_matching
from manila_lite.states.access_rule import (
    ACCESS_RULE,
    DENIED,
    SHARE_INSTANCE_ACCESS,
    RuleState,
)


def fire_on(session: Session, rules: RuleTables, instance_id: str, event: str) -> int:
    """Make a move for all rules of an instance that may make it; count them."""
    return fire_matching(
        session, rules.machine, event, {rules.instance_column: instance_id}
    )


def begin_changes(session: Session, rules: RuleTables, instance_id: str) -> None:
    """Start all pending changes to the rules of an instance.

    What fails next then fails for all of them.
    """
    for event in ('apply', 'update', 'withdraw'):
        if event in rules.machine:
            fire_on(session, rules, instance_id, event)


def retry_failed(
    session: Session,
    rules: RuleTables,
    instance_id: str,
    states_on_active: Mapping[str, str],
) -> None:
    """Requeue the failed rules of a replica, to match the active replica.

    What has failed there, too, is left in error. The work that syncs is
    submitted in the same transaction.
    """
    events: dict[str, list[str]] = {'reapply': [], 'deny': []}
    for row in rules.list_for_instance(session, instance_id):
        if row.state == RuleState.ERROR:
            state = states_on_active.get(row.id)
            if state is None or state in DENIED:
                events['deny'].append(row.mapping_id)
            elif state != RuleState.ERROR:
                events['reapply'].append(row.mapping_id)
    for event, ids in events.items():
        if ids:
            fire_matching(session, rules.machine, event, {'id': ids})
    rules.mark_stale(session, instance_id)


def deny_all(session: Session, instance_id: str) -> None:
    """Queue all rules of an instance for removal.

    The work that syncs is submitted before, in the same transaction.
    """
    fire_matching(session, ACCESS_RULE, 'deny', {'share_instance_id': instance_id})
    fire_matching(session, SHARE_INSTANCE_ACCESS, 'change', {'id': instance_id})


def mark_for_resync(session: Session, instance_ids: Collection[str]) -> None:
    """Make the next sync of these share instances send all their rules.

    Used when the meaning of the rules has changed, as by the cast to
    read-only, or when the back end may not have them. The work that syncs
    is submitted before, in the same transaction: requests lock the work
    first and then the instances.
    """
    if instance_ids:
        share_rules.mark_all_stale(session, instance_ids)
        fire_matching(
            session, SHARE_INSTANCE_ACCESS, 'change', {'id': sorted(instance_ids)}
        )
