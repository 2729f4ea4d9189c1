"""What is done about share instances in flight that nobody works on.

The state table names the rescue of every status in flight; this carries
it out: ask the back end and converge, repeat the idempotent work, or give
up visibly. It is called with abandoned work of a lost holder, and with
work that a pass submits for rows that no work is owed for.
"""

import contextlib
import logging

from manila_lite import exception
from manila_lite.context import RequestContext
from manila_lite.coordination import Coordinator
from manila_lite.coordination import NullCoordinator
from manila_lite.db.queries import pools
from manila_lite.db.queries import share_instances as instances
from manila_lite.db.queries import shares
from manila_lite.db.session import Database
from manila_lite.db.transitions import fire
from manila_lite.messages import Action
from manila_lite.messages import Detail
from manila_lite.quota import charges
from manila_lite.quota.shares import owner_of
from manila_lite.quota.shares import size_deltas
from manila_lite.rpc.contract import Client
from manila_lite.rpc.contract import implements
from manila_lite.rpc.share import ReconciliationRpc
from manila_lite.share.drivers.base import export_locations
from manila_lite.share.manager import driver_view
from manila_lite.share.manager.provisioning import PROGRESS_DONE
from manila_lite.share.manager.provisioning import Provisioning
from manila_lite.states.machine import Ask
from manila_lite.states.machine import GiveUp
from manila_lite.states.machine import Repeat
from manila_lite.states.share_instance import MACHINE as SHARE_INSTANCE
from manila_lite.states.share_instance import S
from manila_lite.work import table
from manila_lite.work.telling import tell

LOG = logging.getLogger(__name__)

LOCKED_PAUSE = 5.0
"""Seconds before another look at what a second manager is rescuing."""

_ACTIONS = {
    S.CREATING: Action.CREATE, S.EXTENDING: Action.EXTEND,
    S.SHRINKING: Action.SHRINK,
}


