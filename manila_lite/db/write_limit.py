"""A limit on the changes that wait for the database at the same time.

A session that is frozen in a transaction lets everything wait that needs one
of its rows, and each request that waits occupies a thread of the API. So only
some changes of one resource, of one project and of all may be in transactions
at once. The others wait as long as these make progress, and are refused when
none of them has ended, and made room, for `patience` seconds.
"""

import collections
from collections.abc import Callable, Hashable, Sequence
import contextlib
import contextvars
import threading
import time
import typing

from manila_lite import exception

OF_RESOURCE = 4
OF_PROJECT = 12
IN_ALL = 16
"""The API has 20 threads; the others are left for reads."""

PATIENCE = 1.0


class Group(typing.NamedTuple):
    """Changes of which at most `size` are in transactions at once."""

    key: Hashable
    size: int
    refusal: type[exception.ServiceUnavailable]


class _Members:
    """The number of changes of a group, and when the last one joined it."""

    __slots__ = ('count', 'joined_at')

    def __init__(self) -> None:
        self.count, self.joined_at = 0, 0.0


class _Waiter:
    """A change that waits; `admitted` is released when there is room."""

    __slots__ = ('admitted', 'groups')

    def __init__(self, groups: Sequence[Group]):
        self.groups = groups
        self.admitted = threading.Lock()
        self.admitted.acquire()


class WriteLimit:
    """Admits the changes of an API, in order of arrival."""

    def __init__(
        self, patience: float = PATIENCE, *, clock: Callable[[], float] = time.monotonic
    ):
        self._patience = patience
        self._clock = clock
        self._guard = threading.Lock()
        self._members: dict[Hashable, _Members] = {}
        self._waiting: list[_Waiter] = []

    def change(self, project_id: str | None, resource_id: str | None) -> 'Change':
        """Return a change of a resource, or one that creates a resource.

        Its group is that of the caller's project: whether callers of another
        one change the resource is not shown.
        """
        groups = [
            Group(('project', project_id), OF_PROJECT, exception.DatabaseBusy),
            Group('all', IN_ALL, exception.DatabaseBusy),
        ]
        if resource_id is not None:
            key = project_id, resource_id
            groups.insert(0, Group(key, OF_RESOURCE, exception.ResourceBusy))
        return Change(self, groups)

    def join(self, groups: Sequence[Group], *, can_refuse: bool) -> None:
        """Join the groups when there is room, or raise their refusal.

        What cannot be refused joins them at once.
        """
        with self._guard:
            if not can_refuse or not self._full(groups):
                self._add(groups)
                return
            waiter = _Waiter(groups)
            self._waiting.append(waiter)
        while True:
            with self._guard:
                if waiter not in self._waiting:
                    return
                stuck = min(
                    self._full(groups),
                    key=lambda group: self._members[group.key].joined_at,
                )
                left = (
                    self._members[stuck.key].joined_at + self._patience - self._clock()
                )
                if left <= 0:
                    self._waiting.remove(waiter)
                    raise stuck.refusal()
            if waiter.admitted.acquire(timeout=left):
                return

    def leave(self, groups: Sequence[Group]) -> None:
        """Leave the groups; admit those for which there is room now."""
        with self._guard:
            for group in groups:
                members = self._members[group.key]
                members.count -= 1
                if not members.count:
                    del self._members[group.key]
            for waiter in self._waiting[:]:
                if not self._full(waiter.groups):
                    self._waiting.remove(waiter)
                    self._add(waiter.groups)
                    waiter.admitted.release()

    def _full(self, groups: Sequence[Group]) -> list[Group]:
        return [
            group
            for group in groups
            if (members := self._members.get(group.key)) is not None
            and members.count >= group.size
        ]

    def _add(self, groups: Sequence[Group]) -> None:
        now = self._clock()
        for group in groups:
            members = self._members.setdefault(group.key, _Members())
            members.count += 1
            members.joined_at = now


class Change:
    """What a request changes; `with` it around each of its transactions.

    Only the first one may be refused: nothing is done yet.
    """

    __slots__ = ('_groups', '_is_admitted', '_limit')

    def __init__(self, limit: WriteLimit, groups: Sequence[Group]):
        self._limit = limit
        self._groups = groups
        self._is_admitted = False

    def __enter__(self) -> None:
        self._limit.join(self._groups, can_refuse=not self._is_admitted)
        self._is_admitted = True

    def __exit__(self, *error: object) -> None:
        self._limit.leave(self._groups)


_UNLIMITED = contextlib.nullcontext()
_change: contextvars.ContextVar[Change | contextlib.nullcontext] = (
    contextvars.ContextVar('change', default=_UNLIMITED)
)


def current() -> contextlib.AbstractContextManager:
    """Return the change of this context; `with` it around a transaction."""
    return _change.get()


class limit_writes:  # noqa: N801 a generator would take four times as long
    """Make the transactions in the block those of a change."""

    __slots__ = ('_change', '_token')

    def __init__(self, change: Change):
        self._change = change

    def __enter__(self) -> None:
        self._token = _change.set(self._change)

    def __exit__(self, *error: object) -> None:
        _change.reset(self._token)


class FifoLock:
    """A mutual exclusion lock without starvation, used in `with`.

    Writers that wait for SQLite poll, and an unlucky one may wait for
    seconds. With this lock each waits only for those before it.
    """

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._waiting: collections.deque[threading.Lock] = collections.deque()
        self._held = False

    def acquire(self, timeout: float | None = None) -> bool:
        """Wait until the lock is ours; return False if the time is over."""
        with self._guard:
            if not self._held:
                self._held = True
                return True
            released = threading.Lock()
            released.acquire()
            self._waiting.append(released)
        if released.acquire(timeout=-1 if timeout is None else timeout):
            return True
        with self._guard:
            if released not in self._waiting:
                return True  # it was released to us at the last moment
            self._waiting.remove(released)
            return False

    def release(self) -> None:
        """Pass the lock to the first waiter."""
        with self._guard:
            if self._waiting:
                self._waiting.popleft().release()
            else:
                self._held = False

    def __enter__(self) -> None:
        self.acquire()

    def __exit__(self, *exc: object) -> None:
        self.release()
