"""The base of all errors, a family per HTTP code; refused transitions."""


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


_KNOWN_BY_ID = (
    'share backup',
    'share group',
    'share group snapshot',
    'share network',
    'share replica',
    'share server',
)
"""Resources whose rows have the ids that users know."""


class InvalidStatus(Conflict):
    """A transition is not allowed in the current status.

    `status` is the current status, `allowed` are the statuses from which
    the transition is allowed.
    """

    message = '{resource} {id} is in status {status}; {event} needs one of: {allowed}.'

    @property
    def status(self) -> str:
        return str(self.params['status'])

    @property
    def public_message(self) -> str:
        """The message for users: it does not name instances and tasks."""
        if 'resource' not in self.params:
            return self.msg
        resource = str(self.params['resource']).removesuffix(' instance')
        if resource in _KNOWN_BY_ID:
            resource += f' {self.params["id"]}'
        return (
            f'The {resource} is in status {self.status}; '
            f'{self.params["event"]} needs one of: '
            f'{self.params["allowed"]}.'
        )


class ClaimLost(ManilaLiteError):
    """Another worker took over the work; this one must not write."""

    message = 'This worker has lost its claim on work {id}.'


class WorkHandedOn(ClaimLost):
    """The process is to stop; any other one may do the rest of the work."""

    message = 'This process is to stop; work {id} is left to any other.'


class ResourceNotFound(NotFound):
    message = '{resource} {id} could not be found.'


class AttemptsExhausted(ManilaLiteError):
    """Every worker that ran the work has disappeared."""

    message = (
        'The work was given up after {attempts} attempts, all of which ended '
        'with the end of their process or of their lease.'
    )


class BackendUnserved(AttemptsExhausted):
    """The work was given up because no process could carry it out."""

    message = 'No process has served {host} for {seconds:g} s.'
