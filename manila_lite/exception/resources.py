"""Errors of shares, networks and what belongs to them, by noun."""

from manila_lite.exception import families


class ShareNotFound(families.NotFound):
    message = 'Share {share_id} could not be found.'


class ShareInstanceNotFound(families.ResourceNotFound):
    message = 'Share instance {share_instance_id} could not be found.'


class ExportLocationNotFound(families.NotFound):
    message = 'Export location {export_location_id} could not be found.'


class InvalidShare(families.Invalid):
    message = 'Invalid share: {reason}'


class ShareNotAllowed(families.Forbidden):
    message = 'Invalid share: {reason}'


class ShareHasSnapshots(families.Conflict):
    message = (
        'Share {share_id} has snapshots, which a copy by the data service '
        'does not keep; delete or unmanage them, or let its driver migrate '
        'it, with preserve_snapshots.'
    )


class ShareAlreadyManaged(families.Conflict):
    message = 'Invalid share: {path} on {host} is already managed.'


class ShareSoftDeleted(families.Forbidden):
    message = 'Share {share_id} is in the recycle bin; restore it before using it.'


class ManageInvalidShare(InvalidShare):
    """A driver found no share to manage, or not the requested one."""

    message = 'Manage existing share failed due to invalid share: {reason}'


class UnmanageInvalidShare(InvalidShare):
    message = 'Unmanage existing share failed due to invalid share: {reason}'


class ShareAccessNotFound(families.NotFound):
    message = 'Access rule {access_id} could not be found.'


class SnapshotAccessNotFound(families.NotFound):
    message = 'Access rule {access_id} of a snapshot could not be found.'


class AccessRulesNotActive(families.Conflict):
    message = 'The access rules of share {share_id} are {status}, not active.'


class SnapshotAccessRulesChanging(families.Conflict):
    message = 'The access rules of snapshot {snapshot_id} are changing.'


class ShareAccessExists(families.Invalid):
    message = 'Share access {access_type}:{access} exists.'


class ShareSnapshotAccessExists(families.Invalid):
    message = 'Share snapshot access {access_type}:{access} exists.'


class InvalidShareAccess(families.Invalid):
    message = 'Invalid access rule: {reason}'


class InvalidShareAccessLevel(families.Invalid):
    message = 'Invalid or unsupported share access level: {level}'


class InvalidShareAccessType(families.Invalid):
    message = 'Invalid or unsupported share access type: {type}'


class ShareSnapshotNotFound(families.NotFound):
    message = 'Snapshot {snapshot_id} could not be found.'


class SnapshotInstanceNotFound(families.ResourceNotFound):
    message = 'Snapshot instance {snapshot_instance_id} could not be found.'


class SnapshotsUnsupported(families.Unprocessable):
    message = 'Snapshots of share {share_id} are not supported.'


class SnapshotAlreadyManaged(families.Conflict):
    message = (
        'Invalid share snapshot: {location} of share {share_id} is already managed.'
    )


class NotNewestSnapshot(families.Conflict):
    message = 'Only the newest snapshot {newest_id} can be restored, not {snapshot_id}.'


class NewerSnapshotRemaining(families.Conflict):
    message = (
        'A newer snapshot of share {share_id} was deleted, and its back end '
        'has still to remove it. Try again later.'
    )


class SnapshotNotMountable(families.Invalid):
    message = 'Snapshots of share {share_id} cannot be mounted.'


class InvalidShareSnapshot(families.Invalid):
    message = 'Invalid share snapshot: {reason}'


class ManageInvalidShareSnapshot(InvalidShareSnapshot):
    message = (
        'Manage existing share snapshot failed due to invalid share snapshot: {reason}'
    )


class UnmanageInvalidShareSnapshot(InvalidShareSnapshot):
    message = (
        'Unmanage existing share snapshot failed due to invalid '
        'share snapshot: {reason}'
    )


class ShareReplicaNotFound(families.NotFound):
    message = 'Share replica {replica_id} could not be found.'


class ShareHasReplicas(families.Conflict):
    message = 'Share {share_id} has replicas; remove them first.'


class ReplicationException(families.Invalid):
    message = 'Replication: {reason}'


class PromotionNeedsAdmin(families.Forbidden):
    message = (
        'Share replica {replica_id} is {replica_state}, not in_sync; '
        'only an administrator may promote it.'
    )


class ShareGroupNotFound(families.ResourceNotFound):
    message = 'Share group {share_group_id} could not be found.'


class InvalidShareGroup(families.Invalid):
    message = 'Invalid share group: {reason}'


class ShareGroupConflict(families.Conflict):
    """A request about a group itself that it does not allow now."""

    message = '{reason}'


