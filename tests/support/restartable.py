"""Database servers that a test may restart: MariaDB and PostgreSQL."""

from collections.abc import Iterator
import contextlib
import os
import pathlib
import shutil
import subprocess
import tempfile

from tests.support import mariadb_server, requirements
from tests.support.processes import free_port

_POSTGRESQL = pathlib.Path('/usr/lib/postgresql')


class RestartableMariaDb:
    """A server of a test's own, with an empty database at `url`."""

    def __init__(self, folder: pathlib.Path):
        self._folder, self._port = folder, free_port()
        self._stack = contextlib.ExitStack()
        self._enter()

    def _enter(self) -> None:
        server = self._stack.enter_context(
            mariadb_server.run(
                self._folder,
                # Commits outlive the process.
                '--innodb-flush-log-at-trx-commit=2',
                port=self._port,
            )
        )
        self.url = server.url

    def restart(self) -> None:
        """Kill the server and start it on the same port."""
        self.stop()
        self._enter()

    def stop(self) -> None:
        self._stack.close()


class RestartablePostgreSql:
    """The same of PostgreSQL, which refuses to run as root."""

    def __init__(self, folder: pathlib.Path):
        found = sorted(_POSTGRESQL.glob('*/bin/pg_ctl'))
        if not found:
            requirements.missing('PostgreSQL is not installed')
        self._data, self._program = folder / 'data', found[-1]
        if os.geteuid() == 0:
            shutil.chown(folder, 'postgres')
        port = free_port()
        self.url = f'postgresql+psycopg2://postgres@127.0.0.1:{port}/postgres'
        self._run('init', '-o', '--username=postgres --auth=trust --no-sync')
        self._options = f'-F -p {port} -k {folder} -h 127.0.0.1'
        self._start()

    def _start(self) -> None:
        self._run('start', '-l', f'{self._data}.log', '-o', self._options)

    def restart(self) -> None:
        self.stop()
        self._start()

    def stop(self) -> None:
        self._run('stop', '-m', 'immediate')

    def _run(self, *args: str) -> None:
        as_user = (
            ('setpriv', '--reuid=postgres', '--regid=postgres') + ('--clear-groups',)
            if os.geteuid() == 0
            else ()
        )
        subprocess.run(
            [*as_user, self._program, '-D', self._data, '-w', *args],
            check=True,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            cwd='/',
        )


_KINDS = {'mysql': RestartableMariaDb, 'postgresql': RestartablePostgreSql}


@contextlib.contextmanager
def running(kind: str) -> Iterator[RestartableMariaDb | RestartablePostgreSql]:
    """Start a server; it is stopped at the end.

    Skips when it is not installed; fails if CI is set.
    """
    with tempfile.TemporaryDirectory() as name:
        server = _KINDS[kind](pathlib.Path(name))
        try:
            yield server
        finally:
            server.stop()
