"""Create, promote and delete replicas.

Each method contains the success path only, as in provisioning. A lock
serializes driver calls about the replicas of one share and spares drivers
conflicts. Correctness comes from how outcomes are written: with all
replicas locked, and for the generation of the driver call.
"""

from collections.abc import Callable, Mapping
import dataclasses
import functools
import logging
import typing

from manila_lite import exception
from manila_lite.coordination import Coordinator, NullCoordinator
from manila_lite.db.moves import shares as share_moves
from manila_lite.db.queries.access import share_rules
from manila_lite.db.queries.replicas import replicas
from manila_lite.db.queries.shares import instances as share_instances
from manila_lite.db.rows import InstanceRow
from manila_lite.db.session import Session
from manila_lite.db.transitions import fire, fire_matching
from manila_lite.quota.shares import remove_replica_and_credit
from manila_lite.rpc.contract import Client, implements, work
from manila_lite.rpc.share import ReplicationRpc, ReplicaUpdatesRpc
from manila_lite.share.drivers import base
from manila_lite.share.manager.access import teardown
from manila_lite.share.manager.access.teardown import Teardown
from manila_lite.share.manager.driver_view import replica_view, share_view
from manila_lite.share.manager.driver_view.replica_view import (
    ReplicatedShare,
    require_active,
)
from manila_lite.share.manager.driver_view.share_view import (
    LoadedInstance,
    NameTemplates,
)
from manila_lite.share.manager.endpoint import (
    owner_context,
    require_status,
    undo_if_gone,
)
from manila_lite.share.manager.guarded_driver import driver_context
from manila_lite.share.manager.replication.probe import RuleResync, rules_in_force
from manila_lite.share.manager.replication.promotion import PromotionWriter
from manila_lite.share.manager.replication.roles import replica_lock
from manila_lite.share.manager.servers.lifecycle import ShareServersEndpoint
from manila_lite.share.manager.servers.setup import ServerSetup
from manila_lite.share.manager.shares.provisioning import PROGRESS_DONE
from manila_lite.states.access_rule import ACCESS_RULE, SHARE_INSTANCE_ACCESS
from manila_lite.states.share_instance import SHARE_INSTANCE, InstanceStatus
from manila_lite.states.share_replica import (
    LEAVING,
    SHARE_REPLICA,
    WRITABLE,
    ReplicaState,
)
from manila_lite.states.snapshot_instance import SNAPSHOT_INSTANCE, SnapshotStatus
from manila_lite.work.job import JobContext
from manila_lite.work.table import Claim

LOG = logging.getLogger(__name__)


class _LastActive(exception.ReplicationException):
    """Only after `reset_status`: requests to delete it are refused."""


class ReportedReplica(typing.NamedTuple):
    """What a driver reports about a new replica."""

    state: str | None = None
    exports: list[base.ExportLocation] = []
    rules_in_force: bool = False
    keys: Mapping[str, str | None] = {}


