"""Prefer pools near the source snapshot."""

from manila_lite.host import Host
from manila_lite.scheduler.pools import Pool
from manila_lite.scheduler.request import PlacementRequest
from manila_lite.scheduler.weighers import Weigher


class HostAffinityWeigher(Weigher):
    """Prefer the pool, the back end or the machine of the snapshot."""

    def applies(self, request: PlacementRequest) -> bool:
        return request.from_snapshot and request.host is not None

    def weigh(self, pool: Pool, request: PlacementRequest) -> float:
        if not request.from_snapshot or request.host is None:
            return 0.0
        if pool.host == request.host:
            return 3.0
        wanted = Host.parse(request.host)
        if pool.service_host == wanted.service_host:
            return 2.0
        machine = Host.parse(pool.host).machine
        return 1.0 if machine == wanted.machine else 0.0
