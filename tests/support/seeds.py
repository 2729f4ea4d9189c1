"""The number of random orders of events that a test run tries.

MANILA_LITE_TEST_SEEDS sets it for every test that calls `seeds`; hypothesis
then also tries new examples in each run. Without it each test tries its
default number, which fits into a full run, and the same orders every time.
"""

import os

_VARIABLE = 'MANILA_LITE_TEST_SEEDS'


def seeds(default: int) -> range:
    return range(int(os.environ.get(_VARIABLE, default)))


def is_exploratory() -> bool:
    """Whether this run tries other examples than the default ones."""
    return _VARIABLE in os.environ
