"""Requests that are malformed or not allowed."""

from manila_lite.exception import families


class InvalidInput(families.Invalid):
    message = 'Invalid input received: {reason}'


class MalformedRequestBody(families.Invalid):
    message = 'Malformed request body'


class MalformedRequestUrl(families.Invalid):
    message = 'Malformed request url'


class BodyTooLarge(families.ManilaLiteError):
    code = 413
    message = 'The request body is larger than {limit} bytes.'


class HeadersTooLarge(families.ManilaLiteError):
    code = 431
    message = 'The URL and the headers of the request are too large.'


class MalformedRequest(families.Invalid):
    message = 'Malformed request: {reason}'


class TransferEncodingNotSupported(families.ManilaLiteError):
    code = 501
    message = 'Only "chunked" is supported as the transfer encoding of a request.'


class TooManySignIns(families.ServiceUnavailable):
    """A password is not verified now; `retry_after` is in seconds."""

    message = 'Too many sign-ins failed or are in progress; try again later.'

    def __init__(self, message: str | None = None, *, retry_after: int = 2):
        super().__init__(message)
        self.retry_after = retry_after


class NoSuchAction(families.Invalid):
    message = 'There is no such action: {action}'


class InvalidVersionHeader(families.Invalid):
    message = (
        'API version string {text} is of invalid format. It must be '
        'of the form MajorNum.MinorNum.'
    )


class VersionNotServed(families.ManilaLiteError):
    code = 406
    message = (
        'Version {text} is not supported by the API. The minimum is '
        '{minimum} and the maximum is {maximum}.'
    )


class VersionNotFoundForMethod(families.NotFound):
    message = 'The resource could not be found at API version {version}.'


class MissingElement(families.Unprocessable):
    message = 'The body lacks the required element "{element}".'


class PolicyNotAuthorized(families.Forbidden):
    message = 'Policy does not allow {rule} to be performed.'


class AccessDenied(families.Forbidden):
    """A request that the rule of its operation does not allow."""

    message = (
        'Access was denied to this resource. Policy does not allow {rule} to '
        'be performed.'
    )


class ResourceBusy(families.ServiceUnavailable):
    message = (
        'Too many other requests about this resource are waiting; try again later.'
    )


class DatabaseBusy(families.ServiceUnavailable):
    message = 'The database is busy with other requests; try again later.'


class OutcomeUnknown(families.ServiceUnavailable):
    """The connection was lost while a transaction was being committed.

    It was committed or not, and must not simply run again.
    """

    message = (
        'The database did not confirm the change, which may have been made; '
        'look before you repeat the request.'
    )


class DatabaseFull(families.ServiceUnavailable):
    """The database cannot write; `reason` is for the log."""

    message = 'The database cannot store anything now; try again later.'
    retry_after = 30


class ReadTimeLimitExceeded(families.ServiceUnavailable):
    message = (
        'The database took longer than {seconds} s; narrow the request with '
        'filters or a limit, or try again later.'
    )
    retry_after = 10


class MetadataItemNotFound(families.NotFound):
    message = 'Metadata item {key} could not be found.'


class AdminOnlyMetadata(families.Forbidden):
    message = 'Metadata keys {keys} may only be changed by administrators.'


class ExtensionNotFound(families.NotFound):
    message = 'Extension {alias} could not be found.'


class MessageNotFound(families.NotFound):
    message = 'Message {message_id} could not be found.'
