"""Statuses, and the claims of work that changes them."""

from manila_lite.exception.families import Conflict, ManilaLiteError, NotFound

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
