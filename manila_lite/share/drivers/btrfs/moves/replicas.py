"""Replicas on this machine, and what is recorded of them.

    top/records/replicas/<share>.json    its role, and what it is a copy of

A share without that record is active, and has never had replicas. If several
replicas claim to be active, the one with the highest generation is.
"""

import dataclasses

from manila_lite.host import Host
from manila_lite.share.drivers.btrfs.backend import BtrfsBackend
from manila_lite.share.drivers.btrfs.catalog import Kind
from manila_lite.share.drivers.btrfs.moves.copies import Copies
from manila_lite.share.drivers.btrfs.volumes.pool import Pool
from manila_lite.share.drivers.files.replication import DR, ReplicaUnreachable, Role
from manila_lite.share.drivers.records import Record


@dataclasses.dataclass(frozen=True)
class ReplicaState:
    """The content of the record.

    A passive replica shows the copy `shown` of `source`, as of `synced_at`;
    without `shown` it is not a copy of it. The source of a retiring one is
    its successor. `others` has the hosts of the replicas that were known.
    """

    role: str = Role.ACTIVE
    generation: int = 0
    source: str | None = None
    source_host: str | None = None
    source_volume: str | None = None
    shown: str | None = None
    synced_at: float | None = None
    others: dict[str, str] = dataclasses.field(default_factory=dict)

    @property
    def has_content(self) -> bool:
        return self.shown is not None


class Replica:
    """One replica in a pool, addressed by the name of its share instance."""

    def __init__(self, backend: BtrfsBackend, name: str, host: str | None):
        self.backend = backend
        self.name = name
        self.host = host

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

    def locations(self) -> list:
        return self.backend.locations(Kind.SHARE, self.record())

    def become_passive(self, leader: 'Replica', replication_type: str | None) -> None:
        """Become an outdated follower of another replica, without clients.

        The caller has locked it.
        """
        ended = self._clients_end_at(replication_type)
        try:
            self.record_as_passive(leader)
        finally:  # clients lose a pool that is read-only, too
            for kind, volume in ended:
                self.backend.exports.withdraw(kind, volume)

    def become_passive_before_exports(
        self, leader: 'Replica', replication_type: str | None
    ) -> None:
        """Do the same while the servers may not be running."""
        ended = self._clients_end_at(replication_type)
        try:
            self.record_as_passive(leader)
        finally:
            for kind, volume in ended:
                self.backend.exports.remove_export_record(kind, volume)

    def record_as_passive(self, leader: 'Replica') -> None:
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
