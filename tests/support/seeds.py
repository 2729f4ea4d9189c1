"""How many random orders of events a run tries.

MANILA_LITE_TEST_SEEDS, a number, is tried by every test that asks here, and
hypothesis tries other examples in each run then; without it each test tries
what fits into a run of all tests, and the same in each.
"""

import os

_VARIABLE = 'MANILA_LITE_TEST_SEEDS'


def seeds(usual: int) -> range:
    return range(int(os.environ.get(_VARIABLE, usual)))


def is_exploratory() -> bool:
    """Whether this run is to find what others have not found."""
    return _VARIABLE in os.environ
