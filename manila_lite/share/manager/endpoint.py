"""What the endpoints of a share manager have in common."""

from collections.abc import Callable, Collection, Iterator, Mapping
import contextlib
import typing

from manila_lite import exception
from manila_lite.context import RequestContext
from manila_lite.db.queries.servers import relocation
from manila_lite.db.session import Session
from manila_lite.host import Host
from manila_lite.share.drivers.base import normalise_export_locations
from manila_lite.states.machine import Machine
from manila_lite.work.job import JobContext, outside_of_jobs
from manila_lite.work.table import Claim


class Owned(typing.Protocol):
    """A row that belongs to a project."""

    @property
    def project_id(self) -> str | None: ...

    @property
    def user_id(self) -> str | None: ...


class MountableRow(typing.Protocol):
    """A row of a snapshot instance with a capability of its share."""

    @property
    def mount_snapshot_support(self) -> bool: ...


def owner_context(row: Owned) -> RequestContext:
    """Return a context with the owner of a resource."""
    return RequestContext(project_id=row.project_id, user_id=row.user_id)


def require_status(
    job: Claim | JobContext,
    machine: Machine,
    id: str,
    status: str | None,
    *allowed: str,
) -> None:
    """Raise InvalidStatus unless the resource still waits for this work.

    The caller has locked the row: a request that moves it on and submits
    other work must see that this work is running.
    """
    if status not in allowed:
        raise outdated(job, machine, id, status, ', '.join(allowed))


def outdated(
    job: Claim | JobContext, machine: Machine, id: str, status: str | None, allowed: str
) -> exception.InvalidStatus:
    """Return the error of work that its resource no longer waits for."""
    return exception.InvalidStatus(
        resource=machine.resource.removesuffix('_task').replace('_', ' '),
        id=id,
        status=status,
        event=job.kind,
        allowed=allowed,
    )


@contextlib.contextmanager
def undo_late_call(undo: Callable[..., object], *arguments: object) -> Iterator[None]:
    """Undo a driver call of a migration that came too late.

    Around the call and its end; `undo` decides by the rows whether it has to.
    The worker may have been paused in the call until another one had taken
    over and the migration had been rolled back: no row refers any longer to
    what the call has made.
    """
    with contextlib.ExitStack() as stack:
        stack.callback(undo, *arguments)
        yield
        stack.pop_all()


def store_migrated_snapshots(
    session: Session,
    updates: Mapping[str, Mapping[str, typing.Any]],
    snapshots: Mapping[str, MountableRow],
) -> None:
    """Store what the reply of a driver says about these snapshots, by id."""
    known = {id: update for id, update in updates.items() if id in snapshots}
    relocation.set_snapshot_locations(
        session,
        {
            id: update['provider_location']
            for id, update in known.items()
            if update.get('provider_location')
        },
    )
    relocation.replace_snapshot_exports(
        session,
        {
            id: normalise_export_locations(update['export_locations'])
            for id, update in known.items()
            if update.get('export_locations') is not None
            and snapshots[id].mount_snapshot_support
        },
    )


class Placed(typing.Protocol):
    """A row of something on a back end."""

    @property
    def host(self) -> str | None: ...

    @property
    def status(self) -> str | None: ...


def is_on(row: Placed, service_host: str) -> bool:
    """Whether something is on this back end."""
    return Host.parse(row.host or '').service_host == service_host


@contextlib.contextmanager
def undo_if_gone(
    job: JobContext,
    find: Callable[[Session, str], Placed | None],
    id: str,
    undo: Callable[[], object],
    given_up: Collection[str] = (),
) -> Iterator[None]:
    """Undo a driver call when it has become useless while it ran.

    Around the end of the work. The rows were removed, placed on another
    back end or, with a status in `given_up`, will never be used, so nothing
    else will ever remove what the driver has made. The claim is lost as
    well, so the call is not made for the job.
    """
    try:
        yield
    except (exception.ClaimLost, exception.ResourceNotFound):
        row = job.read(find, id)
        if row is None or not is_on(row, job.claim.queue) or row.status in given_up:
            with (
                outside_of_jobs(),
                contextlib.suppress(
                    exception.ShareResourceNotFound, exception.SnapshotResourceNotFound
                ),
            ):
                undo()
        raise
