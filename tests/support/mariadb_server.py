"""MariaDB servers of a test's own, whose global settings it may change."""

from collections.abc import Iterator
import contextlib
import os
import pathlib
import shutil
import socket
import subprocess
import time

import sqlalchemy as sa

from tests.support import requirements
from tests.support.processes import free_port

DATABASE = 'manila_lite_test'
USER = 'manila'
PATIENCE = 60.0
"""Seconds a server may take to start."""

_QUICK = (
    '--innodb-flush-log-at-trx-commit=0',
    '--innodb-buffer-pool-size=32M',
    '--innodb-log-file-size=8M',
    '--performance-schema=off',
    '--skip-name-resolve',
)


class MariaDbServer:
    """A running server with an empty database.

    `url` is that of a user without administrative privileges, whom
    `read_only` concerns. `cluster_address` is that of a node of Galera.
    """

    cluster_address = ''

    def __init__(self, folder: pathlib.Path, port: int, pid: int):
        self.port = port
        self.pid = pid
        self.url = f'mysql+pymysql://{USER}@127.0.0.1:{port}/{DATABASE}'
        self._admin = sa.create_engine(
            'mysql+pymysql://root@localhost/mysql',
            connect_args={'unix_socket': str(folder / 'socket')},
            isolation_level='AUTOCOMMIT',
            # A node that rejects queries rejects this as well.
            skip_autocommit_rollback=True,
            pool_reset_on_return=None,
            poolclass=sa.pool.NullPool,
        )

    def execute(self, *statements: str) -> None:
        """Run statements as the administrator."""
        with self._admin.connect() as connection:
            for statement in statements:
                connection.exec_driver_sql(statement)

    def status(self, *names: str) -> dict[str, int]:
        """Return status variables that are numbers, summed since the start."""
        with self._admin.connect() as connection:
            found = dict(connection.exec_driver_sql('SHOW GLOBAL STATUS').all())
        return {name: int(found[name]) for name in names}


_NODE_IS_NOT_READY = 1047


@contextlib.contextmanager
def run(
    folder: pathlib.Path,
    *options: str,
    timezone: str = 'UTC',
    port: int | None = None,
    user: str = 'root',
) -> Iterator[MariaDbServer]:
    """Run a server with its data in the folder; it is killed at the end.

    The folder may have been that of a server before, with its data. `user` is
    the one that root runs it as.

    Skips when MariaDB is not installed; fails if CI is set.
    """
    _require('mariadbd', 'mariadb-install-db')
    port = port or free_port()
    # In a folder that several servers have, each removes files of the others.
    temporary = folder / 'tmp'
    temporary.mkdir(exist_ok=True)
    common = ['--no-defaults', f'--datadir={folder}/data', f'--tmpdir={temporary}']
    if os.geteuid() == 0:
        for one in (folder, temporary):
            shutil.chown(one, user)
        common.append(f'--user={user}')
    if not (folder / 'data').exists():
        subprocess.run(
            [
                'mariadb-install-db',
                *common,
                '--auth-root-authentication-method=normal',
                '--skip-test-db',
            ],
            check=True,
            capture_output=True,
        )
    with (
        open(folder / 'log', 'wb') as log,
        subprocess.Popen(
            [
                'mariadbd',
                *common,
                *_QUICK,
                f'--socket={folder}/socket',
                f'--port={port}',
                '--bind-address=127.0.0.1',
                *options,
            ],
            env={**os.environ, 'TZ': timezone},
            stdout=log,
            stderr=log,
        ) as process,
    ):
        try:
            _wait_for(port, process, folder / 'log')
            server = MariaDbServer(folder, port, process.pid)
            _execute_when_ready(
                server,
                f'CREATE DATABASE IF NOT EXISTS {DATABASE}',
                f"CREATE USER IF NOT EXISTS {USER}@'127.0.0.1'",
                f"GRANT ALL ON {DATABASE}.* TO {USER}@'127.0.0.1'",
            )
            yield server
        finally:
            process.kill()


@contextlib.contextmanager
def run_galera(
    folder: pathlib.Path, others: str = '', user: str = 'root'
) -> Iterator[MariaDbServer]:
    """Run a node of Galera: the first of a cluster, or one that joins others.

    `others` is the `cluster_address` of a node that runs, with `user` mysql
    if we are root: rsync, which receives its data, would not do so as root.

    Skips when Galera is not installed; fails if CI is set.
    """
    provider = pathlib.Path('/usr/lib/galera/libgalera_smm.so')
    if not provider.exists():
        requirements.missing('galera-4 is not installed')
    port, transfer, receive = (free_port() for _ in range(3))
    joining = ['--wsrep-new-cluster']
    if others:
        _require('rsync')
        joining = [f'--wsrep-sst-receive-address=127.0.0.1:{receive}']
        (folder / 'data').mkdir()  # empty: it gets all from the other node
        if os.geteuid() == 0:
            shutil.chown(folder / 'data', user)
    with run(
        folder,
        '--binlog-format=ROW',
        '--innodb-autoinc-lock-mode=2',
        '--wsrep-on=ON',
        f'--wsrep-provider={provider}',
        '--wsrep-provider-options='
        f'base_host=127.0.0.1;base_port={port};gcache.size=8M;'
        f'gmcast.listen_addr=tcp://127.0.0.1:{port};'
        f'ist.recv_addr=tcp://127.0.0.1:{transfer}',
        f'--wsrep-cluster-address=gcomm://{others}',
        '--wsrep-node-address=127.0.0.1',
        '--wsrep-sst-method=rsync',
        *joining,
        user=user,
    ) as server:
        server.cluster_address = f'127.0.0.1:{port}'
        yield server


def _require(*commands: str) -> None:
    for name in commands:
        if not shutil.which(name):
            requirements.missing(f'{name} is not installed')


def _execute_when_ready(server: MariaDbServer, *statements: str) -> None:
    """Execute statements; a node accepts connections before it is ready."""
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            server.execute(*statements)
        except sa.exc.OperationalError as error:
            is_unready = error.orig.args[0] == _NODE_IS_NOT_READY
            if not is_unready or time.monotonic() > deadline:
                raise
            time.sleep(0.02)
        else:
            return


def _wait_for(port: int, process: subprocess.Popen, log: pathlib.Path) -> None:
    deadline = time.monotonic() + PATIENCE
    while process.poll() is None and time.monotonic() < deadline:
        with (
            contextlib.suppress(ConnectionRefusedError),
            socket.create_connection(('127.0.0.1', port)),
        ):
            return
        time.sleep(0.02)
    raise AssertionError(f'no server: {log.read_text(errors="replace")}')
