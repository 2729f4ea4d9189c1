"""What may happen to a cluster, and how it is mended."""

from collections.abc import Callable
from typing import NamedTuple

from tests.cluster.services import Service


class Fault(NamedTuple):
    """What to do, for how many seconds at least and at most, and the mend.

    `has_effect` is asked before it is mended. `may_lose_lease` are the
    services that live and may be unable to renew a lease meanwhile: they are
    stopped, or do not reach the database.
    """

    name: str
    seconds: tuple[float, float]
    begin: Callable[[], None]
    mend: Callable[[], None]
    has_effect: Callable[[], bool]
    may_lose_lease: tuple[Service, ...] = ()
