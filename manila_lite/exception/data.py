"""The data service and the content of shares."""

from manila_lite.exception.families import ManilaLiteError


class ContentUnreachable(ManilaLiteError):
    """The reason may name paths and machines: it is for administrators."""

    message = (
        'The data service cannot reach the content of share instance '
        '{instance_id}: {reason}'
    )
