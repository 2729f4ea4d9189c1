"""Access rules of shares and snapshots."""

from manila_lite.exception.families import Conflict, Invalid, NotFound


class ShareAccessNotFound(NotFound):
    message = 'Access rule {access_id} could not be found.'


class SnapshotAccessNotFound(NotFound):
    message = 'Access rule {access_id} of a snapshot could not be found.'


class AccessRulesNotActive(Conflict):
    message = 'The access rules of share {share_id} are {status}, not active.'


class SnapshotAccessRulesChanging(Conflict):
    message = 'The access rules of snapshot {snapshot_id} are changing.'


class ShareAccessExists(Invalid):
    message = 'Share access {access_type}:{access} exists.'


class ShareSnapshotAccessExists(Invalid):
    message = 'Share snapshot access {access_type}:{access} exists.'


class InvalidShareAccess(Invalid):
    message = 'Invalid access rule: {reason}'


class InvalidShareAccessLevel(Invalid):
    message = 'Invalid or unsupported share access level: {level}'


class InvalidShareAccessType(Invalid):
    message = 'Invalid or unsupported share access type: {type}'
