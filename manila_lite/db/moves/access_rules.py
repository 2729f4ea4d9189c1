"""Moves of access rules."""

from collections.abc import Collection

from manila_lite.db.queries.access import share_rules
from manila_lite.db.session import Session
from manila_lite.db.transitions import fire_matching
from manila_lite.states.access_rule import SHARE_INSTANCE_ACCESS


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
            session,
            SHARE_INSTANCE_ACCESS,
            'change',
            {'id': sorted(instance_ids)},
        )
