"""The quota of share groups and their snapshots, and their removal."""

from manila_lite.db.rows import ShareGroupRow, ShareGroupSnapshotRow
from manila_lite.db.session import Session
from manila_lite.db.transitions import fire
from manila_lite.quota import charges
from manila_lite.quota.charges import Owner
from manila_lite.states.share_group import SHARE_GROUP
from manila_lite.states.share_group_snapshot import SHARE_GROUP_SNAPSHOT

DELTAS = {'share_groups': 1}
SNAPSHOT_DELTAS = {'share_group_snapshots': 1}


def remove_and_credit(
    session: Session, group: ShareGroupRow, event: str = 'deleted'
) -> None:
    """Remove a group by its last move and give back its quota."""
    fire(session, SHARE_GROUP, group.id, event)
    charges.credit(session, Owner(group.project_id, group.user_id), DELTAS)


def remove_snapshot_and_credit(
    session: Session, snapshot: ShareGroupSnapshotRow, event: str = 'deleted'
) -> None:
    """Remove a snapshot with its members, and give back its quota."""
    fire(session, SHARE_GROUP_SNAPSHOT, snapshot.id, event)
    charges.credit(
        session, Owner(snapshot.project_id, snapshot.user_id), SNAPSHOT_DELTAS
    )
