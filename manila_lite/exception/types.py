"""Errors of share types, group types and QoS types, and of quotas."""

from manila_lite.exception.families import (
    Conflict,
    Forbidden,
    Invalid,
    NotFound,
    QuotaError,
)


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


class ShareTypeExists(Conflict):
    message = 'Share type {name} already exists.'


class ShareTypeInUse(Invalid):
    message = 'Share type {share_type_id} is in use.'


class ShareTypeAccessExists(Conflict):
    message = 'Project {project_id} already has access to share type {share_type_id}.'


class PublicShareType(Conflict):
    message = 'Share type {share_type_id} is public; its access list cannot be changed.'


class InvalidExtraSpec(Invalid):
    message = 'Invalid extra spec: {reason}'


class ExtraSpecRequired(Forbidden):
    message = 'Extra spec {key} is required and cannot be removed.'


class ShareGroupTypeNotFound(NotFound):
    message = 'Share group type {share_group_type_id} could not be found.'


class ShareGroupTypeSpecNotFound(NotFound):
    message = 'Share group type {share_group_type_id} has no group spec {key}.'


class ShareGroupTypeAccessNotFound(NotFound):
    message = (
        'Share group type access of project {project_id} to '
        '{share_group_type_id} could not be found.'
    )


class DefaultShareGroupTypeNotFound(NotFound):
    message = 'No default share group type is configured or it does not exist.'


class ShareGroupTypeInUse(Invalid):
    message = 'Share group type {share_group_type_id} is used by share groups.'


class ShareGroupTypeExists(Conflict):
    message = 'Share group type {name} already exists.'


class ShareGroupTypeAccessExists(Conflict):
    message = (
        'Project {project_id} already has access to share group type '
        '{share_group_type_id}.'
    )


class PublicShareGroupType(Conflict):
    message = (
        'Share group type {share_group_type_id} is public; its access list '
        'cannot be changed.'
    )


class QosTypeNotFound(NotFound):
    message = 'QoS type {qos_type_id} could not be found.'


class QosTypeSpecNotFound(NotFound):
    message = 'QoS type {qos_type_id} has no spec {key}.'


class QosTypeExists(Conflict):
    message = 'QoS type {name} already exists.'


class QosTypeInUse(Invalid):
    message = 'QoS type {qos_type_id} is in use by {users}.'


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
        'Quota exceeded for {resource}: {asked} asked, {used} of {allowed} in use.'
    )


class EncryptionKeysLimitExceeded(QuotaError):
    message = (
        'Maximum number of encryption keys allowed ({allowed}) '
        'exceeded: {used} are in use or reserved.'
    )


class ShareGroupsLimitExceeded(QuotaError):
    message = (
        'Maximum number of share groups allowed ({allowed}) '
        'exceeded: {used} are in use or reserved.'
    )


class BackupLimitExceeded(QuotaError):
    message = (
        'Maximum number of share backups allowed ({allowed}) '
        'exceeded: {used} are in use or reserved.'
    )


class ShareBackupSizeExceedsAvailableQuota(QuotaError):
    message = (
        'Requested share backup exceeds allowed backup gigabytes '
        'quota: {asked} GiB asked, {used} GiB of {allowed} GiB in '
        'use.'
    )


class ShareGroupSnapshotsLimitExceeded(QuotaError):
    message = (
        'Maximum number of share group snapshots allowed ({allowed}) '
        'exceeded: {used} are in use or reserved.'
    )
