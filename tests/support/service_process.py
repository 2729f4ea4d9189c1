"""Operations, schedulers and share managers in threads, on one database.

Everything is real except the messages, which are delivered as calls, and
the API. Nothing sleeps: `quiet` and `until` check after every commit of
this process.
"""

import pathlib
import threading
import time
import typing

import sqlalchemy as sa

from manila_lite import conf as options
from manila_lite.cmd.build.process import Process
from manila_lite.cmd.build.registry import Registry
from manila_lite.cmd.build.scheduler import build_scheduler
from manila_lite.cmd.build.share import build_share_service
from manila_lite.context import RequestContext
from manila_lite.coordination import Coordinator, NullCoordinator
from manila_lite.db.models import engine, services, shares, types
from manila_lite.db.queries.services import releases
from manila_lite.db.queries.services.releases import Release
from manila_lite.db.queries.shares import shares as share_rows
from manila_lite.db.session import Database, Session
from manila_lite.share.drivers.dummy import driver as dummy
from manila_lite.share.operations.access.rules import Access
from manila_lite.share.operations.shares.share_request import ShareRequest
from manila_lite.share.operations.shares.shares import Shares
from manila_lite.share.operations.transfers import ShareTransfers
from tests.support import invariants
from tests.support.databases import share_statements
from tests.support.rows import insert_type

WORK = engine.Work.__table__
INSTANCE = shares.ShareInstance.__table__
SHARE = shares.Share.__table__
POOL = services.Pool.__table__
MESSAGE = services.Message.__table__

TYPE_ID = '11111111-2222-3333-4444-555555555555'
CTX = RequestContext(
    project_id='project',
    user_id='user',
    is_admin=True,  # hints that name a host are for administrators
    request_id='req-of-the-test',
)
TIMEOUT = 60.0
"""Seconds until a wait fails, enough for a busy machine."""

_CONF = """
[DEFAULT]
host = node
state_path = {folder}
enabled_share_backends = {names}
default_share_type = default
auth_strategy = noauth
{default}
[quota]
shares = -1
gigabytes = -1
per_share_gigabytes = -1
[work]
sweep_interval = 0.05
retry_delay = 0.01
{work}
"""
_SECTION = """
[{name}]
share_driver = dummy
driver_handles_share_servers = false
max_over_subscription_ratio = 1
dummy_driver_state_path = {folder}/dummy/{name}
dummy_driver_default_driver_method_delay = {delay}
dummy_driver_driver_methods_delays =
dummy_driver_capacity_gb = {capacity}
{section}
"""


def add_type(session: Session) -> None:
    """Insert the default share type."""
    insert_type(session, TYPE_ID, name='default')
    session.run(
        sa.insert(types.ShareTypeExtraSpec.__table__),
        share_type_id=TYPE_ID,
        spec_key='driver_handles_share_servers',
        spec_value='False',
    )


