"""Require a share service that is up and enabled."""

from collections.abc import Sequence
import datetime

from manila_lite.scheduler.filters import Filter
from manila_lite.scheduler.pools import Pool
from manila_lite.scheduler.request import PlacementRequest


class ServiceUp(Filter):
    """Require the service of the pool; always applied, and first."""

    circumstantial = True

    def rejection_reason(self, pool: Pool, request: PlacementRequest) -> str | None:
        if not pool.service_up:
            return _why_down(pool)
        if not pool.service_enabled:
            return 'its service is disabled'
        return None

    def rejection_reasons(
        self, pools: Sequence[Pool], request: PlacementRequest
    ) -> list[str | None]:
        return [
            None
            if pool.service_up and pool.service_enabled
            else self.rejection_reason(pool, request)
            for pool in pools
        ]


def _why_down(pool: Pool) -> str:
    if pool.service_health is not None:
        return f'its back end is down: {pool.service_health.rstrip(".")}'
    if pool.service_heartbeat_at is None:
        return 'its service is down'
    seen = datetime.datetime.fromtimestamp(pool.service_heartbeat_at, datetime.UTC)
    return f'its service is down since {seen:%Y-%m-%d %H:%M} UTC'
