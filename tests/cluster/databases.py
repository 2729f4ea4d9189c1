"""Databases of a cluster: this machine's, Galera, PostgreSQL with a standby.

Services reach each through the proxy, which passes connections to one node
at a time: the one that writes.
"""

import contextlib
import pathlib
import shutil
import subprocess
import sys
import tempfile

import sqlalchemy as sa

from tests.cluster import proxy
from tests.cluster.nodes import Node
from tests.support import databases
from tests.support.processes import wait_until

CHECK_PORT = 9200
NAME = 'manila'
SECRET = 'manila'  # the network of the nodes is nobody else's
CHECK = pathlib.Path(__file__).with_name('database_check.py')
PATIENCE = 180.0
# As the documents say: a node that is lost holds up commits for 2 s, not 5.
PROVIDER_OPTIONS = ';'.join(
    [
        'evs.keepalive_period=PT0.5S',
        'evs.inactive_check_period=PT0.25S',
        'evs.suspect_timeout=PT2S',
        'evs.inactive_timeout=PT4S',
        'evs.install_timeout=PT4S',
    ]
)

# What users know rows by whose moves are in the journal.
_PARENTS = ' UNION '.join(
    f'SELECT id, {column} FROM {table}'
    for table, column in (
        ('share_instances', 'share_id'),
        ('share_snapshot_instances', 'snapshot_id'),
        ('share_instance_access_map', 'access_id'),
        ('share_snapshot_instance_access_map', 'access_id'),
        ('transfers', 'resource_id'),
    )
)

# Whatever a client may have been told: a value, and what it is about.
_FACTS = ' UNION ALL '.join(
    f'SELECT CONCAT_WS(chr(32), {values}), {about} FROM {table}'
    for table, values, about in (
        ('transitions', 'id, event', 'resource_id, parent_id'),
        ('work', 'id, state, fence', 'resource_id, NULL'),
        ('shares', 'display_name, project_id, is_soft_deleted', 'id, NULL'),
        ('share_metadata', 'key, value', 'share_id, NULL'),
        ('share_snapshots', 'display_name', 'id, NULL'),
        ('share_access_map', 'access_level', 'id, share_id'),
        ('share_access_rules_metadata', 'key, value', 'access_id, NULL'),
        ('resource_locks', 'resource_action', 'id, resource_id'),
        ('messages', 'id, action_id', 'resource_id, NULL'),
        ('services', 'topic, disabled', "'disabled of ' || host, NULL"),
        ('quotas', 'resource, hard_limit', "'quota of ' || project_id, NULL"),
    )
)


def _as(user: str) -> tuple[str, ...]:
    """Return the words before a program that refuses to run as root.

    As root, rsync would receive the data of Galera nodes as another user.
    """
    return 'setpriv', f'--reuid={user}', f'--regid={user}', '--init-groups'


class MachineDatabase:
    """A database of its own on a server that this machine runs."""

    names: tuple[str, ...] = ()
    nodes: tuple[Node, ...] = ()

    def __init__(self, kind: str):
        self.kind = kind
        self._stack = contextlib.ExitStack()
        self._url: sa.URL | None = None

    def start(self, nodes: list[Node]) -> None:
        folder = self._stack.enter_context(tempfile.TemporaryDirectory())
        self._url = sa.make_url(
            self._stack.enter_context(
                databases.temporary_database(self.kind, pathlib.Path(folder))
            )
        )

    def stop(self) -> None:
        self._stack.close()

    def url(self, address: str) -> str:
        return self._url.set(host=address, port=self.port).render_as_string(
            hide_password=False
        )

    @property
    def direct_url(self) -> str:
        """The URL on this machine, which no fault of the cluster concerns."""
        return self._url.render_as_string(hide_password=False)

    @property
    def port(self) -> int:
        return {'mysql': 3306, 'postgresql': 5432}[self.kind]

    def backend(self) -> proxy.Backend:
        return proxy.Backend(
            'database',
            self.port,
            servers=(f'database 127.0.0.1:{self._url.port or self.port}',),
        )