class ShareGroupSnapshotNotFound(families.ResourceNotFound):
    message = 'Share group snapshot {share_group_snapshot_id} could not be found.'


class ShareGroupSnapshotMemberNotFound(families.ResourceNotFound):
    message = (
        'Member {share_group_snapshot_member_id} of a share group snapshot '
        'could not be found.'
    )


class InvalidShareGroupSnapshot(families.Conflict):
    message = 'Invalid share group snapshot: {reason}'


class ShareBackupNotFound(families.ResourceNotFound):
    message = 'Share backup {backup_id} could not be found.'


class InvalidBackup(families.Invalid):
    message = 'Invalid share backup: {reason}'


class DriverBackupsUnsupported(families.ManilaLiteError):
    """Also written to the user, whose request has the options."""

    message = (
        'The storage of the share makes no backups itself; backup_options '
        'are for storage that does, and a backup without them is made by '
        'the data service.'
    )


class TargetedRestoreUnsupported(families.ManilaLiteError):
    message = (
        'The driver restores backup {backup_id} only to the share that it '
        'was made from.'
    )


class RestoreInterrupted(families.ManilaLiteError):
    """Also written to the user, who may request it again."""

    message = (
        'The restore of backup {backup_id} was interrupted. It does not begin '
        'again by itself, which would undo what clients have written since; '
        'the share may have the content of the backup in part.'
    )


class ShareTransferNotFound(families.NotFound):
    message = 'Share transfer {transfer_id} could not be found.'


class ShareTransferRefused(families.Invalid):
    """One text for all reasons, which are not for those without the key."""

    message = (
        'The share transfer cannot be accepted: it does not exist, it has '
        'expired, or auth_key is not its key.'
    )


class ShareTransferFailed(families.Invalid):
    message = (
        'The share was not transferred, and can still be accepted; a user '
        'message says what has failed.'
    )


class ResourceLockNotFound(families.NotFound):
    message = 'Resource lock {lock_id} could not be found.'


class ShareLocked(ShareNotAllowed):
    message = 'Share {share_id} is locked against deletion: {locks}.'


class AccessRuleLocked(families.Forbidden):
    message = (
        'Access rule {access_id} is locked; remove the locks, or lift the '
        'restrictions if you are allowed to.'
    )


class ResourceNotLockable(families.Conflict):
    message = (
        'The {resource_type} {resource_id} is being removed or '
        'transferred, or has failed, and cannot be locked.'
    )


class VisibilityLocked(families.Conflict):
    message = 'The visibility of access rule {access_id} is already locked.'


class ShareNetworkNotFound(families.NotFound):
    message = 'Share network {share_network_id} could not be found.'


class ShareNetworkSubnetNotFound(families.NotFound):
    message = 'Share network subnet {share_network_subnet_id} could not be found.'


class SecurityServiceNotFound(families.NotFound):
    message = 'Security service {security_service_id} could not be found.'


class InvalidShareNetwork(families.Invalid):
    message = 'Invalid share network: {reason}'


class ShareNetworkNotModifiable(families.Forbidden):
    message = 'Share network {share_network_id} is in use: {reason}'


class ShareNetworkInUse(families.Conflict):
    message = 'Share network {share_network_id} is in use: {reason}'


class ShareNetworkSubnetInUse(families.Conflict):
    message = 'Share network subnet {share_network_subnet_id} is in use: {reason}'


class ShareNetworkSubnetExists(families.Conflict):
    message = 'Share network {share_network_id} already has a subnet for {where}.'


class SecurityServiceInUse(families.Forbidden):
    message = 'Security service {security_service_id} is in use: {reason}'


class SecurityServiceConflict(families.Conflict):
    message = (
        'The security service cannot be used on share network '
        '{share_network_id}: {reason}'
    )


class NetworkException(families.ManilaLiteError):
    """Base class of errors of network plug-ins."""

    message = 'The network failed: {reason}'


class NetworkBadConfigurationException(NetworkException):
    message = 'Bad network configuration: {reason}'


class NoFreeAddress(NetworkException):
    message = (
        'Not enough free addresses in {segment}: {wanted} needed, {free} '
        'of {size} free.'
    )


class ShareServerNotFound(families.NotFound):
    message = 'Share server {share_server_id} could not be found.'


class InvalidShareServer(families.Invalid):
    message = 'Invalid share server: {reason}'


class ShareServerNotMigratable(families.Conflict):
    message = 'Invalid share server: {reason}'


class ShareServerInUse(families.Conflict):
    message = 'Share server {share_server_id} is in use: it has shares or share groups.'


class ManageInvalidShareServer(InvalidShareServer):
    """A driver found no share server to manage."""

    message = (
        'Manage existing share server failed due to invalid share server: {reason}'
    )
