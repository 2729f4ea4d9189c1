"""Moves of the snapshots of a share that is migrated.

Each snapshot has an instance on the source and, from the placement on, one
on the destination. At the end one of the two is left. Rows in an unexpected
status, for example after `reset_status`, are left as they are.
"""

from manila_lite import exception
from manila_lite.db.queries import private_data
from manila_lite.db.queries.access import snapshot_rules
from manila_lite.db.queries.snapshots import snapshots
from manila_lite.db.session import Session
from manila_lite.db.transitions import fire_all, fire_matching, insert_rows
from manila_lite.states.snapshot_instance import SNAPSHOT_INSTANCE


def begin(session: Session, share_id: str, share_instance_id: str) -> None:
    """Let all snapshots move with their share.

    Raises InvalidShare or InvalidStatus if one of them cannot. The caller has
    moved the share, so that there are no new ones.
    """
    ids = snapshots.list_ids_on_share_instances(session, [share_instance_id])
    fire_all(session, SNAPSHOT_INSTANCE, ids, 'migrate', updated_at=session.now)
    # Behind the guard: rules of a snapshot that migrates are not changed.
    if snapshot_rules.has_rules_in_flight_on(session, share_instance_id):
        raise exception.InvalidShare(
            reason=f'share {share_id} has snapshots with access rules that are changing'
        )


def place(session: Session, source_id: str, destination_id: str) -> None:
    """Insert an instance of each snapshot on the destination."""
    insert_rows(
        session,
        SNAPSHOT_INSTANCE,
        'migrate_here',
        [
            {
                'id': session.new_id(),
                'snapshot_id': row.snapshot_id,
                'share_instance_id': destination_id,
                'progress': row.progress,
                'created_at': session.now,
            }
            for row in snapshots.list_on_share_instance(session, source_id)
        ],
    )


def roll_back(session: Session, source_id: str, destination_id: str | None) -> None:
    """Make the snapshots available as before; their copies are gone."""
    _remove(session, destination_id)
    fire_matching(
        session,
        SNAPSHOT_INSTANCE,
        'migrate_returned',
        {'share_instance_id': source_id},
        updated_at=session.now,
    )


def give_up(session: Session, *share_instance_ids: str | None) -> None:
    """Show that the snapshots may be on either of the instances."""
    fire_matching(
        session,
        SNAPSHOT_INSTANCE,
        'migration_failed',
        {'share_instance_id': sorted(id for id in share_instance_ids if id)},
        updated_at=session.now,
    )


def cut_over(session: Session, source_id: str, destination_id: str) -> None:
    """Let the instances on the destination take over, with their rules."""
    snapshot_rules.move_to(session, source_id, destination_id)
    fire_matching(
        session,
        SNAPSHOT_INSTANCE,
        'arrived',
        {'share_instance_id': destination_id},
        updated_at=session.now,
    )
    _remove(session, source_id)


def _remove(session: Session, share_instance_id: str | None) -> None:
    ids = share_instance_id and snapshots.list_ids_on_share_instances(
        session, [share_instance_id]
    )
    if ids:
        fire_matching(session, SNAPSHOT_INSTANCE, 'removed', {'id': ids})
        private_data.delete_all(session, ids)
