"""Calls that start at the same moment, each in its own thread."""

from collections.abc import Callable
import concurrent.futures
import functools
import random
import threading
import typing

from manila_lite import exception

REFUSED = (
    exception.Conflict,
    exception.Forbidden,
    exception.Invalid,
    exception.NotFound,
)
"""The families of errors that refuse a request."""


def at_once(
    *calls: Callable[[], typing.Any], rng: random.Random | None = None
) -> list[typing.Any]:
    """Run the calls concurrently; return their results in order.

    `rng` shuffles the order in which the threads are started.
    """
    start = threading.Barrier(len(calls))
    order = list(range(len(calls)))
    if rng:
        rng.shuffle(order)

    def run(number: int) -> typing.Any:
        start.wait()
        return calls[number]()

    with concurrent.futures.ThreadPoolExecutor(len(calls)) as pool:
        results = dict(zip(order, pool.map(run, order), strict=True))
    return [results[number] for number in range(len(calls))]


def status_codes(
    *calls: Callable[[], typing.Any], rng: random.Random | None = None
) -> list[int]:
    """Send requests concurrently; return their status codes."""
    return [response.status_int for response in at_once(*calls, rng=rng)]


def are_accepted(
    *calls: Callable[[], typing.Any],
    rng: random.Random | None = None,
    refused: tuple[type[Exception], ...] = REFUSED,
) -> list[bool]:
    """Run the calls concurrently; return whether each was accepted.

    A call is an operation, which raises one of `refused` when it is
    refused, or a request, which has a status code.
    """

    def is_accepted(call: Callable[[], typing.Any]) -> bool:
        try:
            answer = call()
        except refused:
            return False
        return getattr(answer, 'status_int', 202) < 300

    return at_once(*[functools.partial(is_accepted, call) for call in calls], rng=rng)


def each(function: Callable[[int], typing.Any], times: int) -> list:
    """Call a function concurrently with 0, 1, …; return the results."""
    return at_once(*[functools.partial(function, number) for number in range(times)])
