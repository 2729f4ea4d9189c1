"""What the SMB server shares: one file per share or snapshot.

    smb/shares/<kind>.<volume>.conf   a section of smb.conf(5)
    smb/shares.conf                   includes all of these files

The paths are those of the volumes themselves. A file is removed before the
sessions of clients are ended, so that a server that starts meanwhile allows
no more than it should.
"""

from collections.abc import Callable, Iterator
import pathlib
import re

from oslo_log import log

from manila_lite.share.drivers import records, samba
from manila_lite.share.drivers.btrfs import catalog
from manila_lite.share.drivers.btrfs.catalog import Kind
from manila_lite.share.drivers.btrfs.exports.smb import smb_settings
from manila_lite.share.drivers.btrfs.exports.smb.smb_server import SmbServer
from manila_lite.share.drivers.btrfs.exports.smb.smb_users import SmbUsers
from manila_lite.share.drivers.contract.values import AccessReply, AccessRuleForDriver
from manila_lite.share.drivers.file_locks import Locks

LOG = log.getLogger(__name__)

_SNAPSHOTS = f'{Kind.SNAPSHOT}.'
_CLOSING = '# Clients that use the share have to connect again.\n'
_INCLUDED = re.compile(r'^include = (.*)$', re.MULTILINE)
_SPECIAL = ('global', 'homes', 'printers')
_NAME = re.compile(r'[a-z0-9][a-z0-9._-]{0,79}')


def share_name(kind: Kind, volume: str) -> str:
    """Return the name by which clients use a share or a snapshot."""
    return volume if kind is Kind.SHARE else f'{_SNAPSHOTS}{volume}'


def _volume_of(name: str) -> tuple[Kind, str]:
    """Return what is shared by a name."""
    if name.startswith(_SNAPSHOTS):
        return Kind.SNAPSHOT, name.removeprefix(_SNAPSHOTS)
    return Kind.SHARE, name


def _volume_at(file: pathlib.Path) -> tuple[Kind, str]:
    """Return what the file of a share is for."""
    kind, _, volume = file.stem.partition('.')
    return Kind(kind), volume


def check_volume(volume: str) -> None:
    """Raise ValueError if a volume cannot be a CIFS share by its name.

    Clients do not tell upper and lower case apart, and some names have a
    meaning for Samba.
    """
    if (
        not _NAME.fullmatch(volume)
        or volume in _SPECIAL
        or volume.startswith(_SNAPSHOTS)
    ):
        raise ValueError(f'{volume} cannot be the name of a CIFS share')


def _users(text: str, option: str) -> set[str]:
    lists = re.findall(f'{option} = (.*)', text)
    return {user for line in lists for user in re.findall('"([^"]*)"', line)}


