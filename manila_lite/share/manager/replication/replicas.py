"""Carries out creation, promotion and removal of replicas.

Each method holds the happy way only, as in provisioning. Drivers are
asked about the replicas of one share one at a time, by a lock that spares
them conflicts; what makes the outcome right is what is written: behind
all replicas, and of the round in which the driver was asked.
"""

from collections.abc import Mapping
import contextlib
import logging
import typing

from manila_lite import exception
from manila_lite.context import RequestContext
from manila_lite.coordination import Coordinator
from manila_lite.coordination import NullCoordinator
from manila_lite.db.queries.access import share_rules
from manila_lite.db.queries.replicas import replicas
from manila_lite.db.queries.shares import instances as share_instances
from manila_lite.db.session import Session
from manila_lite.db.transitions import fire
from manila_lite.db.transitions import fire_matching
from manila_lite.messages import Detail
from manila_lite.quota.replicas import remove_and_credit
from manila_lite.rpc.contract import implements
from manila_lite.rpc.share import ReplicationRpc
from manila_lite.share.drivers.base import ExportLocation
from manila_lite.share.drivers.base import ReplicaReply
from manila_lite.share.drivers.base import ShareDriver
from manila_lite.share.drivers.base import normalise_export_locations
from manila_lite.share.manager.access import teardown
from manila_lite.share.manager.driver_view import replica_view
from manila_lite.share.manager.driver_view import share_view
from manila_lite.share.manager.driver_view.replica_view import ReplicatedShare
from manila_lite.share.manager.driver_view.share_view import LoadedInstance
from manila_lite.share.manager.driver_view.share_view import NameTemplates
from manila_lite.share.manager.provisioning import PROGRESS_DONE
from manila_lite.share.manager.replication.lock import replica_lock
from manila_lite.share.manager.replication.promotion import PromotionWriter
from manila_lite.share.manager.replication.rule_resync import RuleResync
from manila_lite.share.manager.replication.rule_resync import rules_in_force
from manila_lite.share.manager.servers.lifecycle import ShareServersEndpoint
from manila_lite.share.manager.servers.setup import ServerSetup
from manila_lite.states.access_rule import ACCESS_RULE
from manila_lite.states.access_rule import SHARE_INSTANCE_ACCESS
from manila_lite.states.share_instance import SHARE_INSTANCE
from manila_lite.states.share_instance import InstanceStatus
from manila_lite.states.share_replica import SHARE_REPLICA
from manila_lite.states.share_replica import WRITABLE
from manila_lite.states.share_replica import ReplicaState
from manila_lite.states.snapshot_instance import SNAPSHOT_INSTANCE
from manila_lite.states.snapshot_instance import SnapshotStatus

LOG = logging.getLogger(__name__)


class _LastActive(exception.ReplicationException):
    """By decree only: no request is accepted that would remove it."""


class ReportedReplica(typing.NamedTuple):
    """What a driver tells about a new replica."""

    state: str | None = None
    exports: list[ExportLocation] = []
    rules_hold: bool = False
    keys: Mapping[str, str | None] = {}


