"""Resource locks."""

from manila_lite.exception.families import Conflict, Forbidden, NotFound
from manila_lite.exception.shares import ShareNotAllowed


class ResourceLockNotFound(NotFound):
    message = 'Resource lock {lock_id} could not be found.'


class ShareLocked(ShareNotAllowed):
    message = 'Share {share_id} is locked against deletion: {locks}.'


class AccessRuleLocked(Forbidden):
    message = (
        'Access rule {access_id} is locked; remove the locks, or lift the '
        'restrictions if you are allowed to.'
    )


class ResourceNotLockable(Conflict):
    message = (
        'The {resource_type} {resource_id} is being removed or '
        'transferred, or has failed, and cannot be locked.'
    )


class VisibilityLocked(Conflict):
    message = 'The visibility of access rule {access_id} is already locked.'
