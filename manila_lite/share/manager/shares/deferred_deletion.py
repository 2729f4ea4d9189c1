"""Retry failed deferred deletions until they succeed."""

from collections.abc import Callable, Sequence
import contextlib
import typing

from manila_lite import exception
from manila_lite.context import RequestContext
from manila_lite.db.queries.replicas import replicas
from manila_lite.db.queries.shares import instances as share_instances
from manila_lite.db.queries.snapshots import snapshots
from manila_lite.db.rows import OwnedInstanceRow
from manila_lite.db.session import Database, Session
from manila_lite.db.transitions import fire
from manila_lite.rpc.contract import Client
from manila_lite.rpc.share import ProvisioningRpc, ReplicatedSnapshotsRpc, SnapshotsRpc
from manila_lite.share.manager.endpoint import owner_context
from manila_lite.states.machine import Machine
from manila_lite.states.share_instance import SHARE_INSTANCE
from manila_lite.states.share_replica import ReplicaState
from manila_lite.states.snapshot_instance import SNAPSHOT_INSTANCE

BATCH = 100
"""The number of deletions submitted in one transaction."""


class _Kind(typing.NamedTuple):
    """What is deleted: its table, its failures, and what submits the work."""

    machine: Machine
    list_failed: Callable[[Session, str, str, int], Sequence[OwnedInstanceRow]]
    submit: Callable[[Session, RequestContext, str], None]


class DeferredDeletion:
    """The deferred deletions of one back end."""

    def __init__(
        self,
        db: Database,
        provisioning_client: Client[ProvisioningRpc],
        snapshots_client: Client[SnapshotsRpc],
        replicated_snapshots_client: Client[ReplicatedSnapshotsRpc],
        service_host: str,
        batch: int = BATCH,
    ):
        self.db = db
        # Snapshots first: their shares wait for them.
        self.kinds = (
            _Kind(
                SNAPSHOT_INSTANCE,
                snapshots.list_failed_deferred_deletions,
                self._submit_snapshot,
            ),
            _Kind(
                SHARE_INSTANCE,
                share_instances.list_failed_deferred_deletions,
                self._submit_share,
            ),
        )
        self.provisioning = provisioning_client.on(service_host)
        self.snapshots = snapshots_client.on(service_host)
        self.replicated_snapshots = replicated_snapshots_client.on(service_host)
        self.service_host = service_host
        self.batch = batch

    def retry(self) -> int:
        """Submit failed deletions again; return the count.

        When none has failed, this only reads.
        """
        return sum(self._retry_all(kind) for kind in self.kinds)

    def _retry_all(self, kind: _Kind) -> int:
        count, after = 0, ''
        while self.db.read(self._list_failed, kind, after):
            failed = self.db.write(self._retry, kind, after)
            count += len(failed)
            if len(failed) < self.batch:
                break
            # What fails again meanwhile waits for the next pass.
            after = failed[-1].id
        return count

    def _list_failed(
        self, session: Session, kind: _Kind, after: str
    ) -> Sequence[OwnedInstanceRow]:
        return kind.list_failed(session, self.service_host, after, self.batch)

    def _retry(
        self, session: Session, kind: _Kind, after: str
    ) -> Sequence[OwnedInstanceRow]:
        failed = self._list_failed(session, kind, after)
        for row in failed:
            # Another manager of the back end may have just done the same.
            with contextlib.suppress(
                exception.InvalidStatus, exception.ResourceNotFound
            ):
                fire(session, kind.machine, row.id, 'retry_deferred')
                kind.submit(session, owner_context(row), row.id)
        return failed

    def _submit_share(self, session: Session, ctx: RequestContext, id: str) -> None:
        self.provisioning.delete_share_instance_deferred(session, ctx, instance_id=id)

    def _submit_snapshot(self, session: Session, ctx: RequestContext, id: str) -> None:
        """Submit nothing for one on a passive replica, which updates follow."""
        row = snapshots.find(session, id)
        assert row is not None  # the guard has found it
        if row.replica_state is None or replicas.count(session, row.share_id) == 1:
            self.snapshots.delete_snapshot_instance_deferred(
                session, ctx, snapshot_instance_id=id
            )
        elif row.replica_state == ReplicaState.ACTIVE:
            self.replicated_snapshots.delete_replicated_snapshot_deferred(
                session, ctx, snapshot_instance_id=id
            )
