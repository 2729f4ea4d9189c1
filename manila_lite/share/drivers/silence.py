"""How long calls wait for an NFS or SMB server that does not answer.

It may be restarting. Methods that call a server for many shares wait for it
once, and not for each of them.
"""

from collections.abc import Iterator
import contextlib
import contextvars

TIMEOUT = 60.0

_silent: contextvars.ContextVar[set[object] | None] = contextvars.ContextVar(
    'silent', default=None
)


@contextlib.contextmanager
def waiting_once() -> Iterator[None]:
    """Wait once for each server in the block; fail at once after that."""
    token = _silent.set(set())
    try:
        yield
    finally:
        _silent.reset(token)


def is_known(server: object) -> bool:
    """Return whether a server did not answer an earlier call."""
    return server in (_silent.get() or ())


def record(server: object) -> None:
    """Record that a server did not answer a call."""
    silent = _silent.get()
    if silent is not None:
        silent.add(server)
