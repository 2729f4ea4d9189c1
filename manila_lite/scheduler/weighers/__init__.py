"""Weighers rank the pools that passed the filters.

`scheduler_default_weighers` names the weighers in use; they are loaded
from the entry point group `manila_lite.scheduler.weighers`.
"""

import abc
from collections.abc import Sequence
from typing import ClassVar

from manila_lite.scheduler.pools import Pool
from manila_lite.scheduler.request import PlacementRequest


class Weigher(abc.ABC):
    """Scores pools; its multiplier sets its weight and direction."""

    name: ClassVar[str]

    def __init_subclass__(cls) -> None:
        cls.name = cls.__name__

    def __init__(self, multiplier: float = 1.0):
        self.multiplier = multiplier

    def applies(self, request: PlacementRequest) -> bool:
        """Whether pools can differ in their score for this request."""
        return True

    @abc.abstractmethod
    def weigh(self, pool: Pool, request: PlacementRequest) -> float:
        """Return the score of the pool, on any scale."""

    def scores(self, pools: Sequence[Pool], request: PlacementRequest) -> list[float]:
        """Return `weigh` of each pool; overridden where it is faster."""
        weigh = self.weigh
        return [weigh(pool, request) for pool in pools]
