"""Share groups: the rows, their share types and their members."""

from collections.abc import Collection, Mapping, Sequence
import typing

import sqlalchemy as sa

from manila_lite import exception
from manila_lite.db.queries.records import Records
from manila_lite.db.rows import Page, ShareGroupRow
from manila_lite.db.session import Session
from manila_lite.db.tables import GROUP, GROUP_SHARE_TYPE as SHARE_TYPE, SHARE, ZONE
from manila_lite.states.share_group import GroupStatus

FILTERS = (
    'id',
    'name',
    'description',
    'status',
    'host',
    'project_id',
    'user_id',
    'share_group_type_id',
    'availability_zone_id',
    'source_share_group_snapshot_id',
    'share_network_id',
    'share_server_id',
    'consistent_snapshot_support',
)
"""The columns that a list can be filtered by, by equality."""

SORT_KEYS = (*FILTERS, 'created_at', 'updated_at')

_SHOWN = (
    *(GROUP.c[name] for name in SORT_KEYS),
    ZONE.c.name.label('availability_zone'),
)
_BY_ID = GROUP.c.id == sa.bindparam('group_id')
_LIST = sa.select(*_SHOWN).select_from(GROUP.outerjoin(ZONE))
RECORDS: Records[ShareGroupRow] = Records(
    GROUP, exception.ShareGroupNotFound, 'share_group_id', _LIST
)
_IDS: sa.BindParameter[str] = sa.bindparam('ids', expanding=True)
_SHARE_TYPES = (
    sa.select(SHARE_TYPE)
    .where(SHARE_TYPE.c.share_group_id.in_(_IDS))
    .order_by(SHARE_TYPE.c.share_type_id)
)
_ASSIGN_HOST = (
    sa.update(GROUP)
    .where(_BY_ID, GROUP.c.status == GroupStatus.CREATING, GROUP.c.host.is_(None))
    .values(
        host=sa.bindparam('new_host'),
        availability_zone_id=sa.select(ZONE.c.id)
        .where(ZONE.c.name == sa.bindparam('new_zone'))
        .scalar_subquery(),
        updated_at=sa.bindparam('now'),
    )
)
_MEMBER = (
    sa.select(SHARE.c.id)
    .where(SHARE.c.share_group_id == sa.bindparam('of_group'))
    .limit(1)
)
_RELEASE_MEMBERS = (
    sa.update(SHARE)
    .where(SHARE.c.share_group_id == sa.bindparam('of_group'))
    .values(share_group_id=None, updated_at=sa.bindparam('now'))
)


get, find, update = RECORDS.get, RECORDS.find, RECORDS.update
lock, lock_shared = RECORDS.lock, RECORDS.lock_shared


def list_groups(
    session: Session,
    exact: Mapping[str, typing.Any],
    like: Mapping[str, str],
    page: Page,
) -> Sequence[ShareGroupRow]:
    """Return a page of groups; `exact` and `like` are values of columns.

    The ids in `share_types` of `exact` are of types that a group has.
    """
    exact = dict(exact)
    where = [
        GROUP.c.id.in_(
            sa.select(SHARE_TYPE.c.share_group_id).where(
                SHARE_TYPE.c.share_type_id == id
            )
        )
        for id in exact.pop('share_types', ())
    ]
    return RECORDS.list_page(session, exact, like, page, where)


def list_share_types(session: Session, ids: Collection[str]) -> dict[str, list[str]]:
    """Return the ids of the share types of each of these groups."""
    found: dict[str, list[str]] = {id: [] for id in ids}
    if found:
        for row in session.rows(_SHARE_TYPES, ids=sorted(found)):
            found[row.share_group_id].append(row.share_type_id)
    return found


def insert_share_types(
    session: Session, group_id: str, share_type_ids: Collection[str]
) -> None:
    session.run_many(
        sa.insert(SHARE_TYPE),
        [
            {'share_group_id': group_id, 'share_type_id': id}
            for id in sorted(share_type_ids)
        ],
    )


def assign_host(session: Session, group_id: str, host: str, zone: str | None) -> None:
    """Give a new group its host; only the first placement succeeds."""
    if (
        session.run(
            _ASSIGN_HOST,
            group_id=group_id,
            new_host=host,
            new_zone=zone,
            now=session.now,
        )
        != 1
    ):
        raise exception.InvalidStatus(
            resource='share group',
            id=group_id,
            status=get(session, group_id).status,
            event='place',
            allowed=f'{GroupStatus.CREATING}, without a host',
        )


def has_members(session: Session, group_id: str) -> bool:
    """Whether any share is in the group."""
    return session.value(_MEMBER, of_group=group_id) is not None


def release_members(session: Session, group_id: str) -> None:
    """Take the shares of a group out of it."""
    session.run(_RELEASE_MEMBERS, of_group=group_id, now=session.now)
