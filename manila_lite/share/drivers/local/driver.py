"""Plain directories of this machine as shares, without root rights.

Sizes are nominal: plain directories have no quota. A snapshot of a share in
use has each file as of the moment it is copied. Access rules are written to
files for an NFS server or Samba. `store` describes the directory layout.
"""

from collections.abc import Callable
import os
import pathlib
import re
import tempfile
import time
from typing import Any

from oslo_log import log

from manila_lite import exception
from manila_lite.share.drivers import base, capabilities
from manila_lite.share.drivers.delegation import Delegation
from manila_lite.share.drivers.local.access import LocalAccess
from manila_lite.share.drivers.local.backend import LocalBackend
from manila_lite.share.drivers.local.managing import LocalManaging
from manila_lite.share.drivers.local.peers import LocalPeers, LocalRoles
from manila_lite.share.drivers.local.replication import LocalReplication
from manila_lite.share.drivers.local.shares import LocalShares
from manila_lite.share.drivers.local.snapshots import LocalSnapshots
from manila_lite.share.drivers.space import GIB

LOG = log.getLogger(__name__)

_EXPORT_OPTIONS = re.compile(r'[^\s()#"]+')


def _admit_call(driver: 'LocalDriver') -> None:
    driver.backend.store.disk.require()
    driver.backend.store.fencing.admit_call()


def _admit_removal(driver: 'LocalDriver') -> None:
    """Admit calls that find nothing to remove in a root that was deleted."""
    if not driver.backend.store.disk.is_deleted():
        _admit_call(driver)


def _admit_replication(driver: 'LocalDriver') -> None:
    _admit_call(driver)
    driver.backend.require_replication()


_admitted = Delegation['LocalDriver'](_admit_call)
_replicating = Delegation['LocalDriver'](_admit_replication)
_removing = Delegation['LocalDriver'](_admit_removal)


@_replicating('replicas')
@_admitted('replicas.delete_replica', 'replicas.get_replica_status')
@_admitted('shares', 'snapshots', 'managing')
@_removing('access', 'shares.delete_share', 'snapshots.delete_snapshot')
class LocalDriver(
    base.ShareDriver,
    base.CreateFromSnapshotSupport,
    base.RevertSupport,
    base.MountSnapshotSupport,
    base.ManageSupport,
    base.ReplicationSupport,
    base.ConnectionSupport,
):
    """It delegates to its parts, which share one `LocalBackend`."""

    shares: LocalShares
    snapshots: LocalSnapshots
    access: LocalAccess
    managing: LocalManaging
    replicas: LocalReplication

    ipv6_implemented = True

    def __init__(
        self,
        *args: Any,
        clock: Callable[[], float] = time.time,
        sleep: Callable[[float], object] = time.sleep,
        **kwargs: Any,
    ):
        super().__init__(False, *args, **kwargs)
        self.backend = LocalBackend(
            self.configuration, self.replication_domain, clock, sleep
        )
        self._capacity_gb: float | None = self.configuration.local_capacity_gb
        peers = LocalPeers(self.backend)
        self.roles = LocalRoles(self.backend, peers)
        self.shares = LocalShares(self.backend, peers)
        self.snapshots = LocalSnapshots(self.backend)
        self.access = LocalAccess(self.backend, self.roles)
        self.managing = LocalManaging(self.backend)
        self.replicas = LocalReplication(
            self.backend, peers, self.roles, self.shares, self.snapshots, self.access
        )

    # Start

    def check_for_setup_error(self) -> None:
        """Check that the root is an absolute path that we can write to."""
        if not self.backend.root.is_absolute():
            raise self._bad_root('is not an absolute path')
        store = self.backend.store
        try:
            store.disk.start(
                has_shares=self.has_shares,
                is_in_use=store.has_directories(),
                registry=self.disks,
                holds=lambda id, name: store.share(name).find() is not None,
            )
            store.create_directories()
        except OSError as error:
            raise self._bad_root(f'cannot be used: {error}') from error
        options = self.configuration.local_export_options
        if not _EXPORT_OPTIONS.fullmatch(options):
            raise exception.BadConfiguration(
                reason=f'back end "{self.configuration.config_group}": '
                f'local_export_options {options!r} has characters that are '
                'not allowed between brackets'
            )
        self._check_new_shares()
        self._check_replication()
        self.roles.demote_superseded()
        store.fencing.forget_old(self.backend.clock())

    def _check_new_shares(self) -> None:
        """Check owner and mode, and the privileges that shares need."""
        section = self.configuration.config_group
        with tempfile.TemporaryDirectory(
            dir=self.backend.root / 'work', prefix='.probe-'
        ) as folder:
            try:
                self.backend.create_data(pathlib.Path(folder, 'data'))
            except (OSError, LookupError) as error:
                raise exception.BadConfiguration(
                    reason=f'back end "{section}": new shares cannot have '
                    f'{self.configuration.local_share_owner} as '
                    f'local_share_owner: {error}'
                ) from error
        self._check_privileges(section)

    def _check_privileges(self, section: str) -> None:
        """Refuse to start without them if clients mount the shares.

        Without an export, shares are used on this machine only, perhaps by
        no other user than that of the service.
        """
        missing = capabilities.missing(capabilities.FOR_FILES_OF_USERS)
        if not missing:
            return
        text = (
            f'back end "{section}" lacks the privileges '
            f'{", ".join(missing)}: snapshots, reverts and deletions fail '
            'where other users have files that only they may read. If only '
            'the user of the service has files in the shares, as in a trial, '
            'nothing is missing; otherwise give the privileges to the '
            'service as the systemd units do, or run it as root'
        )
        if (
            self.configuration.local_export_host
            and self.configuration.local_require_privileges
        ):
            raise exception.BadConfiguration(
                reason=f'{text}; if all users of clients are mapped to the '
                'user of the service, set local_require_privileges = false'
            )
        LOG.warning('%s', text)

    def _check_replication(self) -> None:
        """Require a replication domain if replication is configured."""
        if self.backend.replication_type and not self.replication_domain:
            raise exception.BadConfiguration(
                reason=f'back end "{self.configuration.config_group}": '
                'local_replication_type needs a replication_domain'
            )

    def _bad_root(self, reason: str) -> exception.BadConfiguration:
        return exception.BadConfiguration(
            reason=f'back end "{self.configuration.config_group}": '
            f'local_root {self.backend.root} {reason}'
        )

    def check_health(self) -> None:
        """Check that the root is there and can be written to."""
        self.backend.store.disk.require_writable()
        self.backend.store.fencing.forget_old(self.backend.clock())

    def get_pool(self, share: base.ShareForDriver) -> str:
        return self.backend_name

    # Statistics

    def _update_share_stats(self, data: base.Stats | None = None) -> None:
        disk = os.statvfs(self.backend.root)
        total = disk.f_blocks * disk.f_frsize / GIB
        free = disk.f_bavail * disk.f_frsize / GIB
        if self._capacity_gb is not None:
            total = min(total, self._capacity_gb)
        provisioned = self.shares.provisioned_gb()
        pool = self.pool_stats(self.backend_name, total, min(free, total), provisioned)
        if self._capacity_gb is None:
            # Who has a part of its own promises nothing of the rest.
            pool['provisioned_capacity_gb'] += self.shares.provisioned_by_others_gb()
        super()._update_share_stats(
            {
                'vendor_name': 'manila_lite',
                'storage_protocol': 'NFS_CIFS',
                'replication_type': self.configuration.local_replication_type,
                'pools': [pool],
                **(data or {}),
            }
        )

    def get_configured_ip_versions(self) -> list[int]:
        return [4, 6]
