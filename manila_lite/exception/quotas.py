"""Quota."""

from manila_lite.exception.families import QuotaError


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
