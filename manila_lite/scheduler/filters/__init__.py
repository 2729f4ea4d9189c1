"""Filters reject pools that cannot hold a share.

`scheduler_default_filters` names the filters in use; they are loaded from
the entry point group `manila_lite.scheduler.filters`.
"""

import abc
from collections.abc import Sequence
from typing import ClassVar

from manila_lite.scheduler.pools import Pool
from manila_lite.scheduler.request import PlacementRequest


class Filter(abc.ABC):
    """A filter; `detail` is the message code when it leaves no pool."""

    name: ClassVar[str]
    detail: ClassVar[str] = '002'
    circumstantial: ClassVar[bool] = False
    """Whether state, place or room decide, not what a pool can do."""

    def __init_subclass__(cls) -> None:
        cls.name = cls.__name__

    def applies(self, request: PlacementRequest) -> bool:
        """Whether the filter can reject any pool for this request."""
        return True

    @abc.abstractmethod
    def rejection_reason(self, pool: Pool, request: PlacementRequest) -> str | None:
        """Return why the pool cannot hold the share; None if it can."""

    def rejection_reasons(
        self, pools: Sequence[Pool], request: PlacementRequest
    ) -> list[str | None]:
        """Return `rejection_reason` of each pool.

        Filters that nearly always apply override it: there may be a
        thousand pools, most of which pass.
        """
        reason = self.rejection_reason
        return [reason(pool, request) for pool in pools]
