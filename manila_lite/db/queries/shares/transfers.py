"""Share transfers: their records, and the rows that they move."""

from collections.abc import Sequence
import datetime

import sqlalchemy as sa

from manila_lite import exception
from manila_lite.db import rows
from manila_lite.db.queries import pages
from manila_lite.db.queries.columns import columns
from manila_lite.db.queries.records import Records
from manila_lite.db.session import Session
from manila_lite.db.tables import (
    INSTANCE,
    LOCK,
    SHARE,
    SNAPSHOT,
    SNAPSHOT_INSTANCE,
    TRANSFER,
)
from manila_lite.states.share_transfer import TransferStatus

FILTERS = (
    'id',
    'display_name',
    'resource_type',
    'resource_id',
    'source_project_id',
    'destination_project_id',
)
"""The columns that a list can be filtered by, by equality."""

SORT_KEYS = (*FILTERS, 'created_at', 'updated_at', 'expires_at')

_SHOWN = (
    *(
        TRANSFER.c[name]
        for name in (*FILTERS, 'created_at', 'updated_at', 'expires_at')
    ),
    TRANSFER.c.source_project_id.label('project_id'),
)
_WITH_INSTANCE = TRANSFER.join(INSTANCE, INSTANCE.c.share_id == TRANSFER.c.resource_id)
RECORDS: Records[rows.TransferRow] = Records(
    TRANSFER,
    exception.ShareTransferNotFound,
    'transfer_id',
    sa.select(*_SHOWN),
    sa.select(*_SHOWN, INSTANCE.c.id.label('instance_id')).select_from(_WITH_INSTANCE),
)
_BY_ID = TRANSFER.c.id == sa.bindparam('transfer_id')
_OFFER = (
    sa.select(
        *columns(
            rows.OfferRow,
            TRANSFER,
            INSTANCE,
            share_id=TRANSFER.c.resource_id,
            instance_id=INSTANCE.c.id,
        )
    )
    .select_from(_WITH_INSTANCE)
    .where(_BY_ID)
)
_ACCEPTED = (
    sa.select(
        *columns(
            rows.AcceptedTransferRow,
            TRANSFER,
            INSTANCE,
            project_id=TRANSFER.c.destination_project_id,
            user_id=TRANSFER.c.destination_user_id,
            share_id=TRANSFER.c.resource_id,
        )
    )
    .select_from(_WITH_INSTANCE)
    .where(_BY_ID)
)
_STATUS = sa.select(TRANSFER.c.status).where(_BY_ID)
_EXPIRED = (
    sa.select(TRANSFER.c.id, TRANSFER.c.expires_at, INSTANCE.c.id.label('instance_id'))
    .select_from(_WITH_INSTANCE)
    .where(
        TRANSFER.c.status == TransferStatus.PENDING,
        INSTANCE.c.service_host == sa.bindparam('of_service'),
        TRANSFER.c.expires_at <= sa.bindparam('now'),
        *pages.is_behind(
            (sa.bindparam('after'), sa.bindparam('after_id')),
            TRANSFER.c.expires_at,
            TRANSFER.c.id,
        ),
    )
    .order_by(TRANSFER.c.expires_at, TRANSFER.c.id)
    .limit(100)
)
_SNAPSHOTS = (
    sa.select(*columns(rows.SnapshotToTransferRow, SNAPSHOT, SNAPSHOT_INSTANCE))
    .select_from(SNAPSHOT.join(SNAPSHOT_INSTANCE))
    .where(SNAPSHOT.c.share_id == sa.bindparam('of_share'))
    .order_by(SNAPSHOT.c.id)
)
_SNAPSHOTS_LOCKED = _SNAPSHOTS.with_for_update()
_ANY_LOCK = sa.select(sa.exists().where(LOCK.c.share_id == sa.bindparam('of_share')))
_MOVE_SHARE = (
    sa.update(SHARE)
    .where(SHARE.c.id == sa.bindparam('of_share'))
    .values(
        project_id=sa.bindparam('new_project'),
        user_id=sa.bindparam('new_user'),
        updated_at=sa.bindparam('now'),
    )
)
_MOVE_SNAPSHOTS = (
    sa.update(SNAPSHOT)
    .where(SNAPSHOT.c.share_id == sa.bindparam('of_share'))
    .values(
        project_id=sa.bindparam('new_project'),
        user_id=sa.bindparam('new_user'),
        updated_at=sa.bindparam('now'),
    )
)


get, list_transfers = RECORDS.get, RECORDS.list_page


def find_offer(session: Session, transfer_id: str) -> rows.OfferRow | None:
    """Return a transfer with the hash of its key, or None."""
    return session.first(_OFFER, transfer_id=transfer_id)


def find_accepted(
    session: Session, transfer_id: str
) -> rows.AcceptedTransferRow | None:
    """Return a transfer with those who have accepted it, or None."""
    return session.first(_ACCEPTED, transfer_id=transfer_id)


def find_status(session: Session, transfer_id: str) -> str | None:
    """Return the status of a transfer; None once it is gone."""
    return session.value(_STATUS, transfer_id=transfer_id)


def list_expired(
    session: Session,
    service_host: str,
    after: tuple[datetime.datetime, str] = pages.BEGINNING,
) -> Sequence[rows.ExpiredTransferRow]:
    """Return the pending transfers on a back end that have expired.

    Returns a limited number, behind the time and the id `after`.
    """
    return session.rows(
        _EXPIRED,
        of_service=service_host,
        now=session.now,
        after=after[0],
        after_id=after[1],
    )


def list_snapshots(
    session: Session, share_id: str, *, lock: bool = False
) -> Sequence[rows.SnapshotToTransferRow]:
    """Return the snapshots of a share without other replicas."""
    return session.rows(_SNAPSHOTS_LOCKED if lock else _SNAPSHOTS, of_share=share_id)


def has_resource_locks(session: Session, share_id: str) -> bool:
    """Whether there is a lock on the share or on one of its rules."""
    return bool(session.value(_ANY_LOCK, of_share=share_id))


def move(session: Session, share_id: str, project_id: str, user_id: str | None) -> None:
    """Give a share and its snapshots to another project."""
    values = {
        'of_share': share_id,
        'new_project': project_id,
        'new_user': user_id,
        'now': session.now,
    }
    session.run(_MOVE_SHARE, **values)
    session.run(_MOVE_SNAPSHOTS, **values)
