"""One installation of the service: its configuration and its processes."""

from collections.abc import Iterator, Mapping
import pathlib
import time
import typing
import uuid

from manila_lite.db.queries.admin import recovery
from manila_lite.db.session import Database
from manila_lite.share.drivers.dummy import driver as dummy
from manila_lite.work import table
from tests.support import invariants
from tests.support import snapshot_access_invariants
from tests.support import snapshot_invariants
from tests.support.processes import Command
from tests.support.processes import free_port
from tests.support.rest_client import RestClient

SERVE = ('serve',)
SEPARATE = ('api', 'scheduler', 'share')

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
_DUMMY = {
    'share_driver': 'dummy',
    'driver_handles_share_servers': 'false',
    'dummy_driver_default_driver_method_delay': '0',
    'dummy_driver_driver_methods_delays': '',
}


class Installation:
    """Processes on one database, one configuration and one port.

    `kind` is SERVE, everything in one process, or SEPARATE. Back ends are
    given as a name and the options that differ from a `dummy` without
    delay; `options` and `sections` are added to the file.
    """

    def __init__(
        self,
        folder: pathlib.Path,
        *,
        kind: tuple[str, ...] = SERVE,
        database_url: str | None = None,
        concurrency: str = 'threading',
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
        self.host = f'node-{uuid.uuid4().hex[:8]}'
        self.port = free_port()
        self.root = f'http://127.0.0.1:{self.port}'
        self.url = f'{self.root}/v2'
        self.database_url = (
            database_url or f'sqlite:///{folder}/manila_lite.sqlite'
        )
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
            names=','.join(backends or ['dummy']),
            options=options,
            database=self.database_url,
            sections=sections,
            lease=lease,
        )
        self.configure(backends or {'dummy': {}})
        if kind == SEPARATE:
            self.manage('db', 'sync')

    def configure(self, backends: Mapping[str, Mapping[str, object]]) -> None:
        """Write the file, for the processes started from now on."""
        self.backends = tuple(backends)
        lines = [self._text]
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
        """Where a `dummy` back end remembers what it made."""
        return self.folder / 'state' / 'dummy' / backend

    def service_host(self, backend: str = 'dummy') -> str:
        return f'{self.host}@{backend}'

    def rest(
        self, project: str = 'project', **kwargs: typing.Any
    ) -> RestClient:
        kwargs.setdefault('headers', {'X-Auth-Token': f'user:{project}'})
        return RestClient(kwargs.pop('url', self.url), **kwargs)

    # Processes

    def start(self, *names: str, wait: bool = True) -> 'Installation':
        """Start these, or all; they are of use when this returns.

        Without `wait` for the drivers it returns when they have started
        to come up.
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
        where = ['--config-file', self.conf]
        if name == 'serve':
            where = ['serve', *where, '--state-dir', self.folder / 'state']
        return Command(
            'manila-lite' if name == 'serve' else f'manila-lite-{name}',
            *where,
            log=self.folder / f'{self._runs}-{name}.log',
            concurrency=self.concurrency,
        )

    def _wait_until_ready(self, command: Command, wait: bool) -> None:
        words = self._words_of(command, wait)
        command.wait_for(
            lambda: all(word in command.output for word in words),
            ' and '.join(words),
        )

    def _words_of(self, command: Command, drivers: bool) -> list[str]:
        """What a command says when it is of use."""
        words = ['Started']
        if drivers and command.name in ('manila-lite', 'manila-lite-share'):
            words += [
                f'Back end {self.service_host(name)} is up'
                for name in self.backends
            ]
        return words

    def ready(self) -> list[str]:
        """Those that run and are of use."""
        return [
            name
            for name, command in self.running.items()
            if all(
                word in command.output
                for word in self._words_of(command, True)
            )
        ]

    def stop(self) -> dict[str, float]:
        """Stop all by SIGTERM; the seconds that each has taken."""
        return {
            name: self.running.pop(name).stop()
            for name in self.kind
            if name in self.running
        }

    def kill(self, *names: str) -> None:
        """End these as a power cut does, all at one time."""
        commands = [self.running.pop(name) for name in names]
        for command in commands:
            command.kill()

    def kill_and_restart(self, name: str) -> None:
        """Kill one of them and start it again, without waiting for it."""
        self.kill(name)
        self.running[name] = self._run(name)

    def wait_until_ready(self) -> None:
        """Until all that run are of use."""
        for command in self.running.values():
            self._wait_until_ready(command, True)

    def close(self) -> None:
        """End whatever still runs, and let go of the database."""
        self.kill(*self.running)
        if self._db is not None:
            self._db.dispose()

    def manage(self, *args: object, stdin: str = '') -> str:
        """What `manila-lite-manage` printed."""
        self._runs += 1
        command = Command(
            'manila-lite-manage',
            *args,
            '--config-file',
            self.conf,
            stdin=stdin,
            log=self.folder / f'{self._runs}-manage.log',
        )
        assert command.wait_for_exit() == 0, command.output
        return command.output

    def logs(self) -> Iterator[tuple[str, str]]:
        """What every process printed, in the order they were started."""
        paths = self.folder.glob('*.log')
        for path in sorted(paths, key=lambda path: path.stat().st_ctime):
            yield path.stem, path.read_text(errors='replace')

    # What is behind it

    @property
    def db(self) -> Database:
        """The database of the running services, looked at from beside."""
        if self._db is None:
            self._db = Database(self.database_url)
        return self._db

    def pending_work(self) -> int:
        """How many accepted requests are not yet carried out."""
        return len(self.db.read(table.list_work))

    def running_work(self) -> int:
        """How many of them a share service does, or did when killed.

        What a scheduler has for a moment is in nobody's hand yet.
        """
        return sum(
            row.state == table.RUNNING
            and not row.kind.startswith('placement.')
            for row in self.db.read(table.list_work)
        )

    def in_flight(self) -> list[str]:
        """What is in flight, whoever works on it."""
        return [
            f'{row.resource} {row.id} is {row.status}'
            for kind in recovery.KINDS
            for row in self.db.read(recovery.list_in_flight, kind, most=1000)
        ]

    def problems(self) -> list[str]:
        """What is wrong now that nothing is owed any more."""
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
