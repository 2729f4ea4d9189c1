"""What is asked of the scheduler."""

from collections.abc import Mapping
from dataclasses import dataclass
from dataclasses import field
from typing import Any


@dataclass(frozen=True, slots=True)
class PlacementRequest:
    """One share instance looking for room.

    `size` is what the pool would have to hold more, so for an extend it is
    the growth. `host` is where the share is (extend) or where the snapshot
    it is made from is, or the active replica of a share that is copied;
    its back end replicates within `replication_domain`. `replica_hosts`
    are the pools that have a replica of the share already. `share` is what
    expressions see as `share.x`.
    No `availability_zones`, no `same_host`: anywhere. `subnets` says how
    many there are by the zone they serve, or None for the rest; without a
    share network it is None.
    """

    size: int
    share_proto: str
    extra_specs: Mapping[str, str] = field(default_factory=dict)
    availability_zones: tuple[str, ...] = ()
    subnets: Mapping[str | None, int] | None = None
    same_host: frozenset[str] = frozenset()
    different_host: frozenset[str] = frozenset()
    only_host: str | None = None
    attempted: frozenset[str] = frozenset()
    share: Mapping[str, Any] = field(default_factory=dict)
    is_extend: bool = False
    from_snapshot: bool = False
    host: str | None = None
    replication_domain: str | None = None
    replica_hosts: frozenset[str] = frozenset()

    def spec(self, key: str) -> str | None:
        """The value of an extra spec, written with or without its scope."""
        specs = self.extra_specs
        return specs.get(key, specs.get(f'capabilities:{key}'))
