"""Migrations of shares: their records."""

from collections.abc import Sequence

import sqlalchemy as sa

from manila_lite import exception
from manila_lite.db.queries.columns import columns
from manila_lite.db.queries.work import queues
from manila_lite.db.rows import ShareMigrationRow, ShareTaskRow, ShownShareMigrationRow
from manila_lite.db.session import Session
from manila_lite.db.tables import INSTANCE, SHARE, SHARE_MIGRATION as MIGRATION, WORK
from manila_lite.states.share_task import SHARE_TASK

_MAX_ERROR_LENGTH = 1000

_OF_SHARE = MIGRATION.c.share_id == sa.bindparam('of_share')
_IS_OPEN = MIGRATION.c.open_for == sa.bindparam('of_share')
_LATEST = sa.select(MIGRATION).where(_OF_SHARE)
_OPEN_LOCKED = sa.select(MIGRATION).where(_IS_OPEN).with_for_update()
_IS_TYPE_WANTED = sa.select(
    sa.exists().where(
        # Not null, in a form for which the index is used.
        MIGRATION.c.open_for >= '',
        MIGRATION.c.new_share_type_id == sa.bindparam('of_type'),
    )
)
_IS_NETWORK_WANTED = sa.select(
    sa.exists().where(
        MIGRATION.c.open_for >= '',
        MIGRATION.c.destination_network_id == sa.bindparam('of_network'),
    )
)
_FORGET = sa.delete(MIGRATION).where(_OF_SHARE)
_INSERT = sa.insert(MIGRATION)
_CLOSE = (
    sa.update(MIGRATION)
    .where(_IS_OPEN)
    .values(
        open_for=None,
        ended_at=sa.bindparam('now'),
        updated_at=sa.bindparam('now'),
        error=sa.func.coalesce(
            sa.bindparam('new_error', type_=sa.String()), MIGRATION.c.error
        ),
    )
)
_RECORD_PROGRESS = (
    sa.update(MIGRATION)
    .where(_IS_OPEN)
    .values(
        progress=sa.bindparam('new_progress'),
        progress_details=sa.func.coalesce(
            sa.bindparam('new_details', type_=sa.Text()), MIGRATION.c.progress_details
        ),
        heard_at=sa.bindparam('now'),
    )
)
_TASK = (
    sa.select(*columns(ShareTaskRow, SHARE, host=MIGRATION.c.source_host))
    .select_from(SHARE.outerjoin(MIGRATION, MIGRATION.c.open_for == SHARE.c.id))
    .where(SHARE.c.id == sa.bindparam('of_share'))
)
_TASK_LOCKED = _TASK.with_for_update(read=True, of=SHARE)
_RUNNING = (
    sa.select(MIGRATION)
    .where(MIGRATION.c.open_for.is_not(None))
    .order_by(MIGRATION.c.open_for)
    .limit(sa.bindparam('most', type_=sa.Integer()))
)


def _with_work(migrations: sa.Select) -> sa.Select:
    """Return migrations with their shares and each with all of its work."""
    found = migrations.subquery()
    return (
        sa.select(
            found.c.share_id,
            found.c.open_for,
            SHARE.c.display_name,
            SHARE.c.project_id,
            SHARE.c.task_state,
            found.c.source_host,
            found.c.destination_host,
            found.c.writable,
            found.c.nondisruptive,
            found.c.preserve_metadata,
            found.c.preserve_snapshots,
            found.c.host_assisted,
            found.c.new_share_type_id,
            found.c.phase,
            found.c.casts_rules,
            found.c.progress,
            found.c.heard_at,
            found.c.error,
            found.c.created_at,
            found.c.ended_at,
            INSTANCE.c.access_rules_status.label('rules_status'),
            WORK.c.state.label('work_state'),
            WORK.c.owner.label('work_owner'),
            WORK.c.error.label('work_error'),
            *queues.SHOWN,
        )
        .select_from(
            found.join(SHARE, SHARE.c.id == found.c.share_id)
            .outerjoin(INSTANCE, INSTANCE.c.id == found.c.source_instance_id)
            .outerjoin(
                WORK,
                sa.and_(
                    WORK.c.resource == SHARE_TASK.resource,
                    WORK.c.resource_id == found.c.share_id,
                ),
            )
            .outerjoin(queues.BLOCKER, queues.IS_BLOCKER)
        )
        .order_by(found.c.share_id, WORK.c.created_at)
    )


