"""A cluster: its nodes, servers and services, started and ended as one."""

from collections.abc import Callable, Iterator
import contextlib
import json
import os
import pathlib
import shutil
import signal
import time
from typing import NamedTuple

import pytest

from manila_lite.api import versions
from manila_lite.cmd import manage
from manila_lite.db.session import Database
from tests.cluster import brokers, databases, nodes
from tests.cluster.proxy import Backend, Proxy
from tests.cluster.services import Servers, Service, Timing
from tests.support import command_line, requirements
from tests.support.processes import wait_until
from tests.support.rest_client import RestClient

DATABASES = {
    'galera': databases.Galera,
    'postgresql': databases.PostgresPair,
    'machine-mysql': lambda: databases.MachineDatabase('mysql'),
    'machine-postgresql': lambda: databases.MachineDatabase('postgresql'),
}
REDIS_PORT = 6379
SPECS = {
    'snapshot_support': 'True',
    'create_share_from_snapshot_support': 'True',
    'revert_to_snapshot_support': 'True',
    'mount_snapshot_support': 'True',
    'replication_type': 'readable',
}
SPECS_OF_SOLE = {
    name: value for name, value in SPECS.items() if name != 'replication_type'
}
STATE = 'cluster.json'
MARK = 'folder-of-a-cluster'
PATIENCE = 300.0
PAIR = 'alpha'
"""The back end of two share services."""

SKEWED = 'share1'
"""One of these two: a wrong clock must not let it take what the other has."""

NO_BACKEND = 'none'
OF_FIRST_RELEASE = ('api', 'scheduler', 'share')
"""The kinds of services of release 1."""


class Size(NamedTuple):
    """How many nodes of each kind, and which servers.

    `brokers` 0 and `locks` False stand for the servers of this machine.
    """

    database: str = 'galera'
    brokers: int = 3
    locks: bool = True
    apis: int = 3
    schedulers: int = 2
    shares: int = 4
    data: int = 1


DEMONSTRATION = Timing()
SMALL = Size('machine-mysql', 0, False, apis=2, shares=3, data=0)


