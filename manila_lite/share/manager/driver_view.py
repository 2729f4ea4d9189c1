"""What a driver is shown of a share instance, and is asked about it."""

from collections.abc import Collection, Mapping
import typing

from manila_lite.db.queries import share_instances as instances
from manila_lite.db.session import Session
from manila_lite.share.drivers.base import ShareForDriver


class Found(typing.NamedTuple):
    """An instance as the work found it: its row, and what hangs on it."""

    row: typing.Any
    metadata: Mapping[str, str]
    exports: list[typing.Any]


def find(session: Session, instance_id: str, *,
         keep: bool = False) -> Found:
    """Everything a driver may want to know of an instance.

    With `keep` it stays as it is until the transaction ends.
    """
    row, metadata = instances.with_metadata(session, instance_id, keep=keep)
    return Found(row, metadata,
                 list(instances.export_locations(session, instance_id)))


def find_new(session: Session, instance_id: str, *,
             keep: bool = False) -> Found:
    """The same of an instance that was never created."""
    row, metadata = instances.with_metadata(session, instance_id, keep=keep)
    return Found(row, metadata, [])


def find_all(session: Session,
             instance_ids: Collection[str]) -> list[Found]:
    """The same of several instances, without those that are gone."""
    return [Found(*found) for found in instances.some(session, instance_ids)]


def for_driver(found: Found, name_template: str) -> ShareForDriver:
    row = found.row
    return ShareForDriver(
        id=row.id, share_id=row.share_id, name=name_template % row.id,
        size=row.size, share_proto=row.share_proto,
        project_id=row.project_id, user_id=row.user_id, host=row.host,
        status=row.status, share_type_id=row.share_type_id,
        availability_zone=row.availability_zone,
        snapshot_id=row.snapshot_id, display_name=row.display_name,
        mount_point_name=row.mount_point_name, metadata=found.metadata,
        export_locations=[
            {'path': export.path, 'is_admin_only': export.is_admin_only,
             'metadata': {}} for export in found.exports])
