"""The users of CIFS shares of a back end, and their passwords.

They are not users of this machine. Samba sees them by way of nss_wrapper, and
keeps hashes of their passwords in a file that only root can read.
"""

from collections.abc import Iterable
import os
import pathlib
import re
import signal
import subprocess
import tempfile

from manila_lite import exception
from manila_lite.share.drivers import file_locks, records
from manila_lite.share.drivers.btrfs import privileges
from manila_lite.share.drivers.btrfs.exports.smb import smb_settings
from manila_lite.share.drivers.btrfs.exports.smb.smb_server import sessions

# Shorter ones cannot be in access rules.
_NAME = re.compile(r'[a-z0-9_][a-z0-9._-]{3,31}')
_FIRST_UID = 100000
_GROUP = 100000
_RESERVED = ('root', 'nobody')
# smbd looks for both of these.
_PASSWD = """\
root:x:0:0::/:/bin/false
nobody:x:65534:65534::/:/bin/false
"""
_GROUPS = f"""\
root:x:0:
nogroup:x:65534:
users:x:{_GROUP}:
"""
_MOST_PASSWORD = 127


class SmbUsers:
    """The users in the folder of smbd."""

    def __init__(self, folder: pathlib.Path):
        self._folder = folder
        self._passwd = folder / 'passwd'

    def prepare(self) -> None:
        """Create the files without users; keep those that exist."""
        smb_settings.prepare(self._folder)
        with self._locked():
            if not self._passwd.exists():
                records.write_text(self._passwd, _PASSWD, durable=True)
            records.write_text(self._folder / 'group', _GROUPS, durable=True)
            # For the commands here, before smbd has been started.
            records.write_text(
                self._folder / 'users.conf',
                smb_settings.base_config(self._folder, 445, ['127.0.0.1']).text,
            )

    def names(self) -> list[str]:
        return sorted(set(self._uids()) - set(_RESERVED))

    def add(self, name: str, password: str) -> None:
        """Add a user, or change the password of an existing one."""
        if not _NAME.fullmatch(name) or name in _RESERVED:
            raise exception.InvalidInput(
                reason=f'{name!r} is not a name of a user: use 4 to 32 '
                'lower-case letters, digits and . _ -'
            )
        if (
            not 0 < len(password.encode()) <= _MOST_PASSWORD
            or not password.isprintable()
        ):
            raise exception.InvalidInput(
                reason='a password has 1 to 127 printable characters'
            )
        self.prepare()
        with self._locked():
            self._add_names([name])
            self._call('smbpasswd', '-a', '-s', name, text=f'{password}\n' * 2)

    def adopt(self, source: 'SmbUsers') -> None:
        """Add the users of another server with their passwords.

        Those that exist here get the passwords that they have there.
        """
        if not source.names():
            return
        self.prepare()
        with source._locked():
            names, hashes = source.names(), source._call('pdbedit', '-L', '-w')
        with self._locked(), tempfile.NamedTemporaryFile('w', dir=self._folder) as file:
            self._add_names(names)
            file.write(hashes)
            file.flush()
            self._call('pdbedit', '-i', f'smbpasswd:{file.name}')

    def _add_names(self, names: Iterable[str]) -> None:
        """Let users exist; one without a password cannot sign in."""
        uids = self._uids()
        first = max(_FIRST_UID, *uids.values()) + 1
        missing = [name for name in names if name not in uids]
        self._write(
            self._passwd.read_text()
            + ''.join(
                f'{name}:x:{uid}:{_GROUP}::/:/bin/false\n'
                for uid, name in enumerate(missing, first)
            )
        )

    def remove(self, name: str) -> None:
        """Remove a user and end its sessions; a missing one is an error."""
        self.prepare()
        with self._locked():
            if name not in self.names():
                raise exception.InvalidInput(reason=f'there is no user {name!r}')
            if name in self._with_password():
                self._call('smbpasswd', '-x', name)
            for session in sessions(self._folder):
                if session.user == name:
                    session.signal(signal.SIGKILL)
            # Until now, sessions have the name.
            self._write(
                ''.join(
                    line
                    for line in self._passwd.read_text().splitlines(True)
                    if line.partition(':')[0] != name
                )
            )

    def _with_password(self) -> set[str]:
        lines = self._call('pdbedit', '-L').splitlines()
        return {line.partition(':')[0] for line in lines}

    def _uids(self) -> dict[str, int]:
        try:
            text = self._passwd.read_text()
        except FileNotFoundError:
            return {}
        lines = (line.split(':') for line in text.splitlines())
        return {line[0]: int(line[2]) for line in lines if line[0] != 'nobody'}

    def _write(self, text: str) -> None:
        records.write_text(self._passwd, text, durable=True)

    def _locked(self):  # type: ignore[no-untyped-def]
        return file_locks.locked(self._folder / 'users.lock', file_locks.opened_file)

    def _call(self, program: str, *args: str, text: str = '') -> str:
        config = '-c' if program == 'smbpasswd' else '-s'
        done = subprocess.run(
            [program, config, str(self._folder / 'users.conf'), *args],
            input=text,
            capture_output=True,
            text=True,
            env=os.environ | smb_settings.environment(self._folder),
            **privileges.as_root(),
        )
        if done.returncode:
            raise exception.InvalidInput(reason=f'{program}: {done.stderr.strip()}')
        return done.stdout
