"""Share groups."""

from manila_lite.exception.families import Conflict, Invalid
from manila_lite.exception.transitions import ResourceNotFound


class ShareGroupNotFound(ResourceNotFound):
    message = 'Share group {share_group_id} could not be found.'


class InvalidShareGroup(Invalid):
    message = 'Invalid share group: {reason}'


class ShareGroupConflict(Conflict):
    """A request about a group itself that it does not allow now."""

    message = '{reason}'


class ShareGroupSnapshotNotFound(ResourceNotFound):
    message = 'Share group snapshot {share_group_snapshot_id} could not be found.'


class ShareGroupSnapshotMemberNotFound(ResourceNotFound):
    message = (
        'Member {share_group_snapshot_member_id} of a share group snapshot '
        'could not be found.'
    )


class InvalidShareGroupSnapshot(Conflict):
    message = 'Invalid share group snapshot: {reason}'
