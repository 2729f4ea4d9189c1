"""Run slow functions without stopping the greenlets of eventlet."""

from collections.abc import Callable
import typing

from manila_lite.cmd import CONCURRENCY

T = typing.TypeVar('T')


def run_in_native_thread(function: Callable[..., T], *args: typing.Any) -> T:
    """Return the result of a function that waits for nothing of eventlet's.

    With native threads it runs in the thread of the caller.
    """
    if CONCURRENCY != 'eventlet':
        return function(*args)
    from eventlet import tpool

    return tpool.execute(function, *args)
