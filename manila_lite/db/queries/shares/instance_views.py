"""Share instances as administrators see them."""

from collections.abc import Sequence
import dataclasses
import typing

import sqlalchemy as sa

from manila_lite.db.models import services
from manila_lite.db.models import shares
from manila_lite.db.session import Session

SHARE = shares.Share.__table__
INSTANCE = shares.ShareInstance.__table__
EXPORT = shares.ExportLocation.__table__
ZONE = services.AvailabilityZone.__table__

_SHOWN = (
    sa.select(INSTANCE, ZONE.c.name.label('availability_zone'))
    .select_from(INSTANCE.outerjoin(ZONE))
    .order_by(INSTANCE.c.created_at.desc(), INSTANCE.c.id.desc())
)


@dataclasses.dataclass
class ShareInstanceFilter:
    """Which instances: empty fields do not narrow anything."""

    id: str | None = None
    share_id: str | None = None
    exact: dict[str, str] = dataclasses.field(default_factory=dict)
    export_id: str | None = None
    export_path: str | None = None
    soft_deleted: bool | None = None


class ShareInstanceListing(typing.NamedTuple):
    rows: Sequence[sa.Row]
    children: dict[str, dict[str, list[str]]]


def list_instances(
    session: Session, wanted: ShareInstanceFilter, *, exports: bool
) -> ShareInstanceListing:
    """The instances, newest first, and the paths of their exports."""
    conditions = _conditions(wanted)
    rows = session.rows(_SHOWN.where(*conditions))
    paths: dict[str, list[str]] = {}
    if exports:
        for row in session.rows(
            sa.select(EXPORT.c.share_instance_id, EXPORT.c.path)
            .select_from(EXPORT.join(INSTANCE))
            .where(*conditions)
            .order_by(EXPORT.c.created_at, EXPORT.c.path)
        ):
            paths.setdefault(row.share_instance_id, []).append(row.path)
    return ShareInstanceListing(rows, {'exports': paths})


def _conditions(wanted: ShareInstanceFilter) -> list[sa.ColumnElement]:
    found: list[sa.ColumnElement] = [
        INSTANCE.c[name] == value for name, value in wanted.exact.items()
    ]
    if wanted.id is not None:
        found.append(INSTANCE.c.id == wanted.id)
    if wanted.share_id is not None:
        found.append(INSTANCE.c.share_id == wanted.share_id)
    if wanted.soft_deleted is not None:
        found.append(
            sa.exists().where(
                SHARE.c.id == INSTANCE.c.share_id,
                SHARE.c.is_soft_deleted.is_(wanted.soft_deleted),
            )
        )
    of_export = EXPORT.alias()
    asked = [
        of_export.c[name] == value
        for name, value in (
            ('id', wanted.export_id),
            ('path', wanted.export_path),
        )
        if value is not None
    ]
    if asked:
        found.append(
            sa.exists().where(
                of_export.c.share_instance_id == INSTANCE.c.id, *asked
            )
        )
    return found
