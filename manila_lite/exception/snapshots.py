"""Snapshots and their instances."""

from manila_lite.exception.families import Conflict, Invalid, NotFound, Unprocessable
from manila_lite.exception.transitions import ResourceNotFound


class ShareSnapshotNotFound(NotFound):
    message = 'Snapshot {snapshot_id} could not be found.'


class SnapshotInstanceNotFound(ResourceNotFound):
    message = 'Snapshot instance {snapshot_instance_id} could not be found.'


class SnapshotsUnsupported(Unprocessable):
    message = 'Snapshots of share {share_id} are not supported.'


class SnapshotAlreadyManaged(Conflict):
    message = (
        'Invalid share snapshot: {location} of share {share_id} is already managed.'
    )


class NotNewestSnapshot(Conflict):
    message = 'Only the newest snapshot {newest_id} can be restored, not {snapshot_id}.'


class NewerSnapshotRemaining(Conflict):
    message = (
        'A newer snapshot of share {share_id} was deleted, and its back end '
        'has still to remove it. Try again later.'
    )


class SnapshotNotMountable(Invalid):
    message = 'Snapshots of share {share_id} cannot be mounted.'


class InvalidShareSnapshot(Invalid):
    message = 'Invalid share snapshot: {reason}'


class ManageInvalidShareSnapshot(InvalidShareSnapshot):
    message = (
        'Manage existing share snapshot failed due to invalid share snapshot: {reason}'
    )


class UnmanageInvalidShareSnapshot(InvalidShareSnapshot):
    message = (
        'Unmanage existing share snapshot failed due to invalid '
        'share snapshot: {reason}'
    )
