"""Delays and faults that can be injected into driver calls."""

import collections
from collections.abc import Callable, Iterator, Mapping
import contextlib
from dataclasses import dataclass
import enum
import functools
import threading
import time
from typing import Any, Concatenate, NamedTuple, ParamSpec, Protocol, TypeVar

from manila_lite import exception
from manila_lite.context import FencingToken, current_fencing_token
from manila_lite.share.drivers import delegation
from manila_lite.share.drivers.dummy.fencing import FencingGate

P = ParamSpec('P')
R = TypeVar('R')

MAX_RECORDED_CALLS = 10_000


class FaultKind(enum.Enum):
    """What happens to a call; one that hangs waits for its release."""

    FAIL = 'failed before it did anything'
    HALF_FAIL = 'failed with half of its work done'
    LOSE_REPLY = 'failed with all of its work done'
    HANG = 'hung before it did anything'
    HANG_AFTER_WORK = 'hung with all of its work done'


class Hang:
    """Hanging calls: await one with `wait_reached`, end with `release`."""

    def __init__(self) -> None:
        self._reached = threading.Event()
        self._released = threading.Event()

    def wait_reached(self, timeout: float = 30) -> bool:
        """Wait for a call to hang here; return False after the timeout."""
        return self._reached.wait(timeout)

    def release(self) -> None:
        """Let hanging calls continue and later ones pass."""
        self._released.set()

    def block(self) -> None:
        """Block the calling thread until the release."""
        self._reached.set()
        self._released.wait()


@dataclass(frozen=True)
class Fault:
    kind: FaultKind
    error: Exception
    hang: Hang | None = None

    def trigger(self, *kinds: FaultKind) -> None:
        """Fail or hang if the fault is of one of these kinds."""
        if self.kind in kinds:
            if self.hang is None:
                raise self.error
            self.hang.block()


class RecordedCall(NamedTuple):
    """A recorded call with the id of its share or snapshot."""

    method: str
    subject_id: str | None