@implements(ReconciliationRpc)
class Reconciliation:
    """The rescues of one back end."""

    def __init__(self, db: Database, provisioning: Provisioning,
                 rescues: Client, provisionings: Client,
                 service_host: str, message_ttl: int,
                 locks: Coordinator | NullCoordinator):
        self.db = db
        self.locks = locks
        self.provisioning = provisioning
        self.rescues = rescues.on(service_host)
        self.provisionings = provisionings.on(service_host)
        self.service_host = service_host
        self.message_ttl = message_ttl

    def run_pass(self) -> int:
        """Submit the rescue of every row that no work is owed for."""
        return self.db.write(self._submit_rescues)

    def _submit_rescues(self, session) -> int:
        lost = instances.without_work(
            session, SHARE_INSTANCE.in_flight, self.service_host)
        for row in lost:
            LOG.warning('Share instance %s is %s and nobody works on it',
                        row.id, row.status)
            self.rescues.rescue_share_instance(
                session, _owner_context(row), share_instance_id=row.id)
        return len(lost)

    def retry_deferred(self) -> int:
        """Try once more what deferred deletion could not delete."""
        return self.db.write(self._retry_deferred)

    def _retry_deferred(self, session) -> int:
        failed = instances.without_work(
            session, [S.ERROR_DEFERRED_DELETING], self.service_host)
        for row in failed:
            # A second manager of the back end may have done so just now.
            with contextlib.suppress(exception.InvalidStatus,
                                     exception.ResourceNotFound):
                fire(session, SHARE_INSTANCE, row.id, 'retry_deferred')
                self.provisionings.delete_share_instance_deferred(
                    session, _owner_context(row), instance_id=row.id)
        return len(failed)

    def rescue_share_instance(self, job, share_instance_id):
        self.rescue(job)

    def failed_rescue_share_instance(self, session, job, error):
        """The back end could not even be asked: give up visibly."""
        row = instances.find(session, job.resource_id)
        rescue = row and SHARE_INSTANCE.in_flight.get(row.status)
        if rescue is not None:
            self._give_up(session, job, row, rescue.events[-1])
        return True

    def recheck(self, session, job) -> None:
        """Have somebody look at what the job was about."""
        row = instances.find(session, job.resource_id)
        if row is not None:
            self.rescues.rescue_share_instance(
                session, _owner_context(row), share_instance_id=row.id)

    def rescue(self, desk) -> None:
        """Carry out the rescue of the status the instance is in.

        The lock spares two managers of one back end the same questions;
        what makes the outcome right is the fence of the work.
        """
        with self.locks.try_lock(f'rescue-{desk.job.resource_id}') as held:
            if held:
                self._rescue(desk)
            else:
                desk.put_back(LOCKED_PAUSE)

    def _rescue(self, desk) -> None:
        found, is_last = desk.read(self._look, desk.job)
        rescue = SHARE_INSTANCE.in_flight.get(found.row.status)
        if not is_last:
            desk.finish(self._give_back, desk.job)
        elif isinstance(rescue, Ask):
            self._ask(desk, found, rescue)
        elif isinstance(rescue, Repeat):
            self._end(desk, self._repeat, found.row, rescue)
        elif isinstance(rescue, GiveUp):
            self._end(desk, self._give_up, found.row, rescue.event)
        elif found.row.status == S.AVAILABLE:
            self._compare(desk, found)
        else:
            desk.finish(self._give_back, desk.job)

    def _look(self, session, job):
        """The instance, and whether no other work is owed for it.

        If there is, its status is about that: the lost work was given up.
        """
        return (driver_view.find(session, job.resource_id),
                not table.is_followed(session, job))

    def _end(self, desk, function, *args) -> None:
        """Finish with what the function writes; reservations go back."""
        def end(session) -> None:
            function(session, desk.job, *args)
            self._give_back(session, desk.job)
        desk.finish(end)

    def _ask(self, desk, found, rescue: Ask) -> None:
        answer, reason = self._answer(found, rescue.question)
        LOG.warning('Share instance %s in %s: %s', found.row.id,
                    found.row.status, reason or 'the back end has it')
        if reason:
            self._end(desk, self._give_up, found.row, rescue.no)
        else:
            self._end(desk, self._converge, found.row, answer)

    def _compare(self, desk, found) -> None:
        """Note the size of what somebody else may have resized."""
        answer, reason = self._answer(found, 'get_share_status')
        if reason or answer['size'] == found.row.size:
            desk.finish(self._give_back, desk.job)
        else:
            self._end(desk, self._correct, found.row, answer['size'])

    def _answer(self, found, question: str):
        """What the back end says, and why that is not good if it is not."""
        share = driver_view.for_driver(
            found, self.provisioning.name_template)
        try:
            answer = getattr(self.provisioning.driver, question)(share)
        except NotImplementedError:
            return None, 'the back end cannot tell what became of it'
        except exception.ShareResourceNotFound:
            return None, 'the back end does not have it'
        return answer, self._why_unfit(found.row, answer)

    def _why_unfit(self, row, answer) -> str | None:
        """Why the answer does not let the row become available."""
        if answer['status'] != S.AVAILABLE:
            return f'the back end says {answer["status"]}'
        proto = answer.get('share_proto', row.share_proto)
        if proto != row.share_proto:
            return f'the back end has it as {proto}'
        size = answer.get('size')
        if row.status == S.CREATING and size not in (None, row.size):
            return f'the back end has {size} GiB'
        if row.status != S.CREATING and size is None:
            return 'the back end does not tell its size'
        return None

    def _converge(self, session, job, row, answer) -> None:
        """Make the row say what the back end has."""
        if row.status == S.CREATING:
            fire(session, SHARE_INSTANCE, row.id, 'created',
                 progress=PROGRESS_DONE, updated_at=session.now)
            instances.replace_export_locations(
                session, row.id,
                export_locations(answer.get('export_locations')))
            return
        event = SHARE_INSTANCE.in_flight[row.status].yes
        fire(session, SHARE_INSTANCE, row.id, event,
             updated_at=session.now)
        self._resize(session, row, answer['size'])

    def _correct(self, session, job, row, size) -> None:
        for event in ('ensure', 'ensured'):
            fire(session, SHARE_INSTANCE, row.id, event,
                 updated_at=session.now)
        self._resize(session, row, size)

    def _resize(self, session, row, size) -> None:
        difference = size - row.size
        if difference:
            shares.resize(session, row.share_id, size)
            charges.adjust(session, owner_of(row),
                           size_deltas(row, difference))
            pools.change_allocated(session, row.host, difference)

    def _repeat(self, session, job, row, rescue: Repeat) -> None:
        repeat = getattr(self.provisionings, rescue.kind.partition('.')[2])
        repeat(session, _owner_context(row), instance_id=row.id)

    def _give_up(self, session, job, row, event) -> None:
        fire(session, SHARE_INSTANCE, row.id, event, updated_at=session.now)
        if SHARE_INSTANCE[event].target != S.AVAILABLE:
            tell(session, job, _ACTIONS.get(row.status, Action.UPDATE),
                 Detail.UNKNOWN_ERROR, self.message_ttl)

    def _give_back(self, session, job) -> None:
        """Return what the lost work had reserved, quota and pool."""
        charges.release_all(session, job.charges)
        if 'growth' in job.args:
            pools.change_allocated(session, job.args['host'],
                                   -job.args['growth'])


def _owner_context(row) -> RequestContext:
    return RequestContext(project_id=row.project_id, user_id=row.user_id)
