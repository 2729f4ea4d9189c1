"""Choose pools for requests that are alike without a look at every pool.

Most shares differ in nothing that filters and weighers look at. What these said
of a pool is kept as long as it is the same object: after a placement, that is
all but one of a thousand.
"""

import collections
from collections.abc import Collection, Hashable, Sequence
import itertools
import operator
import random
import threading
from typing import NamedTuple

from manila_lite.scheduler.choose import Choice, RankedPool, Rejection, rank_scores
from manila_lite.scheduler.filters import Filter
from manila_lite.scheduler.filters.places import ServiceUp
from manila_lite.scheduler.pools import Pool
from manila_lite.scheduler.request import PlacementRequest
from manila_lite.scheduler.weighers import Weigher

MAX_KINDS = 32
"""How many kinds of requests are kept, each with a result for every pool."""

FUNCTIONS = ('filter_function', 'goodness_function')
"""Capabilities that judge each share by itself."""


class Rankings:
    """Returns what `choose` does, for requests that are alike."""

    def __init__(
        self,
        filters: Sequence[Filter],
        weighers: Sequence[Weigher],
        rng: random.Random | None,
        most: int,
    ):
        self._filters = filters
        self._weighers = weighers
        self._rng = rng
        self._most = most
        self._lock = threading.Lock()
        self._kept: dict[Hashable, _Results] = {}

    def choose(
        self, request: PlacementRequest, pools: Collection[Pool]
    ) -> Choice | None:
        """Return a choice of at least one pool; None if `choose` has to look."""
        kind = request.kind
        if kind is None or not self._are_repeatable():
            return None
        with self._lock:
            results = self._kept.get(kind)
            if results is None:
                if len(self._kept) >= MAX_KINDS:
                    self._kept.clear()
                results = self._kept[kind] = _Results(
                    [ServiceUp(), *self._filters], self._weighers, request
                )
            results.update(list(pools))
            if results.depends_on_share or not results.accepted:
                return None
            return results.choice(self._rng, self._most)

    def _are_repeatable(self) -> bool:
        return all(rule.repeatable for rule in self._filters) and all(
            weigher.repeatable for weigher in self._weighers
        )


class _Result(NamedTuple):
    """What was said of a pool: the number of the filter that rejected it."""

    rule: int | None
    rejection: Rejection | None
    scores: Sequence[float]


class _Results:
    """What filters and weighers said of each pool for one kind of requests."""

    def __init__(
        self,
        rules: Sequence[Filter],
        weighers: Sequence[Weigher],
        request: PlacementRequest,
    ):
        self._rules = rules
        self._weighers = [one for one in weighers if one.applies(request)]
        self._request = request
        self._pools: list[Pool] = []
        self._results: list[_Result] = []
        self.depends_on_share = False
        self.accepted: list[Pool] = []
        self._places: dict[int, int] = {}  # among the accepted
        self._scores: list[list[float]] = []
        self._remaining: list[tuple[str, int]] = []
        self._rejections: list[Rejection] = []

    def update(self, pools: list[Pool]) -> None:
        """Look at those pools that are not what they were."""
        if len(pools) != len(self._pools):
            self._look_at_all(pools)
            return
        differs = map(operator.is_not, pools, self._pools)
        changed = list(itertools.compress(itertools.count(), differs))
        if len(changed) > len(pools) // 4 or self.depends_on_share and changed:
            self._look_at_all(pools)
            return
        for place in changed:
            self._look_again(place, pools[place])

    def _look_at_all(self, pools: list[Pool]) -> None:
        self._pools = pools
        self.depends_on_share = any(map(_has_function, pools))
        if self.depends_on_share:
            return
        self._results = self._judge(pools)
        self._sum_up()

    def _look_again(self, place: int, pool: Pool) -> None:
        if self.depends_on_share or _has_function(pool):
            self.depends_on_share = True
            return
        before, (after,) = self._results[place], self._judge([pool])
        self._pools[place], self._results[place] = pool, after
        if before.rejection is None and after.rejection is None:
            number = self._places[place]
            self.accepted[number] = pool
            for scores, score in zip(self._scores, after.scores, strict=True):
                scores[number] = score
        else:
            self._sum_up()

    def _judge(self, pools: list[Pool]) -> list[_Result]:
        request = self._request
        rejected: dict[int, _Result] = {}
        left = list(range(len(pools)))
        for number, rule in enumerate(self._rules):
            if not left:
                break
            if not rule.applies(request):
                continue
            reasons = rule.rejection_reasons([pools[place] for place in left], request)
            for place, reason in zip(left, reasons, strict=True):
                if reason is not None:
                    rejection = Rejection(pools[place].host, rule.name, reason)
                    rejected[place] = _Result(number, rejection, ())
            left = [place for place in left if place not in rejected]
        accepted = [pools[place] for place in left]
        by_weigher = [one.scores(accepted, request) for one in self._weighers]
        scores = iter(zip(*by_weigher, strict=True) if by_weigher else [()] * len(left))
        return [
            rejected[place] if place in rejected else _Result(None, None, next(scores))
            for place in range(len(pools))
        ]

    def _sum_up(self) -> None:
        places = [
            place
            for place, result in enumerate(self._results)
            if result.rejection is None
        ]
        self._places = {place: number for number, place in enumerate(places)}
        self.accepted = [self._pools[place] for place in places]
        self._scores = [
            [self._results[place].scores[number] for place in places]
            for number in range(len(self._weighers))
        ]
        self._rejections = [
            result.rejection for result in self._results if result.rejection is not None
        ]
        counts = collections.Counter(result.rule for result in self._results)
        left, self._remaining = len(self._results), []
        for number, rule in enumerate(self._rules):
            left -= counts[number]
            self._remaining.append((rule.name, left))

    def choice(self, rng: random.Random | None, most: int) -> Choice:
        """Return the choice; there are accepted pools."""
        best = rank_scores(
            self.accepted,
            [
                (weigher.multiplier, scores)
                for weigher, scores in zip(self._weighers, self._scores, strict=True)
            ],
            rng,
            most,
        )
        return Choice(
            [RankedPool(self.accepted[place], weight) for place, weight in best],
            self._remaining,
            self._rejections,
            None,
        )


def _has_function(pool: Pool) -> bool:
    get = pool.capabilities.get
    return any(get(name) is not None for name in FUNCTIONS)