class FaultInjector:
    """The faults scheduled for one driver, by method name."""

    def __init__(
        self,
        methods: frozenset[str],
        *,
        delay: float = 0,
        delays: Mapping[str, float] | None = None,
        sleep: Callable[[float], object] = time.sleep,
        is_unreachable: Callable[[], bool] = lambda: False,
        gate: FencingGate | None = None,
    ):
        self._methods, self._gate, self._delay = methods, gate, delay
        self._delays = delays or {}
        self._sleep = sleep
        self._is_unreachable = is_unreachable
        self._lock = threading.Lock()
        self._calls: collections.deque[RecordedCall] = collections.deque(
            maxlen=MAX_RECORDED_CALLS
        )
        self._next: dict[str, collections.deque[Fault]] = {}
        self._always: dict[str, Fault] = {}
        self._hangs: list[Hang] = []
        self._current = threading.local()

    @property
    def calls(self) -> list[RecordedCall]:
        """Return the latest calls, oldest first."""
        with self._lock:
            return list(self._calls)

    def fail_next(
        self, method: str, times: int | None = 1, error: Exception | None = None
    ) -> None:
        """Make the next calls fail before any work; None means all of them."""
        self._schedule(method, FaultKind.FAIL, times, error)

    def half_fail_next(
        self, method: str, times: int | None = 1, error: Exception | None = None
    ) -> None:
        """Make calls fail half-way, or at the end if they have one step."""
        self._schedule(method, FaultKind.HALF_FAIL, times, error)

    def lose_reply_next(
        self, method: str, times: int | None = 1, error: Exception | None = None
    ) -> None:
        """Make calls fail after all of their work."""
        self._schedule(method, FaultKind.LOSE_REPLY, times, error)

    def hang_next(
        self, method: str, times: int | None = 1, after_work: bool = False
    ) -> Hang:
        """Make calls hang, before or after their work, until released."""
        hang = Hang()
        with self._lock:
            self._hangs.append(hang)
        self._schedule(
            method,
            FaultKind.HANG_AFTER_WORK if after_work else FaultKind.HANG,
            times,
            hang=hang,
        )
        return hang

    def clear(self) -> None:
        """Discard all scheduled faults and release hanging calls."""
        with self._lock:
            self._next.clear()
            self._always.clear()
            hangs, self._hangs = self._hangs, []
        for hang in hangs:
            hang.release()

    def _schedule(
        self,
        method: str,
        kind: FaultKind,
        times: int | None,
        error: Exception | None = None,
        hang: Hang | None = None,
    ) -> None:
        if method not in self._methods:
            raise ValueError(
                f'{method} is not one of {", ".join(sorted(self._methods))}'
            )
        fault = Fault(
            kind,
            error
            or exception.ShareBackendException(
                msg=f'{method} {kind.value} (injected fault)'
            ),
            hang,
        )
        with self._lock:
            if times is None:
                self._always[method] = fault
            else:
                self._next.setdefault(method, collections.deque()).extend(
                    [fault] * times
                )

    def _next_fault(self, call: RecordedCall) -> Fault | None:
        with self._lock:
            self._calls.append(call)
            if self._next.get(call.method):
                return self._next[call.method].popleft()
            return self._always.get(call.method)

    @contextlib.contextmanager
    def intercept(
        self, method: str, subject_id: str | None, token: FencingToken | None = None
    ) -> Iterator[None]:
        """Record, delay and fault the work in the body as scheduled."""
        fault = self._next_fault(RecordedCall(method, subject_id))
        if self._is_unreachable():
            raise exception.ShareBackendException(msg='the back end is unreachable')
        if fault is not None:
            fault.trigger(FaultKind.FAIL, FaultKind.HANG)
        with self._admitted(method, token):
            delay = self._delays.get(method, self._delay)
            if delay:
                self._sleep(delay)
                self._check_again(method, token)
            outer = getattr(self._current, 'fault', None)
            self._current.fault = fault
            try:
                yield
            finally:
                self._current.fault = outer
        if fault is not None:
            fault.trigger(
                FaultKind.HALF_FAIL, FaultKind.LOSE_REPLY, FaultKind.HANG_AFTER_WORK
            )

    def _admitted(
        self, method: str, token: FencingToken | None
    ) -> contextlib.AbstractContextManager[None]:
        if self._gate is None or token is None:
            return contextlib.nullcontext()
        return self._gate.admitted(method, token)

    def _check_again(self, method: str, token: FencingToken | None) -> None:
        """Refuse to change anything if a later call came meanwhile."""
        if self._gate is not None and token is not None:
            self._gate.check(method, token)

    def midway(self) -> None:
        """Fail if so scheduled; called by methods half-way through."""
        fault = getattr(self._current, 'fault', None)
        if fault is not None:
            fault.trigger(FaultKind.HALF_FAIL)


class _HasFaults(Protocol):
    faults: FaultInjector


F = TypeVar('F', bound=_HasFaults)


def instrumented(
    method: Callable[Concatenate[F, P], R],
) -> Callable[Concatenate[F, P], R]:
    """Return a driver method that is recorded, delayed and faulted."""

    @functools.wraps(method)
    def call(self: F, *args: P.args, **kwargs: P.kwargs) -> R:
        with self.faults.intercept(
            method.__name__, _subject_id(*args), current_fencing_token()
        ):
            return method(self, *args, **kwargs)

    call.instrumented = True  # type: ignore[attr-defined]
    return call


class Delegation(delegation.Delegation[F]):
    """Methods of the parts that are recorded, delayed and faulted."""

    def method(
        self, part: str, method: Callable[..., Any], declared: Callable[..., Any]
    ) -> Callable[..., Any]:
        return instrumented(super().method(part, method, declared))


def instrumented_methods(driver_class: type) -> frozenset[str]:
    """Return the methods of a class that faults can be injected into."""
    return frozenset(
        name
        for name in dir(driver_class)
        if getattr(getattr(driver_class, name), 'instrumented', False)
    )


def _subject_id(*args: object) -> str | None:
    return next(
        (arg['id'] for arg in args if isinstance(arg, Mapping) and 'id' in arg), None
    )
