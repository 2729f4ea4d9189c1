"""Under eventlet, drivers run in a native thread of their own.

While a driver copies a file, or waits in a library that is not written in
Python, no other greenlet of its thread runs. In the thread of everything else
that would stop requests, heartbeats and leases. So calls of drivers are
passed to a second thread, which has a hub of eventlet like the first.

It is one thread, not a pool: the locks, queues and conditions that drivers
and their libraries use are those of eventlet, which work only between the
greenlets of one thread. Calls of the private storage, which uses the
database, are passed back to the first thread for the same reason.

With native threads nothing of this is needed, and objects are used as they
are.
"""

import atexit
import collections
from collections.abc import Callable
import functools
import os
import threading
import typing

from manila_lite.cmd import CONCURRENCY
from manila_lite.context import in_callers_context

T = typing.TypeVar('T')


def run_in_native_thread(function: Callable[..., T], *args: object) -> T:
    """Return the result of a function that waits for nothing of eventlet's.

    With native threads it runs in the thread of the caller.
    """
    if CONCURRENCY != 'eventlet':
        return function(*args)
    from eventlet import tpool

    return tpool.execute(function, *args)


_PATIENCE = 1.0  # seconds for the thread to end at exit


def in_driver_thread(driver: T) -> T:
    """Return the driver, or a stand-in that runs its methods apart."""
    if CONCURRENCY != 'eventlet':
        return driver
    main, drivers = _hubs()
    return typing.cast(T, _Elsewhere(driver, main, drivers))


def in_main_thread(service: T) -> T:
    """Return an object that drivers may call, or a stand-in for it."""
    if CONCURRENCY != 'eventlet':
        return service
    main, drivers = _hubs()
    return typing.cast(T, _Elsewhere(service, drivers, main))


class _Hub:
    """Runs functions in the greenlets of one thread."""

    def __init__(self) -> None:
        self._posted: collections.deque[Callable[[], None]] = collections.deque()
        self._receiver, self._sender = os.pipe()
        os.set_blocking(self._receiver, False)
        self._stopped = False

    def serve(self) -> None:
        """Start what is posted until stopped; runs in one greenlet."""
        import eventlet

        while not self._stopped:
            os.read(self._receiver, 4096)  # lets other greenlets run
            while self._posted:
                eventlet.spawn_n(self._posted.popleft())

    def post(self, function: Callable[[], None]) -> None:
        """Run the function in a greenlet soon; call from any thread."""
        self._posted.append(function)
        os.write(self._sender, b'.')

    def stop(self) -> None:
        """Let `serve` return soon; call from any thread."""
        self._stopped = True
        os.write(self._sender, b'.')

    def call(self, caller: '_Hub', function: Callable[..., T], *args: object) -> T:
        """Run the function here; wait for its result in the hub `caller`."""
        from eventlet import event

        answer = event.Event()
        call = in_callers_context(function)

        def run() -> None:
            try:
                result = call(*args)
            except BaseException as error:  # noqa: BLE001 raised in the caller
                caller.post(functools.partial(answer.send_exception, error))
            else:
                caller.post(functools.partial(answer.send, result))

        self.post(run)
        return answer.wait()


class _Elsewhere:
    """Stands in for an object whose methods run in another hub."""

    _target: object
    _caller: _Hub
    _hub: _Hub

    def __init__(self, target: object, caller: _Hub, hub: _Hub):
        self.__dict__.update(_target=target, _caller=caller, _hub=hub)

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        """The class of the object, so that isinstance works."""
        return self._target.__class__

    def __getattr__(self, name: str) -> typing.Any:
        found = getattr(self._target, name)
        if not callable(found):
            return found
        return functools.partial(_call, self._hub, self._caller, found)

    def __setattr__(self, name: str, value: object) -> None:
        setattr(self._target, name, value)


def _call(
    hub: _Hub, caller: _Hub, method: Callable[..., T], *args: object, **kwargs: object
) -> T:
    return hub.call(caller, functools.partial(method, *args, **kwargs))


@functools.cache
def _hubs() -> tuple[_Hub, _Hub]:
    """Return the hub of this thread and that of a new one for drivers."""
    import eventlet
    from eventlet import patcher

    main, drivers = _Hub(), _Hub()
    eventlet.spawn_n(main.serve)
    thread = patcher.original('threading').Thread(
        target=drivers.serve, name='drivers', daemon=True
    )
    thread.start()
    atexit.register(_end, drivers, thread)
    return main, drivers


def _end(hub: _Hub, thread: threading.Thread) -> None:
    """End the thread before the interpreter does.

    An interpreter that exits ends its daemon threads by unwinding their
    stacks (until Python 3.14), and the process crashes where greenlets have
    replaced these. A thread that stays in a call of a driver is left alone:
    it does not run until the process has ended.
    """
    hub.stop()
    thread.join(_PATIENCE)
