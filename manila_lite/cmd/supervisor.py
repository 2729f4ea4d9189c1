"""Processes forked from one parent, which have its memory in common.

What the parent has imported is in memory once, and takes no time at the start
of a process. The parent runs no thread and does no work: it starts what ends,
and passes signals on.
"""

from collections.abc import Callable, Iterable
import contextlib
import gc
import logging
import os
import pathlib
import signal
import sys
import threading
import time
import traceback
import typing

from manila_lite.cmd import watchdog

LOG = logging.getLogger(__name__)

RESTART_PAUSE = 2.0
"""Seconds until a process that has ended is started again."""

_STOP = (signal.SIGTERM, signal.SIGINT)
_PASSED_ON = (signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)
_READY = signal.SIGRTMIN
"""Sent by a process that is ready; real-time signals are never merged."""

_HANDLED = {*_STOP, *_PASSED_ON, _READY, signal.SIGCHLD}

Run = Callable[[Callable[[], None]], None]
"""Runs a service until a signal ends it; calls its argument when ready."""


class Supervisor:
    """Keeps a process for each of some services, by name.

    `on_ready` is called once, when all are ready, and `on_stop` once, when
    they are to stop. A process that has hung for as long as the watchdog of
    systemd allows is ended and started again. systemd gets its messages while
    this process goes round: one that ends again and again does not end the others.
    """

    def __init__(
        self,
        services: Iterable[tuple[str, Run]],
        *,
        on_ready: Callable[[], object] = lambda: None,
        on_stop: Callable[[], object] = lambda: None,
    ):
        self._services = dict(services)
        self._names: dict[int, str] = {}  # by process
        self._due: dict[str, float] = {}  # when to start it
        self._unready = set(self._services)
        self._on_ready = on_ready
        self._on_stop = on_stop
        self._stopping = False
        self._failed = False
        self._had_terminal = os.isatty(0)
        # Closed by the end of this process, however it ends.
        self._alive, self._held = os.pipe()
        self._watchdog = watchdog.Receiver.from_environment()
        self._children = (
            None
            if self._watchdog is None
            else watchdog.Children(self._watchdog.seconds)
        )
        self._report_at = 0.0
        self._aborted: set[int] = set()

    def run(self) -> bool:
        """Serve until a signal; return whether all have ended well."""
        signal.pthread_sigmask(signal.SIG_BLOCK, _HANDLED)
        # The collector would write to the memory in common. What it would
        # free now leaves gaps, which each process would fill for itself.
        gc.freeze()
        self._due = dict.fromkeys(self._services, 0.0)
        while not self._stopping or self._names:
            self._start_due()
            self._report()
            self._handle(self._wait())
        return not self._failed

    def _start_due(self) -> None:
        now = time.monotonic()
        for name in [name for name, at in self._due.items() if at <= now]:
            del self._due[name]
            self._start(name)

    def _start(self, name: str) -> None:
        parent = os.getpid()
        pid = os.fork()
        if pid:
            self._names[pid] = name
            return
        code = 1
        try:
            self._enter(name)
            self._services[name](lambda: os.kill(parent, _READY))
            code = 0
        except SystemExit as ended:
            code = _exit_code(ended)
        except BaseException:  # noqa: BLE001 the parent must not go on
            traceback.print_exc()
        finally:
            with contextlib.suppress(OSError, ValueError):
                sys.stdout.flush()
                sys.stderr.flush()
            # Not what the parent has registered for its own exit.
            os._exit(code)

    def _enter(self, name: str) -> None:
        """Become a process of its own, which ends with its parent."""
        with contextlib.suppress(OSError):  # what `ps -o comm` shows
            pathlib.Path('/proc/self/comm').write_text(name)
        # Ctrl-C is for the parent, which passes it on.
        os.setpgid(0, 0)
        os.close(self._held)
        # systemd hears the parent.
        os.environ.pop('NOTIFY_SOCKET', None)
        if self._children is not None:
            self._children.enter()
        for number in _STOP:
            signal.signal(number, signal.SIG_DFL)
        threading.Thread(
            target=self._stop_with_parent, name='parent', daemon=True
        ).start()

    def _stop_with_parent(self) -> None:
        os.read(self._alive, 1)
        os.kill(os.getpid(), signal.SIGTERM)

    def _report(self) -> None:
        """End what has hung, and report to systemd, if that is due."""
        now = time.monotonic()
        if self._watchdog is None or self._children is None or now < self._report_at:
            return
        self._report_at = now + self._watchdog.interval
        hung = self._children.find_hung()
        if not self._stopping:  # those that stop report no more
            for pid in hung & self._names.keys():
                self._end_hung(pid)
        self._watchdog.send()

    def _end_hung(self, pid: int) -> None:
        """End a process, which says what its threads do unless it is stopped."""
        LOG.critical('%s has hung and is ended', self._names[pid])
        os.kill(pid, signal.SIGKILL if pid in self._aborted else signal.SIGABRT)
        self._aborted.add(pid)

    def _wait(self) -> typing.Any:
        times = [*self._due.values()]
        if self._watchdog is not None:
            times.append(self._report_at)
        if not times:
            return signal.sigwaitinfo(_HANDLED)
        pause = min(times) - time.monotonic()
        return signal.sigtimedwait(_HANDLED, max(pause, 0.0))

    def _handle(self, received: typing.Any) -> None:
        number = received and received.si_signo
        if number in _STOP or self._has_lost_terminal(number):
            self._stop()
        elif number in _PASSED_ON:
            self._send(number)
        elif number == _READY:
            self._note_ready(self._names.get(received.si_pid))
        elif number == signal.SIGCHLD:
            self._reap()

    def _has_lost_terminal(self, number: int) -> bool:
        return number == signal.SIGHUP and self._had_terminal and not os.isatty(0)

    def _stop(self) -> None:
        """Let all end; a second signal lets them end at once."""
        if not self._stopping:
            self._stopping = True
            self._due.clear()
            self._on_stop()
        self._send(signal.SIGTERM)

    def _send(self, number: int) -> None:
        for pid in self._names:
            os.kill(pid, number)

    def _note_ready(self, name: str | None) -> None:
        if name in self._unready:
            self._unready.remove(name)
            if not self._unready:
                self._on_ready()

    def _reap(self) -> None:
        """Note all processes that have ended: one signal may be for some."""
        for pid in list(self._names):
            ended, status = os.waitpid(pid, os.WNOHANG)
            if ended:
                self._aborted.discard(pid)
                if self._children is not None:
                    self._children.forget(pid)
                self._note_end(self._names.pop(pid), os.waitstatus_to_exitcode(status))

    def _note_end(self, name: str, code: int) -> None:
        if self._stopping:
            self._failed = self._failed or code != 0
            return
        LOG.error(
            '%s has ended with %d; it is started again in %g s',
            name,
            code,
            RESTART_PAUSE,
        )
        self._due[name] = time.monotonic() + RESTART_PAUSE


def receive_all() -> None:
    """Receive signals again, in a process that handles them from now on."""
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _HANDLED)


def _exit_code(ended: SystemExit) -> int:
    """Return what the interpreter would exit with; print what it would."""
    if ended.code is None or isinstance(ended.code, int):
        return ended.code or 0
    print(ended.code, file=sys.stderr)
    return 1
