"""Copy shares that are migrated."""

from collections.abc import Callable
import functools
import typing

from manila_lite import exception
from manila_lite.data.copying import ShareContents, TreeCopier
from manila_lite.data.progress import copying_of, waiting_for_earlier
from manila_lite.db.queries.shares import instances as share_instances, migrations
from manila_lite.db.rows import InstanceRow
from manila_lite.db.session import Session
from manila_lite.db.transitions import fire, fire_matching
from manila_lite.messages import Action, Detail, detail_in, explanation_in
from manila_lite.rpc.contract import Client, implements
from manila_lite.rpc.data import MigrationCopiesRpc
from manila_lite.states.share_task import SHARE_TASK, ShareTask
from manila_lite.work import table
from manila_lite.work.job import JobContext
from manila_lite.work.notify import notify_user
from manila_lite.work.table import Claim

T = typing.TypeVar('T')


class CopiedShare(typing.NamedTuple):
    """A share that is migrated, with both of its instances."""

    task_state: str
    source: InstanceRow
    destination: InstanceRow


@implements(MigrationCopiesRpc)
class MigrationCopiesEndpoint:
    """Carries out the copies; `work` is a client of ShareMigrationRpc.

    `callable_here` makes an object whose methods `copier` may call.
    """

    def __init__(
        self,
        contents: ShareContents,
        copier: TreeCopier,
        work: Client,
        *,
        message_ttl: int,
        callable_here: Callable[[T], T],
    ):
        self.contents = contents
        self.copier = copier
        self.work = work
        self.message_ttl = message_ttl
        self.callable_here: Callable = callable_here

    def prepare_copy_share(self, session: Session, job: Claim) -> CopiedShare:
        state = _require_wanted(session, job)
        migration = migrations.get_open(session, job.resource_id)
        if not migration.host_assisted:
            raise exception.InvalidShare(
                reason='its driver migrates it, not the data service'
            )
        return CopiedShare(
            state,
            share_instances.get(session, migration.source_instance_id),
            share_instances.get(session, migration.destination_instance_id or ''),
        )

    def copy_share(self, job: JobContext, share_id: str, ignored: list[str]) -> None:
        share: CopiedShare = job.prepared
        if share.task_state == ShareTask.COPY_STARTING:
            job.db.write(_begin, job.claim, by=job.claim)
        with waiting_for_earlier(job):
            with (
                self.contents.opened(job, *_place(share.source)) as source,
                self.contents.opened(job, *_place(share.destination)) as target,
            ):
                self._copy(job, source, target, ignored)
            # Only now is all of it in a storage that was mounted.
            job.finish(_copied, share_id)

    def _copy(
        self, job: JobContext, source: int, target: int, ignored: list[str]
    ) -> None:
        how = copying_of(
            job,
            self.copier.size_of(source),
            functools.partial(_record, job=job.claim),
            self.callable_here,
            ignored,
        )
        try:
            self.copier.copy_tree(source, target, how, is_resumed=True)
        except FileExistsError as error:
            # A worker that was paused has written its last file.
            raise exception.ServiceUnavailable(str(error)) from error

    def failed_copy_share(self, session: Session, job: Claim, error: Exception) -> bool:
        """Let the back ends remove what was copied."""
        share_id = job.resource_id
        notify_user(
            session,
            job,
            Action.UPDATE,
            detail_in(error) or Detail.UNKNOWN_ERROR,
            self.message_ttl,
            explanation=explanation_in(error),
        )
        migration = migrations.find_open(session, share_id)
        if migration is None:
            return True
        migrations.set_error(session, share_id, str(error))
        if fire_matching(session, SHARE_TASK, 'clean_up', {'id': share_id}):
            self.work.on(migration.source_host).cancel_share_migration(
                session, job.request_context(), share_id=share_id
            )
        return True


def _place(instance: InstanceRow) -> tuple[str, str]:
    return instance.id, instance.host


def _require_wanted(session: Session, job: Claim) -> str:
    """Return the state of the task; raise InvalidStatus if it is over."""
    task = migrations.find_task(session, job.resource_id, lock_shared=True)
    state = task and task.task_state
    if state not in (ShareTask.COPY_STARTING, ShareTask.COPYING):
        raise exception.InvalidStatus(
            resource='share',
            id=job.resource_id,
            status=state,
            event=job.kind,
            allowed=ShareTask.COPYING,
        )
    return state


def _begin(session: Session, job: Claim) -> None:
    table.checkpoint(session, job, 'copying')
    fire(session, SHARE_TASK, job.resource_id, 'copying')


def _record(session: Session, percent: int, *, job: Claim) -> None:
    _require_wanted(session, job)
    migrations.record_progress(session, job.resource_id, percent)


def _copied(session: Session, share_id: str) -> None:
    fire(session, SHARE_TASK, share_id, 'copied')
    migrations.record_progress(session, share_id, 100)
