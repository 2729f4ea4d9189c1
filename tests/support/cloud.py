"""The whole service in one thread, with simulated time, chance and crashes.

A `Cloud` has the real wiring: WSGI application, operations, work table,
scheduler, share manager, the `dummy` driver with its state on disk. The test
controls its clock, its random numbers and the delivery of hints. Nothing
runs in the background: `settle` steps the services until they are idle.

`crash_at(n)` ends "the process" at the n-th crash point: before a statement,
around a commit, a driver call or a change of a file by the data service.
`restart` then builds new objects on the same database and back end.
"""

import contextlib
import dataclasses
import functools
import pathlib
import random
import typing
import uuid

from oslo_config import cfg
import sqlalchemy as sa

from manila_lite import conf as options
from manila_lite.api import wsgi
from manila_lite.api.services import ApiServices
from manila_lite.cmd.build.api import build_api
from manila_lite.cmd.build.data import build_data
from manila_lite.cmd.build.process import Process, RegisteredService
from manila_lite.cmd.build.scheduler import SchedulerService, build_scheduler
from manila_lite.cmd.build.share import ShareService, build_share_service
from manila_lite.context import RequestContext
from manila_lite.db import grants
from manila_lite.db.models import engine, types
from manila_lite.db.session import Database, Session
from manila_lite.policies.enforcer import Enforcer
from manila_lite.share.drivers.dummy import driver as dummy
from manila_lite.share.manager.guarded_driver import GuardedDriver
from manila_lite.work import table
from tests.support import (
    cloud_images,
    databases,
    granted,
    invariants,
    snapshot_access_invariants,
    snapshot_invariants,
)
from tests.support.api_client import ApiClient
from tests.support.direct_transport import DirectTransport
from tests.support.rows import insert_type

BACKENDS = ('alpha', 'beta')
TYPE_ID = '11111111-2222-3333-4444-555555555555'

_PENDING = sa.select(sa.func.count()).select_from(engine.Work.__table__)
_CONF = """
[DEFAULT]
host = node
state_path = {state}
enabled_share_backends = {names}
default_share_type = default
auth_strategy = noauth
{extra_conf}
[work]
lease = 30
transfer_wait = 0
"""
_SECTION = """
[{name}]
share_driver = dummy
driver_handles_share_servers = false
dummy_driver_state_path = {state}/dummy/{name}
dummy_driver_default_driver_method_delay = 0
dummy_driver_driver_methods_delays =
dummy_driver_capacity_gb = {capacity}
{backend_conf}
"""


class Crash(BaseException):
    """The process dies here; none of its code may run after this."""


class Clock:
    """Seconds since 1970, advanced by the test; a call takes 1 microsecond."""

    def __init__(self) -> None:
        self.now = 1_800_000_000.0

    def __call__(self) -> float:
        # Without rounding, some two calls give the same microsecond.
        self.now = round(self.now + 0.000_001, 6)
        return self.now

    def advance(self, seconds: float) -> None:
        self.now += seconds


class CrashableDriver:
    """A driver with a crash point before and after every call."""

    def __init__(self, driver: typing.Any, on_step: typing.Callable):
        self.driver = driver
        self._at_crash_point = on_step

    @property
    def __class__(self):
        return type(self.driver)

    def __getattr__(self, name: str) -> typing.Any:
        found = getattr(self.driver, name)
        if not callable(found) or name.startswith('get_share_stats'):
            return found

        def call(*args, **kwargs):
            self._at_crash_point(f'before {name}')
            answer = found(*args, **kwargs)
            self._at_crash_point(f'after {name}')
            return answer

        return call


def _enforcer(configured: str, conf: cfg.ConfigOpts) -> Enforcer:
    """Return the enforcer shared by all clouds with these policy options."""
    key = configured if '[oslo_policy]' in configured else ''
    if key not in _ENFORCERS:
        _ENFORCERS[key] = Enforcer(conf)
    return _ENFORCERS[key]


_ENFORCERS: dict[str, Enforcer] = {}


@dataclasses.dataclass
class Services:
    """What runs work in a process."""

    scheduler: SchedulerService
    share: ShareService
    data: RegisteredService
    runners: list[typing.Any]


