"""Replicas on one back end, which copy the active one, and their states."""

import abc
from collections.abc import Callable

from oslo_log import log

from manila_lite.context import RequestContext
from manila_lite.share.drivers import base
from manila_lite.share.drivers.files.replicas import Peers, Role
from manila_lite.share.drivers.replica_lists import (
    ACTIVE,
    OUT_OF_SYNC,
    ReplicaList,
    replica_state_reply,
)

LOG = log.getLogger(__name__)


class Replication(abc.ABC):
    """Replicas on this back end, which copy the active one."""

    def __init__(
        self,
        peers: Peers,
        role_of: Callable[[base.ShareForDriver], str],
        status_of: Callable[[base.ShareForDriver], base.StatusReply],
    ):
        self._replicas = peers
        self._role_of = role_of
        self._status_of = status_of

    @abc.abstractmethod
    def _update(
        self,
        context: RequestContext,
        replica_list: ReplicaList,
        replica: base.ShareForDriver,
        access_rules: base.AccessRules,
        replica_snapshots: list[base.ReplicaSnapshot],
    ) -> str | None:
        """Copy what has changed; no state if another thread is doing so."""

    def update_replica_state(
        self,
        context: RequestContext,
        replica_list: ReplicaList,
        replica: base.ShareForDriver,
        access_rules: base.AccessRules,
        replica_snapshots: list[base.ReplicaSnapshot],
        share_server: base.ShareServerMapping | None = None,
    ) -> base.ReplicaStateReply:
        """Copy what has changed, unless another thread is doing so."""
        replica_state = self._update(
            context, replica_list, replica, access_rules, replica_snapshots
        )
        return replica_state_reply(
            replica_state, self._replicas.own_replica(replica).state().synced_at
        )

    def get_replica_status(
        self,
        replica: base.ShareForDriver,
        share_server: base.ShareServerMapping | None = None,
    ) -> base.StatusReply:
        """Return the status, as for a share.

        It is an error if the others do not follow the replica even though it
        should be active.
        """
        status = self._status_of(replica)
        if replica['replica_state'] == ACTIVE and self._role_of(replica) != Role.ACTIVE:
            LOG.error('Replica %s is no longer active', replica['name'])
            status['status'] = 'error'
            status['replica_state'] = OUT_OF_SYNC
        return status
