"""A machine of its own for one test: a clean root, without the network.

The root has the system of this machine, read only, and nothing else: no
checkout, no users, no state. It is a mount, network and process namespace,
so nothing of it remains. What the test cannot have is systemd as process 1;
`systemctl` is a small program that does what the unit files say.
"""

from collections.abc import Iterable
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig

from tests.support import requirements, storage

ROOT = pathlib.Path(__file__).resolve().parents[2]

_SOURCES = (
    'etc',
    'manila_lite',
    'LICENSE',
    'README.md',
    'pyproject.toml',
    'requirements.txt',
    'setup.cfg',
)
_CONFIGURATION = (
    'alternatives',
    'default',
    'ld.so.cache',
    'ld.so.conf.d',
    'localtime',
    'login.defs',
    'nsswitch.conf',
    'pam.d',
    'pip.conf',
    'resolv.conf',
    'security',
    'ssl',
    'xdg',
)
_MINIMAL = {
    'etc/passwd': 'root:x:0:0:root:/root:/bin/bash\n',
    'etc/group': 'root:x:0:\n',
    'etc/shadow': 'root:*:19000:0:99999:7:::\n',
    'etc/gshadow': 'root:*::\n',
    'etc/hosts': '127.0.0.1 localhost\n::1 localhost\n',
}


def require_namespaces() -> None:
    """Skip without the right to make namespaces; fail if CI is set."""
    probe = ['unshare', '--mount', '--net', '--pid', '--fork', 'true']
    ended = subprocess.run(probe, capture_output=True, text=True, check=False)
    if os.geteuid() == 0 and ended.returncode == 0:
        return
    requirements.missing(f'only root may make namespaces: {ended.stderr}')


class CleanRoot:
    """A root that is filled in a folder, and entered by `run`."""

    def __init__(self, folder: pathlib.Path):
        self.folder = folder
        self.checkout = folder / 'root/manila_lite'
        self._binds: list[tuple[str, str]] = []
        for name in ('dev', 'proc', 'tmp', 'run', 'srv', 'opt', 'var/lib'):
            (folder / name).mkdir(parents=True)
        for name in ('var/log', 'var/tmp', 'etc/systemd/system', 'root'):
            (folder / name).mkdir(parents=True)
        (folder / 'tmp').chmod(0o1777)
        (folder / 'root').chmod(0o755)
        for name in ('bin', 'sbin', 'lib', 'lib32', 'lib64'):
            self._add_system(pathlib.Path('/', name))
        self.bind('/usr')
        self.bind(sys.base_prefix)
        self.bind(sysconfig.get_path('purelib'), '/packages')
        for name, text in _MINIMAL.items():
            (folder / name).write_text(text)
        for name in _CONFIGURATION:
            self._copy(pathlib.Path('/etc', name), folder / 'etc' / name)
        for name in _SOURCES:
            self._copy(ROOT / name, self.checkout / name)
        self._copy(pathlib.Path.home() / '.config/pip', folder / 'root/.config/pip')

        python = f'{sys.base_prefix}/bin/python3'
        self.add_program('python3', f'#!/bin/sh\nexec {python} "$@"\n')
        systemctl = pathlib.Path(__file__).with_name('systemctl.py')
        self.add_program('systemctl', f'#!{python}\n{systemctl.read_text()}')

    def bind(self, path: str, inside: str | None = None) -> None:
        """Show a directory or file of this machine, read only."""
        target = self.folder / (inside or path).lstrip('/')
        if os.path.isdir(path):
            target.mkdir(parents=True, exist_ok=True)
        else:
            target.parent.mkdir(parents=True, exist_ok=True)
            target.touch()
        self._binds.append((path, str(target)))

    def _add_system(self, path: pathlib.Path) -> None:
        if path.is_symlink():
            (self.folder / path.name).symlink_to(path.readlink())
        elif path.is_dir():
            self.bind(str(path))

    @staticmethod
    def _copy(source: pathlib.Path, target: pathlib.Path) -> None:
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(
                source,
                target,
                symlinks=True,
                ignore=shutil.ignore_patterns('__pycache__'),
            )
        elif source.exists():
            shutil.copy(source, target)

    def add_program(self, name: str, text: str) -> None:
        """Add a program to the search path."""
        path = self.folder / 'opt/test/bin' / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(0o755)

    def add_deploy(self) -> None:
        """Add the scripts of deploy; they find all packages installed."""
        shutil.copytree(ROOT / 'deploy', self.checkout / 'deploy')
        self.add_program('dpkg-query', '#!/bin/sh\necho installed\n')

    def add_user(self, name: str, number: int, home: str = '/') -> None:
        """Add a user and a group of the same name and number."""
        for file, line in (
            ('passwd', f'{name}:x:{number}:{number}::{home}:/bin/false\n'),
            ('group', f'{name}:x:{number}:\n'),
        ):
            with (self.folder / 'etc' / file).open('a') as opened:
                opened.write(line)

    def run(
        self,
        connected: Iterable[str],
        isolated: Iterable[str],
        *,
        stdin: str,
        timeout: float = 240.0,
    ) -> subprocess.CompletedProcess[str]:
        """Run lines in a shell of the root; stop at the first that fails.

        The first ones have the network, which pip needs. The others run with
        a loopback of their own, on which all ports are free.
        """
        (self.folder / 'root/answers').write_text(stdin)
        for name, lines in (('first', connected), ('second', isolated)):
            (self.folder / 'root' / name).write_text(
                'set -eu\ncd /root/manila_lite\n'
                + ''.join(
                    f'echo; echo {shlex.quote(f"+ {line}")}\n{line} < /root/answers\n'
                    for line in lines
                )
            )
        inside = f'chroot {self.folder} /bin/bash'
        script = '\n'.join(
            [
                'set -eu',
                'mount --make-rprivate /',
                # It is shown as a mount, such as the root of a machine.
                f'mount --bind {self.folder} {self.folder}',
                # Otherwise the pools of other tests are busy until the end.
                f"awk '$2 ~ /{storage.PREFIX}/ {{ print $2 }}' /proc/mounts "
                # One may have ended meanwhile.
                '| tac | { xargs --no-run-if-empty -n 1 umount --lazy || true; }',
                *(
                    f'mount -o rbind,ro {source} {target}'
                    for source, target in self._binds
                ),
                f'mount -t proc proc {self.folder}/proc',
                f'mount --rbind /dev {self.folder}/dev',
                f'{inside} /root/first',
                f"unshare --net bash -euc 'ip link set lo up; {inside} /root/second'",
            ]
        )
        return subprocess.run(
            [
                'unshare',
                '--mount',
                '--pid',
                '--fork',
                '--kill-child',
                'bash',
                '-c',
                script,
            ],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=timeout,
            check=False,
            env={
                **{
                    name: value
                    for name, value in os.environ.items()
                    if re.match('PIP_|SSL_|.*_proxy|.*_PROXY', name)
                },
                'PATH': '/opt/test/bin:/usr/sbin:/usr/bin:/sbin:/bin',
                'HOME': '/root',
            },
        )
