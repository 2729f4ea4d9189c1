"""Error families, then every concrete error.

A family defines the HTTP code of its members; only the fault middleware
turns an error into a response. The codes are those of the published API.
"""


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


# Families


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


# Requests


class InvalidInput(Invalid):
    message = 'Invalid input received: {reason}'


class MalformedRequestBody(Invalid):
    message = 'Malformed request body'


class MalformedRequestUrl(Invalid):
    message = 'Malformed request url'


class BodyTooLarge(ManilaLiteError):
    code = 413
    message = 'The request body is larger than {limit} bytes.'


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


# States


class InvalidStatus(Conflict):
    """A transition is not allowed in the current status.

    `status` is the current status, `allowed` are the statuses from which
    the transition is allowed.
    """

    message = (
        '{resource} {id} is in status {status}; {event} needs one '
        'of: {allowed}.'
    )

    @property
    def status(self) -> str:
        return str(self.params['status'])

    @property
    def public_message(self) -> str:
        """The message for users: it names the share, not its instance."""
        if 'resource' not in self.params:
            return self.msg
        resource = str(self.params['resource']).removesuffix(' instance')
        return (
            f'The {resource} is in status {self.status}; '
            f'{self.params["event"]} needs one of: '
            f'{self.params["allowed"]}.'
        )


class ClaimLost(ManilaLiteError):
    """Another worker took over the work; this one must not write."""

    message = 'This worker has lost its claim on work {id}.'


# Resources not found


class ResourceNotFound(NotFound):
    message = '{resource} {id} could not be found.'


class ShareNotFound(NotFound):
    message = 'Share {share_id} could not be found.'


class ShareInstanceNotFound(ResourceNotFound):
    message = 'Share instance {share_instance_id} could not be found.'


class ShareReplicaNotFound(NotFound):
    message = 'Share replica {replica_id} could not be found.'


class ShareSnapshotNotFound(NotFound):
    message = 'Snapshot {snapshot_id} could not be found.'


class SnapshotInstanceNotFound(ResourceNotFound):
    message = 'Snapshot instance {snapshot_instance_id} could not be found.'


class SnapshotAccessNotFound(NotFound):
    message = 'Access rule {access_id} of a snapshot could not be found.'


class ShareNetworkNotFound(NotFound):
    message = 'Share network {share_network_id} could not be found.'


class ShareNetworkSubnetNotFound(NotFound):
    message = (
        'Share network subnet {share_network_subnet_id} could not be found.'
    )


class SecurityServiceNotFound(NotFound):
    message = 'Security service {security_service_id} could not be found.'


class ShareServerNotFound(NotFound):
    message = 'Share server {share_server_id} could not be found.'


class ShareGroupNotFound(NotFound):
    message = 'Share group {share_group_id} could not be found.'


class ShareTypeNotFound(NotFound):
    message = 'Share type {share_type_id} could not be found.'


class ShareTypeExtraSpecNotFound(NotFound):
    message = 'Share type {share_type_id} has no extra spec {key}.'


class ShareTypeAccessNotFound(NotFound):
    message = (
        'Share type access of project {project_id} to '
        '{share_type_id} could not be found.'
    )


class DefaultShareTypeNotFound(NotFound):
    message = 'No default share type is configured or it does not exist.'


class AvailabilityZoneNotFound(NotFound):
    message = 'Availability zone {zone} could not be found.'


class ServiceNotFound(NotFound):
    message = 'Service {binary} on host {host} could not be found.'


class ShareAccessNotFound(NotFound):
    message = 'Access rule {access_id} could not be found.'


class ExportLocationNotFound(NotFound):
    message = 'Export location {export_location_id} could not be found.'


class MetadataItemNotFound(NotFound):
    message = 'Metadata item {key} could not be found.'


class MessageNotFound(NotFound):
    message = 'Message {message_id} could not be found.'


class ResourceLockNotFound(NotFound):
    message = 'Resource lock {lock_id} could not be found.'


class ExtensionNotFound(NotFound):
    message = 'Extension {alias} could not be found.'


# Shares


class InvalidShare(Invalid):
    message = 'Invalid share: {reason}'


class ShareNotAllowed(Forbidden):
    message = 'Invalid share: {reason}'


class ShareAlreadyManaged(Conflict):
    message = 'Invalid share: {path} on {host} is already managed.'


class ShareHasReplicas(Conflict):
    message = 'Share {share_id} has replicas; remove them first.'