_LIST_RUNNING = _with_work(_RUNNING)
_FIND_SHOWN = _with_work(_LATEST).limit(1)
_SET_READONLY = (
    sa.update(INSTANCE)
    .where(INSTANCE.c.id == sa.bindparam('of_instance'))
    .values(cast_rules_to_readonly=sa.bindparam('cast'))
)


def find_task(
    session: Session, share_id: str, *, lock_shared: bool = False
) -> ShareTaskRow | None:
    """Return a share with its task state; with `lock_shared` locked."""
    return session.first(_TASK_LOCKED if lock_shared else _TASK, of_share=share_id)


def find_latest(session: Session, share_id: str) -> ShareMigrationRow | None:
    """Return the latest migration of a share, or None."""
    return session.first(_LATEST, of_share=share_id)


def find_open(session: Session, share_id: str) -> ShareMigrationRow | None:
    """Return the running migration of a share, or None."""
    row = find_latest(session, share_id)
    return None if row is None or row.open_for is None else row


def lock_open(session: Session, share_id: str) -> ShareMigrationRow | None:
    """Lock the running migration of a share and return it, or None."""
    return session.first(_OPEN_LOCKED, of_share=share_id)


def is_type_wanted(session: Session, share_type_id: str) -> bool:
    """Whether a running migration gives this type to a share."""
    return bool(session.value(_IS_TYPE_WANTED, of_type=share_type_id))


def is_network_wanted(session: Session, share_network_id: str) -> bool:
    """Whether a running migration moves a share to this network.

    Reliable only under a lock of the network: a request for a migration
    locks it, too.
    """
    return bool(session.value(_IS_NETWORK_WANTED, of_network=share_network_id))


def get_open(session: Session, share_id: str) -> ShareMigrationRow:
    """Return the running migration; raises InvalidShare without one."""
    row = find_open(session, share_id)
    if row is None:
        raise exception.InvalidShare(reason=f'share {share_id} is not being migrated')
    return row


def insert(session: Session, share_id: str, **values: object) -> None:
    """Insert a migration, in place of the last one of the share."""
    session.run(_FORGET, of_share=share_id)
    session.run(
        _INSERT,
        id=session.new_id(),
        share_id=share_id,
        open_for=share_id,
        phase=1,
        created_at=session.now,
        **{'casts_rules': False, 'host_assisted': False, **values},
    )


def update(session: Session, share_id: str, **values: object) -> None:
    """Change columns of the running migration of a share."""
    session.run(
        sa.update(MIGRATION)
        .where(MIGRATION.c.open_for == share_id)
        .values(updated_at=session.now, **values)
    )


def set_error(session: Session, share_id: str, error: str) -> None:
    """Record why the running migration is about to fail."""
    update(session, share_id, error=error[:_MAX_ERROR_LENGTH])


def record_progress(
    session: Session, share_id: str, progress: int | None, details: str | None = None
) -> None:
    """Record a reply of the driver, with the progress it reports.

    Without `details` those of the last reply remain.
    """
    session.run(
        _RECORD_PROGRESS,
        of_share=share_id,
        new_progress=progress,
        new_details=details,
        now=session.now,
    )


def close(session: Session, share_id: str, error: str | None = None) -> None:
    """Record the end of a migration; repeating it changes nothing."""
    session.run(
        _CLOSE,
        of_share=share_id,
        new_error=error and error[:_MAX_ERROR_LENGTH],
        now=session.now,
    )


def set_rules_readonly(session: Session, instance_id: str, cast: bool) -> None:
    """Set whether the rules of an instance are cast to read-only."""
    session.run(_SET_READONLY, of_instance=instance_id, cast=cast)


def list_running(session: Session, *, most: int) -> Sequence[ShownShareMigrationRow]:
    """Return running migrations, each with its oldest work."""
    found: dict[str, ShownShareMigrationRow] = {}
    for row in session.rows(_LIST_RUNNING, most=most):
        found.setdefault(row.share_id, row)
    return list(found.values())


def find_shown(session: Session, share_id: str) -> ShownShareMigrationRow | None:
    """Return the latest migration of a share with its oldest work."""
    return session.first(_FIND_SHOWN, of_share=share_id)
