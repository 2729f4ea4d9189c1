"""The signals of a service.

SIGTERM and SIGINT stop it, SIGHUP reloads what can change while it runs,
SIGUSR2 writes a report of its state. SIGUSR1 has no meaning, but must not
end the process, as it would by default.
"""

from collections.abc import Callable
import logging
import os
import select
import signal
import socket
import threading
import time
import typing

LOG = logging.getLogger(__name__)

_STOP = (signal.SIGTERM, signal.SIGINT)


class Signals:
    """Receives signals from its creation on; `wait` handles them.

    A second SIGTERM or SIGINT exits at once. `report` is called in the
    signal handler: it also works while the process starts or stops.

    The kernel may deliver a signal to any thread, and that does not wake the
    main thread, which runs the handlers. So the number of each signal is
    written to a socket on which the main thread waits.
    """

    def __init__(self, report: Callable[[typing.Any], None]) -> None:
        self._sender, self._receiver = socket.socketpair()
        self._sender.setblocking(False)
        self._stopping = False
        self._had_terminal = os.isatty(0)
        signal.set_wakeup_fd(self._sender.fileno(), warn_on_full_buffer=False)
        for number in _STOP:
            signal.signal(number, self._stop)
        for number in (signal.SIGHUP, signal.SIGUSR1):
            signal.signal(number, lambda number, frame: None)
        signal.signal(signal.SIGUSR2, lambda number, frame: report(frame))

    def _stop(self, number: int, frame: typing.Any) -> None:
        if self._stopping:
            raise SystemExit(128 + number)
        self._stopping = True

    def pause(self, seconds: float) -> None:
        """Sleep while the process starts; exit if it is to stop."""
        deadline = time.monotonic() + seconds
        while (left := deadline - time.monotonic()) > 0:
            if self._stopping:
                raise SystemExit(0)
            if (
                select.select([self._receiver], [], [], left)[0]
                and self._receive() in _STOP
            ):
                raise SystemExit(0)

    def wait(self, reload: Callable[[], None]) -> None:
        """Return when the process is to stop; reload when asked to."""
        while (number := self._receive()) not in _STOP:
            if number == signal.SIGUSR1:
                LOG.info('SIGUSR1 has no effect; SIGUSR2 writes a report')
            elif number == signal.SIGHUP and self._lost_terminal():
                LOG.info('The terminal is closed')
                break
            elif number == signal.SIGHUP:
                reload()
        threading.Thread(target=self._exit_at_next, daemon=True).start()

    def _receive(self) -> int:
        return self._receiver.recv(1)[0]

    def _lost_terminal(self) -> bool:
        return self._had_terminal and not os.isatty(0)

    def _exit_at_next(self) -> None:
        """Exit at another signal, which the main thread may not notice."""
        while (number := self._receive()) not in _STOP:
            pass
        os._exit(128 + number)
