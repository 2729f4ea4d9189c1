"""What the scheduler knows about one pool."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Pool:
    """One pool as its driver reported it, with our own books beside it.

    `capabilities` are the pool's own over those of its back end.
    `total_gb` and `free_gb` are None when infinite or unknown.
    `allocated_gb` is the exact sum of the sizes we placed here;
    `pending_gb` is its part that the reported `free_gb` cannot know yet.
    `reported_at` names the report that all of this holds for.
    """

    host: str
    capabilities: Mapping[str, Any]
    zone: str | None
    service_up: bool
    service_enabled: bool
    total_gb: float | None
    free_gb: float | None
    allocated_gb: float
    pending_gb: float
    reported_at: float = 0.0

    @property
    def service_host(self) -> str:
        """The service that runs the pool, as 'host@backend'."""
        return self.host.partition('#')[0]

    @property
    def backend(self) -> str:
        return self.service_host.partition('@')[2]

    @property
    def name(self) -> str:
        return self.host.partition('#')[2]