class ReplicationException(Invalid):
    message = 'Replication: {reason}'


class PromotionNeedsAdmin(Forbidden):
    message = (
        'Share replica {replica_id} is {replica_state}, not in_sync; '
        'only an administrator may promote it.'
    )


class ShareSoftDeleted(Forbidden):
    message = (
        'Share {share_id} is in the recycle bin; restore it before using it.'
    )


class AdminOnlyMetadata(Forbidden):
    message = 'Metadata keys {keys} may only be changed by administrators.'


# Resource locks


class ShareLocked(ShareNotAllowed):
    message = 'Share {share_id} is locked against deletion.'


class AccessRuleLocked(Forbidden):
    message = (
        'Access rule {access_id} is locked; remove the locks, or lift the '
        'restrictions if you are allowed to.'
    )


class ResourceNotLockable(Conflict):
    message = (
        'The {resource_type} {resource_id} is being removed, or has '
        'failed, and cannot be locked against deletion.'
    )


class VisibilityLocked(Conflict):
    message = 'The visibility of access rule {access_id} is already locked.'


# Share types


class ShareTypeExists(Conflict):
    message = 'Share type {name} already exists.'


class ShareTypeInUse(Invalid):
    message = 'Share type {share_type_id} is in use.'


class ShareTypeAccessExists(Conflict):
    message = (
        'Project {project_id} already has access to share type '
        '{share_type_id}.'
    )


class PublicShareType(Conflict):
    message = (
        'Share type {share_type_id} is public; its access list '
        'cannot be changed.'
    )


class InvalidExtraSpec(Invalid):
    message = 'Invalid extra spec: {reason}'


class ExtraSpecRequired(Forbidden):
    message = 'Extra spec {key} is required and cannot be removed.'


# Services


class ServiceNotUp(Conflict):
    message = 'Service {binary} on host {host} is not up.'


class ServiceIsDown(Invalid):
    message = 'Service {binary} on host {host} is down.'


class ServiceAlreadyEnsuring(Conflict):
    message = 'Service {binary} on host {host} is already ensuring shares.'


# Snapshots


class SnapshotsUnsupported(Unprocessable):
    message = 'Snapshots of share {share_id} are not supported.'


class SnapshotAlreadyManaged(Conflict):
    message = (
        'Invalid share snapshot: {location} of share {share_id} is '
        'already managed.'
    )


class NotNewestSnapshot(Conflict):
    message = (
        'Only the newest snapshot {newest_id} can be restored, not '
        '{snapshot_id}.'
    )


class AccessRulesNotActive(Conflict):
    message = 'The access rules of share {share_id} are {status}, not active.'


class SnapshotAccessRulesChanging(Conflict):
    message = 'The access rules of snapshot {snapshot_id} are changing.'


# Share networks


class InvalidShareNetwork(Invalid):
    message = 'Invalid share network: {reason}'


class ShareNetworkNotModifiable(Forbidden):
    message = 'Share network {share_network_id} is in use: {reason}'


class ShareNetworkInUse(Conflict):
    message = 'Share network {share_network_id} is in use: {reason}'


class ShareNetworkSubnetInUse(Conflict):
    message = (
        'Share network subnet {share_network_subnet_id} is in use: {reason}'
    )


class ShareNetworkSubnetExists(Conflict):
    message = (
        'Share network {share_network_id} already has a subnet for {where}.'
    )


class SecurityServiceInUse(Forbidden):
    message = 'Security service {security_service_id} is in use: {reason}'


class SecurityServiceConflict(Conflict):
    message = (
        'The security service cannot be used on share network '
        '{share_network_id}: {reason}'
    )


# Quota


class ShareNetworksLimitExceeded(QuotaError):
    message = (
        'Maximum number of share networks allowed ({allowed}) '
        'exceeded: {used} are in use or reserved.'
    )


class ShareLimitExceeded(QuotaError):
    message = (
        'Maximum number of shares allowed ({allowed}) exceeded: '
        '{used} are in use or reserved.'
    )


class ShareSizeExceedsAvailableQuota(QuotaError):
    message = (
        'Requested share exceeds allowed {what}gigabytes quota: '
        '{asked} GiB asked, {used} GiB of {allowed} GiB in use.'
    )


class SnapshotLimitExceeded(QuotaError):
    message = (
        'Maximum number of snapshots allowed ({allowed}) exceeded: '
        '{used} are in use or reserved.'
    )