@implements(ReplicationRpc)
@dataclasses.dataclass(eq=False)
class ReplicasEndpoint:
    """Carries out work on the replicas of one back end."""

    driver: base.ShareDriver
    names: NameTemplates
    setup: ServerSetup
    servers: ShareServersEndpoint
    rules: RuleResync
    promotion: PromotionWriter
    locks: Coordinator | NullCoordinator
    updates: Client[ReplicaUpdatesRpc]

    # Create

    @work(expects=InstanceStatus.CREATING, load=share_view.load_new_instance)
    def create_share_replica(self, job: JobContext, instance_id: str) -> None:
        prepared: LoadedInstance = job.prepared
        replica = self.setup.provide_server(job, prepared)
        if replica is None:
            return
        with replica_lock(self.locks, job, replica.row.share_id) as held:
            if held:
                self._create(job, instance_id, replica.row.share_id)

    def _create(self, job: JobContext, instance_id: str, share_id: str) -> None:
        share = job.read(replica_view.load_replicated_share, share_id)
        own = self._get_replica(share, instance_id)
        require_active(share)
        pairs = share.snapshot_pairs(instance_id, self.names)
        reply = self.driver.create_replica(
            driver_context(),
            share.replicas_for_driver(self.names),
            self._view(own),
            share.rules_for_driver(instance_id, self.driver),
            pairs,
            share_server=own.share_server,
        )
        copied = [pair['share_replica_snapshot'].id for pair in pairs]
        undo = functools.partial(self._remove, share, own)
        with undo_if_gone(job, share_instances.find, instance_id, undo):
            job.finish(self._created, job.claim, own.row, parse_reply(reply), copied)

    def _created(
        self,
        session: Session,
        job: Claim,
        row: InstanceRow,
        reported: ReportedReplica,
        copied: list[str],
    ) -> None:
        """Make the replica available, and resync its rules if needed.

        Same lock order as in requests: the work, then the replicas.
        """
        has_rules = bool(share_rules.list_instances_with_rules(session, [row.id]))
        if has_rules and not reported.rules_in_force:
            self.rules.submit(session, owner_context(job), [row])
        replicas.lock_instances(session, row.share_id)
        fire(session, SHARE_INSTANCE, row.id, 'created', progress=PROGRESS_DONE)
        share_instances.replace_export_locations(session, row.id, reported.exports)
        if has_rules and reported.rules_in_force:
            self._mark_rules_applied(session, row.id, reported.keys)
        elif has_rules:
            share_rules.mark_stale(session, row.id)
        self._write_state(session, row, reported.state, copied)

    def created(
        self, session: Session, job: Claim, row: InstanceRow, reported: ReportedReplica
    ) -> None:
        """Record the creation from the reply to a later status query.

        Whether an active one has all snapshots is left to its update.
        """
        if reported.state == ReplicaState.ACTIVE:
            reported = reported._replace(state=None)
        self._created(session, job, row, reported, [])

    def _mark_rules_applied(
        self, session: Session, instance_id: str, keys: Mapping[str, str | None]
    ) -> None:
        """Mark all rules as applied; those of a new replica never change."""
        share_rules.set_access_keys(session, instance_id, keys)
        for event in ('apply', 'applied'):
            fire_matching(
                session, ACCESS_RULE, event, {'share_instance_id': instance_id}
            )
        fire_matching(session, SHARE_INSTANCE_ACCESS, 'synced', {'id': instance_id})

    def _write_state(
        self, session: Session, row: InstanceRow, state: str | None, copied: list[str]
    ) -> None:
        """Set the initial replica state; out_of_sync unless reported."""
        if state == ReplicaState.ACTIVE and row.replication_type == WRITABLE:
            share_moves.activate(session, row, WRITABLE)
            if copied:
                fire_matching(
                    session,
                    SNAPSHOT_INSTANCE,
                    'created',
                    {'id': copied},
                    progress=PROGRESS_DONE,
                )
        elif state == ReplicaState.IN_SYNC and self._has_snapshots(session, row):
            fire_matching(session, SHARE_REPLICA, 'caught_up', _same_generation(row))
        elif state == ReplicaState.ERROR:
            fire_matching(session, SHARE_REPLICA, 'failed', _same_generation(row))
        elif state not in (None, ReplicaState.OUT_OF_SYNC, ReplicaState.IN_SYNC):
            LOG.warning(
                'The driver reports unknown state %s of the new replica %s',
                state,
                row.id,
            )

    def _has_snapshots(self, session: Session, row: InstanceRow) -> bool:
        share = replica_view.load_replicated_share(session, row.share_id)
        return share.complete_snapshots(excluding=row.id) <= {
            one.row.snapshot_id
            for one in share.snapshots_on(row.id)
            if one.row.status == SnapshotStatus.AVAILABLE
        }

    def failed_create_share_replica(
        self, session: Session, job: Claim, error: Exception
    ) -> bool:
        done = self.setup.record_failure(session, job, error)
        share_moves.mark_failed(session, job.resource_id)
        return done

    # Delete

    def prepare_delete_share_replica(self, session: Session, job: Claim) -> Teardown:
        """Refuse to remove the last active replica, also after a reset."""
        row = share_instances.get(session, job.resource_id)
        rows = replicas.lock_instances(session, row.share_id)
        replica = self.expect(session, job, InstanceStatus.DELETING)
        if replica.row.replica_state == ReplicaState.ACTIVE and not any(
            one.replica_state == ReplicaState.ACTIVE and one.status not in LEAVING
            for one in rows
            if one.id != row.id
        ):
            raise _LastActive(
                reason=f'replica {row.id} is the last active one of share '
                f'{row.share_id}'
            )
        return teardown.queue_denials(session, replica, self.driver)

    def delete_share_replica(
        self, job: JobContext, instance_id: str, force: bool = False
    ) -> None:
        removal: Teardown = job.prepared
        share_id = removal.row.share_id
        if self.setup.networks and removal.instance.server is None:
            job.finish(self._deleted, instance_id, share_id)
            return
        with replica_lock(self.locks, job, share_id) as held:
            if held:
                self._remove_with_rules(job, removal, force)
                # Before others act on a replica that is no longer there.
                job.finish(self._deleted, instance_id, share_id)

    def _remove_with_rules(
        self, job: JobContext, removal: Teardown, force: bool
    ) -> None:
        """Remove the rules, then the replica.

        With force, it is removed even if removing the rules fails, and a
        missing one is success.
        """
        share = job.read(replica_view.load_replicated_share, removal.row.share_id)
        own = self._get_replica(share, removal.row.id)
        teardown.remove_denied(
            job,
            self.driver,
            self._view(own),
            removal,
            own.share_server,
            functools.partial(self._remove, share, own),
            force,
        )

    def _remove(self, share: ReplicatedShare, own: LoadedInstance) -> None:
        self.driver.delete_replica(
            driver_context(),
            share.replicas_for_driver(self.names),
            [
                replica_view.snapshot_for_driver(one, self.names)
                for one in share.snapshots_on(own.row.id)
            ],
            self._view(own),
            share_server=own.share_server,
        )

    def _deleted(self, session: Session, instance_id: str, share_id: str) -> None:
        """Remove the rows and credit the current size of the share."""
        row = share_instances.get(session, instance_id)
        others = [
            one
            for one in replicas.list_placed(session, share_id)
            if one.id != instance_id
        ]
        if len(others) == 1:
            # Back ends may have had them in other roles, and the periodic
            # updates do not ask about a sole replica. As in requests, the
            # work is locked before the replicas.
            self.updates.on(others[0].host).update_share_replica(
                session, owner_context(row), share_replica_id=others[0].id
            )
        replicas.lock_instances(session, share_id)
        row = share_instances.get(session, instance_id)
        remove_replica_and_credit(session, row)
        self.servers.release(session, row.share_server_id)

    def failed_delete_share_replica(
        self, session: Session, job: Claim, error: Exception
    ) -> bool:
        """Force delete ignores driver errors and removes the rows."""
        row = self.expect(session, job, InstanceStatus.DELETING).row
        if isinstance(error, _LastActive):
            return False
        if job.args['force']:
            self._deleted(session, row.id, row.share_id)
            return True
        teardown.fail_denials(session, row.id)
        fire_matching(session, SHARE_REPLICA, 'delete_failed', {'id': row.id})
        return False

    # Promote

    @work(expects=InstanceStatus.REPLICATION_CHANGE)
    def promote_share_replica(
        self, job: JobContext, instance_id: str, quiesce_wait_time: int | None = None
    ) -> None:
        replica: LoadedInstance = job.prepared
        share_id = replica.row.share_id
        with replica_lock(self.locks, job, share_id) as held:
            if held:
                self._promote(job, instance_id, share_id, quiesce_wait_time)

    def _promote(
        self,
        job: JobContext,
        instance_id: str,
        share_id: str,
        quiesce_wait_time: int | None,
    ) -> None:
        share = job.read(replica_view.load_replicated_share, share_id)
        own = self._get_replica(share, instance_id)
        if share.active is None:
            job.finish(self.promotion.record_refusal, job.claim, share.share_id)
            return
        replies = self.driver.promote_replica(
            driver_context(),
            share.replicas_for_driver(self.names),
            self._view(own),
            share.rules_for_driver(instance_id, self.driver, read_only=False),
            share_server=own.share_server,
            quiesce_wait_time=quiesce_wait_time,
        )
        try:
            job.finish(self.promotion.record_success, job.claim, share, replies or ())
        except (exception.InvalidStatus, exception.ResourceNotFound):
            # Changed by `reset_status`; the back end has promoted it.
            job.finish(self.promotion.record_conflict, job.claim, share.share_id)

    def failed_promote_share_replica(
        self, session: Session, job: Claim, error: Exception
    ) -> bool:
        """Mark all replicas as in error: back ends may be in any state."""
        row = share_instances.get(session, job.resource_id)
        self.promotion.record_failure(session, row.share_id, row.id)
        return False

    # All

    def expect(
        self,
        session: Session,
        job: Claim,
        status: str,
        find: Callable[..., LoadedInstance] = share_view.load_instance,
    ) -> LoadedInstance:
        """Return the locked replica if it still waits for this work."""
        replica = find(session, job.resource_id, lock_shared=True)
        require_status(job, SHARE_INSTANCE, replica.row.id, replica.row.status, status)
        return replica

    def _get_replica(self, share: ReplicatedShare, instance_id: str) -> LoadedInstance:
        own = share.find_replica(instance_id)
        if own is None:
            raise exception.ShareInstanceNotFound(share_instance_id=instance_id)
        return own

    def _view(self, replica: LoadedInstance) -> base.ShareForDriver:
        return share_view.share_for_driver(replica, self.names.share)


def parse_reply(reply: base.ReplicaReply | None) -> ReportedReplica:
    """Parse a reply about a new replica."""
    if not reply:
        return ReportedReplica()
    rules = reply.get('share_access_rules') or {}
    return ReportedReplica(
        reply.get('replica_state'),
        base.normalise_export_locations(reply.get('export_locations')),
        rules_in_force(reply),
        {
            access_id: one['access_key']
            for access_id, one in rules.items()
            if 'access_key' in one
        },
    )


def _same_generation(row: InstanceRow) -> dict[str, object]:
    """Return conditions that match the replica in the same generation."""
    return {'id': row.id, 'replica_generation': row.replica_generation}
