"""The filters for share groups, which have several share types."""

from collections.abc import Iterable, Sequence

from manila_lite.scheduler.filters import Filter
from manila_lite.scheduler.filters.capabilities import DriverFilter
from manila_lite.scheduler.filters.places import ConsistentSnapshotFilter
from manila_lite.scheduler.pools import Pool
from manila_lite.scheduler.request import PlacementRequest


class _ForRequest(Filter):
    """A filter that judges pools by another request."""

    def __init__(self, rule: Filter, request: PlacementRequest):
        self.rule = rule
        self.request = request
        self.name = rule.name  # type: ignore[misc]
        self.detail = rule.detail  # type: ignore[misc]

    def applies(self, request: PlacementRequest) -> bool:
        return self.rule.applies(self.request)

    def rejection_reason(self, pool: Pool, request: PlacementRequest) -> str | None:
        return self.rule.rejection_reason(pool, self.request)

    def rejection_reasons(
        self, pools: Sequence[Pool], request: PlacementRequest
    ) -> list[str | None]:
        return self.rule.rejection_reasons(pools, self.request)


def for_all(
    filters: Sequence[Filter], requests: Iterable[PlacementRequest]
) -> list[Filter]:
    """Return the filters for pools that are right for all requests.

    The function that a driver judges shares by is left out: it may ask for
    what only a share has. It judges each share of the group later.
    """
    return [
        *(
            _ForRequest(rule, request)
            for request in requests
            for rule in filters
            if not isinstance(rule, DriverFilter)
        ),
        ConsistentSnapshotFilter(),
    ]
