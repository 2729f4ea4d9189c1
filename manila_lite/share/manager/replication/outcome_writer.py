"""Writes down how replicas are, and the snapshots on them.

Every method is a transaction of its own. It takes all replicas of the
share first and decides behind that: an answer counts only for a replica
that is still in the round in which the driver was asked, and whose share
is not being promoted or reverted just now. A replica is shown as in sync
by the same transaction that sees all its snapshots there, so that these
are never shown as complete and then as not.
"""

from collections.abc import Mapping, Sequence
import types
import typing

from manila_lite import exception
from manila_lite import messages
from manila_lite.context import RequestContext
from manila_lite.db.queries.access import share_rules
from manila_lite.db.queries.replicas import replicas
from manila_lite.db.queries.replicas import updates as replica_updates
from manila_lite.db.queries.shares import instances as share_instances
from manila_lite.db.queries.snapshots import exports as snapshot_exports
from manila_lite.db.queries.snapshots import snapshots
from manila_lite.db.session import Database
from manila_lite.db.session import Session
from manila_lite.db.transitions import fire
from manila_lite.db.transitions import fire_matching
from manila_lite.quota.snapshots import remove_and_credit
from manila_lite.share.manager.access.share_rules import AccessEndpoint
from manila_lite.share.manager.driver_view import replica_view
from manila_lite.share.manager.driver_view.share_view import LoadedInstance
from manila_lite.share.manager.replication import outcomes
from manila_lite.share.manager.replication.outcomes import SnapshotOutcome
from manila_lite.states.access_rule import SHARE_INSTANCE_ACCESS
from manila_lite.states.share_instance import SHARE_INSTANCE
from manila_lite.states.share_instance import InstanceStatus
from manila_lite.states.share_replica import SHARE_REPLICA
from manila_lite.states.share_replica import ReplicaState
from manila_lite.states.snapshot_instance import SNAPSHOT_INSTANCE
from manila_lite.states.snapshot_instance import SnapshotStatus

PROGRESS_DONE = '100%'

ROLE_OR_DATA_CHANGING = frozenset(
    {InstanceStatus.REPLICATION_CHANGE, InstanceStatus.REVERTING}
)
"""While one of a share is in these, nobody can say what others are."""


