"""Errors of share types, group types and QoS types, and of quotas."""

from manila_lite.exception import families


class ShareTypeNotFound(families.NotFound):
    message = 'Share type {share_type_id} could not be found.'


class ShareTypeExtraSpecNotFound(families.NotFound):
    message = 'Share type {share_type_id} has no extra spec {key}.'


class ShareTypeAccessNotFound(families.NotFound):
    message = (
        'Share type access of project {project_id} to '
        '{share_type_id} could not be found.'
    )


class DefaultShareTypeNotFound(families.NotFound):
    message = 'No default share type is configured or it does not exist.'


class ShareTypeExists(families.Conflict):
    message = 'Share type {name} already exists.'


class ShareTypeInUse(families.Invalid):
    message = 'Share type {share_type_id} is in use.'


class ShareTypeAccessExists(families.Conflict):
    message = 'Project {project_id} already has access to share type {share_type_id}.'


class PublicShareType(families.Conflict):
    message = 'Share type {share_type_id} is public; its access list cannot be changed.'


class InvalidExtraSpec(families.Invalid):
    message = 'Invalid extra spec: {reason}'


class ExtraSpecRequired(families.Forbidden):
    message = 'Extra spec {key} is required and cannot be removed.'


class ShareGroupTypeNotFound(families.NotFound):
    message = 'Share group type {share_group_type_id} could not be found.'


class ShareGroupTypeSpecNotFound(families.NotFound):
    message = 'Share group type {share_group_type_id} has no group spec {key}.'


class ShareGroupTypeAccessNotFound(families.NotFound):
    message = (
        'Share group type access of project {project_id} to '
        '{share_group_type_id} could not be found.'
    )


class DefaultShareGroupTypeNotFound(families.NotFound):
    message = 'No default share group type is configured or it does not exist.'


class ShareGroupTypeInUse(families.Invalid):
    message = 'Share group type {share_group_type_id} is used by share groups.'


class ShareGroupTypeExists(families.Conflict):
    message = 'Share group type {name} already exists.'


class ShareGroupTypeAccessExists(families.Conflict):
    message = (
        'Project {project_id} already has access to share group type '
        '{share_group_type_id}.'
    )


class PublicShareGroupType(families.Conflict):
    message = (
        'Share group type {share_group_type_id} is public; its access list '
        'cannot be changed.'
    )


class QosTypeNotFound(families.NotFound):
    message = 'QoS type {qos_type_id} could not be found.'


class QosTypeSpecNotFound(families.NotFound):
    message = 'QoS type {qos_type_id} has no spec {key}.'


class QosTypeExists(families.Conflict):
    message = 'QoS type {name} already exists.'


class QosTypeInUse(families.Invalid):
    message = 'QoS type {qos_type_id} is in use by {users}.'


class ShareNetworksLimitExceeded(families.QuotaError):
    message = (
        'Maximum number of share networks allowed ({allowed}) '
        'exceeded: {used} are in use or reserved.'
    )


class ShareLimitExceeded(families.QuotaError):
    message = (
        'Maximum number of shares allowed ({allowed}) exceeded: '
        '{used} are in use or reserved.'
    )


class ShareSizeExceedsAvailableQuota(families.QuotaError):
    message = (
        'Requested share exceeds allowed {what}gigabytes quota: '
        '{asked} GiB asked, {used} GiB of {allowed} GiB in use.'
    )


class SnapshotLimitExceeded(families.QuotaError):
    message = (
        'Maximum number of snapshots allowed ({allowed}) exceeded: '
        '{used} are in use or reserved.'
    )


class SnapshotSizeExceedsAvailableQuota(families.QuotaError):
    message = (
        'Requested snapshot exceeds allowed {what}gigabytes quota: '
        '{asked} GiB asked, {used} GiB of {allowed} GiB in use.'
    )


class ShareSizeExceedsLimit(families.QuotaError):
    message = (
        'Requested share size {size} GiB is larger than the maximum '
        'of {limit} GiB for one share.'
    )


class ShareReplicasLimitExceeded(families.QuotaError):
    message = (
        'Maximum number of share replicas allowed ({allowed}) '
        'exceeded: {used} are in use or reserved.'
    )


class ShareReplicaSizeExceedsAvailableQuota(families.QuotaError):
    message = (
        'Requested share replica exceeds allowed replica gigabytes '
        'quota: {asked} GiB asked, {used} GiB of {allowed} GiB in '
        'use.'
    )


class QuotaExceeded(families.QuotaError):
    message = (
        'Quota exceeded for {resource}: {asked} asked, {used} of {allowed} in use.'
    )


class EncryptionKeysLimitExceeded(families.QuotaError):
    message = (
        'Maximum number of encryption keys allowed ({allowed}) '
        'exceeded: {used} are in use or reserved.'
    )


class ShareGroupsLimitExceeded(families.QuotaError):
    message = (
        'Maximum number of share groups allowed ({allowed}) '
        'exceeded: {used} are in use or reserved.'
    )


class BackupLimitExceeded(families.QuotaError):
    message = (
        'Maximum number of share backups allowed ({allowed}) '
        'exceeded: {used} are in use or reserved.'
    )


class ShareBackupSizeExceedsAvailableQuota(families.QuotaError):
    message = (
        'Requested share backup exceeds allowed backup gigabytes '
        'quota: {asked} GiB asked, {used} GiB of {allowed} GiB in '
        'use.'
    )


class ShareGroupSnapshotsLimitExceeded(families.QuotaError):
    message = (
        'Maximum number of share group snapshots allowed ({allowed}) '
        'exceeded: {used} are in use or reserved.'
    )
