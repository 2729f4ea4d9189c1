"""The service as `make run` starts it: without a configuration file."""

import pathlib
import re
import shlex

from manila_lite.cmd import built_in
from tests.support.installation import Installation
from tests.support.processes import Command

README = pathlib.Path(__file__).resolve().parents[2] / 'README.md'
DUMMIES = ('dummy', 'mirror', 'served', 'reserve')


class MakeRun(Installation):
    """One process with the back ends and types of its own."""

    def __init__(self, folder: pathlib.Path, *options: object):
        self._options = options
        self._state = folder / 'state'
        super().__init__(
            folder,
            database_url=f'sqlite:///{self._state}/manila_lite.sqlite',
            backends=dict.fromkeys(DUMMIES, {}),
        )
        self.host = built_in.HOST

    def dummy_state_dir(self, backend: str) -> pathlib.Path:
        return self._state / ('dummy' if backend == 'dummy' else f'dummy-{backend}')

    def _run(self, name: str) -> Command:
        self._runs += 1
        return Command(
            'manila-lite',
            *('serve', '--state-dir', self._state, '--port', self.port),
            *self._options,
            log=self.folder / f'{self._runs}-{name}.log',
            forked=self.forked,
        )

    def readme_line(self) -> str:
        """Return the line of the README that prepares the client."""
        (line,) = re.findall(r'^\$ (export .+)$', README.read_text(), re.M)
        return line.replace('127.0.0.1:8786', f'127.0.0.1:{self.port}')

    def readme_options(self) -> list[str]:
        """Return what that line sets, as options of the client."""
        found = []
        for word in shlex.split(self.readme_line())[1:]:
            name, _, value = word.partition('=')
            found += [f'--{name.lower().replace("_", "-")}', value]
        return found