class DatabaseCluster:
    """Several database nodes, each with a check that the proxy asks."""

    kind: str
    port: int
    program: str
    names: tuple[str, ...]

    def __init__(self) -> None:
        self.nodes: list[Node] = []

    def start(self, nodes: list[Node]) -> None:
        self.nodes = nodes
        self._install()

    def _install(self) -> None:
        raise NotImplementedError

    def stop(self) -> None:
        """Nothing remains outside of the nodes."""

    def socket(self, node: Node) -> pathlib.Path:
        raise NotImplementedError

    def ask(self, node: Node, statement: str) -> list[tuple]:
        """Run a statement on one node, as the administrator."""
        raise NotImplementedError

    def _start_check(self, node: Node) -> None:
        node.spawn(
            *(sys.executable, '-W', 'ignore', CHECK, self.kind),
            *(self.socket(node), node.address, CHECK_PORT),
        )

    def backend(self) -> proxy.Backend:
        first, *others = self.nodes
        check = f'check port {CHECK_PORT}'
        return proxy.Backend(
            'database',
            self.port,
            (
                f'{first.name} {first.address}:{self.port} {check} '
                'on-marked-down shutdown-sessions',
                *(
                    f'{node.name} {node.address}:{self.port} {check} '
                    'on-marked-down shutdown-sessions backup'
                    for node in others
                ),
            ),
            (
                'option httpchk GET /',
                'http-check expect status 200',
                'timeout check 4s',
                # Otherwise connections wait for a server that is lost, again
                # and again, when another one is used already.
                'timeout connect 1s',
                'option redispatch 1',
                *self._choice,
                'default-server inter 500ms fastinter 250ms fall 2 rise 2',
            ),
        )

    _choice: tuple[str, ...] = ()