class Cluster:
    """Everything of one cluster; `close` ends what `start` has started."""

    def __init__(
        self,
        folder: pathlib.Path,
        size: Size,
        *,
        port: int,
        timing: Timing = DEMONSTRATION,
        has_clocks: bool = False,
        release: pathlib.Path | None = None,
        say: Callable[[str], None] = lambda text: None,
    ):
        self.folder = folder
        self.size = size
        self.timing = timing
        self.has_clocks = has_clocks
        self.release = release
        """The code of another release, which all services run at first."""
        self._say = say
        self.database = DATABASES[size.database]()
        self.broker = (
            brokers.RabbitCluster(size.brokers)
            if size.brokers
            else brokers.MachineBroker()
        )
        self.kinds = {
            f'{kind}{number + 1}': kind
            for kind, count in (
                ('api', size.apis),
                ('scheduler', size.schedulers),
                ('share', size.shares),
                ('data', size.data),
            )
            for number in range(count)
        }
        self._places = {
            name: _place(kind, name, size.shares) for name, kind in self.kinds.items()
        }
        self._shared = folder / 'shared'
        self.network = nodes.Network(
            folder,
            f'{nodes.PREFIX}{os.getpid()}',
            [
                'proxy',
                *self.database.names,
                *self.broker.names,
                *(['locks'] if size.locks else []),
                *self.kinds,
            ],
        )
        self.services: dict[str, Service] = {}
        self.url = f'http://127.0.0.1:{port}/v2'
        self._port = port
        self.proxy: Proxy | None = None
        self.proxied: set[str] = set()
        """The servers of this machine, by the names of their backends."""
        self._db: Database | None = None

    # Life

    def start(self) -> 'Cluster':
        began = time.monotonic()
        self.folder.mkdir(parents=True, exist_ok=True)
        _clear(self.folder)
        self._shared.mkdir()
        self.network.create()
        self._save()
        self._start_servers()
        for name, kind in self.kinds.items():
            if self.release is None or kind in OF_FIRST_RELEASE:
                self.add(name)
        self._migrate()
        self._say('services')
        for service in self.services.values():
            service.start()
        self.wait_until_ready()
        self._say(f'ready after {time.monotonic() - began:.0f} s')
        return self

    def add(self, name: str) -> Service:
        """Configure the service of a node."""
        kind = self.kinds[name]
        # By their names, as an installation does.
        gate = 'proxy'
        servers = Servers(
            database=self.database.url(gate),
            transport=self.broker.url(gate),
            locks=f'redis://{"locks" if self.size.locks else gate}:{REDIS_PORT}',
        )
        last = {kind: name for name, kind in self.kinds.items()}
        service = Service(
            kind,
            self.network.nodes[name],
            *self._places[name],
            # A process of its own; others start faster.
            has_clock=self.has_clocks and name in (last[kind], SKEWED),
            release=self.release,
        )
        # Drivers do not move shares while nodes fail; an upgrade has them do.
        others = {backend for _, backend in self._places.values() if self.release}
        service.configure(
            self._shared,
            servers,
            self.timing,
            sorted(others - {service.backend, NO_BACKEND}),
        )
        self.services[name] = service
        return service

    def _start_servers(self) -> None:
        found = self.network.nodes
        for server in (self.database, self.broker):
            if server.names:
                self._say(', '.join(server.names))
            server.start([found[name] for name in server.names])
        if self.size.locks:
            self.start_locks()
        self.proxy = Proxy(found['proxy'], self._port)
        backends = [self.database.backend(), self.broker.backend()]
        if not self.size.locks:
            backends.append(
                Backend('locks', REDIS_PORT, (f'locks 127.0.0.1:{REDIS_PORT}',))
            )
        self.proxied = {one.name for one in backends if one and one.is_local}
        self.proxy.start(
            [node for name, node in found.items() if name.startswith('api')],
            [one for one in backends if one is not None],
        )
        self._save()

    def start_locks(self) -> None:
        node = self.network.nodes['locks']
        node.spawn(
            *('redis-server', '--bind', node.address, '--protected-mode'),
            *('no', '--save', '', '--appendonly', 'no'),
            *('--dir', node.folder, '--port', REDIS_PORT),
        )

    def _migrate(self) -> None:
        if self.release is not None:
            next(self.of_kind('api')).sync(self.release)
            return
        conf = self.folder / 'migrate.conf'
        conf.write_text(f'[database]\nconnection = {self.database.direct_url}\n')
        ended = command_line.run(
            manage.main, ['db', 'sync', '--config-file', str(conf)], ''
        )
        assert ended.code == 0, ended

    def wait_until_ready(self) -> None:
        """Wait until every service is ready and the proxy knows it.

        One that could not start is started again, as systemd does: it ends
        without a database.
        """
        for service in self.services.values():
            wait_until(
                lambda one=service: self._is_ready(one),
                f'{service.name} is ready: {service.node.folder}/log',
                PATIENCE,
            )
        wait_until(
            lambda: set(self.proxy.status('api').values()) == {'UP'},
            'the proxy sees every API',
            PATIENCE,
        )

    @staticmethod
    def _is_ready(service: Service) -> bool:
        if not service.is_running:
            assert not service.was_ready, f'{service.name} ended:\n' + (
                '\n'.join(service.node.log.splitlines()[-30:])
            )
            service.start()
        return service.is_ready

    def close(self) -> None:
        """End everything that was started, and remove the namespaces."""
        if self._db is not None:
            self._db.dispose()
        with contextlib.ExitStack() as stack:
            stack.callback((self.folder / STATE).unlink, missing_ok=True)
            stack.callback(self.database.stop)
            stack.callback(self.broker.stop)
            stack.callback(self.network.remove)
            if self.proxy is not None:
                stack.callback(self.proxy.stop)
            for service in self.services.values():
                if service.is_running:
                    service.node.resume()
                    service.stop()
            for service in self.services.values():
                with contextlib.suppress(Exception):
                    service.wait(20)

    # For `stop` of another process

    def _save(self) -> None:
        pids = [os.getpid()]
        if self.proxy is not None:
            pids.append(self.proxy.pid)
        (self.folder / STATE).write_text(
            json.dumps(
                {
                    'prefix': self.network.prefix,
                    'nodes': [*self.network.nodes],
                    'processes': [[pid, started_at(pid)] for pid in pids],
                }
            )
        )

    # Use

    def rest(
        self,
        project: str = 'project',
        kind: type[RestClient] = RestClient,
        **facts: object,
    ) -> RestClient:
        return kind(
            self.url,
            headers={
                'X-Auth-Token': f'user:{project}',
                versions.EXPERIMENTAL_HEADER: 'true',  # backups are
            },
            **facts,
        )

    @property
    def db(self) -> Database:
        """The database, by a connection that no fault concerns."""
        if self._db is None:
            self._db = Database(self.database.direct_url)
        return self._db

    def written_node(self) -> nodes.Node:
        """Return the node of the database that services use."""
        used = self.proxy.sessions('database')
        return max(self.database.nodes, key=lambda one: used[one.name])

    def forget_connections(self) -> None:
        """Connect by `db` to the node that now has the database."""
        if self._db is not None:
            self._db.dispose()
            self._db = None

    def create_types(self) -> None:
        """Create the default types of shares and of share groups."""
        admin = self.rest('admin')
        admin.create_type('default', **SPECS)
        # Shares that may have replicas are not migrated.
        admin.create_type('sole', **SPECS_OF_SOLE)
        share_type = admin.get('/types/default')['share_type']['id']
        admin.request(
            'POST',
            '/share-group-types',
            {'share_group_type': {'name': 'default', 'share_types': [share_type]}},
        )

    def dummy_state(self, backend: str) -> pathlib.Path:
        return self._shared / 'dummy' / backend

    def of_kind(self, *kinds: str) -> Iterator[Service]:
        for service in self.services.values():
            if service.kind in kinds:
                yield service


