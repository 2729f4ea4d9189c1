"""Bring a replica up to date: send what has changed since the last copy."""

import contextlib
import dataclasses
import pathlib
import time

from manila_lite import exception
from manila_lite.share.drivers.btrfs import kernel
from manila_lite.share.drivers.btrfs.backend import BtrfsBackend
from manila_lite.share.drivers.btrfs.catalog import Kind
from manila_lite.share.drivers.btrfs.moves.copies import ONCE, Copies
from manila_lite.share.drivers.btrfs.moves.peers import BtrfsPeers
from manila_lite.share.drivers.btrfs.moves.replicas import Replica, ReplicaState
from manila_lite.share.drivers.btrfs.moves.sending import (
    CommonCopy,
    by_content,
    common_copy,
    send_changes,
)
from manila_lite.share.drivers.btrfs.moves.transfer import TransferFailed
from manila_lite.share.drivers.contract.replication import ReplicaList
from manila_lite.share.drivers.files.replicas import (
    ReplicaUnreachable,
    Role,
    reaching,
    require_leading,
)


class BtrfsSyncing:
    """Both sides keep the copy that the next difference is based on.

    Callers have locked the copies of our replica.
    """

    def __init__(self, backend: BtrfsBackend, peers: BtrfsPeers):
        self._backend = backend
        self._peers = peers

    def follow(self, own: Replica, leader: Replica) -> bool:
        """Let a replica show what the leader has; return if that is new.

        Raises ReplicaUnreachable if that has no content to be copied, and
        TransferFailed if it could not be; the replica is as before then.
        """
        began_at = time.time()
        with reaching(leader.name):
            before = leader.state()
            require_leading(leader.name, before, own.state())
            sent, limit = self._take(own, leader)
        copy = self._send(own, leader, sent)
        with reaching(leader.name):
            after = leader.state()
        if (after.role, after.generation) != (before.role, before.generation):
            raise ReplicaUnreachable(msg=f'{leader.name} has changed its role')
        is_new = own.state().shown != copy.name
        with self._backend.changing(own.name):
            self._show(own, copy, limit)
            own.write_state(
                ReplicaState(
                    role=Role.PASSIVE,
                    generation=after.generation,
                    source=leader.name,
                    source_host=leader.host,
                    source_volume=leader.volume,
                    shown=copy.name,
                    synced_at=began_at,
                    others=own.state().others,
                )
            )
            own.pool.commit()
        self._prune(own, leader, copy)
        return is_new

    def _take(self, own: Replica, leader: Replica) -> tuple[pathlib.Path, int]:
        """Return a copy of what the leader has now, and its size."""
        with leader.backend.changing(leader.name):
            leader.require_whole()
            state = leader.state()
            if own.host and state.others.get(own.name) != own.host:
                others = state.others | {own.name: own.host}
                leader.write_state(dataclasses.replace(state, others=others))
            pool, volume = leader.pool, leader.volume
            return (
                leader.copies.create_snapshot(pool.path(Kind.SHARE, volume), own.name),
                pool.limit_bytes(Kind.SHARE, volume),
            )

    def _send(self, own: Replica, leader: Replica, sent: pathlib.Path) -> pathlib.Path:
        """Return the copy on our side that equals the one to be sent."""
        ours = own.copies
        ours.prepare()
        with reaching(leader.name):
            sources = by_content(leader.copies.whole())
        common = common_copy(sources, ours)
        received = self._transfer(sent, common, ours)
        if received is None:
            assert common is not None
            with reaching(leader.name):
                kernel.destroy(sent)
            return common[1]
        return ours.confirm(received)

    def _transfer(
        self, sent: pathlib.Path, common: CommonCopy | None, ours: Copies
    ) -> pathlib.Path | None:
        try:
            return send_changes(sent, common, ours, self._backend.fencing.check_call)
        except TransferFailed as error:
            if error.is_at_source:
                raise ReplicaUnreachable(msg=str(error)) from error
            raise

    def _show(self, own: Replica, copy: pathlib.Path, limit: int) -> None:
        pool, volume = own.pool, own.volume
        path = pool.path(Kind.SHARE, volume)
        state = own.state()
        if state.role == Role.PASSIVE and state.shown == copy.name:
            kernel.set_read_only(path, True)
            if pool.limit_bytes(Kind.SHARE, volume) != limit:
                pool.set_limit_bytes(volume, limit)
            return
        pool.show(volume, copy, limit)
        self._backend.exports.refresh(Kind.SHARE, volume)
        self._backend.exports.republish(Kind.SHARE, volume, path)

    def _prune(self, own: Replica, leader: Replica, copy: pathlib.Path) -> None:
        """Remove the copies that are no longer the base of a transfer."""
        for target in (own.name, leader.name, ONCE):
            own.copies.discard(target, copy)
        shown = kernel.content_id(copy)
        with (
            contextlib.suppress(exception.ShareBackendException),
            reaching(leader.name),
        ):
            theirs = leader.copies
            kept = [path for path in theirs.whole() if kernel.content_id(path) == shown]
            for target in (leader.name, own.name):
                theirs.discard(target, *kept)

    def forget_others(
        self, own: Replica, leader: Replica, replica_list: ReplicaList
    ) -> None:
        """Remove the copies that replicas can no longer use."""
        self._backend.fencing.check_call()  # a late call has another list
        hosts = {one['name']: one['host'] for one in replica_list}
        for name in own.copies.targets() - {own.name, leader.name}:
            if name not in hosts:
                own.copies.discard(name)
                continue
            other = self._peers.replica_at(hosts[name], name)
            if other is None:
                continue
            try:
                received = by_content(other.copies.received_for(name)).keys()
            except (OSError, exception.ShareBackendException):
                continue  # it has got out of reach
            if not by_content(own.copies.sent_for(name)).keys() & received:
                own.copies.discard(name)

    # Snapshots

    def copy_snapshot(
        self, own: Replica, leader: Replica, source: str, name: str
    ) -> bool:
        """Copy a snapshot; return False if the leader does not have it."""
        with reaching(leader.name):
            found = leader.backend.find(Kind.SNAPSHOT, source)
            if found is None:
                return False
            pool, record = found
            theirs, ours = leader.copies, own.copies
            ours.prepare()
            with leader.backend.changing(source):
                sent = theirs.create_snapshot(
                    pool.path(Kind.SNAPSHOT, record['volume']), ONCE
                )
                limit = pool.limit_bytes(Kind.SNAPSHOT, record['volume'])
        try:
            with reaching(leader.name):
                sources = by_content(theirs.whole())
            common = common_copy(sources, ours)
            received = self._transfer(sent, common, ours)
            copy = received or (common[1] if common else None)
            assert copy is not None
            if received is not None:
                kernel.flush(own.pool.top)
            with self._backend.changing(name):
                ours_record = {
                    key: value
                    for key, value in own.record().items()
                    if key in ('share_proto', 'server')
                } | {'volume': name, 'of': own.volume}
                catalog = own.pool.catalog
                with catalog.putting(Kind.SNAPSHOT, name, ours_record):
                    own.pool.add_snapshot(name, copy, limit)
                own.pool.commit()
        finally:
            ours.discard(ONCE)
            with contextlib.suppress(OSError):
                if sent.exists():
                    kernel.destroy(sent)
        return True
