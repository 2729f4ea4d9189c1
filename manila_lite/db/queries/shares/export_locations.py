"""Export locations as users see them."""

import typing

import sqlalchemy as sa

from manila_lite import exception
from manila_lite.db.models import services, shares
from manila_lite.db.queries.metadata import MetadataTable
from manila_lite.db.rows import ExportLocationViewRow
from manila_lite.db.session import Session
from manila_lite.states.share_replica import DR, ReplicaState

EXPORT = shares.ExportLocation.__table__
EXPORT_METADATA = shares.ExportLocationMetadata.__table__
INSTANCE = shares.ShareInstance.__table__
SHARE = shares.Share.__table__
ZONE = services.AvailabilityZone.__table__

METADATA = MetadataTable(EXPORT_METADATA, 'export_location_id', EXPORT)

PREFERRED = 'preferred'
"""The metadata key that is a separate field on the wire."""

# No client can use those of a passive replica of this type.
_IS_ADMIN_ONLY = sa.case(
    (
        sa.and_(
            SHARE.c.replication_type == DR,
            INSTANCE.c.replica_state != ReplicaState.ACTIVE,
        ),
        sa.true(),
    ),
    else_=EXPORT.c.is_admin_only,
)
_COLUMNS = (
    *(column for column in EXPORT.c if column.name != 'is_admin_only'),
    _IS_ADMIN_ONLY.label('is_admin_only'),
    INSTANCE.c.share_id,
    INSTANCE.c.replica_state,
    ZONE.c.name.label('availability_zone'),
)
_ALL = (
    sa.select(*_COLUMNS)
    .select_from(
        EXPORT.join(INSTANCE)
        .join(SHARE)
        .outerjoin(ZONE, ZONE.c.id == INSTANCE.c.availability_zone_id)
    )
    .order_by(EXPORT.c.created_at, EXPORT.c.path)
)
_OF_SHARE = _ALL.where(INSTANCE.c.share_id == sa.bindparam('of_id'))
_OF_INSTANCE = _ALL.where(INSTANCE.c.id == sa.bindparam('of_id'))
_METADATA = sa.select(EXPORT_METADATA).select_from(
    EXPORT_METADATA.join(EXPORT).join(INSTANCE)
)
_METADATA_OF_SHARE = _METADATA.where(INSTANCE.c.share_id == sa.bindparam('of_id'))
_METADATA_OF_INSTANCE = _METADATA.where(INSTANCE.c.id == sa.bindparam('of_id'))


class ExportLocationListing(typing.NamedTuple):
    """Export locations, and their metadata by export location id."""

    rows: list[ExportLocationViewRow]
    metadata: dict[str, dict[str, str]]

    def one(self, export_location_id: str) -> ExportLocationViewRow:
        for row in self.rows:
            if row.id == export_location_id:
                return row
        raise exception.ExportLocationNotFound(export_location_id=export_location_id)


def list_for_share(
    session: Session, share_id: str, *, all_replicas: bool
) -> ExportLocationListing:
    """Return the export locations of a share.

    Of a replicated share they are those of the active replica only, unless
    `all_replicas` is set, as in versions below 2.47.
    """
    rows = [
        row
        for row in session.rows(_OF_SHARE, of_id=share_id)
        if all_replicas or row.replica_state in (None, ReplicaState.ACTIVE)
    ]
    return ExportLocationListing(
        rows, _by_location(session.rows(_METADATA_OF_SHARE, of_id=share_id))
    )


def list_for_instance(session: Session, instance_id: str) -> ExportLocationListing:
    return ExportLocationListing(
        list(session.rows(_OF_INSTANCE, of_id=instance_id)),
        _by_location(session.rows(_METADATA_OF_INSTANCE, of_id=instance_id)),
    )


def _by_location(rows: typing.Iterable[sa.Row]) -> dict[str, dict[str, str]]:
    found: dict[str, dict[str, str]] = {}
    for row in rows:
        found.setdefault(row.export_location_id, {})[row.key] = row.value
    return found
