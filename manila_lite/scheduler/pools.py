"""The scheduler's view of a pool."""

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from manila_lite.host import Host

T = TypeVar('T')

MAX_CONCLUSIONS = 1024
"""How many answers to keep for each report."""


class Capabilities(dict[str, Any]):
    """What a back end reported about a pool, and what follows from it.

    A report never changes, so that conclusions are drawn once. Total and
    free capacity of a pool are part of its report.
    """

    def __init__(self, reported: Mapping[str, Any]):
        super().__init__(reported)
        self._conclusions: dict[Hashable, Any] = {}

    def conclude(
        self, question: Hashable, answer: Callable[..., T], *args: Any
    ) -> T:
        """Return the answer to a question about the report.

        The answer must depend on the report and the question only.
        """
        try:
            return self._conclusions[question]
        except KeyError:
            found = answer(*args)
            if len(self._conclusions) >= MAX_CONCLUSIONS:
                self._conclusions.clear()
            self._conclusions[question] = found
            return found


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
    capabilities: Capabilities
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
