"""The driver contract: what a driver receives, must do and may reply.

Names, parameters and replies are those of existing Manila drivers. The
interfaces a driver offers (the `…Support` classes, either inherited or
implemented in full) decide which capabilities the scheduler may rely on. Any
other method that a driver does not implement raises NotImplementedError,
which callers handle. Every method may be called twice and must lead to the
same state.
"""

import abc
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from oslo_config import cfg

from manila_lite import exception
from manila_lite.context import RequestContext
from manila_lite.share.drivers.contract.access import *
from manila_lite.share.drivers.contract.access import AccessDefaults, AccessRules
from manila_lite.share.drivers.contract.backups import *
from manila_lite.share.drivers.contract.backups import BackupDefaults
from manila_lite.share.drivers.contract.configuration import *
from manila_lite.share.drivers.contract.configuration import (
    Configuration,
    PrivateStorage,
)
from manila_lite.share.drivers.contract.connections import *
from manila_lite.share.drivers.contract.connections import ConnectionDefaults
from manila_lite.share.drivers.contract.groups import *
from manila_lite.share.drivers.contract.groups import ShareGroupDefaults
from manila_lite.share.drivers.contract.interfaces import *
from manila_lite.share.drivers.contract.interfaces import (
    ManageDefaults,
    ShareServerMapping,
)
from manila_lite.share.drivers.contract.migrations import *
from manila_lite.share.drivers.contract.migrations import (
    ServerMigrationDefaults,
    ShareMigrationDefaults,
)
from manila_lite.share.drivers.contract.replication import *
from manila_lite.share.drivers.contract.replication import ReplicationDefaults
from manila_lite.share.drivers.contract.share_servers import *
from manila_lite.share.drivers.contract.share_servers import (
    ShareServerDefaults,
    ShareServerSupport,
)
from manila_lite.share.drivers.contract.statistics import *
from manila_lite.share.drivers.contract.statistics import (
    AnyDisk,
    DiskRegistry,
    ShareStatistics,
    Stats,
)
from manila_lite.share.drivers.contract.values import *
from manila_lite.share.drivers.contract.values import (
    EnsureReply,
    ExportLocationsReply,
    ShareForDriver,
    SnapshotForDriver,
    StatusReply,
)

# Code that deals with drivers imports this module only: it offers all names of the
# contract.


