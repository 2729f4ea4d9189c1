"""Moves of snapshots, also of those of a share that is migrated.

Each snapshot of such a share has an instance on the source and, from the
placement on, one on the destination. At the end one of the two is left. Rows in
an unexpected status, for example after `reset_status`, are left as they are.
"""

from collections.abc import Collection

from manila_lite import exception
from manila_lite.db.queries import private_data
from manila_lite.db.queries.access import snapshot_rules
from manila_lite.db.queries.snapshots import snapshots
from manila_lite.db.rows import SnapshotInstanceRow
from manila_lite.db.session import Session
from manila_lite.db.transitions import (
    TransitionBatch,
    fire,
    fire_all,
    fire_matching,
    insert_rows,
)
from manila_lite.states.access_rule import SNAPSHOT_ACCESS_RULE
from manila_lite.states.share_instance import SHARE_INSTANCE, InstanceStatus
from manila_lite.states.snapshot_instance import SNAPSHOT_INSTANCE


def remove_instance(
    session: Session, instance: SnapshotInstanceRow, event: str = 'deleted'
) -> bool:
    """Remove an instance by its last move; True if the snapshot went too.

    `instance` is a row of `find`. Dependent rows are deleted too, and what
    drivers have stored about the instance and the snapshot.
    Instances on replicas may be removed by several back ends at the same
    time; the lock makes sure that one of them is the last.
    """
    if instance.replica_state is not None:
        snapshots.lock(session, instance.snapshot_id)
    rules = (
        _remove_rules(session, instance.id) if instance.mount_snapshot_support else ()
    )
    fire(session, SNAPSHOT_INSTANCE, instance.id, event)
    if snapshots.remove(session, instance.snapshot_id):
        private_data.delete_all(session, [instance.id, instance.snapshot_id])
        return True
    snapshot_rules.RULES.remove_unmapped(session, rules)
    private_data.delete_all(session, [instance.id])
    return False


def _remove_rules(session: Session, snapshot_instance_id: str) -> list[str]:
    """Fire the last move of all rules on an instance; return their ids.

    The rules stay locked for the caller, who has to call
    `snapshot_rules.RULES.remove_unmapped`.
    """
    ids = [
        row.id
        for row in snapshot_rules.list_for_instance(session, snapshot_instance_id)
    ]
    if ids:
        snapshot_rules.RULES.lock_rules(session, ids)
        fire_matching(
            session,
            SNAPSHOT_ACCESS_RULE,
            'removed',
            {'share_snapshot_instance_id': snapshot_instance_id},
        )
    return ids


def remove_rules_on(session: Session, share_instance_id: str) -> None:
    """Remove the rules of all snapshots of a replica without a back end."""
    rules = snapshot_rules.list_on_share_instance(session, share_instance_id)
    if rules:
        ids = {row.access_id for row in rules}
        snapshot_rules.RULES.lock_rules(session, ids)
        fire_matching(
            session,
            SNAPSHOT_ACCESS_RULE,
            'removed',
            {
                'share_snapshot_instance_id': snapshots.list_ids_on_share_instances(
                    session, [share_instance_id]
                )
            },
        )
        snapshot_rules.RULES.remove_unmapped(session, ids)


def release_share(
    session: Session,
    share_instance_id: str,
    *,
    excluding: str = '',
    batch: TransitionBatch | None = None,
) -> None:
    """Make a snapshotting share instance available again.

    It stays snapshotting while a snapshot other than `excluding` is
    creating. A share in any other status is left unchanged. The caller writes
    the `batch`, if the move is made in one.
    """
    moves = batch or TransitionBatch(session)
    # Mostly no other snapshot of the share is creating, and none begins before
    # this one has ended. Two that end at the same time see each other, so they
    # look again one after the other.
    if not moves.fire_unless(
        SHARE_INSTANCE,
        share_instance_id,
        'snapshotted',
        snapshots.IN_PROGRESS,
        of_share_instance=share_instance_id,
        except_id=excluding,
    ):
        status = snapshots.lock_share_instance(session, share_instance_id)
        if (
            status == InstanceStatus.SNAPSHOTTING
            and not snapshots.is_snapshot_in_progress(
                session, share_instance_id, excluding
            )
        ):
            moves.fire_one(SHARE_INSTANCE, share_instance_id, 'snapshotted')
    if batch is None:
        moves.write()


def release_shares(
    session: Session, share_instance_ids: Collection[str], *, excluding: str = ''
) -> None:
    """Like `release_share`, for several share instances at once."""
    locked = snapshots.lock_share_instances(session, share_instance_ids)
    busy = snapshots.list_in_progress(session, locked, excluding)
    fire_matching(
        session, SHARE_INSTANCE, 'snapshotted', {'id': sorted(set(locked) - busy)}
    )


def begin(session: Session, share_id: str, share_instance_id: str) -> None:
    """Let all snapshots move with their share.

    Raises InvalidShare or InvalidStatus if one of them cannot. The caller has
    moved the share, so that there are no new ones.
    """
    ids = snapshots.list_ids_on_share_instances(session, [share_instance_id])
    fire_all(session, SNAPSHOT_INSTANCE, ids, 'migrate')
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
        session, SNAPSHOT_INSTANCE, 'migrate_returned', {'share_instance_id': source_id}
    )


def give_up(session: Session, *share_instance_ids: str | None) -> None:
    """Show that the snapshots may be on either of the instances."""
    fire_matching(
        session,
        SNAPSHOT_INSTANCE,
        'migration_failed',
        {'share_instance_id': sorted(id for id in share_instance_ids if id)},
    )


def cut_over(session: Session, source_id: str, destination_id: str) -> None:
    """Let the instances on the destination take over, with their rules."""
    snapshot_rules.move_to(session, source_id, destination_id)
    fire_matching(
        session, SNAPSHOT_INSTANCE, 'arrived', {'share_instance_id': destination_id}
    )
    _remove(session, source_id)


def _remove(session: Session, share_instance_id: str | None) -> None:
    ids = share_instance_id and snapshots.list_ids_on_share_instances(
        session, [share_instance_id]
    )
    if ids:
        fire_matching(session, SNAPSHOT_INSTANCE, 'removed', {'id': ids})
        private_data.delete_all(session, ids)