class Galera(DatabaseCluster):
    """Three nodes of MariaDB; all accept writes, one of them is given any."""

    kind = 'mysql'
    port = 3306
    program = 'mariadbd'
    names = ('db1', 'db2', 'db3')
    provider = pathlib.Path('/usr/lib/galera/libgalera_smm.so')
    # No two nodes get writes, whichever of them were away.
    _choice = ('stick-table type ip size 1', 'stick on dst')

    def _install(self) -> None:
        for number, node in enumerate(self.nodes):
            self._configure(node)
            self.start_node(node, is_first=number == 0)
            if number == 0:
                for statement in (
                    f'CREATE DATABASE {NAME}',
                    f"CREATE USER {NAME}@'%%' IDENTIFIED BY '{SECRET}'",
                    f"GRANT ALL ON {NAME}.* TO {NAME}@'%%'",
                ):
                    self.ask(node, statement)

    def _configure(self, node: Node) -> None:
        # In one that several servers have, each removes files of the others.
        temporary = node.folder / 'tmp'
        temporary.mkdir()
        for folder in (node.folder, temporary):
            shutil.chown(folder, 'mysql', 'mysql')
        peers = ','.join(one.address for one in self.nodes)
        (node.folder / 'my.cnf').write_text(
            f"""[mysqld]
datadir = {node.folder}/data
tmpdir = {temporary}
socket = {self.socket(node)}
pid-file = {node.folder}/pid
port = {self.port}
bind-address = {node.address}
skip-name-resolve
performance-schema = OFF
max-connections = 500
binlog-format = ROW
default-storage-engine = InnoDB
innodb-autoinc-lock-mode = 2
innodb-flush-log-at-trx-commit = 0
innodb-buffer-pool-size = 64M
innodb-log-file-size = 32M
wsrep-on = ON
wsrep-provider = {self.provider}
wsrep-provider-options = "gcache.size=64M;{PROVIDER_OPTIONS}"
wsrep-cluster-name = manila
wsrep-cluster-address = gcomm://{peers}
wsrep-node-name = {node.name}
wsrep-node-address = {node.address}
wsrep-sst-method = rsync
"""
        )
        if node is self.nodes[0]:  # the others copy it when they join
            done = subprocess.run(
                [
                    *_as('mysql'),
                    'mariadb-install-db',
                    f'--defaults-file={node.folder}/my.cnf',
                    '--auth-root-authentication-method=normal',
                    '--skip-test-db',
                    '--wsrep-on=OFF',
                ],
                capture_output=True,
                text=True,
                check=False,
            )
            if done.returncode:
                raise RuntimeError(done.stdout + done.stderr)
        else:
            (node.folder / 'data').mkdir()
            shutil.chown(node.folder / 'data', 'mysql', 'mysql')

    def socket(self, node: Node) -> pathlib.Path:
        return node.folder / 'socket'

    def spawn(self, node: Node, is_first: bool = False) -> None:
        node.spawn(
            *_as('mysql'),
            'mariadbd',
            f'--defaults-file={node.folder}/my.cnf',
            *(['--wsrep-new-cluster'] if is_first else []),
        )
        self._start_check(node)

    def start_node(self, node: Node, is_first: bool = False) -> None:
        """Start a node and wait until it has what the others have."""
        self.spawn(node, is_first)
        self.wait_until_synced(node)

    def wait_until_synced(self, node: Node) -> None:
        wait_until(
            lambda: self.state(node) == 'Synced',
            f'{node.name} is synced: {node.folder}/log',
            PATIENCE,
            interval=0.3,
        )

    def state(self, node: Node) -> str:
        """Return wsrep_local_state_comment, or nothing without an answer."""
        with contextlib.suppress(sa.exc.SQLAlchemyError):
            ((_, state),) = self.ask(
                node, "SHOW STATUS LIKE 'wsrep_local_state_comment'"
            )
            return state
        return ''

    def ask(self, node: Node, statement: str, database: str = '') -> list[tuple]:
        engine = sa.create_engine(
            f'mysql+pymysql://root@localhost/{database}',
            connect_args={'unix_socket': str(self.socket(node)), 'read_timeout': 5},
            isolation_level='AUTOCOMMIT',
            poolclass=sa.pool.NullPool,
        )
        with engine.connect() as connection:
            result = connection.exec_driver_sql(statement)
            return [*map(tuple, result)] if result.returns_rows else []

    def conflicts(self, node: Node) -> dict[str, int]:
        """Return how many transactions of a node others have ended.

        At their commit, or before it.
        """
        return {
            name.removeprefix('wsrep_local_'): int(value)
            for name, value in self.ask(
                node,
                'SHOW STATUS WHERE Variable_name IN '
                "('wsrep_local_cert_failures', 'wsrep_local_bf_aborts')",
            )
        }

    def url(self, address: str) -> str:
        return f'mysql+pymysql://{NAME}:{SECRET}@{address}:{self.port}/{NAME}'

    @property
    def direct_url(self) -> str:
        node = next(one for one in self.nodes if self.state(one) == 'Synced')
        return f'mysql+pymysql://root@localhost/{NAME}?unix_socket={self.socket(node)}'


