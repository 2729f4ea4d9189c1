"""Errors of back ends, services and the work between them."""

from manila_lite.exception import families


class DriverError(families.ManilaLiteError):
    """Base class of errors that drivers raise when a back end fails."""

    message = 'The back end failed: {reason}'


class ShareBackendException(DriverError):
    message = 'Share back end error: {msg}'


class FileServerUnresponsive(ShareBackendException, families.ServiceUnavailable):
    """The server that clients of shares use does not answer now.

    It is being replaced: the driver may be called again with the same.
    """

    message = 'the {server} server does not answer'


class ShareRefused(DriverError):
    """The back end will not hold a new share, and has created nothing.

    Another pool may be tried, so a driver that left anything behind must
    not raise it.
    """

    message = 'The back end refused the share: {reason}'


class BadConfiguration(DriverError):
    message = 'The configuration is invalid: {reason}'


class StorageUnavailable(DriverError):
    """The disk or system that holds the shares cannot be reached now."""

    message = 'The storage is not available: {reason}'


class FileSystemUnusable(ShareBackendException, StorageUnavailable):
    """A file system is full, read-only or broken, or its quotas are off."""

    message = StorageUnavailable.message


class SecurityServicesUnsupported(DriverError):
    """A share server would not use what its network asks for."""

    message = (
        'The back end does not use the security services of the share network: {types}'
    )


class SecurityServiceFailedAuth(DriverError):
    """A security service of the network rejects its user or password."""

    message = 'The security service rejects its credentials: {reason}'


class ShareResourceNotFound(DriverError):
    """The share does not exist on the back end, or no longer."""

    message = 'Share {share_id} could not be found on the back end.'


class ShareGroupResourceNotFound(DriverError):
    """The share group does not exist on the back end, or no longer."""

    message = 'Share group {share_group_id} could not be found on the back end.'


class SnapshotResourceNotFound(DriverError):
    """The snapshot does not exist on the back end, or no longer."""

    message = 'Snapshot {snapshot_id} could not be found on the back end.'


class ShareShrinkingPossibleDataLoss(DriverError):
    message = 'Share {share_id} holds more data than the new size allows.'


class DriverCannotTransferShareWithRules(DriverError):
    """The back end can transfer the share only without access rules."""

    message = 'The share cannot be transferred with its access rules.'


class InvalidShareInstance(DriverError):
    message = 'Invalid share instance: {reason}'


class StaleFencingToken(DriverError):
    """A call has an older token than one before it; see FencingToken.

    `seen` is the token of the later worker. A worker that still holds its
    claim, because the clock of the database was set back, then calls again
    with a larger one.
    """

    message = (
        'The back end has seen the fencing token {seen} for {resource}, which is later.'
    )

    @property
    def seen(self) -> int:
        return int(str(self.params['seen']))


class AvailabilityZoneNotFound(families.NotFound):
    message = 'Availability zone {zone} could not be found.'


class ServiceNotFound(families.NotFound):
    message = 'Service {binary} on host {host} could not be found.'


class HostNotFound(families.NotFound):
    message = 'host: {reason}'


class ServiceNotUp(families.Conflict):
    message = 'Service {binary} on host {host} is down.'


class ServiceIsDown(families.Invalid):
    message = 'Service {binary} on host {host} is down.'


class ServiceAlreadyEnsuring(families.Conflict):
    message = 'Service {binary} on host {host} is already ensuring shares.'


class NoValidHost(families.ManilaLiteError):
    message = 'No back end can hold the share: {reason}'


class NewerReleaseNeeded(families.ServiceUnavailable):
    """A process is asked for something that its release does not know.

    Work that meets it waits for the upgrade and does not fail.
    """

    message = (
        '{where} has a process of an older release, which does not know '
        '{method}. It can be carried out when that process is upgraded.'
    )


class NoShareServiceUp(families.ServiceUnavailable):
    message = 'No share service is up: {reason}'


class InvalidExpression(families.Invalid):
    message = 'Expression {expression!r} cannot be evaluated: {reason}'


class ContentUnreachable(families.ManilaLiteError):
    """The reason may name paths and machines: it is for administrators."""

    message = (
        'The data service cannot reach the content of share instance '
        '{instance_id}: {reason}'
    )


class EarlierCopyRuns(families.ServiceUnavailable):
    """Waiting for its end is no attempt of the work."""

    message = (
        'An earlier worker is in the middle of a step, with files that are '
        'to be changed. If it does not go on, end its process.'
    )
