"""How share instances are rescued."""

import typing

from manila_lite import messages
from manila_lite.db.queries.admin import pools
from manila_lite.db.queries.replicas import replicas
from manila_lite.db.queries.shares import instances
from manila_lite.db.queries.snapshots import snapshots
from manila_lite.db.session import Session
from manila_lite.db.transitions import fire
from manila_lite.db.transitions import fire_matching
from manila_lite.messages import Action
from manila_lite.messages import Detail
from manila_lite.quota.shares import resize
from manila_lite.quota.shares import take_copies
from manila_lite.rpc.contract import Client
from manila_lite.share.drivers.base import export_locations
from manila_lite.share.manager.driver_view import share_view as driver_view
from manila_lite.share.manager.provisioning import PROGRESS_DONE
from manila_lite.share.manager.provisioning import Provisioning
from manila_lite.share.manager.recovery.base import Askable
from manila_lite.share.manager.recovery.base import Case
from manila_lite.share.manager.recovery.base import Question
from manila_lite.share.manager.recovery.base import Reading
from manila_lite.share.manager.replication.replicas import Replicas
from manila_lite.share.manager.replication.replicas import Told
from manila_lite.share.manager.snapshots import release_share
from manila_lite.states.machine import Ask
from manila_lite.states.machine import Repeat
from manila_lite.states.machine import Rescue
from manila_lite.states.share_instance import MACHINE
from manila_lite.states.share_instance import S
from manila_lite.states.share_replica import PASSIVE
from manila_lite.states.snapshot_instance import MACHINE as SNAPSHOT_INSTANCE
from manila_lite.states.snapshot_instance import S as SnapshotS
from manila_lite.work.notify import tell

_ACTIONS = {
    S.CREATING: Action.CREATE,
    S.CREATING_FROM_SNAPSHOT: Action.CREATE,
    S.EXTENDING: Action.EXTEND,
    S.SHRINKING: Action.SHRINK,
    S.REVERTING: Action.REVERT_TO_SNAPSHOT,
    S.REPLICATION_CHANGE: Action.PROMOTE,
}
_BEING_MADE = (S.CREATING, S.CREATING_FROM_SNAPSHOT)
_DELETION = 'replication.delete_share_replica'
_OF_REPLICAS: dict[str, Rescue] = {
    S.CREATING: Ask('get_replica_status', 'created', 'create_failed'),
    S.DELETING: Repeat(_DELETION, 'deleted', 'delete_failed'),
}
"""Of those that only follow, where it is not that of any instance."""


