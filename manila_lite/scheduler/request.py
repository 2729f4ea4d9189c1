"""The input of a placement decision."""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
import functools
from typing import Any


@dataclass(frozen=True, slots=True)
class PlacementRequest:
    """A share instance to be placed.

    `size` is the additional size in GiB; for an extend it is the growth.
    `host` is the pool of the share (extend, manage), of the source
    snapshot, or of the active replica (new replica); `replication_domain`
    is that of its back end. `replica_hosts` are the pools that already have
    a replica of the share. `share` holds what expressions see as `share.x`.
    Empty `availability_zones` or `same_host` mean any. `subnets` counts
    the subnets of the share network by zone, None being the default zone;
    without a share network it is None.

    A share group is placed like a share without a size and a protocol.
    `group_host` is the pool of the group of a share, and
    `consistent_snapshot_support` is what the group demands or has.
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
    is_manage: bool = False
    from_snapshot: bool = False
    host: str | None = None
    replication_domain: str | None = None
    replica_hosts: frozenset[str] = frozenset()
    group_host: str | None = None
    consistent_snapshot_support: str | None = None

    # What capabilities are matched with, and what limits depend on: objects
    # that are equal for equal demands, and cheap to hash.
    demand: Hashable = field(init=False, repr=False, compare=False)
    capacity_demand: Hashable = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        specs = tuple(sorted(self.extra_specs.items()))
        demand = _demand(self.share_proto, specs)
        object.__setattr__(self, 'demand', demand)
        object.__setattr__(
            self, 'capacity_demand', _demand(demand, self.is_extend, self.from_snapshot)
        )

    @property
    def kind(self) -> Hashable | None:
        """Return what requests have in common that are alike to most filters.

        None if more than the demand, the size, the zones and the hint `only_host`
        makes a difference.
        """
        plain = PlacementRequest(
            size=self.size,
            share_proto=self.share_proto,
            extra_specs=self.extra_specs,
            availability_zones=self.availability_zones,
            share=self.share,
            only_host=self.only_host,
        )
        if self != plain:
            return None
        return (
            self.size,
            self.capacity_demand,
            self.availability_zones,
            self.only_host,
        )

    @property
    def stays(self) -> bool:
        """Whether the share is on its pool already."""
        return self.is_extend or self.is_manage

    def spec(self, key: str) -> str | None:
        """Return an extra spec, written with or without `capabilities:`."""
        specs = self.extra_specs
        return specs.get(key, specs.get(f'capabilities:{key}'))


def required_capabilities(
    extra_specs: Mapping[str, str], has_qos_type: bool
) -> Mapping[str, str]:
    """Return the extra specs that a share demands of its pool.

    These are those of its type; a share with a QoS type demands support of
    QoS types as well, whatever its type has become since.
    """
    if not has_qos_type:
        return extra_specs
    return {'qos_type_support': '<is> True', **extra_specs}


def replica_capabilities(demanded: Mapping[str, str]) -> Mapping[str, str]:
    """Return what is demanded of the pool of a further replica.

    Its back end is one of the replication domain, whatever its name: only
    the first replica is on the back end that the type names.
    """
    return {
        key: value
        for key, value in demanded.items()
        if key.removeprefix('capabilities:') != 'share_backend_name'
    }


@functools.lru_cache(maxsize=4096)
def _demand(*parts: Hashable) -> object:
    """Return one object for equal demands; it is compared very often."""
    return object()
