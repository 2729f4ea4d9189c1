"""Filters reject pools that cannot hold a share.

`scheduler_default_filters` names the filters in use; they are loaded from
the entry point group `manila_lite.scheduler.filters`.
"""

import abc
from collections.abc import Sequence
from typing import ClassVar, Self

from manila_lite.scheduler.pools import Pool
from manila_lite.scheduler.request import PlacementRequest


class Reason(str):
    """Why a pool is rejected, with what is different in each pool.

    `kind` is the reason without that: many pools share it.
    """

    __slots__ = ('kind',)
    kind: str

    def __new__(cls, text: str, kind: str) -> Self:
        reason = super().__new__(cls, text)
        reason.kind = kind
        return reason


def kind_of(reason: str) -> str:
    """Return what the reasons of several pools have in common."""
    return reason.kind if isinstance(reason, Reason) else reason


class Filter(abc.ABC):
    """A filter; `detail` is the message code when it leaves no pool."""

    name: ClassVar[str]
    detail: ClassVar[str] = '002'
    circumstantial: ClassVar[bool] = False
    """Whether state, place or room decide, not what a pool can do."""
    repeatable: ClassVar[bool] = False
    """Whether the answer for a pool depends on `request.kind` only, if the pool
    reports no function that judges shares."""

    def __init_subclass__(cls) -> None:
        cls.name = cls.__name__
        cls.repeatable = cls.__dict__.get('repeatable', False)

    def applies(self, request: PlacementRequest) -> bool:
        """Whether the filter can reject any pool for this request."""
        return True

    @abc.abstractmethod
    def rejection_reason(self, pool: Pool, request: PlacementRequest) -> str | None:
        """Return why the pool cannot hold the share; None if it can.

        A `Reason` if the text has values of the pool.
        """

    def rejection_reasons(
        self, pools: Sequence[Pool], request: PlacementRequest
    ) -> list[str | None]:
        """Return `rejection_reason` of each pool.

        Filters that nearly always apply override it: there may be a
        thousand pools, most of which pass.
        """
        reason = self.rejection_reason
        return [reason(pool, request) for pool in pools]
