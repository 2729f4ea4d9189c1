"""The scheduler's view of a pool."""

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from manila_lite.host import Host

T = TypeVar('T')

MAX_CACHED = 1024
"""How many results are cached for each report."""


class Capabilities(dict[str, Any]):
    """What a back end reported about a pool, and what follows from it.

    A report never changes, so results that depend on nothing else are
    cached. Total and free capacity of a pool are part of its report.
    """

    def __init__(self, reported: Mapping[str, Any]):
        super().__init__(reported)
        self._cache: dict[Hashable, Any] = {}

    def cached(self, key: Hashable, function: Callable[..., T], *args: Any) -> T:
        """Return the cached result for a key, else that of the function.

        The result must depend on the report and the key only.
        """
        try:
            return self._cache[key]
        except KeyError:
            found = function(*args)
            if len(self._cache) >= MAX_CACHED:
                self._cache.clear()
            self._cache[key] = found
            return found


@dataclass(frozen=True, slots=True)
class Pool:
    """A pool as its driver reported it, with our own accounting.

    `capabilities` merges those of the pool over those of its back end.
    `total_gb` and `free_gb` are None when infinite or unknown.
    `allocated_gb` is the exact sum of the sizes placed here; `pending_gb`
    is the part of it that the reported `free_gb` does not include yet.
    `reported_at` identifies the report. Why the service is down, if it is, say
    `service_health`, the words of its driver, and the time of its last
    heartbeat, in seconds since 1970.
    """

    host: str
    capabilities: Capabilities
    zone: str | None
    service_up: bool
    service_enabled: bool
    total_gb: float | None
    free_gb: float | None
    allocated_gb: float
    pending_gb: float
    reported_at: float = 0.0
    service_health: str | None = None
    service_heartbeat_at: float | None = None

    def with_allocation(self, gb: int) -> 'Pool':
        """Return the pool with `gb` more allocated than was reported."""
        return replace(
            self, allocated_gb=self.allocated_gb + gb, pending_gb=self.pending_gb + gb
        )

    @property
    def service_host(self) -> str:
        """The share service of the pool, as 'host@backend'."""
        return Host.parse(self.host).service_host

    @property
    def backend(self) -> str:
        return Host.parse(self.host).backend

    @property
    def name(self) -> str:
        return Host.parse(self.host).pool
