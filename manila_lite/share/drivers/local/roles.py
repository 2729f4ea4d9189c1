"""Which replicas of the local driver are active."""

import contextlib
import dataclasses

from oslo_log import log

from manila_lite.share.drivers import base
from manila_lite.share.drivers.files.replicas import DR, ReplicaUnreachable, Role
from manila_lite.share.drivers.local.backend import LocalBackend
from manila_lite.share.drivers.local.peers import LocalPeers
from manila_lite.share.drivers.local.replica import LocalReplica, ReplicaRecord
from manila_lite.share.drivers.local.store import SHARES
from manila_lite.share.drivers.replica_lists import ACTIVE

LOG = log.getLogger(__name__)


class LocalRoles:
    """The roles of our replicas, which both sides have to agree on."""

    def __init__(self, backend: LocalBackend, peers: LocalPeers):
        self._backend = backend
        self._peers = peers

    def role_of(self, share: base.ShareForDriver) -> str:
        """Return the effective role: both sides have to agree on it."""
        own = self._peers.own_replica(share)
        if share['replica_state'] not in (None, ACTIVE):
            return Role.PASSIVE
        state = own.state()
        if state.role == Role.RETIRING:
            return self._recovered_role(own, state)
        return state.role

    def _recovered_role(self, own: LocalReplica, state: ReplicaRecord) -> str:
        """Become active again if the successor has not become active."""
        with self._backend.store.try_locked_work_directory(own.name) as work:
            if work is None or own.state() != state:
                return Role.PASSIVE  # the promotion is in progress
            other = self._peers.replica_at(state.source_host, state.source)
            if other is None:
                return Role.PASSIVE
            with contextlib.suppress(ReplicaUnreachable):
                other.record()
                successor = other.state()
                if (
                    successor.role != Role.ACTIVE
                    or successor.generation <= state.generation
                ):
                    own.write_state(
                        dataclasses.replace(
                            state, role=Role.ACTIVE, source=None, source_host=None
                        )
                    )
                    return Role.ACTIVE
        return Role.PASSIVE

    def denies_all_access(self, share: base.ShareForDriver) -> bool:
        """Return whether clients are denied whatever the rules say."""
        return share['replication_type'] == DR and self.role_of(share) != Role.ACTIVE

    def demote_superseded(self) -> None:
        """Deny writing to replicas that others have replaced meanwhile.

        That happened while this back end was unreachable, so that it could
        not be notified.
        """
        for item in self._backend.store.list_items(SHARES):
            own = LocalReplica(self._backend.store, item.name)
            for follower in own.followers():
                other = self._peers.replica_at(follower['host'], follower['name'])
                if other is not None and _is_superseded(own, other):
                    LOG.warning(
                        'Replica %(name)s is no longer active: '
                        '%(other)s has taken over',
                        {'name': own.name, 'other': other.name},
                    )
                    own.become_passive(other, self._backend.replication_type)


def _is_superseded(own: LocalReplica, other: LocalReplica) -> bool:
    """Return whether the other is active and this one is outdated."""
    with contextlib.suppress(ReplicaUnreachable, PermissionError):
        other.record()
        here, there = own.state(), other.state()
        return (
            here.role == there.role == Role.ACTIVE
            and there.generation > here.generation
        )
    return False