class Cloud(cloud_images.Copied):
    """One simulated installation; see the module docstring."""

    def __init__(
        self,
        folder: pathlib.Path,
        *,
        seed: int = 0,
        url: str | None = None,
        loss_rate: float = 0.0,
        duplicate_rate: float = 0.0,
        capacity: int = 1000,
        backends: typing.Sequence[str] = BACKENDS,
        extra_conf: str = '',
        backend_conf: str = '',
        initialize: bool = True,
        start: bool = True,
        prepared: bool = False,
    ):
        """Start a new installation, or a process on a stored one.

        Without `start`, the first process is that of `restart`. A prepared
        installation is a copy of one with the same configuration.
        """
        self.folder = folder
        self.rng = random.Random(seed)
        self.clock = Clock()
        self.url = url or f'sqlite:///{folder}/{cloud_images.DATABASE}'
        self.loss_rate, self.duplicate_rate = loss_rate, duplicate_rate
        self.backend_names = tuple(backends)
        self.crash_points: list[str] = []
        self.journal_is_whole = True
        self.statements = 0
        self._crash_at: int | None = None
        self._pauses: dict[str, tuple[int, typing.Callable]] = {}
        self._conf_file = folder / 'cloud.conf'
        self._capacity = capacity
        self.configure(backend_conf=backend_conf, extra_conf=extra_conf)
        self.db = self._database(self.url)
        self._policies = extra_conf
        self._seed = seed
        self.api = ApiClient(self)
        if prepared:
            self._start_on(self._image_after(self._initialize))
            return
        if start:
            self._start_process()
        if initialize:
            databases.create_tables(self.url)
            self.db.write(self._fill)
            self._register()

    def _initialize(self) -> None:
        self._start_process()
        databases.create_tables(self.url)
        self.db.write(self._fill)
        self._register()

    def configure(self, *, backend_conf: str = '', extra_conf: str = '') -> None:
        """Write the configuration file that the next process reads."""
        self._conf_file.write_text(
            _CONF.format(
                state=self.folder,
                names=','.join(self.backend_names),
                extra_conf=extra_conf,
            )
            + ''.join(
                _SECTION.format(
                    name=name,
                    state=self.folder,
                    capacity=self._capacity,
                    backend_conf=backend_conf,
                )
                for name in self.backend_names
            )
        )

    def _database(self, url: str) -> Database:
        db = databases.share_statements(
            Database(
                url,
                clock=self.clock,
                new_id=self._new_id,
                rng=self.rng,
                sleep=self.clock.advance,
            )
        )
        granted.check(db)
        return db

    @contextlib.contextmanager
    def moved_to(self, url: str, through: str | None = None) -> typing.Iterator[None]:
        """Run on a copy of the database on a server.

        `through` is another URL by which it is used. What happens there is
        lost afterwards.
        """
        own = self.db
        databases.copy_rows(self.url, url)
        own.dispose()
        self.db = self._database(through or url)
        databases.simulate_time(self.db)
        try:
            self.restart()
            yield
        finally:
            self.db.dispose()
            self.db = own

    # Start and crash

    def _start_process(self, incarnation: str | None = None) -> None:
        self.conf = options.new(files=[str(self._conf_file)])
        self.enforcer = _enforcer(self._policies, self.conf)
        self.db.deliver = self._deliver
        self.db.on_step = self._at_crash_point
        self.process = Process(
            self.conf,
            self.db,
            DirectTransport(before_call=lambda: self.runners),
            rng=self.rng,
            id=incarnation or self._new_id(),
        )
        self.__dict__.pop('_served', None)
        self._image = self._services = None
        self._undelivered: list[tuple[str, str]] = []
        if incarnation is None:
            self._build_services()

    def _build_services(self) -> Services:
        scheduler = build_scheduler(self.process)
        share = build_share_service(self._process_of(grants.SHARE))
        data = build_data(self._process_of(grants.DATA))
        self._services = services = Services(
            scheduler,
            share,
            data,
            [
                *scheduler.runners,
                *data.runners,
                *(backend.runner for backend in share.backends),
            ],
        )
        self._use_clock(services.runners)
        for backend in services.share.backends:
            # Inside of the guard: a worker may be paused after its check.
            guarded = typing.cast(GuardedDriver, backend.driver)
            guarded.driver = CrashableDriver(guarded.driver, self._at_crash_point)
        return services

    def _process_of(self, service: str) -> Process:
        """Return the process as a service has it that has an own account."""
        db = granted.ServiceDatabase(self.db, service)
        return dataclasses.replace(self.process, db=typing.cast(Database, db))

    def _started(self) -> Services:
        """Return the services, which start now if they have not before."""
        if self._services is None:
            # The test counts what happens after that.
            on_step, self.db.on_step = self.db.on_step, lambda name: None
            is_idle = not self.has_pending_work()
            self._build_services()
            self._register()
            if is_idle:  # as the cloud was that is copied
                self.run_pending()
            self.db.on_step = on_step
            for work_id, queue in self._undelivered:
                self._wake(work_id, queue)
        return self._services

    @property
    def scheduler(self) -> SchedulerService:
        return self._started().scheduler

    @property
    def share(self) -> ShareService:
        return self._started().share

    @property
    def data(self) -> RegisteredService:
        return self._started().data

    @property
    def runners(self) -> list[typing.Any]:
        return self._started().runners

    @runners.setter
    def runners(self, runners: list[typing.Any]) -> None:
        self._started().runners = runners

    @functools.cached_property
    def _served(self) -> tuple[typing.Any, ApiServices]:
        """The API, built on first use: not every process serves requests."""
        return build_api(self.process, auth=self._authenticate, enforcer=self.enforcer)

    @property
    def app(self) -> typing.Any:
        return self._served[0]

    @property
    def services(self) -> ApiServices:
        return self._served[1]

    def _register(self) -> None:
        self.scheduler.register()
        self.data.register()
        for backend in self.share.backends:
            backend.register()
            backend.set_up()

    def restart(self) -> None:
        """Discard every object and start a new process on the stored state.

        Only stateless objects that are expensive to build are kept: the
        policy enforcer and compiled statements.
        """
        self._crash_at = None
        self.db.dispose()
        self._start_process()
        self._register()

    def crash_at(self, point: int | None) -> None:
        """Crash at the point-th crash point from now; None never crashes."""
        self._started()
        self.crash_points = []
        self._crash_at = point

    def _at_crash_point(self, name: str) -> None:
        if name == 'statement':
            self.statements += 1
        self.crash_points.append(name)
        if self._crash_at is not None and len(self.crash_points) > self._crash_at:
            self._crash_at = None
            raise Crash(f'{len(self.crash_points)}: {name}')
        if name in self._pauses:
            times, meanwhile = self._pauses.pop(name)
            if times > 1:
                self._pauses[name] = times - 1, meanwhile
            else:
                meanwhile()

    def pause_at(
        self, name: str, meanwhile: typing.Callable[[], object], times: int = 1
    ) -> None:
        """Call `meanwhile` when a crash point has been reached so often."""
        self._started()
        self._pauses[name] = times, meanwhile

    @property
    def pending_pauses(self) -> frozenset[str]:
        """The crash points of pauses that have not been reached."""
        return frozenset(self._pauses)

    def clear_pauses(self) -> None:
        self._pauses.clear()

    def competing_runners(self) -> list[typing.Any]:
        """Return the runners of a second process on the same back ends."""
        process = Process(
            self.conf, self.db, DirectTransport(), rng=self.rng, id=self._new_id()
        )
        runners = [
            *build_scheduler(process).runners,
            *build_data(process).runners,
            *(backend.runner for backend in build_share_service(process).backends),
        ]
        self._use_clock(runners)
        return runners

    def _use_clock(self, runners: typing.Iterable[typing.Any]) -> None:
        """Let leases end by the simulated time."""
        for runner in runners:
            runner.executor.clock = lambda: self.clock.now

    def _authenticate(self, app):
        """Authenticate by headers with project, user and roles."""

        def authenticate(environ, start_response):
            roles = environ['HTTP_X_ROLES'].split(',')
            environ[wsgi.CONTEXT] = RequestContext(
                user_id=environ['HTTP_X_USER'],
                project_id=environ['HTTP_X_PROJECT'],
                roles=roles,
                is_admin='admin' in roles,
                request_id=environ.get('openstack.request_id'),
                enforcer=self.services.enforcer,
            )
            return app(environ, start_response)

        return authenticate

    def _new_id(self) -> str:
        return str(uuid.UUID(int=self.rng.getrandbits(128), version=4))

    def _deliver(self, hints) -> None:
        for hint in hints:
            times = (self.rng.random() >= self.loss_rate) + (
                self.rng.random() < self.duplicate_rate
            )
            for _ in range(times):
                if self._services is None:
                    self._undelivered.append((hint.work_id, hint.queue))
                else:
                    self._wake(hint.work_id, hint.queue)

    def _wake(self, work_id: str, queue: str) -> None:
        for runner in self.runners:
            if queue in runner.queues:
                runner.wake(work_id)

    # Contents

    def _fill(self, session: Session) -> None:
        specs = types.ShareTypeExtraSpec.__table__
        insert_type(session, TYPE_ID, name='default')
        session.run_many(
            sa.insert(specs),
            [
                {'share_type_id': TYPE_ID, 'spec_key': key, 'spec_value': value}
                for key, value in (
                    ('driver_handles_share_servers', 'False'),
                    ('snapshot_support', 'True'),
                )
            ],
        )

    def driver(self, name: str = 'alpha') -> dummy.DummyDriver:
        """Return the driver of a back end."""
        for backend in self.share.backends:
            if backend.host.endswith(f'@{name}'):
                return backend.driver.driver.driver
        raise LookupError(name)

    # Running

    def settle(self, max_rounds: int = 100) -> None:
        """Step everything until no work is pending and nothing in flight.

        `max_rounds` limits the rounds of reconciliation before that.
        """
        for _ in range(max_rounds):
            self.run_pending()
            for runner in self.runners:
                runner.executor.retry_failed_rechecks()
            for backend in self.share.backends:
                backend.endpoints.reconciliation.run_pass()
            self.scheduler.orphan_sweep.run_pass()
            if not self.has_pending_work():
                return
            self.clock.advance(7)
            self.beat()
        pending = self.db.read(table.list_work)
        raise AssertionError(
            f'not idle, {len(pending)} work rows pending: {pending[:3]}'
        )

    def run_pending(self) -> None:
        """Run pending work without a pass over stuck rows."""
        while self.step():
            pass

    def step(self) -> bool:
        runners = list(self.runners)
        self.rng.shuffle(runners)
        return sum(runner.step() for runner in runners) > 0

    def beat(self) -> None:
        for backend in self.share.backends:
            backend.beat()

    def has_pending_work(self) -> bool:
        return bool(self.db.read(lambda session: session.value(_PENDING)))

    def create_share(self, **body: object) -> str:
        """Create a share, wait until it is available and return its id."""

        def create() -> str:
            share_id = self.api.create(**body)['id']
            self.settle()
            assert self.api.show(share_id)['status'] == 'available'
            return share_id

        return self.prepare(create, 'create_share', repr(body))

    def usage(self, resource: str, project: str = 'project') -> tuple[int, int]:
        """Return the quota usage of a project: in use, reserved."""
        row = self.db.read(
            lambda session: session.first(
                sa.text(
                    'SELECT in_use, reserved FROM quota_usages WHERE '
                    "project_id = :p AND scope = 'project' AND resource = :r"
                ),
                p=project,
                r=resource,
            )
        )
        return tuple(row) if row else (0, 0)

    # Invariants of an idle installation

    def check_invariants(self) -> None:
        if self._services is None:
            self.settle()  # they start now, and look at what there is
        for name in self.backend_names:
            overlaps = self.driver(name).overlaps
            assert not overlaps, overlaps
        folders = {
            f'node@{name}': self.folder / 'dummy' / name for name in self.backend_names
        }

        def by_host(read: typing.Callable) -> dict[str, typing.Any]:
            return {host: read(folder) for host, folder in folders.items()}

        for problem in (
            *self.db.read(
                invariants.problems,
                folders,
                self.conf.backup_folder,
                self.journal_is_whole,
            ),
            *self.db.read(
                snapshot_invariants.problems, by_host(dummy.snapshot_inventory)
            ),
            *self.db.read(
                snapshot_access_invariants.problems,
                by_host(dummy.snapshot_access_inventory),
            ),
        ):
            raise AssertionError(problem)
