"""Separate services on servers of the benchmark's own.

MariaDB and memcached are started, and so is a small identity service;
RabbitMQ is that of the tests, with a virtual host of its own.
"""

from collections.abc import Iterable, Iterator
import contextlib
import pathlib
import subprocess
import typing

import sqlalchemy as sa

from benchmarks import identity, service
from manila_lite.db import engines
from tests.support import broker, mariadb_server, memcached_server
from tests.support.mariadb_server import MariaDbServer
from tests.support.processes import BINARIES, Command, free_port

API = 'api'
OTHERS = ('scheduler', 'share', 'data')

_DURABLE = ('--innodb-flush-log-at-trx-commit=1',)
"""Options of a database server that loses no transaction with its machine."""

_CONF = """
[DEFAULT]
host = node
state_path = {folder}/state
transport_url = {transport}
auth_strategy = keystone
osapi_share_listen = 127.0.0.1
osapi_share_listen_port = {port}
enabled_share_backends = {backends}
default_share_type = default
backup_folder = {folder}/backups
[database]
connection = {database}
[quota]
shares = -1
gigabytes = -1
{identity}
memcached_servers = 127.0.0.1:{memcached}
"""
_SECTION = """
[{name}]
share_driver = dummy
driver_handles_share_servers = false
dummy_driver_default_driver_method_delay = 0
dummy_driver_driver_methods_delays =
"""


class Cluster:
    """The services; none runs at first. `token` is that of their user.

    `backends` are the names of the back ends that are started next.
    """

    def __init__(
        self, folder: pathlib.Path, database: MariaDbServer, token: str, **conf: object
    ):
        self.database = database
        self.token = token
        self.backends = ['dummy']
        self._folder = folder
        # mysqlclient if it is installed, otherwise PyMySQL
        url = database.url.replace('mysql+pymysql:', 'mysql:')
        self.driver = sa.make_url(engines.with_driver(url)).drivername
        self._conf = {'folder': folder, 'database': url, **conf}
        self._running: dict[str, Command] = {}
        self.ports: list[int] = []
        self.manage('db', 'sync')

    def configuration(self, port: int) -> pathlib.Path:
        """Write the configuration of services; of an API, at the port."""
        path = self._folder / f'{port}.conf'
        path.write_text(
            _CONF.format(port=port, backends=','.join(self.backends), **self._conf)
            + ''.join(_SECTION.format(name=name) for name in self.backends)
        )
        return path

    def manage(self, *args: str) -> None:
        subprocess.run(
            [
                BINARIES / 'manila-lite-manage',
                *args,
                '--config-file',
                self.configuration(0),
            ],
            check=True,
            capture_output=True,
        )

    def start_node(self, apis: int, kinds: Iterable[str] = ()) -> None:
        """Start services, forked from one process; do not wait.

        Without `kinds` these are all.
        """
        self.ports = [free_port()]
        self._run('services', 'manila-lite', 'services', *kinds, '--apis', str(apis))

    def start(self, apis: int, others: Iterable[str] = ()) -> None:
        """Start services by their own commands; do not wait for them."""
        self.ports = [free_port() for _ in range(apis)]
        for port in self.ports:
            self._start(API, port)
        for kind in others:
            self._start(kind, 0)

    def _start(self, kind: str, port: int) -> None:
        self._run(f'{kind}-{port}', f'manila-lite-{kind}', port=port)

    def _run(self, name: str, *words: str, port: int | None = None) -> None:
        log = self._folder / f'{name}.log'
        log.unlink(missing_ok=True)
        if port is None:
            port = self.ports[0]
        self._running[name] = Command(
            *words, '--config-file', self.configuration(port), log=log
        )

    def wait(self) -> None:
        """Wait until all that was started is ready."""
        for name, command in self._running.items():
            _wait_until_ready(name, command)

    def stop(self) -> None:
        for command in self._running.values():
            command.terminate()
        for command in self._running.values():
            command.wait_for_exit()
        self._running.clear()

    def kill(self) -> None:
        for command in self._running.values():
            command.kill()

    def client(self, number: int = 0) -> service.Client:
        """Return a client; consecutive numbers use all APIs."""
        port = self.ports[number % len(self.ports)]
        return service.Client(service.Address(port), self.token)

    def pids(self, kind: str = '') -> list[int]:
        """Return the processes of one kind of service, or of all."""
        return [
            pid
            for command in self._running.values()
            for pid in service.tree(command.pid)
            if kind in pathlib.Path(f'/proc/{pid}/comm').read_text()
        ]

    def cpu(self, kind: str = '') -> float:
        """Return the seconds of processor time that services have used."""
        return sum(map(service.cpu_seconds, self.pids(kind)))

    def database_cpu(self) -> float:
        return service.cpu_seconds(self.database.pid)


def _wait_until_ready(name: str, command: Command) -> None:
    texts = ['Started'] * (not name.startswith('share'))
    if name.startswith(('share', 'services')):
        texts.append('Back end node@dummy is up')
    command.wait_for(
        lambda: all(text in command.output for text in texts), ' and '.join(texts)
    )


@contextlib.contextmanager
def running(folder: pathlib.Path) -> Iterator[Cluster]:
    """Start the servers, yield services that use them, and stop all.

    Skips when a server is missing; fails if CI is set.
    """
    for name in ('database', 'services'):
        (folder / name).mkdir()
    with contextlib.ExitStack() as stack:
        enter = stack.enter_context
        transport = enter(broker.virtual_host())
        port, _ = enter(memcached_server.running())
        database = enter(mariadb_server.run(folder / 'database', *_DURABLE))
        found: typing.Any = enter(identity.running())
        cluster = Cluster(
            folder / 'services',
            database,
            found.token,
            transport=transport,
            memcached=port,
            identity=found.section,
        )
        stack.callback(cluster.kill)
        yield cluster
