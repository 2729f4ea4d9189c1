"""Errors of services, back ends' hosts and the content of shares."""

from manila_lite.exception.families import (
    Conflict,
    Invalid,
    ManilaLiteError,
    NotFound,
    ServiceUnavailable,
)


class AvailabilityZoneNotFound(NotFound):
    message = 'Availability zone {zone} could not be found.'


class ServiceNotFound(NotFound):
    message = 'Service {binary} on host {host} could not be found.'


class HostNotFound(NotFound):
    message = 'host: {reason}'


class ServiceNotUp(Conflict):
    message = 'Service {binary} on host {host} is down.'


class ServiceIsDown(Invalid):
    message = 'Service {binary} on host {host} is down.'


class ServiceAlreadyEnsuring(Conflict):
    message = 'Service {binary} on host {host} is already ensuring shares.'


class NoValidHost(ManilaLiteError):
    message = 'No back end can hold the share: {reason}'


class NewerReleaseNeeded(ServiceUnavailable):
    """A process is asked for something that its release does not know.

    Work that meets it waits for the upgrade and does not fail.
    """

    message = (
        '{where} has a process of an older release, which does not know '
        '{method}. It can be carried out when that process is upgraded.'
    )


class NoShareServiceUp(ServiceUnavailable):
    message = 'No share service is up: {reason}'


class InvalidExpression(Invalid):
    message = 'Expression {expression!r} cannot be evaluated: {reason}'


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