class PostgresPair(DatabaseCluster):
    """PostgreSQL with an asynchronous standby."""

    kind = 'postgresql'
    port = 5432
    program = 'postgres'
    names = ('db1', 'db2')
    _primary = 0

    def _install(self) -> None:
        primary, standby = self.nodes
        for node in self.nodes:
            shutil.chown(node.folder, 'postgres', 'postgres')
        self._run(
            *(primary, 'initdb', '--auth=trust', '--no-sync'),
            *('--username=postgres', '--pgdata', primary.folder / 'data'),
        )
        with (primary.folder / 'data/pg_hba.conf').open('a') as rules:
            rules.write(
                'host all all samenet trust\nhost replication all samenet trust\n'
            )
        self.start_node(primary)
        self.ask(primary, f"CREATE ROLE {NAME} LOGIN PASSWORD '{SECRET}'")
        self.ask(primary, f'CREATE DATABASE {NAME} OWNER {NAME}')
        self.follow(standby, primary)

    def follow(self, node: Node, primary: Node) -> None:
        """Make a node the standby of another one, with a new copy."""
        shutil.rmtree(node.folder / 'data', ignore_errors=True)
        self._run(
            *(node, 'pg_basebackup', '--checkpoint=fast'),
            *('--write-recovery-conf', '--no-sync'),
            *('--pgdata', node.folder / 'data'),
            *('--host', primary.address, '--username=postgres'),
        )
        self.start_node(node)

    def spawn(self, node: Node) -> None:
        self._serve(node, node.address)
        self._start_check(node)

    def _serve(self, node: Node, address: str) -> None:
        node.spawn(
            *_as('postgres'),
            *(self._program('postgres'), '-D', node.folder / 'data'),
            *('-h', address, '-k', node.folder),
            *('-c', 'max_connections=300', '-c', 'fsync=off'),
        )

    def start_node(self, node: Node) -> None:
        self.spawn(node)
        self._wait_for(node)

    def _wait_for(self, node: Node) -> None:
        wait_until(
            lambda: self._answers(node),
            f'{node.name} answers: {node.folder}/log',
            PATIENCE,
            interval=0.2,
        )

    @property
    def primary(self) -> Node:
        return self.nodes[self._primary]

    @property
    def standby(self) -> Node:
        return self.nodes[1 - self._primary]

    def stop_receiving(self) -> None:
        """Let the standby get nothing any more, while the primary goes on.

        A cut link does not suffice: what the kernel of a primary that has
        ended still has to send, it sends.
        """
        self.ask(self.standby, "ALTER SYSTEM SET primary_conninfo = ''")
        self.ask(self.standby, 'SELECT pg_reload_conf()')
        wait_until(
            lambda: not self.ask(self.standby, 'SELECT pid FROM pg_stat_wal_receiver'),
            f'{self.standby.name} receives nothing',
        )

    def moves(self) -> int:
        """Return how many moves the primary has recorded."""
        ((count,),) = self.ask(self.primary, 'SELECT COUNT(*) FROM transitions', NAME)
        return count

    def fail_over(self) -> None:
        """Promote the standby; the primary has ended."""
        self.ask(self.standby, 'SELECT pg_promote()')
        self._primary = 1 - self._primary

    def lost(self) -> set[str]:
        """Return the ids of what the node that has failed knows more about.

        It is started for that, without an address. Call it after `fail_over`,
        before services have found the new primary.
        """
        after = self._records(self.primary)
        failed = self.standby
        self._serve(failed, address='')
        self._wait_for(failed)
        before = self._records(failed)
        parents = dict(self.ask(failed, _PARENTS, NAME))
        failed.kill()
        ids = {id for _, *ids in before ^ after for id in ids if id}
        return ids | {parents[id] for id in ids & parents.keys()}

    def _records(self, node: Node) -> set[tuple]:
        """Return what clients and services know, with ids of resources."""
        return set(self.ask(node, _FACTS, NAME))

    def restore_standby(self) -> None:
        """Start the node that has failed as the standby of the other one."""
        self.follow(self.standby, self.primary)

    def _answers(self, node: Node) -> bool:
        with contextlib.suppress(sa.exc.SQLAlchemyError):
            return bool(self.ask(node, 'SELECT 1'))
        return False

    def _run(self, node: Node, program: str, *arguments: object) -> None:
        done = node.run(*_as('postgres'), self._program(program), *arguments)
        if done.returncode:
            raise RuntimeError(f'{program}: {done.stdout}{done.stderr}')

    def _program(self, name: str) -> pathlib.Path:
        return sorted(pathlib.Path('/usr/lib/postgresql').glob('*/bin'))[-1] / name

    def socket(self, node: Node) -> pathlib.Path:
        return node.folder

    def ask(
        self, node: Node, statement: str, database: str = 'postgres'
    ) -> list[tuple]:
        engine = sa.create_engine(
            f'postgresql+psycopg2://postgres@/{database}?host={node.folder}',
            isolation_level='AUTOCOMMIT',
            poolclass=sa.pool.NullPool,
        )
        with engine.connect() as connection:
            result = connection.exec_driver_sql(statement)
            return [*map(tuple, result)] if result.returns_rows else []

    def url(self, address: str) -> str:
        return f'postgresql+psycopg2://{NAME}:{SECRET}@{address}:{self.port}/{NAME}'

    @property
    def direct_url(self) -> str:
        folder = self.primary.folder
        return f'postgresql+psycopg2://{NAME}@/{NAME}?host={folder}'
