"""The NFS or CIFS export of a share, by its protocol."""

from collections.abc import Callable
import contextlib
import pathlib

from oslo_utils import netutils

from manila_lite import exception
from manila_lite.share.drivers import base
from manila_lite.share.drivers.btrfs.catalog import Kind
from manila_lite.share.drivers.btrfs.exports import Exports
from manila_lite.share.drivers.btrfs.exports import pseudo_path
from manila_lite.share.drivers.btrfs.smb_exports import SmbExports
from manila_lite.share.drivers.btrfs.smb_exports import check_volume
from manila_lite.share.drivers.btrfs.smb_exports import share_name
from manila_lite.share.drivers.nfs_clients import clients_of
from manila_lite.share.drivers.records import Record

NFS, CIFS = 'NFS', 'CIFS'


NfsOf = Callable[[Kind, str], Exports | None]
"""The NFS server of a volume, or None if it cannot have one now."""


class Protocols:
    """The exports of all servers; a volume is exported by one of them."""

    def __init__(self, nfs_of: NfsOf, cifs: SmbExports | None):
        self._nfs_of = nfs_of
        self._cifs = cifs

    def _nfs(self, kind: Kind, volume: str) -> Exports:
        found = self._nfs_of(kind, volume)
        if found is None:
            raise exception.ShareBackendException(
                msg=f'{volume} has no share server'
            )
        return found

    def has_protocol(self, share_proto: str) -> bool:
        """Return whether there can be shares with a protocol."""
        return share_proto == NFS or (share_proto == CIFS and bool(self._cifs))

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
            assert self._cifs
            return self._cifs.publish(
                kind, volume, source, rules, read_only, denies_all
            )
        clients, replies = clients_of(rules, read_only=read_only)
        if denies_all:
            clients = []
        if kind is Kind.SNAPSHOT and not clients:
            self._withdraw_nfs(kind, volume)
        else:
            self._nfs(kind, volume).publish(kind, volume, source, clients)
        return replies

    def republish(self, kind: Kind, volume: str, source: pathlib.Path) -> None:
        """Export what is at the path of a volume now, to the same clients."""
        nfs = self._nfs_of(kind, volume)
        if nfs:
            nfs.republish(kind, volume, source)
        if self._cifs:
            self._cifs.republish(kind, volume)

    def refresh(self, kind: Kind, volume: str) -> None:
        """Let a server forget what it knows of the content of a volume."""
        nfs = self._nfs_of(kind, volume)
        if nfs:
            nfs.refresh(kind, volume)
        if self._cifs:
            self._cifs.refresh(kind, volume)

    def withdraw(self, kind: Kind, volume: str) -> None:
        """End an export; files that clients have open are closed."""
        self._withdraw_nfs(kind, volume)
        if self._cifs:
            self._cifs.withdraw(kind, volume)

    def _withdraw_nfs(self, kind: Kind, volume: str) -> None:
        nfs = self._nfs_of(kind, volume)
        if nfs:
            nfs.withdraw(kind, volume)

    def is_published(
        self, kind: Kind, volume: str, source: pathlib.Path
    ) -> bool:
        """Return whether the files and the mount are as they should be."""
        nfs = self._nfs_of(kind, volume)
        return (nfs is None or nfs.is_published(kind, volume, source)) and (
            not self._cifs or self._cifs.is_published(kind, volume)
        )

    def listed(self, kind: Kind, record: Record) -> str | None:
        """Return the text that says how a volume is exported, if it is."""
        volume = record['volume']
        if record['share_proto'] == CIFS:
            return self._cifs.listed(kind, volume) if self._cifs else None
        return self._nfs(kind, volume).listed(kind, volume)

    def close(self, kind: Kind, record: Record) -> None:
        """End the use of a volume; no write is in progress any more."""
        volume = record['volume']
        if record['share_proto'] != CIFS:
            self._nfs(kind, volume).close(kind, volume)
        elif self._cifs:
            self._cifs.withdraw(kind, volume)

    def reopen(
        self, kind: Kind, record: Record, source: pathlib.Path, text: str
    ) -> None:
        """Export a volume again as `listed` has said."""
        volume = record['volume']
        if record['share_proto'] != CIFS:
            self._nfs(kind, volume).reopen(kind, volume, source, text)
        elif self._cifs:
            self._cifs.reopen(kind, volume, text)

    # Only NFS shares have replicas.

    def number(self, kind: Kind, volume: str) -> int | None:
        """Return the number of an NFS export."""
        nfs = self._nfs_of(kind, volume)
        return nfs.number(kind, volume) if nfs else None

    def suspended(
        self, kind: Kind, volume: str, source: pathlib.Path
    ) -> contextlib.AbstractContextManager[None]:
        """Let no clients in, not even after the block unless that fails."""
        return self._nfs(kind, volume).suspended(kind, volume, source)

    def unlist(self, kind: Kind, volume: str) -> None:
        """Let a server that is not running yet not export a volume."""
        self._nfs(kind, volume).unlist(kind, volume)


def location(kind: Kind, record: Record, address: str) -> str:
    """Return what clients mount from an address of this machine."""
    volume = record['volume']
    if record['share_proto'] == CIFS:
        return f'\\\\{_unc_host(address)}\\{share_name(kind, volume)}'
    return f'{netutils.escape_ipv6(address)}:{pseudo_path(kind, volume)}'


def _unc_host(address: str) -> str:
    """Return an address as it is written in a UNC path."""
    if ':' in address:
        return f'{address.replace(":", "-")}.ipv6-literal.net'
    return address
