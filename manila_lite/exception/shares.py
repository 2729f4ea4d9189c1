"""Shares, their instances and export locations."""

from manila_lite.exception.families import Conflict, Forbidden, Invalid, NotFound
from manila_lite.exception.transitions import ResourceNotFound


class ShareNotFound(NotFound):
    message = 'Share {share_id} could not be found.'


class ShareInstanceNotFound(ResourceNotFound):
    message = 'Share instance {share_instance_id} could not be found.'


class ExportLocationNotFound(NotFound):
    message = 'Export location {export_location_id} could not be found.'


class InvalidShare(Invalid):
    message = 'Invalid share: {reason}'


class ShareNotAllowed(Forbidden):
    message = 'Invalid share: {reason}'


class ShareHasSnapshots(Conflict):
    message = (
        'Share {share_id} has snapshots, which a copy by the data service '
        'does not keep; delete or unmanage them, or let its driver migrate '
        'it, with preserve_snapshots.'
    )


class ShareAlreadyManaged(Conflict):
    message = 'Invalid share: {path} on {host} is already managed.'


class ShareSoftDeleted(Forbidden):
    message = 'Share {share_id} is in the recycle bin; restore it before using it.'


class ManageInvalidShare(InvalidShare):
    """A driver found no share to manage, or not the requested one."""

    message = 'Manage existing share failed due to invalid share: {reason}'


class UnmanageInvalidShare(InvalidShare):
    message = 'Unmanage existing share failed due to invalid share: {reason}'