class ShareInstances(Askable):
    machine = MACHINE

    def __init__(
        self,
        rescues: Client,
        works: dict[str, Client],
        provisioning: Provisioning,
        message_ttl: int,
        replication: Replicas,
    ):
        super().__init__(rescues, works)
        self.provisioning = provisioning
        self.replication = replication
        self.message_ttl = message_ttl

    def find(self, session: Session, id: str) -> Case | None:
        found = instances.find(session, id) and driver_view.find(session, id)
        return found and Case(found.row, found)

    def rescue_of(self, case: Case) -> Rescue | None:
        if case.row.replica_state in PASSIVE:
            own = _OF_REPLICAS.get(case.row.status)
            if own is not None:
                return own
        return super().rescue_of(case)

    def again(self, session: Session, case: Case, kind: str) -> None:
        """An active replica is deleted as one, too, where others stay."""
        row = case.row
        if (
            row.status == S.DELETING
            and row.replica_state is not None
            and replicas.count(session, row.share_id) > 1
        ):
            kind = _DELETION
        super().again(session, case, kind)

    def question(self, case: Case, name: str) -> Question:
        return (
            getattr(self.provisioning.driver, name),
            driver_view.for_driver(
                case.found, self.provisioning.name_template
            ),
            case.found.share_server,
        )

    def read(self, case: Case, answer: typing.Any) -> Reading:
        """The size and the exports, where the answer fits the row."""
        row = case.row
        try:
            status, size = answer['status'], answer.get('size')
            proto = answer.get('share_proto', row.share_proto)
            exports = export_locations(answer.get('export_locations'))
        except (TypeError, KeyError, AttributeError) as error:
            return Reading(reason=f'the back end makes no sense: {error!r}')
        if status in _BEING_MADE and (
            S.CREATING_FROM_SNAPSHOT in (status, row.status)
            and row.status in _BEING_MADE
        ):
            return Reading(patience=self.provisioning.copy_interval)
        if status != S.AVAILABLE:
            return Reading(reason=f'the back end says {status}')
        if proto != row.share_proto:
            return Reading(reason=f'the back end has it as {proto}')
        if row.status in _BEING_MADE and size not in (None, row.size):
            return Reading(reason=f'the back end has {size} GiB')
        if _is_new_replica(row):
            return Reading(Told(answer.get('replica_state'), exports))
        if row.status not in _BEING_MADE and not isinstance(size, int):
            return Reading(reason='the back end does not tell its size')
        return Reading((size, exports))

    def converge(
        self,
        session: Session,
        job: typing.Any,
        case: Case,
        event: str,
        facts: typing.Any,
    ) -> None:
        if _is_new_replica(case.row):
            self.replication.created(session, job, case.row, facts)
            return
        size, exports = facts
        if case.row.status in _BEING_MADE:
            fire(
                session,
                MACHINE,
                case.row.id,
                event,
                progress=PROGRESS_DONE,
                updated_at=session.now,
            )
            instances.replace_export_locations(session, case.row.id, exports)
        else:
            self._resize(session, case.row, size, event)
            if job.args.get('new_size', size) != size:
                # At rest and well, and yet not what was accepted.
                tell(
                    session,
                    job,
                    _ACTIONS[case.row.status],
                    Detail.UNKNOWN_ERROR,
                    self.message_ttl,
                )

    def give_up(
        self, session: Session, job: typing.Any, case: Case, event: str
    ) -> None:
        row = case.row
        if row.status == S.SNAPSHOTTING:
            release_share(session, row.id)
            return
        if row.status == S.REPLICATION_CHANGE:
            self.replication.promotion.given_up(session, row)
        else:
            self._give_up(session, job, row, event)
        if MACHINE[event].target != S.AVAILABLE:
            tell(
                session,
                job,
                _ACTIONS.get(row.status, Action.UPDATE),
                Detail.UNKNOWN_ERROR,
                self.message_ttl,
            )

    def _give_up(
        self, session: Session, job: typing.Any, row: typing.Any, event: str
    ) -> None:
        fire(session, MACHINE, row.id, event, updated_at=session.now)
        if row.status == S.REVERTING:
            self._lose_restored(session, job, row.id)
        if _is_new_replica(row):
            replicas.give_up(session, row.id)

    def _lose_restored(
        self, session: Session, job: typing.Any, instance_id: str
    ) -> None:
        """The snapshot that was gone back to is told of as well."""
        for one in snapshots.on_share_instance(session, instance_id):
            if one.status == SnapshotS.RESTORING and fire_matching(
                session,
                SNAPSHOT_INSTANCE,
                'restore_lost',
                {'id': one.id},
                updated_at=session.now,
            ):
                messages.record(
                    session,
                    project_id=one.project_id,
                    request_id=job.request_id,
                    action=Action.REVERT_TO_SNAPSHOT,
                    detail=Detail.UNKNOWN_ERROR,
                    resource_type='SHARE_SNAPSHOT',
                    resource_id=one.snapshot_id,
                    ttl=self.message_ttl,
                )

    def give_back(self, session: Session, job: typing.Any) -> None:
        """What lost work had reserved: quota, and room in a pool."""
        super().give_back(session, job)
        if 'growth' in job.args:
            pools.change_allocated(
                session, job.args['host'], -job.args['growth']
            )

    # Who was too slow may have resized what was given up

    def is_comparable(self, case: Case) -> bool:
        return (
            case.row.status == S.AVAILABLE
            and case.row.replica_state not in PASSIVE
        )

    def correct(self, session: Session, case: Case, facts: typing.Any) -> bool:
        size, _ = facts
        if size == case.row.size:
            return False
        self._resize(session, case.row, size, 'ensure', 'ensured')
        return True

    def _resize(
        self, session: Session, row: typing.Any, size: int, *events: str
    ) -> None:
        """Make these moves, and have the share be as large as it is."""
        copies = take_copies(session, row)
        for event in events:
            fire(session, MACHINE, row.id, event, updated_at=session.now)
        resize(session, row, size, copies)


def _is_new_replica(row: typing.Any) -> bool:
    return row.status in _BEING_MADE and row.replica_state in PASSIVE
