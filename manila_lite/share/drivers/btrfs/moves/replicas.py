"""Replicas on this machine, and what is recorded of them.

    top/records/replicas/<share>.json    its role, and what it is a copy of

A share without that record is active, and has never had replicas.
"""

from collections.abc import Callable, Iterator
import contextlib
import dataclasses
from typing import Self

from manila_lite.host import Host
from manila_lite.share.drivers.btrfs import kernel
from manila_lite.share.drivers.btrfs.backend import BtrfsBackend
from manila_lite.share.drivers.btrfs.catalog import Kind
from manila_lite.share.drivers.btrfs.moves.copies import Copies
from manila_lite.share.drivers.btrfs.volumes.pool import Pool
from manila_lite.share.drivers.files import replicas
from manila_lite.share.drivers.files.replicas import DR, ReplicaUnreachable, Role
from manila_lite.share.drivers.records import Record


@dataclasses.dataclass(frozen=True)
class ReplicaState(replicas.ReplicaState):
    """The content of the record.

    A passive replica shows the copy `shown` of `source`; without `shown` it is
    not a copy of it. `others` has the hosts of the replicas that were known.
    """

    source_volume: str | None = None
    shown: str | None = None
    others: dict[str, str] = dataclasses.field(default_factory=dict)

    @property
    def has_content(self) -> bool:
        return self.shown is not None


class Replica(replicas.Replica):
    """One replica in a pool."""

    def __init__(self, backend: BtrfsBackend, name: str, host: str | None):
        self.backend, self.name, self.host = backend, name, host

    @property
    def pool(self) -> Pool:
        """The pool that it is in, or is to be created in."""
        found = self.find()
        if found is not None:
            return found[0]
        pools = self.backend.pools
        name = Host.parse(self.host or '').pool
        if name not in pools and (name or len(pools) != 1):
            raise ReplicaUnreachable(msg=f'there is no pool {name}')
        return pools[name] if name else next(iter(pools.values()))

    @property
    def copies(self) -> Copies:
        return Copies(self.pool.top, self.name)

    @property
    def volume(self) -> str:
        return self.record()['volume']

    def find(self) -> tuple[Pool, Record] | None:
        return self.backend.find(Kind.SHARE, self.name)

    def record(self) -> Record:
        """Return the record of the share; raises ReplicaUnreachable."""
        found = self.find()
        if found is None:
            raise ReplicaUnreachable(msg=f'{self.name} does not exist')
        return found[1]

    def require_whole(self) -> None:
        """Raise ReplicaUnreachable if its content is not to be copied."""
        record = self.record()
        state = self.state()
        if (
            'reverting_to' in record
            or not self.pool.has(Kind.SHARE, record['volume'])
            or (state.role == Role.PASSIVE and state.shown is None)
        ):
            raise ReplicaUnreachable(msg=f'{self.name} is incomplete')

    def state(self) -> ReplicaState:
        record = self.pool.catalog.replicas.find(self.name)
        return ReplicaState(**record) if record else ReplicaState()

    def write_state(self, state: ReplicaState) -> None:
        self.pool.catalog.replicas.put(self.name, dataclasses.asdict(state))

    def forget_state(self) -> None:
        """Remove the record of a replica that was not created."""
        self.pool.catalog.replicas.drop(self.name)

    def has_snapshot(self, name: str) -> bool:
        return self.backend.find(Kind.SNAPSHOT, name) is not None

    @contextlib.contextmanager
    def copying(self) -> Iterator[bool]:
        with self.backend.try_lock_copies(self.name) as is_free:
            if is_free:
                self.backend.fencing.check_call()
            yield is_free

    def become_active(self, generation: int, hosts: dict[str, str]) -> None:
        """Let clients write; `hosts` has those of other replicas."""
        with self.backend.changing(self.name):
            kernel.set_read_only(self.pool.path(Kind.SHARE, self.volume), False)
            others = self.state().others | hosts
            self.write_state(ReplicaState(generation=generation, others=others))
            self.pool.commit()

    def become_passive(self, leader: Self, replication_type: str | None) -> None:
        self._become_passive(leader, replication_type, self.backend.exports.withdraw)

    def become_passive_before_exports(
        self, leader: Self, replication_type: str | None
    ) -> None:
        """Do the same while the servers may not be running."""
        remove = self.backend.exports.remove_export_record
        self._become_passive(leader, replication_type, remove)

    def _become_passive(
        self,
        leader: Self,
        replication_type: str | None,
        end_export: Callable[[Kind, str], object],
    ) -> None:
        before = self.state()
        if before.role == Role.PASSIVE and before.source == leader.name:
            return
        with self.backend.changing(self.name):
            ended = self._clients_end_at(replication_type)
            try:
                self._record_as_passive(leader)
            finally:  # clients lose a pool that is read-only, too
                for kind, volume in ended:
                    end_export(kind, volume)

    def _record_as_passive(self, leader: Self) -> None:
        before = self.state()
        self.write_state(
            ReplicaState(
                role=Role.PASSIVE,
                generation=before.generation,
                source=leader.name,
                source_host=leader.host,
                others=before.others,
            )
        )

    def _clients_end_at(self, replication_type: str | None) -> list[tuple[Kind, str]]:
        """Return the volumes that clients lose with the active role."""
        volume = self.volume
        snapshots = [
            (Kind.SNAPSHOT, record['volume'])
            for _, record in self.pool.catalog.records(Kind.SNAPSHOT)
            if replication_type == DR and record['of'] == volume
        ]
        return [(Kind.SHARE, volume), *snapshots]
