"""The NFS or CIFS export of a share, by its protocol."""

from collections.abc import Callable, Iterable, Iterator
import contextlib
import pathlib
import re
from typing import NamedTuple

from oslo_log import log
from oslo_utils import netutils

from manila_lite import exception
from manila_lite.share.drivers import base, ganesha
from manila_lite.share.drivers.btrfs.catalog import Kind
from manila_lite.share.drivers.btrfs.exports.nfs.exports import Exports, pseudo_path
from manila_lite.share.drivers.btrfs.exports.smb.smb_exports import (
    SmbExports,
    check_volume,
    share_name,
)
from manila_lite.share.drivers.nfs_clients import clients_of
from manila_lite.share.drivers.records import Record

LOG = log.getLogger(__name__)

NFS, CIFS = 'NFS', 'CIFS'
_LOCATIONS = {
    NFS: re.compile(r'[^/]*:/shares/([A-Za-z0-9][A-Za-z0-9._-]{0,199})'),
    CIFS: re.compile(r'\\\\[^\\]+\\([A-Za-z0-9][A-Za-z0-9._-]{0,199})'),
}


class Exporters(NamedTuple):
    """The servers that may export a volume."""

    nfs: Exports
    cifs: SmbExports | None


ExportersOf = Callable[[Kind, str], Exporters | None]
"""The servers of a volume, or None if it cannot have any now."""


