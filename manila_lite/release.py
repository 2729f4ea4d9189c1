"""The number of this release, by which processes know each other.

Processes of two successive releases may run together, see "Rolling upgrades"
in upgrade.rst.
"""

import functools
from importlib import metadata

NUMBER = 2
"""Raised by one for every release.

`manila_lite/rpc/previous.py` then gets the contracts of the last one.
"""

FIRST = 1
"""The release whose processes did not record theirs."""

DISTANCE = 1
"""How many releases the oldest and the newest process may be apart."""


@functools.cache
def version() -> str:
    """Return the version of the installed package."""
    return metadata.version('manila_lite')