class SnapshotSizeExceedsAvailableQuota(QuotaError):
    message = (
        'Requested snapshot exceeds allowed {what}gigabytes quota: '
        '{asked} GiB asked, {used} GiB of {allowed} GiB in use.'
    )


class ShareSizeExceedsLimit(QuotaError):
    message = (
        'Requested share size {size} GiB is larger than the maximum '
        'of {limit} GiB for one share.'
    )


class ShareReplicasLimitExceeded(QuotaError):
    message = (
        'Maximum number of share replicas allowed ({allowed}) '
        'exceeded: {used} are in use or reserved.'
    )


class ShareReplicaSizeExceedsAvailableQuota(QuotaError):
    message = (
        'Requested share replica exceeds allowed replica gigabytes '
        'quota: {asked} GiB asked, {used} GiB of {allowed} GiB in '
        'use.'
    )


class QuotaExceeded(QuotaError):
    message = (
        'Quota exceeded for {resource}: {asked} asked, {used} of '
        '{allowed} in use.'
    )


# Placement


class NoValidHost(ManilaLiteError):
    message = 'No back end can hold the share: {reason}'


class InvalidExpression(Invalid):
    message = 'Expression {expression!r} cannot be evaluated: {reason}'


# Drivers


class DriverError(ManilaLiteError):
    """Base class of errors that drivers raise when a back end fails."""

    message = 'The back end failed: {reason}'


class ShareBackendException(DriverError):
    message = 'Share back end error: {msg}'


class BadConfiguration(DriverError):
    message = 'The configuration is invalid: {reason}'


class ShareResourceNotFound(DriverError):
    """The share does not exist on the back end, or no longer."""

    message = 'Share {share_id} could not be found on the back end.'


class SnapshotResourceNotFound(DriverError):
    """The snapshot does not exist on the back end, or no longer."""

    message = 'Snapshot {snapshot_id} could not be found on the back end.'


class ShareShrinkingPossibleDataLoss(DriverError):
    message = 'Share {share_id} holds more data than the new size allows.'


class InvalidShareInstance(DriverError):
    message = 'Invalid share instance: {reason}'


class ShareAccessExists(Invalid):
    message = 'Share access {access_type}:{access} exists.'


class InvalidShareAccess(Invalid):
    message = 'Invalid access rule: {reason}'


class InvalidShareAccessLevel(Invalid):
    message = 'Invalid or unsupported share access level: {level}'


class InvalidShareAccessType(Invalid):
    message = 'Invalid or unsupported share access type: {type}'


class SnapshotNotMountable(Invalid):
    message = 'Snapshots of share {share_id} cannot be mounted.'


class ShareSnapshotAccessExists(Invalid):
    message = 'Share snapshot access {access_type}:{access} exists.'


class ManageInvalidShare(InvalidShare):
    """A driver found no share to manage, or not the requested one."""

    message = 'Manage existing share failed due to invalid share: {reason}'


class UnmanageInvalidShare(InvalidShare):
    message = 'Unmanage existing share failed due to invalid share: {reason}'


class InvalidShareSnapshot(Invalid):
    message = 'Invalid share snapshot: {reason}'


class ManageInvalidShareSnapshot(InvalidShareSnapshot):
    message = (
        'Manage existing share snapshot failed due to invalid share '
        'snapshot: {reason}'
    )


class InvalidShareServer(Invalid):
    message = 'Invalid share server: {reason}'


class ShareServerNotMigratable(Conflict):
    message = 'Invalid share server: {reason}'


class ShareServerInUse(Conflict):
    message = 'Share server {share_server_id} is in use.'


class ManageInvalidShareServer(InvalidShareServer):
    """A driver found no share server to manage."""

    message = (
        'Manage existing share server failed due to invalid share '
        'server: {reason}'
    )


class UnmanageInvalidShareSnapshot(InvalidShareSnapshot):
    message = (
        'Unmanage existing share snapshot failed due to invalid '
        'share snapshot: {reason}'
    )


# Networks of share servers


class NetworkException(ManilaLiteError):
    """Base class of errors of network plug-ins."""

    message = 'The network failed: {reason}'


class NetworkBadConfigurationException(NetworkException):
    message = 'Bad network configuration: {reason}'


class NoFreeAddress(NetworkException):
    message = (
        'Not enough free addresses in {segment}: {wanted} needed, {free} '
        'of {size} free.'
    )