class OutcomeWriter:
    """What became of the questions that a back end was asked."""

    def __init__(self, db: Database, access: AccessEndpoint, message_ttl: int):
        self.db = db
        self.access = access
        self.message_ttl = message_ttl

    # How a replica is

    def state(
        self,
        job,
        found: LoadedInstance,
        answer: typing.Any,
        told: Mapping = types.MappingProxyType({}),
    ) -> None:
        """Make the moves that follow from an answer about a replica.

        `told` is what is really there of one that is healed.
        """
        # It would only be done again: no need to wait for the disk.
        self.db.write(
            self._state,
            found.row,
            answer,
            told.get('export_locations'),
            by=job,
            fsync=False,
        )

    def _state(self, session: Session, row, answer, exports) -> None:
        if row.status == InstanceStatus.ERROR and answer in outcomes.HEALTHY:
            self._ask_for_rules(session, row)
        own = self._own(session, row)
        if own is None or own.replica_state == ReplicaState.ACTIVE:
            return
        view = replica_view.load_replicated_share(session, row.share_id)
        moves = outcomes.transitions_for(
            own.status,
            own.replica_state,
            answer,
            outcomes.missing_snapshots(view, own.id),
        )
        if moves.status:
            fire(
                session,
                SHARE_INSTANCE,
                own.id,
                moves.status,
                updated_at=session.now,
            )
        if moves.state == 'activated':
            replicas.activate(session, own, row.replication_type)
        elif moves.state:
            fire(
                session,
                SHARE_REPLICA,
                own.id,
                moves.state,
                updated_at=session.now,
            )
        if moves.healed:
            self._be_well(session, own, exports)
        if moves.failed:
            self._tell(
                session, row, messages.Action.UPDATE, 'SHARE_REPLICA', own.id
            )

    def healed(self, job, found: LoadedInstance, answer: Mapping) -> None:
        """An active replica in error is there after all."""
        self.db.write(
            self._healed,
            found.row,
            answer.get('export_locations'),
            by=job,
            fsync=False,
        )

    def _healed(self, session: Session, row, exports) -> None:
        self._ask_for_rules(session, row)
        own = self._own(session, row)
        if own is None or own.replica_state != ReplicaState.ACTIVE:
            return
        if not SHARE_INSTANCE['replica_healed'].can_leave(own.status):
            return
        fire(
            session,
            SHARE_INSTANCE,
            own.id,
            'replica_healed',
            updated_at=session.now,
        )
        self._be_well(session, own, exports)

    def _ask_for_rules(self, session: Session, row) -> None:
        # In the order of requests: the work first, then the replicas.
        self.access.sync_client.sync_access(
            session,
            RequestContext(project_id=row.project_id, user_id=row.user_id),
            instance_id=row.id,
        )

    def _be_well(self, session: Session, own, exports) -> None:
        """Nobody knows which rules came to it while it was in error."""
        if exports:
            share_instances.replace_export_locations(session, own.id, exports)
        share_rules.mark_stale(session, own.id)
        fire_matching(session, SHARE_INSTANCE_ACCESS, 'change', {'id': own.id})

    # How a snapshot on it is

    def snapshot(
        self, job, found: LoadedInstance, row, news: SnapshotOutcome
    ) -> bool:
        """Make the move that follows from an answer; whether it was made."""
        return self.db.write(
            self._snapshot, found.row, row, news, by=job, fsync=False
        )

    def _snapshot(
        self, session: Session, replica, row, news: SnapshotOutcome
    ) -> bool:
        own = self._own(session, replica)
        current = snapshots.find(session, row.id)
        if own is None or current is None or current.status != row.status:
            return False
        try:
            if news.event == 'deleted':
                remove_and_credit(session, current)
            elif news.event == 'created':
                self._created(session, current, news.values)
            elif news.event:
                fire(
                    session,
                    SNAPSHOT_INSTANCE,
                    row.id,
                    news.event,
                    updated_at=session.now,
                )
            else:
                replica_updates.update_copying_snapshot(
                    session, row.id, **changed_fields(current, news.values)
                )
        except (exception.InvalidStatus, exception.ResourceNotFound):
            return False  # it was deleted by force, say
        if news.failed:
            self._failed(session, own, current)
        return True

    def _created(self, session: Session, row, values: Mapping) -> None:
        fire(
            session,
            SNAPSHOT_INSTANCE,
            row.id,
            'created',
            progress=PROGRESS_DONE,
            updated_at=session.now,
            provider_location=(
                values.get('provider_location') or row.provider_location
            ),
        )
        if row.mount_snapshot_support:
            snapshot_exports.replace(
                session, row.id, values.get('export_locations') or []
            )

    def _failed(self, session: Session, own, row) -> None:
        """A replica that lacks a snapshot is not in sync any more."""
        creating = row.status == SnapshotStatus.CREATING
        if creating and own.replica_state == ReplicaState.IN_SYNC:
            fire(
                session,
                SHARE_REPLICA,
                own.id,
                'fell_behind',
                updated_at=session.now,
            )
        self._tell(
            session,
            row,
            messages.Action.CREATE if creating else messages.Action.DELETE,
            'SHARE_SNAPSHOT',
            row.snapshot_id,
        )

    # All

    def _own(self, session: Session, row) -> typing.Any:
        """The replica as it is, kept; None when the answer is too old."""
        taken = replicas.lock_instances(session, row.share_id)
        if is_role_or_data_changing(taken):
            return None
        return next(
            (
                one
                for one in taken
                if one.id == row.id
                and one.replica_generation == row.replica_generation
                and one.status in replica_updates.POLLED_STATUSES
            ),
            None,
        )

    def _tell(
        self,
        session: Session,
        row,
        action: messages.Action,
        resource_type: str,
        resource_id: str,
    ) -> None:
        messages.record(
            session,
            project_id=row.project_id,
            request_id=session.by and session.by.request_id,
            action=action,
            detail=messages.Detail.UNKNOWN_ERROR,
            resource_type=resource_type,
            resource_id=resource_id,
            ttl=self.message_ttl,
        )


def is_role_or_data_changing(taken: Sequence[typing.Any]) -> bool:
    """Whether who is active, or what its data is, changes just now."""
    return any(row.status in ROLE_OR_DATA_CHANGING for row in taken)


def changed_fields(
    row: typing.Any, told: Mapping[str, typing.Any]
) -> dict[str, str]:
    """What an answer says of a snapshot that is not known already."""
    return {
        name: str(told[name])[:most]
        for name, most in (('progress', 32), ('provider_location', 255))
        if told.get(name) and told[name] != getattr(row, name)
    }
