"""Choose a pool: filter, weigh and rank, or explain why none fits."""

import collections
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
import random
from typing import Any, Literal, NamedTuple, overload

from manila_lite import exception, plugins
from manila_lite.scheduler.filters import Filter, kind_of, places
from manila_lite.scheduler.pools import Pool
from manila_lite.scheduler.request import PlacementRequest
from manila_lite.scheduler.weighers import Weigher

NO_POOLS = '028'
MAX_SHOWN = 10  # rejections of each filter, in an explanation
MAX_NAMED = 3  # pools that a filter rejected for the same reason


class RankedPool(NamedTuple):
    pool: Pool
    weight: float


class Rejection(NamedTuple):
    """The filter that rejected a pool first, and its reason."""

    host: str
    filter: str
    reason: str


@dataclass(frozen=True, slots=True)
class Choice:
    """The accepted pools, best first, and how they were chosen.

    `ranked` may have the best of them only. `remaining` holds how many pools
    each filter left, up to the one that left none. `rejecting_filter` is the
    name of the filter that explains why no pool fits, `message_detail` the
    detail code of the user message; both are None if there is a pool. `missing`
    is the pool that the share may not leave, if that one is unknown.
    """

    ranked: list[RankedPool]
    remaining: list[tuple[str, int]]
    rejections: list[Rejection]
    message_detail: str | None
    rejecting_filter: str | None = None
    missing: str | None = None

    def explanation(self) -> str:
        """Return the whole decision as one line, for administrators."""
        accepted = self.remaining[-1][1] if self.remaining else 0
        considered = accepted + len(self.rejections)
        parts = [f'{considered} pools considered, {accepted} accepted.']
        if self.missing is not None:
            parts.append(f'{self.missing} is not among the known pools.')
        rejections = collections.defaultdict(list)
        for rejection in self.rejections:
            rejections[rejection.filter].append(rejection)
        for name, count in self.remaining:
            # Each type of a share group has filters of the same names.
            texts = _by_reason(rejections.pop(name, []))
            reasons = _shortened(texts, len(texts))
            parts.append(
                f'{name} left {count}' + (f', rejected {reasons}.' if reasons else '.')
            )
        if self.ranked:
            weights = [
                f'{ranked.pool.host} weighs {ranked.weight:.3f}'
                for ranked in self.ranked
            ]
            parts.append(f'{_shortened(weights, accepted)}.')
        return ' '.join(parts)


def _by_reason(rejections: list[Rejection]) -> list[str]:
    """Return what was wrong, with the pools; the rare reasons come first.

    Reasons that few pools have are counted by what they have in common.
    """
    counts = collections.Counter(rejection.reason for rejection in rejections)
    groups = collections.defaultdict(list)
    for one in rejections:
        is_common = counts[one.reason] > MAX_NAMED
        groups[one.reason if is_common else kind_of(one.reason)].append(one)
    texts = []
    for reason, found in sorted(groups.items(), key=lambda item: len(item[1])):
        if len(found) > MAX_NAMED:
            texts.append(f'{len(found)} pools: {reason}')
        else:
            texts += [f'{one.host}: {one.reason}' for one in found]
    return texts


def _shortened(items: list[str], count: int) -> str:
    """Return the first of so many items and the number of the others."""
    shown = items[:MAX_SHOWN]
    if count > len(shown):
        shown.append(f'and {count - len(shown)} more')
    return '; '.join(shown)


def choose(
    request: PlacementRequest,
    pools: Iterable[Pool],
    filters: Sequence[Filter],
    weighers: Sequence[Weigher],
    rng: random.Random | None = None,
    most: int | None = None,
) -> Choice:
    """Return the pools that can hold the share, best first, or why not.

    With `most`, only so many of the best are ranked. Pools of equal weight are
    in the order of their names or, with `rng`, in random order. A share that is
    extended or managed stays on its pool.
    """
    candidates = list(pools)
    if request.stays:
        candidates = [pool for pool in candidates if pool.host == request.host]
    considered = candidates
    remaining: list[tuple[str, int]] = []
    rejections: list[Rejection] = []
    # Pools that refused the share, or cannot have the shares of its group,
    # are excluded whatever the configuration.
    retry = [places.RetryFilter()] if request.attempted else []
    group = [places.ShareGroupFilter()] if request.group_host else []
    rules = [places.ServiceUp(), *filters, *retry, *group]
    for rule in rules:
        if not candidates:
            break
        if rule.applies(request):
            candidates = _apply_filter(rule, candidates, request, rejections)
        remaining.append((rule.name, len(candidates)))
    if candidates:
        detail = decisive = None
    else:
        detail, decisive = _why_none(rules, considered, request)
    return Choice(
        _rank(candidates, request, weighers, rng, most),
        remaining,
        rejections,
        detail,
        decisive,
        request.host if request.stays and not considered else None,
    )