class Protocols:
    """The exports of all servers; a volume is exported by one of them."""

    def __init__(
        self,
        exporters_of: ExportersOf,
        all_exporters: Callable[[], Iterable[Exporters]],
        has_cifs: bool,
    ):
        self._exporters_of = exporters_of
        self._all_exporters = all_exporters
        self._has_cifs = has_cifs

    def _nfs_of(self, kind: Kind, volume: str) -> Exports | None:
        found = self._exporters_of(kind, volume)
        return found.nfs if found else None

    def _cifs_of(self, kind: Kind, volume: str) -> SmbExports | None:
        found = self._exporters_of(kind, volume)
        return found.cifs if found else None

    def _nfs(self, kind: Kind, volume: str) -> Exports:
        return self._required(kind, volume).nfs

    def _required(self, kind: Kind, volume: str) -> Exporters:
        found = self._exporters_of(kind, volume)
        if found is None:
            raise exception.ShareBackendException(msg=f'{volume} has no share server')
        return found

    def has_protocol(self, share_proto: str) -> bool:
        """Return whether there can be shares with a protocol."""
        return share_proto == NFS or (share_proto == CIFS and self._has_cifs)

    def check(self, share_proto: str, volume: str) -> None:
        """Raise ValueError if a volume cannot be shared by a protocol."""
        if not self.has_protocol(share_proto):
            raise ValueError(f'the back end has no {share_proto} shares')
        if share_proto == CIFS:
            check_volume(volume)

    def publish(
        self,
        kind: Kind,
        record: Record,
        source: pathlib.Path,
        rules: list[base.AccessRuleForDriver],
        read_only: bool = False,
        denies_all: bool = False,
    ) -> base.AccessReplies:
        """Export a volume to the clients that the rules allow, and no others.

        With `denies_all` no client gets access, although the replies are
        those of the rules. A snapshot without clients is not exported.
        """
        volume = record['volume']
        if record['share_proto'] == CIFS:
            self.check(CIFS, volume)
            cifs = self._required(kind, volume).cifs
            assert cifs
            return cifs.publish(
                kind, volume, source, rules, read_only, denies_all, record.get('of')
            )
        clients, replies = clients_of(rules, read_only, ganesha.refusal)
        if denies_all:
            clients = []
        if kind is Kind.SNAPSHOT and not clients:
            self._withdraw_nfs(kind, volume)
        else:
            self._nfs(kind, volume).publish(
                kind, volume, source, clients, record.get('of')
            )
        return replies

    def republish(self, kind: Kind, volume: str, source: pathlib.Path) -> None:
        """Export what is at the path of a volume now, to the same clients."""
        found = self._exporters_of(kind, volume)
        if found:
            found.nfs.republish(kind, volume, source)
            if found.cifs:
                found.cifs.republish(kind, volume)

    def refresh(self, kind: Kind, volume: str) -> None:
        """Invalidate a server's cache of the content of a volume."""
        for exports in self._exporting(kind, volume):
            exports.refresh(kind, volume)

    def withdraw(self, kind: Kind, volume: str) -> None:
        """End an export; files that clients have open are closed."""
        for exports in self._exporting(kind, volume):
            exports.withdraw(kind, volume)

    def snapshots_of(self, volume: str) -> set[str]:
        """Return the exported snapshots of a volume, also of a lost pool."""
        return {
            snapshot
            for nfs, cifs in self._all_exporters()
            for exports in (nfs, cifs)
            if exports
            for snapshot in exports.snapshots_of(volume)
        }

    def _withdraw_nfs(self, kind: Kind, volume: str) -> None:
        nfs = self._nfs_of(kind, volume)
        if nfs:
            nfs.withdraw(kind, volume)

    def is_published(self, kind: Kind, volume: str, source: pathlib.Path) -> bool:
        """Return whether the files and the mount are as they should be."""
        found = self._exporters_of(kind, volume)
        return found is None or (
            found.nfs.is_published(kind, volume, source)
            and (not found.cifs or found.cifs.is_published(kind, volume))
        )

    def listed(self, kind: Kind, record: Record) -> str | None:
        """Return the text that says how a volume is exported, if it is."""
        volume = record['volume']
        if record['share_proto'] == CIFS:
            cifs = self._cifs_of(kind, volume)
            return cifs.listed(kind, volume) if cifs else None
        return self._nfs(kind, volume).listed(kind, volume)

    def close(self, kind: Kind, record: Record) -> None:
        """End the use of a volume; on return no write is in progress."""
        volume = record['volume']
        if record['share_proto'] != CIFS:
            self._nfs(kind, volume).close(kind, volume)
        elif cifs := self._cifs_of(kind, volume):
            cifs.withdraw(kind, volume)

    def reopen(
        self, kind: Kind, record: Record, source: pathlib.Path, text: str
    ) -> None:
        """Export a volume again as `listed` has said."""
        volume = record['volume']
        if record['share_proto'] != CIFS:
            self._nfs(kind, volume).reopen(kind, volume, source, text)
        elif cifs := self._cifs_of(kind, volume):
            cifs.reopen(kind, volume, text)

    @contextlib.contextmanager
    def suspended(
        self, kind: Kind, record: Record, source: pathlib.Path
    ) -> Iterator[None]:
        """Admit no clients, and after the block only if that fails.

        What they were writing has been written when the block begins.
        """
        text = self.listed(kind, record)
        try:
            self.close(kind, record)
            yield
        except BaseException:
            if text is not None:
                try:
                    self.reopen(kind, record, source, text)
                except (OSError, exception.ShareBackendException) as error:
                    LOG.error(
                        '%(volume)s lets no clients in: %(error)s',
                        {'volume': record['volume'], 'error': error},
                    )
            raise

    def remove_export_record(self, kind: Kind, volume: str) -> None:
        """Remove the records by which servers would export a volume."""
        for exports in self._exporting(kind, volume):
            exports.remove_export_record(kind, volume)

    def _exporting(self, kind: Kind, volume: str) -> list[Exports | SmbExports]:
        """Return what exports a volume, or may; none if its servers are gone."""
        return [found for found in self._exporters_of(kind, volume) or () if found]


def location(kind: Kind, record: Record, address: str) -> str:
    """Return what clients mount from an address of this machine."""
    volume = record['volume']
    if record['share_proto'] == CIFS:
        return f'\\\\{_unc_host(address)}\\{share_name(kind, volume)}'
    return f'{netutils.escape_ipv6(address)}:{pseudo_path(kind, volume)}'


def volume_at(share_proto: str, path: str) -> str | None:
    """Return the volume of the share that clients mount from a location."""
    match = _LOCATIONS[share_proto].fullmatch(path)
    return match[1] if match else None


def _unc_host(address: str) -> str:
    """Return an address as it is written in a UNC path."""
    if ':' in address:
        return f'{address.replace(":", "-")}.ipv6-literal.net'
    return address


def volume_of(share: base.ShareForDriver) -> str:
    """Return the volume of a share whose record is not found.

    Only a managed one has another name than its share.
    """
    paths = [one['path'] for one in share['export_locations']]
    found = (volume_at(share['share_proto'], path) for path in paths)
    return next((volume for volume in found if volume), share['name'])
