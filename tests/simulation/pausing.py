"""Pauses of a worker at every driver call, longer than its lease.

While it is paused inside the call, before or after the effect, another
process takes over its work and carries out all there is. Then it goes on.
"""

from collections.abc import Callable
import typing

import pytest

from manila_lite.work import table
from tests.support import databases, sampling
from tests.support.cloud import Cloud

LONG = 40.0
"""Seconds; longer than a lease, shorter than service_down_time."""

FENCING = pytest.mark.parametrize(
    'fencing',
    ['dummy_driver_fencing = yes', 'dummy_driver_fencing = no'],
    ids=['fencing', 'no_fencing'],
)
"""Back ends that refuse calls of a replaced worker, and others."""

_QUERIES = ('get_', 'check_', 'choose_', 'do_setup')

Start = Callable[[], tuple[Cloud, Callable[[], object], Callable[[], object]]]


def pause_everywhere(
    start: Start, name: str, shared_database: Callable[[str], str], most: int = 1
) -> None:
    """Pause once at each driver call of a run, and check the result.

    `start()` returns a cloud, always in the same state, a function that
    makes the run and one that raises AssertionError if anything is wrong.
    `shared_database` is the fixture of that name: where all places are
    tried, a part of them is tried on the servers as well.
    """
    places = _count(*start())
    assert places, f'{name} calls no driver'
    for place in sampling.sample(places, most):
        _pause_once(*start(), f'{name} on sqlite', place)
    for kind in databases.KINDS[1:] if sampling.tries_every_case() else ():
        url = shared_database(kind)
        # Where a run starts on another database it takes other ids, and its
        # work may come in another order: its calls are counted there.
        cloud, run, check = start()
        with cloud.moved_to(url):
            places = _count(cloud, run, check)
        for place in sampling.part(places, kind):
            cloud, run, check = start()
            with cloud.moved_to(url):
                _pause_once(cloud, run, check, f'{name} on {kind}', place)


def _count(
    cloud: Cloud, run: Callable[[], object], check: Callable[[], object]
) -> list[tuple[str, int]]:
    """Make the run; return its driver calls, each with its number."""
    # It takes ids from the cloud's generator, so every run needs one.
    Another(cloud)
    cloud.crash_at(None)
    run()
    points = cloud.crash_points
    check()
    return [
        (point, points[: number + 1].count(point))
        for number, point in enumerate(points)
        if is_call_with_effects(point)
    ]


def _pause_once(
    cloud: Cloud,
    run: Callable[[], object],
    check: Callable[[], object],
    name: str,
    place: tuple[str, int],
) -> None:
    point, times = place
    another = Another(cloud)
    cloud.crash_at(None)
    cloud.pause_at(point, another.take_over, times)
    try:
        run()
        cloud.settle()
        check()
        assert not cloud.pending_pauses, 'it was not paused'
    except AssertionError as error:
        pytest.fail(f'{name} paused {point}, {times}: {error}')


def is_call_with_effects(point: str) -> bool:
    """Whether a crash point is at a driver call that changes something."""
    when, _, method = point.partition(' ')
    return when in ('before', 'after') and not method.startswith(_QUERIES)


class Another:
    """A second process on the same back ends."""

    def __init__(self, cloud: Cloud):
        self._cloud = cloud
        self._runners: list[typing.Any] = cloud.competing_runners()

    def take_over(self) -> None:
        """Carry out all work once the leases of the first process end."""
        self._cloud.clock.advance(LONG)
        # The time of a database server may not be simulated.
        self._cloud.db.write(
            table.expire_leases,
            [queue for runner in self._runners for queue in runner.queues],
        )
        self.run()

    def run(self) -> None:
        """Carry out all work that no process holds."""
        while sum(runner.step() for runner in self._runners):
            pass


def pause_in(
    cloud: Cloud, method: str, undo: Callable[[], object] = lambda: None
) -> None:
    """Pause the worker that next calls `method`; another works meanwhile.

    `undo` is requested when the other has done the work of the first.
    """
    another = Another(cloud)

    def meanwhile() -> None:
        another.take_over()
        undo()
        another.run()

    cloud.pause_at(f'before {method}', meanwhile)