def _why_none(
    rules: list[Filter], pools: list[Pool], request: PlacementRequest
) -> tuple[str, str | None]:
    """Return the detail code and the filter that decide why no pool fits.

    Pools that cannot serve the request at all say nothing about those that
    could: of these the state, the place or the room decides.
    """
    if not pools:
        return NO_POOLS, None
    applied = [rule for rule in rules if rule.applies(request)]
    for rule in sorted(applied, key=lambda rule: rule.circumstantial):
        pools = _apply_filter(rule, pools, request, [])
        if not pools:
            break
    return rule.detail, rule.name


def _apply_filter(
    rule: Filter,
    pools: list[Pool],
    request: PlacementRequest,
    rejections: list[Rejection],
) -> list[Pool]:
    reasons = rule.rejection_reasons(pools, request)
    if reasons.count(None) == len(reasons):
        return pools
    kept = []
    for pool, reason in zip(pools, reasons, strict=True):
        if reason is None:
            kept.append(pool)
        else:
            rejections.append(Rejection(pool.host, rule.name, reason))
    return kept


def _rank(
    pools: list[Pool],
    request: PlacementRequest,
    weighers: Sequence[Weigher],
    rng: random.Random | None,
    most: int | None,
) -> list[RankedPool]:
    scores = [
        (weigher.multiplier, weigher.scores(pools, request))
        for weigher in weighers
        if weigher.applies(request)
    ]
    best = rank_scores(pools, scores, rng, most)
    return [RankedPool(pools[place], weight) for place, weight in best]


def rank_scores(
    pools: Sequence[Pool],
    scores: Iterable[tuple[float, list[float]]],
    rng: random.Random | None,
    most: int | None,
) -> list[tuple[int, float]]:
    """Return the places and weights of the best pools, best first.

    `scores` has the multiplier and the scores of each weigher.
    """
    if not pools:
        return []
    weights = [0.0] * len(pools)
    for multiplier, of_weigher in scores:
        found = _normalize(of_weigher)
        if not any(found):
            continue
        weights = [
            weight + multiplier * score
            for weight, score in zip(weights, found, strict=True)
        ]
    # The best of a thousand are found by their weights alone.
    worst = sorted(weights)[-most] if most and most < len(pools) else min(weights)
    best = [place for place, weight in enumerate(weights) if weight >= worst]
    if rng is None:
        best.sort(key=lambda place: pools[place].host)
    else:
        rng.shuffle(best)
    best.sort(key=weights.__getitem__, reverse=True)
    return [(place, weights[place]) for place in best[:most]]


def _normalize(values: list[float]) -> list[float]:
    """Scale the values to 0..1; infinite ones go beyond the finite ones."""
    if not all(map(isfinite, values)):
        finite = [value for value in values if isfinite(value)]
        low, high = min(finite, default=0.0), max(finite, default=0.0)
        beyond = high - low or 1.0
        values = [max(low - beyond, min(value, high + beyond)) for value in values]
    low, high = min(values, default=0.0), max(values, default=0.0)
    if low == high:
        return [0.0] * len(values)
    return [(value - low) / (high - low) for value in values]


@overload
def load(names: Sequence[str], kind: Literal['filters']) -> list[Filter]: ...


@overload
def load(
    names: Sequence[str],
    kind: Literal['weighers'],
    multipliers: Mapping[str, float] = ...,
) -> list[Weigher]: ...


def load(
    names: Sequence[str], kind: str, multipliers: Mapping[str, float] | None = None
) -> list[Any]:
    """Create the named filters, or weighers with their multipliers.

    Raises BadConfiguration for one that is unknown or cannot be loaded.
    """
    classes = [_class(kind, name) for name in names]
    if kind == 'filters':
        return [cls() for cls in classes]
    given = multipliers or {}
    return [cls(given.get(name, 1.0)) for name, cls in zip(names, classes, strict=True)]


def _class(kind: str, name: str) -> Any:
    try:
        return plugins.load(namespace(kind), name)
    except plugins.UnusablePlugin as error:
        raise exception.BadConfiguration(
            reason=f'{name} of the scheduler {kind} cannot be used: {error}'
        ) from error


def namespace(kind: str) -> str:
    """Return the namespace of the entry points of `filters` or `weighers`."""
    return f'manila_lite.scheduler.{kind}'
