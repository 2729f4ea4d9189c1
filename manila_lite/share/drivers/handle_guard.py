"""The guards that keep NFS clients in the share that is exported to them.

Each is a library between NFS-Ganesha and one of its plugins for file systems, built
from the `handle_guard.c` of a driver, which says how it works:

    <folder>/<digest>/libfsalvfs.so    in one of FOLDERS, owned by root

The digest is that of the sources and of the path of the plugin, and it is in
the library, too: a guard of another release is not taken for this one. The
plugin itself may be upgraded. A server finds no other plugin than the guard,
and ends if the plugin would open handles past it.

A server that has loaded the guard says so in a file.
"""

import errno
import functools
import hashlib
import os
import pathlib
import shutil
import stat
import subprocess
import sys
import tempfile

from manila_lite import exception

FOLDERS = (
    pathlib.Path('/usr/local/lib/manila-lite'),
    pathlib.Path('/usr/lib/manila-lite'),
)
"""Where guards are: built on this machine, or installed by a package."""

RECORD = 'guard'
"""The file in the folder of a server in which the guard says that it is."""

VARIABLE = 'MANILA_LITE_HANDLE_GUARD'
"""The environment variable with the path of this file."""

_COMMON = pathlib.Path(__file__).with_suffix('.h')
_OTHERS = stat.S_IWGRP | stat.S_IWOTH
# As NFS-Ganesha loads plugins.
_LOAD = (
    'import ctypes, os, sys; '
    'ctypes.CDLL(sys.argv[1], mode=os.RTLD_NOW | os.RTLD_DEEPBIND)'
)


class HandleGuard:
    """The guard of one plugin, which a package of the distribution has."""

    def __init__(self, plugin: str, package: str, source: pathlib.Path, command: str):
        self.plugin = plugin
        self.remedy = f'run "{command}" as root'
        self._package = package
        self._source = source

    def find_plugin(self) -> pathlib.Path | None:
        """Return the plugin of NFS-Ganesha that opens handles."""
        found = (
            path
            for folder in ('lib', 'lib64', 'lib/*')
            for path in sorted(pathlib.Path('/usr').glob(f'{folder}/ganesha'))
        )
        return next(
            (path / self.plugin for path in found if (path / self.plugin).exists()),
            None,
        )

    def digest(self, plugin: pathlib.Path) -> str:
        """Return what tells the guard of this release from others."""
        text = self._text + os.fsencode(plugin)
        return hashlib.sha256(text).hexdigest()[:32]

    @functools.cached_property
    def _text(self) -> bytes:
        return self._source.read_bytes() + _COMMON.read_bytes()

    def find(self) -> pathlib.Path | None:
        """Return the guard of this release for the plugin of this machine."""
        plugin = self.find_plugin()
        if plugin is None:
            return None
        paths = (folder / self.digest(plugin) / self.plugin for folder in FOLDERS)
        return next((path for path in paths if self._is_guard(path, plugin)), None)

    def _is_guard(self, path: pathlib.Path, plugin: pathlib.Path) -> bool:
        """Return whether a file is the guard, and only root can replace it."""
        try:
            is_ours = all(
                found.st_uid == 0 and not found.st_mode & _OTHERS
                for found in (path.stat(), path.parent.stat())
            )
            return is_ours and f' {self.digest(plugin)}\0'.encode() in path.read_bytes()
        except OSError:
            return False

    def require(self) -> pathlib.Path:
        """Return the guard; raise StorageUnavailable if there is none."""
        found = self.find()
        if found is None:
            raise exception.StorageUnavailable(
                reason='NFS is not served without the guard of file handles, '
                'which keeps clients in their shares, and there is none of this '
                f'release; {self.remedy}'
            )
        return found

    def build(self, folder: pathlib.Path = FOLDERS[0]) -> pathlib.Path:
        """Build the guard, unless it is there; return it."""
        plugin = self.find_plugin()
        if plugin is None:
            raise exception.InvalidInput(
                reason=f'{self.plugin} is missing; install the package {self._package}'
            )
        path = folder / self.digest(plugin) / self.plugin
        if not self._is_guard(path, plugin):
            path.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(dir=path.parent) as temporary:
                new = pathlib.Path(temporary, self.plugin)
                self._compile(plugin, new)
                new.chmod(0o755)
                new.replace(path)
        return path

    def _compile(self, plugin: pathlib.Path, target: pathlib.Path) -> None:
        compiler = shutil.which('cc') or shutil.which('gcc')
        if compiler is None:
            raise exception.InvalidInput(
                reason='there is no C compiler; install the packages gcc and '
                'libc6-dev, or the guard that was built on another machine'
            )
        done = subprocess.run(
            [
                *(compiler, '-O2', '-shared', '-fPIC', '-Wall', '-Werror'),
                *('-Wl,-z,now', '-Wl,-z,relro', '-Wl,--no-as-needed'),
                f'-DDIGEST="{self.digest(plugin)}"',
                f'-DFSAL="{plugin}"',
                f'-DRECORD_VARIABLE="{VARIABLE}"',
                *(f'-I{_COMMON.parent}', '-o', str(target)),
                *(str(self._source), str(plugin)),
            ],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
        )
        if done.returncode:
            raise exception.InvalidInput(reason=f'{compiler}: {done.stderr}')

    def load(self) -> None:
        """Let another process load the guard; it ends if it cannot work."""
        guard = self.find()
        if guard is None:
            raise FileNotFoundError(errno.ENOENT, 'there is no guard')
        subprocess.run(
            [sys.executable, '-c', _LOAD, str(guard)],
            check=True,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
        )

    def is_loaded(self, folder: pathlib.Path, pid: int | None) -> bool:
        """Return whether a server has said that the guard is in force.

        It says so once it exports something.
        """
        plugin = self.find_plugin()
        try:
            text = (folder / RECORD).read_text()
        except FileNotFoundError:
            return False
        return plugin is not None and text == f'{self.digest(plugin)} {pid}\n'
