"""Promotion of replicas of the local driver."""

from collections.abc import Iterator
import contextlib
import dataclasses

from oslo_log import log

from manila_lite.share.drivers import base
from manila_lite.share.drivers.files.promotion import Promotion, Takeover
from manila_lite.share.drivers.files.replication import (
    ReplicaUnreachable,
    ignoring_read_only,
)
from manila_lite.share.drivers.local.backend import LocalBackend
from manila_lite.share.drivers.local.peers import LocalPeers
from manila_lite.share.drivers.local.replica import LocalReplica, raising_unreachable

LOG = log.getLogger(__name__)


class LocalPromotion(Promotion[LocalReplica]):
    """The roles are in files beside the data."""

    def __init__(self, backend: LocalBackend, peers: LocalPeers):
        super().__init__(peers, backend.clock, backend.sleep)
        self._backend = backend

    @contextlib.contextmanager
    def _locked(
        self, takeover: Takeover[LocalReplica]
    ) -> Iterator[Takeover[LocalReplica]]:
        """Locks are always taken in the order of names to avoid deadlocks."""
        own, active = takeover.own, takeover.active
        own_lock = self._backend.store.locked_work_directory(own.name)
        with contextlib.ExitStack() as stack:
            if active is None or own.name < active.name:
                work = stack.enter_context(own_lock)
                active = _lock(stack, active)
            else:
                active = _lock(stack, active)
                work = stack.enter_context(own_lock)
            own.apply_pending_changes(work)
            yield dataclasses.replace(takeover, active=active, work=work)

    def _hand_over(
        self, takeover: Takeover[LocalReplica], active: LocalReplica, generation: int
    ) -> None:
        own, work = takeover.own, takeover.work
        assert work is not None
        with raising_unreachable(), active.retiring(own):
            changes = own.follow(active, work, self._backend.clock())
            own.become_active(generation)
        LOG.info(
            'Replica %(name)s takes over with the latest content of %(other)s '
            'after %(changes)s changes',
            {'name': own.name, 'other': active.name, 'changes': changes},
        )

    def _activate(self, takeover: Takeover[LocalReplica], generation: int) -> None:
        takeover.own.become_active(generation)

    def _demote(self, takeover: Takeover[LocalReplica], active: LocalReplica) -> None:
        with self._reaching(active, 'become passive'), ignoring_read_only():
            active.become_passive(takeover.own, takeover.replication_type)

    def _reinstate(self, replica: LocalReplica, generation: int) -> None:
        replica.become_active(generation)

    @contextlib.contextmanager
    def _reaching(self, replica: LocalReplica, action: str) -> Iterator[None]:
        with contextlib.suppress(ReplicaUnreachable), raising_unreachable():
            yield

    def _locations(self, own: LocalReplica) -> list[base.ExportLocation]:
        return self._backend.export_locations(own.item, own.record())


def _lock(
    stack: contextlib.ExitStack, active: LocalReplica | None
) -> LocalReplica | None:
    """Lock and return the active replica; None if unreachable."""
    if active is not None:
        with contextlib.suppress(ReplicaUnreachable):
            stack.enter_context(active.locked())
            return active
    return None
