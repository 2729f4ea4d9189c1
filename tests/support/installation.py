"""An installation of the service: configuration and processes."""

from collections.abc import Iterator, Mapping
import pathlib
import time
import typing
import uuid

from manila_lite.cmd import manage
from manila_lite.db.queries.recovery import recovery
from manila_lite.db.session import Database
from manila_lite.share.drivers.dummy import driver as dummy
from manila_lite.work import table
from tests.support import (
    command_line,
    invariants,
    snapshot_access_invariants,
    snapshot_invariants,
)
from tests.support.processes import Command, free_port
from tests.support.rest_client import RestClient

SERVE = ('serve',)
SEPARATE = ('api', 'scheduler', 'share')
SERVICES = ('services',)

_CONF = """
[DEFAULT]
host = {host}
state_path = {folder}/state
auth_strategy = {auth}
osapi_share_listen = 127.0.0.1
osapi_share_listen_port = {port}
enabled_share_backends = {names}
report_interval = 1
service_down_time = 5
periodic_interval = 1
{options}
[database]
connection = {database}
[work]
lease = {lease}
sweep_interval = 0.2
workers_per_backend = 4
{sections}
"""
_NAMES = '(names)'
_DUMMY = {
    'share_driver': 'dummy',
    'driver_handles_share_servers': 'false',
    'dummy_driver_default_driver_method_delay': '0',
    'dummy_driver_driver_methods_delays': '',
}


