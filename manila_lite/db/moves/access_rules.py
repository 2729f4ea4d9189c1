"""Moves of access rules."""

from collections.abc import Collection, Iterable, Mapping

from manila_lite.db.queries.access import share_rules, snapshot_rules
from manila_lite.db.rows import AccessRuleRow
from manila_lite.db.session import Session
from manila_lite.db.transitions import fire_matching
from manila_lite.states.access_rule import (
    ACCESS_RULE,
    DENIED,
    SHARE_INSTANCE_ACCESS,
    SNAPSHOT_ACCESS_RULE,
    RuleState,
)
from manila_lite.states.machine import Machine


def begin_share_rules(session: Session, instance_id: str) -> None:
    """Start all pending changes to the rules of an instance.

    What fails next then fails for all of them.
    """
    for event in ('apply', 'update', 'withdraw'):
        fire_matching(
            session, ACCESS_RULE, event, {'share_instance_id': instance_id}, touch=True
        )


def begin_snapshot_rules(session: Session, snapshot_instance_id: str) -> None:
    """Do the same for the rules of a snapshot instance."""
    for event in ('apply', 'withdraw'):
        fire_matching(
            session,
            SNAPSHOT_ACCESS_RULE,
            event,
            {'share_snapshot_instance_id': snapshot_instance_id},
            touch=True,
        )


def retry_failed_rules(session: Session, instance_id: str, active_id: str) -> None:
    """Requeue the failed rules of a replica, to match the active replica.

    What has failed there, too, is left in error. The work that syncs is
    submitted in the same transaction.
    """
    _retry_failed(
        session,
        ACCESS_RULE,
        share_rules.list_for_instance(session, instance_id),
        {
            row.id: row.state
            for row in share_rules.list_for_instance(session, active_id)
        },
    )
    share_rules.mark_stale(session, instance_id)


def retry_failed_snapshot_rules(
    session: Session, snapshot_id: str, snapshot_instance_id: str
) -> None:
    """Do the same for the rules of a snapshot on a replica."""
    _retry_failed(
        session,
        SNAPSHOT_ACCESS_RULE,
        snapshot_rules.list_for_instance(session, snapshot_instance_id),
        snapshot_rules.get_states_on_active_replica(session, snapshot_id),
    )
    snapshot_rules.mark_stale(session, snapshot_instance_id)


def _retry_failed(
    session: Session,
    machine: Machine,
    rules: Iterable[AccessRuleRow],
    wanted: Mapping[str, str],
) -> None:
    """Queue rules in error, by the states of the same rules elsewhere."""
    events: dict[str, list[str]] = {'reapply': [], 'deny': []}
    for row in rules:
        if row.state == RuleState.ERROR:
            state = wanted.get(row.id)
            if state is None or state in DENIED:
                events['deny'].append(row.mapping_id)
            elif state != RuleState.ERROR:
                events['reapply'].append(row.mapping_id)
    for event, ids in events.items():
        if ids:
            fire_matching(session, machine, event, {'id': ids}, touch=True)


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
