"""What makes one pool better than another: one small class per view.

The weighers in use are named by `scheduler_default_weighers` and found by
entry point in the group `manila_lite.scheduler.weighers`.
"""

import abc
from typing import ClassVar

from manila_lite.scheduler.pools import Pool
from manila_lite.scheduler.request import PlacementRequest


class Weigher(abc.ABC):
    """A view; its multiplier says how much it counts, and which way."""

    name: ClassVar[str]

    def __init_subclass__(cls) -> None:
        cls.name = cls.__name__

    def __init__(self, multiplier: float = 1.0):
        self.multiplier = multiplier

    @abc.abstractmethod
    def weigh(self, pool: Pool, request: PlacementRequest) -> float:
        """How good the pool is; only the order and distances matter."""