class Installation:
    """Processes on one database, one configuration and one port.

    `kind` is SERVE (everything in one process), SEPARATE, or SERVICES (all
    forked from one process, which has two APIs). `backends` maps
    names to the options that differ from a `dummy` without delay; `options`
    and `sections` are added to the configuration file. Processes are forked
    unless they use eventlet, or `forked` says otherwise.
    """

    def __init__(
        self,
        folder: pathlib.Path,
        *,
        kind: tuple[str, ...] = SERVE,
        database_url: str | None = None,
        concurrency: str = 'threading',
        forked: bool | None = None,
        auth: str = 'noauth',
        backends: Mapping[str, Mapping[str, object]] | None = None,
        options: str = '',
        sections: str = '',
        lease: float = 2,
    ):
        folder.mkdir(exist_ok=True)
        self.folder = folder
        self.kind = kind
        self.concurrency = concurrency
        self.forked = concurrency == 'threading' if forked is None else forked
        self.host = f'node-{uuid.uuid4().hex[:8]}'
        self.port = free_port()
        self.root = f'http://127.0.0.1:{self.port}'
        self.url = f'{self.root}/v2'
        self.database_url = database_url or f'sqlite:///{folder}/manila_lite.sqlite'
        self.conf = folder / 'manila.conf'
        self.running: dict[str, Command] = {}
        self.startup_seconds = 0.0
        self._runs = 0
        self._db: Database | None = None
        self._text = _CONF.format(
            host=self.host,
            folder=folder,
            auth=auth,
            port=self.port,
            names=_NAMES,
            options=options,
            database=self.database_url,
            sections=sections,
            lease=lease,
        )
        self.configure(backends or {'dummy': {}})
        if kind != SERVE:
            self.manage('db', 'sync')

    def configure(self, backends: Mapping[str, Mapping[str, object]]) -> None:
        """Write the configuration file for processes started from now on."""
        self.backends = tuple(backends)
        lines = [self._text.replace(_NAMES, ','.join(backends))]
        for name, options in backends.items():
            lines.append(f'[{name}]')
            chosen = (
                _DUMMY
                | {'dummy_driver_state_path': self.dummy_state_dir(name)}
                | options
            )
            lines += [f'{key} = {value}' for key, value in chosen.items()]
        self.conf.write_text('\n'.join([*lines, '']))

    def dummy_state_dir(self, backend: str) -> pathlib.Path:
        """Return the directory where a `dummy` back end keeps its state."""
        return self.folder / 'state' / 'dummy' / backend

    def service_host(self, backend: str = 'dummy') -> str:
        return f'{self.host}@{backend}'

    def rest(self, project: str = 'project', **kwargs: typing.Any) -> RestClient:
        kwargs.setdefault('headers', {'X-Auth-Token': f'user:{project}'})
        return RestClient(kwargs.pop('url', self.url), **kwargs)

    # Processes

    def start(self, *names: str, wait: bool = True) -> 'Installation':
        """Start these processes, or all, and wait until they are ready.

        Without `wait`, do not wait for the drivers to be set up.
        """
        began = time.monotonic()
        for name in names or self.kind:
            self.running[name] = self._run(name)
        for name in names or self.kind:
            self._wait_until_ready(self.running[name], wait)
        self.startup_seconds = time.monotonic() - began
        return self

    def _run(self, name: str) -> Command:
        self._runs += 1
        args = ['--config-file', self.conf]
        if name == 'serve':
            args = ['serve', *args, '--state-dir', self.folder / 'state']
        elif name == 'services':
            args = ['services', *args, '--apis', '2']
        return Command(
            'manila-lite' if name.startswith('serv') else f'manila-lite-{name}',
            *args,
            log=self.folder / f'{self._runs}-{name}.log',
            concurrency=self.concurrency,
            forked=self.forked,
        )

    def _wait_until_ready(self, command: Command, wait: bool) -> None:
        texts = self._ready_texts(command, wait)
        command.wait_for(
            lambda: all(text in command.output for text in texts), ' and '.join(texts)
        )

    def _ready_texts(self, command: Command, drivers: bool) -> list[str]:
        """Return the log texts that a command prints when it is ready."""
        texts = ['Started']
        if drivers and command.name in ('manila-lite', 'manila-lite-share'):
            texts += [
                f'Back end {self.service_host(name)} is up' for name in self.backends
            ]
        return texts

    def ready(self) -> list[str]:
        """Return the names of the processes that run and are ready."""
        return [
            name
            for name, command in self.running.items()
            if all(text in command.output for text in self._ready_texts(command, True))
        ]

    def stop(self) -> dict[str, float]:
        """Stop all with SIGTERM; return the seconds that each took."""
        return {
            name: self.running.pop(name).stop()
            for name in self.kind
            if name in self.running
        }

    def kill(self, *names: str) -> None:
        """Kill these processes at once, as a power failure would."""
        commands = [self.running.pop(name) for name in names]
        for command in commands:
            command.kill()

    def kill_and_restart(self, name: str) -> None:
        """Kill one process and start it again, without waiting for it."""
        self.kill(name)
        self.running[name] = self._run(name)

    def wait_until_ready(self) -> None:
        """Wait until all running processes are ready."""
        for command in self.running.values():
            self._wait_until_ready(command, True)

    def close(self) -> None:
        """Kill what still runs and close the database connections."""
        self.kill(*self.running)
        if self._db is not None:
            self._db.dispose()

    def manage(self, *args: object, stdin: str = '') -> str:
        """Run `manila-lite-manage` in this process; return its output."""
        where = ('--config-file', self.conf)
        ended = command_line.run(
            manage.main, [str(arg) for arg in (*args, *where)], stdin
        )
        assert ended.code == 0, ended
        return ended.out

    def logs(self) -> Iterator[tuple[str, str]]:
        """Yield name and output of every process, in order of their start."""
        paths = self.folder.glob('*.log')
        for path in sorted(paths, key=lambda path: path.stat().st_ctime):
            yield path.stem, path.read_text(errors='replace')

    # The state behind it

    @property
    def db(self) -> Database:
        """The database of the running services, on a connection of its own."""
        if self._db is None:
            self._db = Database(self.database_url)
        return self._db

    def pending_work(self) -> int:
        """Return the number of accepted requests not yet carried out."""
        return len(self.db.read(table.list_work))

    def running_work(self) -> int:
        """Return how much of it a share service runs, or ran when killed.

        Work of the scheduler does not count: it takes only a moment.
        """
        return sum(
            row.state == table.RUNNING and not row.kind.startswith('placement.')
            for row in self.db.read(table.list_work)
        )

    def in_flight(self) -> list[str]:
        """Describe what is in flight, with or without a worker."""
        return [
            f'{row.resource} {row.id} is {row.status}'
            for kind in recovery.KINDS
            for row in self.db.read(recovery.list_in_flight, kind, most=1000)
        ]

    def problems(self) -> list[str]:
        """Return violated invariants; only valid when no work is pending."""
        folders = {
            self.service_host(name): self.dummy_state_dir(name)
            for name in self.backends
        }
        return [
            *self.db.read(invariants.problems, folders),
            *self.db.read(
                snapshot_invariants.problems,
                {
                    host: dummy.snapshot_inventory(folder)
                    for host, folder in folders.items()
                },
            ),
            *self.db.read(
                snapshot_access_invariants.problems,
                {
                    host: dummy.snapshot_access_inventory(folder)
                    for host, folder in folders.items()
                },
            ),
        ]
