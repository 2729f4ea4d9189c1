"""The base class of all errors, and a family per HTTP code."""


class ManilaLiteError(Exception):
    """Base class: `message` is formatted with the keyword arguments.

    `code` is the HTTP code of the response. Messages of errors with a
    code of 500 or more are never shown to users.
    """

    code = 500
    message = 'An unknown error occurred.'

    def __init__(self, message: str | None = None, **params: object):
        self.params = params
        self.msg = message or self.message.format(**params)
        super().__init__(self.msg)

    @property
    def public_message(self) -> str:
        """The message for users."""
        return self.msg

    @property
    def kwargs(self) -> dict[str, object]:
        """The parameters, under the name that oslo.messaging sends."""
        return self.params


class Invalid(ManilaLiteError):
    code = 400
    message = 'The request is not acceptable.'


class Unauthorized(ManilaLiteError):
    code = 401
    message = 'The request you have made requires authentication.'


class Forbidden(ManilaLiteError):
    code = 403
    message = 'The request is not allowed.'


class NotFound(ManilaLiteError):
    code = 404
    message = 'The resource could not be found.'


class Conflict(ManilaLiteError):
    code = 409
    message = 'The request conflicts with the state of the resource.'


class QuotaError(ManilaLiteError):
    code = 413
    message = 'Quota exceeded.'


class Unprocessable(ManilaLiteError):
    code = 422
    message = 'The body lacks the required element.'


class ServiceUnavailable(ManilaLiteError):
    code = 503
    message = 'The service is busy; try again later.'
    retry_after = 2
