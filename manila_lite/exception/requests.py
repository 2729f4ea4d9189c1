"""Requests that are malformed or not allowed."""

from manila_lite.exception.families import (
    Forbidden,
    Invalid,
    ManilaLiteError,
    NotFound,
    ServiceUnavailable,
    Unprocessable,
)


class InvalidInput(Invalid):
    message = 'Invalid input received: {reason}'


class MalformedRequestBody(Invalid):
    message = 'Malformed request body'


class MalformedRequestUrl(Invalid):
    message = 'Malformed request url'


class BodyTooLarge(ManilaLiteError):
    code = 413
    message = 'The request body is larger than {limit} bytes.'


class HeadersTooLarge(ManilaLiteError):
    code = 431
    message = 'The URL and the headers of the request are too large.'


class MalformedRequest(Invalid):
    message = 'Malformed request: {reason}'


class TransferEncodingNotSupported(ManilaLiteError):
    code = 501
    message = 'Only "chunked" is supported as the transfer encoding of a request.'


class TooManySignIns(ServiceUnavailable):
    """A password is not verified now; `retry_after` is in seconds."""

    message = 'Too many sign-ins failed or are in progress; try again later.'

    def __init__(self, message: str | None = None, *, retry_after: int = 2):
        super().__init__(message)
        self.retry_after = retry_after


class NoSuchAction(Invalid):
    message = 'There is no such action: {action}'


class InvalidVersionHeader(Invalid):
    message = (
        'API version string {text} is of invalid format. It must be '
        'of the form MajorNum.MinorNum.'
    )


class VersionNotServed(ManilaLiteError):
    code = 406
    message = (
        'Version {text} is not supported by the API. The minimum is '
        '{minimum} and the maximum is {maximum}.'
    )


class VersionNotFoundForMethod(NotFound):
    message = 'The resource could not be found at API version {version}.'


class MissingElement(Unprocessable):
    message = 'The body lacks the required element "{element}".'


class PolicyNotAuthorized(Forbidden):
    message = 'Policy does not allow {rule} to be performed.'


class AccessDenied(Forbidden):
    """A request that the rule of its operation does not allow."""

    message = (
        'Access was denied to this resource. Policy does not allow {rule} to '
        'be performed.'
    )


class ResourceBusy(ServiceUnavailable):
    message = (
        'Too many other requests about this resource are waiting; try again later.'
    )


class DatabaseBusy(ServiceUnavailable):
    message = 'The database is busy with other requests; try again later.'


class OutcomeUnknown(ServiceUnavailable):
    """The connection was lost while a transaction was being committed.

    It was committed or not, and must not simply run again.
    """

    message = (
        'The database did not confirm the change, which may have been made; '
        'look before you repeat the request.'
    )


class DatabaseFull(ServiceUnavailable):
    """The database cannot write; `reason` is for the log."""

    message = 'The database cannot store anything now; try again later.'
    retry_after = 30


class ReadTimeLimitExceeded(ServiceUnavailable):
    message = (
        'The database took longer than {seconds} s; narrow the request with '
        'filters or a limit, or try again later.'
    )
    retry_after = 10


class MetadataItemNotFound(NotFound):
    message = 'Metadata item {key} could not be found.'


class AdminOnlyMetadata(Forbidden):
    message = 'Metadata keys {keys} may only be changed by administrators.'


class ExtensionNotFound(NotFound):
    message = 'Extension {alias} could not be found.'


class MessageNotFound(NotFound):
    message = 'Message {message_id} could not be found.'