def _place(kind: str, name: str, shares: int) -> tuple[str, str]:
    """Return host and back end: two of three share services have the same."""
    if kind == 'share':
        number = int(name.removeprefix(kind))
        return ('pair', PAIR) if number < 3 <= shares else (name, f'beta{number}')
    return name, NO_BACKEND


def require() -> None:
    """Skip a test where a small cluster cannot run; fail it if CI is set."""
    if os.geteuid() != 0:
        pytest.skip('only root may make network namespaces')
    for program in ('ip', 'haproxy', nodes.FAKETIME):
        if not shutil.which(program) and not os.path.exists(program):
            requirements.missing(f'{program} is not installed')


def _clear(folder: pathlib.Path) -> None:
    """Remove what an earlier cluster has left, and nothing else."""
    if (folder / STATE).exists():
        raise RuntimeError(f'a cluster runs in {folder}; `make stop-cluster` ends it')
    mark = folder / MARK
    if not mark.exists() and any(folder.iterdir()):
        raise RuntimeError(f'{folder} has other files; choose a new one')
    mark.touch()
    for path in folder.iterdir():
        if path.is_dir():
            shutil.rmtree(path)
        elif path != mark:
            path.unlink()


def find_network(folder: pathlib.Path) -> nodes.Network | None:
    """Return the nodes of the cluster that another process has started."""
    try:
        state = json.loads((folder / STATE).read_text())
    except FileNotFoundError:
        return None
    return nodes.Network(folder.resolve(), state['prefix'], state['nodes'])


def stop(folder: pathlib.Path) -> bool:
    """End the cluster of another process; return whether there was one."""
    try:
        state = json.loads((folder / STATE).read_text())
    except FileNotFoundError:
        return False
    for pid, started in state['processes']:
        if started_at(pid) != started:
            continue  # the number belongs to another process now
        os.kill(pid, signal.SIGTERM)
        with contextlib.suppress(AssertionError):
            wait_until(
                lambda pid=pid, at=started: started_at(pid) != at, f'{pid} has ended'
            )
    nodes.remove(state['prefix'])
    (folder / STATE).unlink(missing_ok=True)
    return True


def started_at(pid: int) -> str | None:
    """Return when a process started; it and the id tell which one it is."""
    try:
        stat = pathlib.Path(f'/proc/{pid}/stat').read_text()
    except OSError:
        return None
    return stat.rpartition(')')[2].split()[19]