class ShareDriver(
    AccessDefaults,
    ConnectionDefaults,
    ManageDefaults,
    ShareServerDefaults,
    ServerMigrationDefaults,
    ShareMigrationDefaults,
    ReplicationDefaults,
    ShareGroupDefaults,
    BackupDefaults,
    ShareStatistics,
    abc.ABC,
):
    """The base class of every driver; one instance serves one back end.

    The first argument names the share server modes the driver supports: one
    bool, or several. `configuration` holds the options of the back end's
    section, `private_storage` is where the driver stores data of its own,
    and `config_opts` lists additional options of the driver. `has_shares`,
    set before `check_for_setup_error`, is whether the service knows shares
    with data on the back end. `disks` says which disk belongs to it, and is
    set before that, too.
    """

    def __init__(
        self,
        driver_handles_share_servers: bool | Collection[bool],
        *args: object,
        configuration: Configuration,
        private_storage: PrivateStorage | None = None,
        config_opts: Iterable[Iterable[cfg.Opt]] = (),
        **kwargs: object,
    ):
        self.configuration = configuration
        self.private_storage = private_storage
        self.initialized = False
        self.has_shares = False
        self.disks: DiskRegistry = AnyDisk()
        self._stats: Stats = {}
        for opts in config_opts:
            configuration.append_config_values(opts)
        self._verify_share_server_handling(driver_handles_share_servers)

    def _verify_share_server_handling(
        self, driver_handles_share_servers: bool | Collection[bool]
    ) -> None:
        supported = (
            {driver_handles_share_servers}
            if isinstance(driver_handles_share_servers, bool)
            else set(driver_handles_share_servers)
        )
        configured = self.configuration.safe_get('driver_handles_share_servers')
        section = self.configuration.config_group
        if not isinstance(configured, bool):
            raise exception.BadConfiguration(
                reason=f'back end "{section}": driver_handles_share_servers '
                'must be set to true or false'
            )
        if configured not in supported:
            raise exception.BadConfiguration(
                reason=f'back end "{section}": {type(self).__name__} does not '
                f'support driver_handles_share_servers={configured}'
            )
        if configured and not isinstance(self, ShareServerSupport):
            raise exception.BadConfiguration(
                reason=f'back end "{section}": {type(self).__name__} lacks '
                'methods of ShareServerSupport'
            )

    # Start: many drivers have nothing to do here, so neither is abstract

    def do_setup(self, context: RequestContext) -> None:  # noqa: B027
        """Prepare the driver; called first and repeated until it succeeds."""

    def check_for_setup_error(self) -> None:  # noqa: B027
        """Raise an error if the back end is not ready for use."""

    def check_health(self) -> None:  # noqa: B027
        """Raise an error if the back end cannot be used at present.

        Called before every report. Until it succeeds again, the back end is
        down and gets no new shares.
        """

    def keep_serving(self) -> None:  # noqa: B027
        """Repair what clients notice at once, without a request.

        Called every second while the driver is started; it must return soon.
        """

    def get_backend_info(self, context: RequestContext) -> dict[str, str]:
        """Return the settings that exports depend on.

        Shares are ensured when they change, or at every start if the driver
        does not implement this method.
        """
        raise NotImplementedError

    def ensure_shares(
        self, context: RequestContext, shares: Iterable[ShareForDriver]
    ) -> dict[str, EnsureReply] | None:
        """Ensure exports; return what has changed by share instance id.

        If it is not implemented, `ensure_share` is called for each share.
        """
        raise NotImplementedError

    def ensure_share(
        self,
        context: RequestContext,
        share: ShareForDriver,
        share_server: ShareServerMapping | None = None,
    ) -> ExportLocationsReply:
        """Return the export locations of a share, or None if unchanged."""
        return None

    def get_pool(self, share: ShareForDriver) -> str | None:
        """Return the pool of a share, or None if the back end has no pools."""
        return None

    # Shares

    @abc.abstractmethod
    def create_share(
        self,
        context: RequestContext,
        share: ShareForDriver,
        share_server: ShareServerMapping | None = None,
    ) -> ExportLocationsReply:
        """Create a share and return its export locations.

        A share that already exists is kept.
        """

    @abc.abstractmethod
    def delete_share(
        self,
        context: RequestContext,
        share: ShareForDriver,
        share_server: ShareServerMapping | None = None,
    ) -> None:
        """Delete a share.

        A missing share is success, as is ShareResourceNotFound.
        """

    def extend_share(
        self,
        share: ShareForDriver,
        new_size: int,
        share_server: ShareServerMapping | None = None,
    ) -> None:
        """Extend a share; succeed if it is already large enough."""
        raise NotImplementedError

    def shrink_share(
        self,
        share: ShareForDriver,
        new_size: int,
        share_server: ShareServerMapping | None = None,
    ) -> None:
        """Shrink a share; succeed if it is already small enough.

        Raises ShareShrinkingPossibleDataLoss without changing anything if
        the content would not fit.
        """
        raise NotImplementedError

    def update_share_from_metadata(
        self,
        context: RequestContext,
        share: ShareForDriver,
        metadata: Mapping[str, str],
        share_server: ShareServerMapping | None = None,
    ) -> None:
        """Apply metadata of a share.

        `metadata` are the current values of all keys that operators have
        listed in `driver_updatable_metadata`. It is called after any of them
        was set. A share is created with `share['metadata']`.
        """
        raise NotImplementedError

    def transfer_accept(  # noqa: B027
        self,
        context: RequestContext,
        share: ShareForDriver,
        new_user: str | None,
        new_project: str,
        access_rules: AccessRules | None = None,
        share_server: ShareServerMapping | None = None,
    ) -> None:
        """Give a share to another user and project.

        Back ends that do not know the owners of shares need not do anything.
        `access_rules` are those that the share keeps. A driver that cannot
        transfer a share with rules raises DriverCannotTransferShareWithRules
        without changing anything.
        """

    def update_share_usage_size(
        self, context: RequestContext, shares: Iterable[ShareForDriver]
    ) -> list[dict[str, Any]]:
        """Return `id`, `used_size` in GiB and `gathered_at` of shares.

        It is published, and no service calls it yet.
        """
        raise NotImplementedError

    # Actual states, for callers that lost track of an operation

    def get_share_status(
        self, share: ShareForDriver, share_server: ShareServerMapping | None = None
    ) -> StatusReply:
        """Return the actual state of a share on the back end.

        Raises ShareResourceNotFound if the back end has no such share.
        """
        raise NotImplementedError

    def get_snapshot_status(
        self,
        snapshot: SnapshotForDriver,
        share_server: ShareServerMapping | None = None,
    ) -> StatusReply:
        """Return the actual state of a snapshot on the back end.

        Raises SnapshotResourceNotFound if there is no such snapshot.
        """
        raise NotImplementedError
