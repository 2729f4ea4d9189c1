"""How much of its enumerations a test run tries.

`make test` tries a sample of crash points and random orders. The seed of
the run chooses it; it is printed in the header, and MANILA_LITE_TEST_SEED
replays it. `make exhaust` sets MANILA_LITE_TEST_EXHAUSTIVE and tries all.

MANILA_LITE_TEST_SEEDS sets the number of random orders for every test that
calls `seeds`; hypothesis then also tries new examples in each run.
"""

from collections.abc import Sequence
import os
import random
import typing

T = typing.TypeVar('T')

EXHAUSTIVE = 'MANILA_LITE_TEST_EXHAUSTIVE'
RUN_SEED = 'MANILA_LITE_TEST_SEED'
_NUMBER = 'MANILA_LITE_TEST_SEEDS'

SHARE = 4
"""A sampled run tries one of so many."""


def choose_run_seed() -> str:
    """Choose the seed of the run, if none is set, for all its processes."""
    return os.environ.setdefault(
        RUN_SEED, str(random.SystemRandom().randrange(10**6))
    )


def is_exhaustive() -> bool:
    """Whether this run tries everything."""
    return bool(os.environ.get(EXHAUSTIVE))


def is_exploratory() -> bool:
    """Whether this run tries other examples than the default ones."""
    return _NUMBER in os.environ


def sample(population: Sequence[T], name: str) -> list[T]:
    """Return the part of a population that this run tries, in order."""
    if is_exhaustive() or len(population) <= 1:
        return list(population)
    rng = random.Random(f'{choose_run_seed()} {name}')
    size = -(-len(population) // SHARE)
    chosen = sorted(rng.sample(range(len(population)), size))
    return [population[number] for number in chosen]


def seeds(default: int, name: str = '') -> Sequence[int]:
    """Return the seeds that a test tries, out of `default` many."""
    if is_exploratory():
        return range(int(os.environ[_NUMBER]))
    return sample(range(default), f'seeds {name}')