@implements(ReplicationRpc)
class ReplicasEndpoint:
    """The replicas that are, or are to be, on one back end."""

    def __init__(
        self,
        driver: ShareDriver,
        names: NameTemplates,
        setup: ServerSetup,
        servers: ShareServersEndpoint,
        rules: RuleResync,
        promotion: PromotionWriter,
        locks: Coordinator | NullCoordinator,
    ):
        self.driver = driver
        self.names = names
        self.setup = setup
        self.servers = servers
        self.rules = rules
        self.promotion = promotion
        self.locks = locks

    # Create

    def prepare_create_share_replica(
        self, session: Session, job
    ) -> LoadedInstance:
        return self._expect(
            session, job, InstanceStatus.CREATING, share_view.load_new_instance
        )

    def create_share_replica(self, job, instance_id):
        found = self.setup.provide(job, job.prepared)
        if found is None:
            return
        with replica_lock(self.locks, job, found.row.share_id) as held:
            if held:
                self._create(job, instance_id)

    def _create(self, job, instance_id):
        share = job.read(
            replica_view.load_replicated_share, job.prepared.row.share_id
        )
        own = self._of(share, instance_id)
        if share.active is None:
            raise exception.ReplicationException(
                reason=f'share {share.share_id} has no active replica',
                message_detail=Detail.NO_ACTIVE_REPLICA,
            )
        pairs = share.pairs(instance_id, self.names)
        answer = self.driver.create_replica(
            RequestContext(),
            share.shown(self.names),
            self._view(own),
            share.rules_for_driver(instance_id, self.driver),
            pairs,
            share_server=own.share_server,
        )
        copied = [pair['share_replica_snapshot'].id for pair in pairs]
        try:
            job.finish(
                self._created, job, own.row, parse_reply(answer), copied
            )
        except (exception.ClaimLost, exception.ResourceNotFound):
            if job.read(share_instances.find, instance_id) is None:
                # Given up and deleted meanwhile: nobody would know it.
                self._remove(share, own)
            raise

    def _created(
        self,
        session: Session,
        job,
        row,
        told: ReportedReplica,
        copied: list[str],
    ) -> None:
        """It can be used, and its rules are told where they are not yet.

        In the order of requests: the work first, then the replicas.
        """
        has_rules = bool(
            share_rules.list_instances_with_rules(session, [row.id])
        )
        if has_rules and not told.rules_hold:
            self.rules.ask(session, _who(job), [row])
        replicas.lock_instances(session, row.share_id)
        fire(
            session,
            SHARE_INSTANCE,
            row.id,
            'created',
            progress=PROGRESS_DONE,
            updated_at=session.now,
        )
        share_instances.replace_export_locations(session, row.id, told.exports)
        if has_rules and told.rules_hold:
            self._rules_hold(session, row.id, told.keys)
        elif has_rules:
            share_rules.mark_stale(session, row.id)
        self._note_state(session, row, told.state, copied)

    def created(
        self, session: Session, job, row, told: ReportedReplica
    ) -> None:
        """The same by what the back end says when it is asked later."""
        self._created(session, job, row, told, [])

    def _rules_hold(self, session, instance_id, keys):
        """None has changed since: a new replica takes no changes."""
        share_rules.set_access_keys(session, instance_id, keys)
        for event in ('apply', 'applied'):
            fire_matching(
                session, ACCESS_RULE, event, {'share_instance_id': instance_id}
            )
        fire_matching(
            session, SHARE_INSTANCE_ACCESS, 'synced', {'id': instance_id}
        )

    def _note_state(self, session, row, state, copied):
        """What it is from the beginning: out_of_sync, where not told."""
        if state == ReplicaState.ACTIVE and row.replication_type == WRITABLE:
            replicas.activate(session, row, WRITABLE)
            if copied:
                fire_matching(
                    session,
                    SNAPSHOT_INSTANCE,
                    'created',
                    {'id': copied},
                    progress=PROGRESS_DONE,
                    updated_at=session.now,
                )
        elif state == ReplicaState.IN_SYNC and self._has_snapshots(
            session, row
        ):
            fire_matching(
                session,
                SHARE_REPLICA,
                'caught_up',
                _round(row),
                updated_at=session.now,
            )
        elif state == ReplicaState.ERROR:
            fire_matching(
                session,
                SHARE_REPLICA,
                'failed',
                _round(row),
                updated_at=session.now,
            )
        elif state not in (
            None,
            ReplicaState.OUT_OF_SYNC,
            ReplicaState.IN_SYNC,
        ):
            LOG.warning(
                'The driver says that the new replica %s is %s', row.id, state
            )

    def _has_snapshots(self, session, row):
        share = replica_view.load_replicated_share(session, row.share_id)
        return share.complete(but=row.id) <= {
            one.row.snapshot_id
            for one in share.snapshots_on(row.id)
            if one.row.status == SnapshotStatus.AVAILABLE
        }

    def failed_create_share_replica(self, session, job, error):
        done = self.setup.failed(session, job, error)
        replicas.mark_failed(session, job.resource_id)
        return done

    # Delete

    def prepare_delete_share_replica(self, session: Session, job):
        """Also by decree the last active replica is not removed."""
        row = share_instances.get(session, job.resource_id)
        taken = replicas.lock_instances(session, row.share_id)
        found = self._expect(session, job, InstanceStatus.DELETING)
        if found.row.replica_state == ReplicaState.ACTIVE and not any(
            one.replica_state == ReplicaState.ACTIVE
            and one.status != InstanceStatus.DELETING
            for one in taken
            if one.id != row.id
        ):
            raise _LastActive(
                reason=f'replica {row.id} is the last active one of share '
                f'{row.share_id}'
            )
        return teardown.queue_denials(session, found, self.driver)

    def delete_share_replica(self, job, instance_id, force=False):
        leaving = job.prepared
        if not (self.setup.networks and leaving.found.server is None):
            with replica_lock(self.locks, job, leaving.row.share_id) as held:
                if not held:
                    return
                self._withdraw(job, leaving, force)
        job.finish(self._deleted, instance_id, leaving.row.share_id)

    def _withdraw(self, job, leaving, force):
        """Take it from its back end, its rules first; gone is success.

        By force it is removed whatever becomes of its rules.
        """
        share = job.read(
            replica_view.load_replicated_share, leaving.row.share_id
        )
        own = self._of(share, leaving.row.id)
        with (
            contextlib.suppress(exception.ShareResourceNotFound),
            contextlib.ExitStack() as at_last,
        ):
            if force:
                at_last.callback(self._remove, share, own)
            teardown.deny_all(
                self.driver, self._view(own), leaving, own.share_server
            )
            if not force:
                self._remove(share, own)

    def _remove(self, share: ReplicatedShare, own: LoadedInstance) -> None:
        self.driver.delete_replica(
            RequestContext(),
            share.shown(self.names),
            [
                replica_view.snapshot_for_driver(one, self.names)
                for one in share.snapshots_on(own.row.id)
            ],
            self._view(own),
            share_server=own.share_server,
        )

    def _deleted(self, session, instance_id, share_id):
        """It counts for what the share measures now."""
        replicas.lock_instances(session, share_id)
        row = share_instances.get(session, instance_id)
        remove_and_credit(session, row)
        self.servers.release(session, row.share_server_id)

    def failed_delete_share_replica(self, session, job, error):
        """A forced deletion bears with the back end: the rows go."""
        row = self._expect(session, job, InstanceStatus.DELETING).row
        if isinstance(error, _LastActive):
            return False
        if job.args['force']:
            self._deleted(session, row.id, row.share_id)
            return True
        teardown.fail_denials(session, row.id)
        self._broken(session, row)
        return False

    def _broken(self, session, row):
        if row.replica_state == ReplicaState.ACTIVE:
            replicas.retire(
                session, row, row.replication_type, 'retired_broken'
            )
        else:
            fire_matching(
                session,
                SHARE_REPLICA,
                'failed',
                {'id': row.id},
                updated_at=session.now,
            )

    # Promote

    def prepare_promote_share_replica(
        self, session: Session, job
    ) -> LoadedInstance:
        return self._expect(session, job, InstanceStatus.REPLICATION_CHANGE)

    def promote_share_replica(self, job, instance_id, quiesce_wait_time=None):
        with replica_lock(self.locks, job, job.prepared.row.share_id) as held:
            if held:
                self._promote(job, instance_id, quiesce_wait_time)

    def _promote(self, job, instance_id, quiesce_wait_time):
        share = job.read(
            replica_view.load_replicated_share, job.prepared.row.share_id
        )
        own = self._of(share, instance_id)
        if share.active is None:
            job.finish(self.promotion.refused, job, share.share_id)
            return
        answers = self.driver.promote_replica(
            RequestContext(),
            share.shown(self.names),
            self._view(own),
            share.rules_for_driver(instance_id, self.driver, read_only=False),
            share_server=own.share_server,
            quiesce_wait_time=quiesce_wait_time,
        )
        try:
            job.finish(self.promotion.promoted, job, share, answers or ())
        except (exception.InvalidStatus, exception.ResourceNotFound):
            # Moved by decree; the back end has been changed all the same.
            job.finish(self.promotion.lost, job, share.share_id)

    def failed_promote_share_replica(self, session, job, error):
        """The back ends may be in any state: all replicas are in error."""
        row = share_instances.get(session, job.resource_id)
        self.promotion.failed(session, row.share_id, row.id)
        return False

    # All

    def _expect(
        self, session: Session, job, status: str, find=share_view.load_instance
    ) -> LoadedInstance:
        """The replica, kept, if it still waits for this work."""
        found = find(session, job.resource_id, lock_shared=True)
        if found.row.status != status:
            raise exception.InvalidStatus(
                resource='share replica',
                id=found.row.id,
                status=found.row.status,
                event=job.kind,
                allowed=status,
            )
        return found

    def _of(self, share: ReplicatedShare, instance_id: str) -> LoadedInstance:
        own = share.get(instance_id)
        if own is None:
            raise exception.ShareInstanceNotFound(
                share_instance_id=instance_id
            )
        return own

    def _view(self, found: LoadedInstance):
        return share_view.share_for_driver(found, self.names.share)


def parse_reply(answer: ReplicaReply | None) -> ReportedReplica:
    """What an answer about a new replica says."""
    if not answer:
        return ReportedReplica()
    rules = answer.get('share_access_rules') or {}
    return ReportedReplica(
        answer.get('replica_state'),
        normalise_export_locations(answer.get('export_locations')),
        rules_in_force(answer),
        {
            access_id: one['access_key']
            for access_id, one in rules.items()
            if 'access_key' in one
        },
    )


def _round(row) -> dict[str, object]:
    """Matches the replica while what was asked about it still holds."""
    return {'id': row.id, 'replica_generation': row.replica_generation}


def _who(job) -> RequestContext:
    return RequestContext(project_id=job.project_id, user_id=job.user_id)
