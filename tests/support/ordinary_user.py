"""Commands that run as the systemd unit of the share service says.

They are of an ordinary user with the capabilities of the unit for btrfs back
ends, and cannot get others.
"""

from collections.abc import Sequence
import functools
import os
import pathlib
import shutil
import subprocess
import sys

from tests.support import requirements, units

ROOT = pathlib.Path(__file__).resolve().parents[2]
USER = 65534  # nobody


def require() -> None:
    """Skip if this process cannot act as another user; fail with CI."""
    if os.geteuid() != 0:
        requirements.missing('only root can act as other users')
    if shutil.which('setpriv') is None:
        requirements.missing('setpriv is missing; install util-linux')
    if not _can_import():
        requirements.missing(f'only root reaches {ROOT} and its environment')


@functools.cache
def _can_import() -> bool:
    """Tell whether another user can run our code, as not below /root."""
    tried = subprocess.run(
        [
            *('setpriv', f'--reuid={USER}', f'--regid={USER}'),
            *('--clear-groups', sys.executable, '-c', 'import manila_lite'),
        ],
        stderr=subprocess.DEVNULL,
        cwd=ROOT,
    )
    return tried.returncode == 0


def run(
    command: Sequence[object], folder: pathlib.Path, without: str = ''
) -> subprocess.CompletedProcess[str]:
    """Run Python with arguments, perhaps without one of the capabilities."""
    names = ','.join(
        f'+{name.removeprefix("CAP_").lower()}'
        for name in units.settings(units.BTRFS, 'AmbientCapabilities')
        if name != without
    )
    for place in ('home', 'tmp'):
        (folder / place).mkdir(exist_ok=True)
        os.chown(folder / place, USER, USER)
    return subprocess.run(
        [
            'setpriv',
            f'--reuid={USER}',
            f'--regid={USER}',
            '--clear-groups',
            f'--inh-caps=-all,{names}',
            f'--ambient-caps=-all,{names}',
            f'--bounding-set=-all,{names}',
            '--no-new-privs',
            sys.executable,
            *map(str, command),
        ],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env=os.environ
        | {
            'HOME': str(folder / 'home'),
            'TMPDIR': str(folder / 'tmp'),
            'PYTHONDONTWRITEBYTECODE': '1',
        },
    )
