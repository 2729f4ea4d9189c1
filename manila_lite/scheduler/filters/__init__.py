"""What may keep a share off a pool: one small class per rule.

The rules in use are named by `scheduler_default_filters` and found by
entry point in the group `manila_lite.scheduler.filters`.
"""

import abc
from typing import ClassVar

from manila_lite.scheduler.pools import Pool
from manila_lite.scheduler.request import PlacementRequest


class Filter(abc.ABC):
    """A rule; `detail` is the message code when it leaves no pool."""

    name: ClassVar[str]
    detail: ClassVar[str] = '002'

    def __init_subclass__(cls) -> None:
        cls.name = cls.__name__

    @abc.abstractmethod
    def rejection_reason(
        self, pool: Pool, request: PlacementRequest
    ) -> str | None:
        """Why the pool cannot take the share; None if it can."""
