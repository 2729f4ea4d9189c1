"""PostgreSQL servers of a test's own, whose settings it may change."""

from collections.abc import Iterator
import contextlib
import pathlib
import shutil
import subprocess
import tempfile
import typing

from tests.support import deploy_scripts, requirements
from tests.support.processes import free_port

PROGRAMS = sorted(pathlib.Path('/usr/lib/postgresql').glob('*/bin'))


class PostgreSqlServer(typing.NamedTuple):
    """A running server; its files, with the socket, are in the folder."""

    folder: str
    port: int

    @property
    def url(self) -> str:
        """The URL for its administrator, if it trusts connections."""
        return f'postgresql+psycopg2://postgres@127.0.0.1:{self.port}/postgres'


@contextlib.contextmanager
def run(*initdb: str, settings: str = '') -> Iterator[PostgreSqlServer]:
    """Run a server that was initialized with these options of initdb.

    Skips when PostgreSQL is not installed, or without root; fails if CI is
    set.
    """
    deploy_scripts.require_root()
    if not PROGRAMS:
        requirements.missing('PostgreSQL is not installed')
    port = free_port()
    with tempfile.TemporaryDirectory() as folder:
        shutil.chown(folder, 'postgres', 'postgres')

        def as_postgres(program: str, *arguments: str) -> None:
            subprocess.run(
                [
                    *('runuser', '-u', 'postgres', '--'),
                    *(PROGRAMS[-1] / program, '-D', f'{folder}/data'),
                    *arguments,
                ],
                check=True,
                cwd='/',
                stdout=subprocess.DEVNULL,
            )

        as_postgres('initdb', '--no-sync', *initdb)
        options = f'-p {port} -k {folder} -h 127.0.0.1 -c fsync=off {settings}'
        as_postgres(*('pg_ctl', '-w', '-l', f'{folder}/log', '-o', options, 'start'))
        try:
            yield PostgreSqlServer(folder, port)
        finally:
            as_postgres('pg_ctl', '-w', '-m', 'immediate', 'stop')
