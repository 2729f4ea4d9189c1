"""How many random orders of events a run tries.

MANILA_LITE_TEST_SEEDS, a number, is tried by every test that asks here;
without it each tries what fits into a run of all tests.
"""

import os


def seeds(usual: int) -> range:
    return range(int(os.environ.get('MANILA_LITE_TEST_SEEDS', usual)))
