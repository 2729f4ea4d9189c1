"""The scheduler's view of a pool."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from manila_lite.host import Host


@dataclass(frozen=True, slots=True)
class Pool:
    """A pool as its driver reported it, with our own accounting.

    `capabilities` merges those of the pool over those of its back end.
    `total_gb` and `free_gb` are None when infinite or unknown.
    `allocated_gb` is the exact sum of the sizes placed here; `pending_gb`
    is the part of it that the reported `free_gb` does not include yet.
    `reported_at` identifies the report.
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
        """The share service of the pool, as 'host@backend'."""
        return Host.parse(self.host).service_host

    @property
    def backend(self) -> str:
        return Host.parse(self.host).backend

    @property
    def name(self) -> str:
        return Host.parse(self.host).pool
