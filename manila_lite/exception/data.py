"""The data service and the content of shares."""

from manila_lite.exception.families import ManilaLiteError, ServiceUnavailable


class ContentUnreachable(ManilaLiteError):
    """The reason may name paths and machines: it is for administrators."""

    message = (
        'The data service cannot reach the content of share instance '
        '{instance_id}: {reason}'
    )


class EarlierCopyRuns(ServiceUnavailable):
    """Waiting for its end is no attempt of the work."""

    message = (
        'An earlier worker is in the middle of a step, with files that are '
        'to be changed. If it does not go on, end its process.'
    )
