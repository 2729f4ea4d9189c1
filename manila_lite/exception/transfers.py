"""Share transfers."""

from manila_lite.exception.families import Invalid, NotFound


class ShareTransferNotFound(NotFound):
    message = 'Share transfer {transfer_id} could not be found.'


class ShareTransferRefused(Invalid):
    """One text for all reasons, which are not for those without the key."""

    message = (
        'The share transfer cannot be accepted: it does not exist, it has '
        'expired, or auth_key is not its key.'
    )


class ShareTransferFailed(Invalid):
    message = (
        'The share was not transferred, and can still be accepted; a user '
        'message says what has failed.'
    )