class ServiceProcess:
    """One process; a second one on the same folder is another instance."""

    def __init__(
        self,
        folder: pathlib.Path,
        url: str,
        *,
        backends: typing.Sequence[str] = ('alpha', 'beta'),
        capacity: int = 1000,
        delay: float = 0.0,
        default: str = '',
        work: str = '',
        section: str = '',
        fill: bool = True,
        locked: bool = False,
        release: Release | None = None,
    ):
        self.folder = folder
        self.names = tuple(backends)
        file = folder / 'node.conf'
        file.write_text(
            _CONF.format(
                folder=folder, names=','.join(backends), default=default, work=work
            )
            + ''.join(
                _SECTION.format(
                    name=name,
                    folder=folder,
                    capacity=capacity,
                    delay=delay,
                    section=section,
                )
                for name in backends
            )
        )
        self.conf = options.new(files=[str(file)])
        self.db = share_statements(Database(url))
        self.committed = threading.Condition()
        self.db.on_step = self._probe
        if fill:
            self.db.write(add_type)
        self.process = Process(
            self.conf,
            self.db,
            locks=Coordinator(self.conf, 'a member') if locked else NullCoordinator(),
            release=release or releases.current(),
        )
        self.operations = Registry(self.process).get(Shares)
        self.access = Registry(self.process).get(Access)
        self.transfers = Registry(self.process).get(ShareTransfers)
        self.scheduler = build_scheduler(self.process)
        self.share = build_share_service(self.process)
        self.nodes = [self]
        self.db.deliver = self._deliver
        self._started = False

    def _probe(self, name: str) -> None:
        if name == 'committed':
            with self.committed:
                self.committed.notify_all()

    def _deliver(self, hints) -> None:
        for hint in hints:
            for node in self.nodes:
                for runner in node.runners:
                    if hint.queue in runner.queues:
                        runner.wake(hint.work_id)

    @property
    def runners(self) -> list[typing.Any]:
        return [
            *self.scheduler.runners,
            *(backend.runner for backend in self.share.backends),
        ]

    # Lifecycle

    def register(self) -> None:
        """Register the services and start the drivers, without threads."""
        self.scheduler.register()
        for backend in self.share.backends:
            backend.register()
            backend.set_up()

    def start(self) -> 'ServiceProcess':
        """Register the services and run the work in threads."""
        self.register()
        for runner in self.runners:
            runner.start()
        self._started = True
        return self

    def run(self) -> None:
        """Run all pending work in the calling thread."""
        while sum(runner.step() for runner in self.runners):
            pass

    def stop(self) -> None:
        if self._started:
            for runner in self.runners:
                assert runner.stop(TIMEOUT)
        self.process.locks.stop()
        self.db.dispose()

    # Queries

    def until(self, true: typing.Callable[[], object]) -> None:
        """Wait for a condition that a commit of this process fulfils."""
        deadline = time.monotonic() + TIMEOUT
        with self.committed:
            while not true():
                left = deadline - time.monotonic()
                assert left > 0, f'timed out: {self.owed()}'
                self.committed.wait(min(left, 1.0))

    def quiet(self) -> None:
        """Wait until no work is pending."""
        self.until(lambda: not self.owed())

    def settle(self) -> None:
        """Rescue what is in flight without work, and wait for all work."""
        self.quiet()
        while sum(
            backend.endpoints.reconciliation.run_pass()
            for backend in self.share.backends
        ):
            self.quiet()
        self.scheduler.orphan_sweep.run_pass()
        self.quiet()

    def owed(self) -> list[tuple]:
        return self.db.read(
            lambda session: [
                tuple(row)
                for row in session.rows(
                    sa.select(
                        WORK.c.kind,
                        WORK.c.state,
                        WORK.c.resource_id,
                        WORK.c.attempt,
                        WORK.c.error,
                    )
                )
            ]
        )

    def rows(self, statement: sa.Executable) -> list[sa.Row]:
        return self.db.read(lambda session: list(session.rows(statement)))

    def value(self, statement: sa.Executable) -> typing.Any:
        return self.db.read(lambda session: session.value(statement))

    def target(self, share_id: str) -> sa.Row:
        return self.db.read(share_rows.get_target, share_id)

    def status(self, share_id: str) -> str:
        return self.target(share_id).status

    def outcome(self, share_id: str) -> tuple[str, int]:
        """Return the status and the size of a share."""
        found = self.target(share_id)
        return found.status, found.size

    def messages(self) -> list[tuple[str, str]]:
        """Return action and detail of every message, oldest first."""
        return [
            tuple(row)
            for row in self.rows(
                sa.select(MESSAGE.c.action_id, MESSAGE.c.detail_id).order_by(
                    MESSAGE.c.created_at
                )
            )
        ]

    def backend(self, name: str = 'alpha') -> typing.Any:
        return next(
            backend
            for backend in self.share.backends
            if backend.host.endswith(f'@{name}')
        )

    def driver(self, name: str = 'alpha') -> dummy.DummyDriver:
        return self.backend(name).driver.driver

    def problems(self) -> list[str]:
        """Return the broken invariants, and calls that overlapped."""
        return [
            *self.db.read(
                invariants.problems,
                {f'node@{name}': self.folder / 'dummy' / name for name in self.names},
            ),
            *(
                str(overlap)
                for name in self.names
                for overlap in self.driver(name).overlaps
            ),
        ]

    # Requests

    def create(self, size: int = 1, **facts: typing.Any) -> str:
        new = self.operations.create(
            CTX, ShareRequest(share_proto='NFS', size=size, **facts)
        )
        return new.rows[0].id

    def created(self, size: int = 1, **facts: typing.Any) -> str:
        """Create a share and wait until it is available."""
        share_id = self.create(size, **facts)
        self.quiet()
        assert self.status(share_id) == 'available'
        return share_id

    def ask(
        self, verb: str, share_id: str, *args: typing.Any, **facts: typing.Any
    ) -> typing.Any:
        """Call an operation on the current row of a share."""
        return getattr(self.operations, verb)(
            CTX, self.target(share_id), *args, **facts
        )