class SmbExports:
    """The shares of one SMB server.

    Every method locks what it changes, and may be repeated.
    """

    def __init__(
        self,
        folder: pathlib.Path,
        server: SmbServer,
        users: SmbUsers,
        start: Callable[[], None] = lambda: None,
    ):
        """`start` makes sure that the server has been started."""
        self._folder = folder
        self._start = start
        self._shares = folder / 'shares'
        self._server = server
        self._users = users
        self._locks = Locks(folder / 'locks')

    def prepare(self) -> None:
        """Write what a server that is started now reads."""
        self._users.prepare()
        (self._folder / 'locks').mkdir(mode=0o700, exist_ok=True)
        self._write_index()

    def publish(
        self,
        kind: Kind,
        volume: str,
        source: pathlib.Path,
        rules: list[AccessRuleForDriver],
        read_only: bool = False,
        denies_all: bool = False,
        of: str | None = None,
    ) -> dict[str, AccessReply]:
        """Share a volume with exactly these users.

        Others lose the files that they have open. With `denies_all` there
        are none, although the replies are those of the rules. A snapshot is
        one `of` the volume of a share.
        """
        self._start()
        name = share_name(kind, volume)
        text, replies = samba.format_section(
            name,
            source,
            rules,
            read_only=read_only,
            users=self._users.names(),
            as_root=True,
        )
        with self._locks.locked(records.checked_file_name(name)):
            if text is None or denies_all:
                self._withdraw(name, kind, volume)
            else:
                text = catalog.origin_comment(of) + text
                self._replace(name, self._file(kind, volume), text)
        return replies

    def snapshots_of(self, volume: str) -> Iterator[str]:
        """Yield the shared snapshots of a volume, also of a lost pool."""
        return catalog.exported_snapshots_of(self._shares, volume)

    def _replace(self, name: str, file: pathlib.Path, text: str) -> None:
        """Write the file of a share and end what it does not allow.

        It is applied even if it is the same: another process may have been
        killed before that.
        """
        old = file.read_text() if file.exists() else ''
        remaining = _users(old, 'valid users') & _users(text, 'valid users')
        lost, gained = (
            remaining & (_users(one, 'write list') - _users(two, 'write list'))
            for one, two in ((old, text), (text, old))
        )
        is_closed = bool(lost) or _CLOSING in old
        if is_closed or gained:
            # smbd itself ends only the use of those who may not even read,
            # and decides who may write when a client connects.
            self._write(file, _CLOSING + text)
            self._apply(name, denied=not is_closed)
            if not is_closed:
                self._server.close_for(name, gained)
            self._write(file, text)
        else:
            if old != text:
                self._write(file, text)
            self._apply(name, denied=True)

    def _write(self, file: pathlib.Path, text: str) -> None:
        records.write_text(file, text, durable=True, temp_dir=self._folder)

    def refresh(self, kind: Kind, volume: str) -> None:
        """End the use of a share whose content has been replaced."""
        if self._file(kind, volume).exists():
            self._server.close(share_name(kind, volume))

    def republish(self, kind: Kind, volume: str) -> None:
        """Share what should be shared; clients that use it are not interrupted."""
        self._start()
        if self._file(kind, volume).exists():
            self._write_index()
            self._server.reload()

    def withdraw(self, kind: Kind, volume: str) -> None:
        """End the use of a share; files that clients have open are closed."""
        if not self._index_file.exists():
            return  # the server has never been started
        name = share_name(kind, volume)
        with self._locks.locked(records.checked_file_name(name)):
            self._withdraw(name, kind, volume)

    def remove_export_record(self, kind: Kind, volume: str) -> None:
        """Remove the record by which a server would share a volume.

        `reconcile` disconnects the clients of a server that is running already.
        """
        if not self._index_file.exists():
            return  # the server has never been started
        name = share_name(kind, volume)
        with self._locks.locked(records.checked_file_name(name)):
            records.remove(self._file(kind, volume))

    def is_known(self, kind: Kind, volume: str) -> bool:
        """Return whether a volume is shared, or was while that ended."""
        file = self._file(kind, volume)
        return file.exists() or str(file) in self._index()

    def close_below(self, top: pathlib.Path) -> None:
        """End the use of all shares in a pool, which cannot be used."""
        for file in self._shares.glob('*.conf'):
            if f'{top}/' in file.read_text() and self._server.is_answering():
                self._server.close(share_name(*_volume_at(file)))

    def listed(self, kind: Kind, volume: str) -> str | None:
        """Return the text that says how a volume is shared, if it is."""
        file = self._file(kind, volume)
        return file.read_text() if file.exists() else None

    def reopen(self, kind: Kind, volume: str, text: str) -> None:
        """Share a withdrawn volume again as `listed` has said."""
        self._start()
        name = share_name(kind, volume)
        with self._locks.locked(records.checked_file_name(name)):
            self._replace(name, self._file(kind, volume), text)

    def is_published(self, kind: Kind, volume: str) -> bool:
        """Return whether a server that starts shares what it should."""
        file = self._file(kind, volume)
        return self._index_file.exists() and (
            not file.exists() or str(file) in self._index()
        )

    def reconcile(self) -> None:
        """Make the running server share what it should, and nothing else.

        Otherwise clients would keep using shares that are no longer listed.
        """
        if not self._server.reload():
            return
        for name in self._server.shares_in_use():
            kind, volume = _volume_of(name)
            if not _NAME.fullmatch(volume):
                continue  # a share of smbd itself
            with self._locks.locked(records.checked_file_name(name)):
                if not self._file(kind, volume).exists():
                    self._server.withdraw(name)

    def restore(self) -> list[str]:
        """Share again what is missing in the index, and nothing else.

        A share whose file was removed ends, since its users are not known any
        more. What is being changed is left alone. Returns what was restored.
        """
        index = self._index()
        files = sorted(self._shares.glob('*.conf'))
        if index == samba.format_index(files):
            return []
        listed = {pathlib.Path(path) for path in _INCLUDED.findall(index)}
        ended = [file for file in listed.difference(files) if self._end(file)]
        missing = [file for file in files if file not in listed]
        idle = [file for file in missing if not self._is_changing(file)]
        if idle:
            self._write_index()
            self._server.reload()
        return sorted(file.stem for file in (*ended, *idle))

    def _is_changing(self, file: pathlib.Path) -> bool:
        name = share_name(*_volume_at(file))
        with self._locks.try_locked(records.checked_file_name(name)) as free:
            return not free

    def _end(self, file: pathlib.Path) -> bool:
        """End the use of a share without a file; return whether it was."""
        kind, volume = _volume_at(file)
        name = share_name(kind, volume)
        with self._locks.try_locked(records.checked_file_name(name)) as free:
            if not free or file.exists() or not self.is_known(kind, volume):
                return False
            LOG.error(
                '%s is no longer shared: the file with its users is gone; '
                'they are let in when the shares are ensured',
                name,
            )
            self._withdraw(name, kind, volume)
            return True

    def _withdraw(self, name: str, kind: Kind, volume: str) -> None:
        if self.is_known(kind, volume):
            records.remove(self._file(kind, volume))
            self._server.withdraw(name)
            # Last: what the index does not have is not withdrawn again.
            self._write_index()

    def _apply(self, name: str, denied: bool = False) -> None:
        self._write_index()
        self._server.replace(name, denied)

    def _write_index(self) -> None:
        with self._locks.locked('index'):
            text = samba.format_index(sorted(self._shares.glob('*.conf')))
            if self._index() != text:
                records.write_text(self._index_file, text)

    def _index(self) -> str:
        """Return the text of the index; it is empty before the first start."""
        try:
            return self._index_file.read_text()
        except FileNotFoundError:
            return ''

    @property
    def _index_file(self) -> pathlib.Path:
        return self._folder / smb_settings.INDEX

    def _file(self, kind: Kind, volume: str) -> pathlib.Path:
        return self._shares / records.checked_file_name(f'{kind}.{volume}.conf')
