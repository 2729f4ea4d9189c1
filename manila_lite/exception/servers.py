"""Share servers."""

from manila_lite.exception.families import Conflict, Invalid, NotFound


class ShareServerNotFound(NotFound):
    message = 'Share server {share_server_id} could not be found.'


class InvalidShareServer(Invalid):
    message = 'Invalid share server: {reason}'


class ShareServerNotMigratable(Conflict):
    message = 'Invalid share server: {reason}'


class ShareServerInUse(Conflict):
    message = 'Share server {share_server_id} is in use: it has shares or share groups.'


class ManageInvalidShareServer(InvalidShareServer):
    """A driver found no share server to manage."""

    message = (
        'Manage existing share server failed due to invalid share server: {reason}'
    )
