"""Messages to the watchdog of systemd, and from processes to their parent."""

from collections.abc import Callable
import contextlib
import os
import socket
import struct
import time

PERIODS = 4
"""Messages within the time that a unit allows, as one may be late."""

_MESSAGE = b'WATCHDOG=1'
_CREDENTIALS = struct.Struct('3i')  # process, user and group


class Receiver:
    """Who expects messages, and how often: systemd, or the parent."""

    def __init__(self, address: str, seconds: float):
        self._address = address.replace('@', '\0', 1)  # in no directory
        self.seconds = seconds

    @classmethod
    def from_environment(cls) -> 'Receiver | None':
        """Return it if what has started this process wants messages."""
        address = os.environ.get('NOTIFY_SOCKET')
        microseconds = os.environ.get('WATCHDOG_USEC')
        if not address or not microseconds:
            return None
        return cls(address, int(microseconds) / 1e6)

    @property
    def interval(self) -> float:
        """The seconds between two messages."""
        return self.seconds / PERIODS

    def send(self) -> None:
        """Send a message, unless the receiver is busy or gone; never block."""
        with (
            socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender,
            contextlib.suppress(OSError),
        ):
            sender.setblocking(False)
            sender.sendto(_MESSAGE, self._address)


class Children:
    """Receives the messages of forked processes, which the kernel identifies.

    One that has sent messages and then sent none for `seconds` has hung.
    """

    def __init__(self, seconds: float, clock: Callable[[], float] = time.monotonic):
        self._seconds = seconds
        self._clock = clock
        self._heard_at: dict[int, float] = {}
        self._looked_at = clock()
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
        self._socket.setblocking(False)
        self._socket.bind('')  # to an address in no directory

    def enter(self) -> None:
        """Send messages here from now on, in a process that was just forked."""
        address = self._socket.getsockname()
        os.environ['NOTIFY_SOCKET'] = '@' + address[1:].decode()
        self._socket.close()

    def find_hung(self) -> set[int]:
        """Return the processes that have hung since they were last returned.

        If this process did not run itself for a time, neither did they.
        """
        now = self._clock()
        was_late = now - self._looked_at > self._seconds / 2
        self._looked_at = now
        if was_late:
            self._heard_at = dict.fromkeys(self._heard_at, now)
        for pid in self._receive():
            self._heard_at[pid] = now
        hung = {pid for pid, at in self._heard_at.items() if now - at > self._seconds}
        self._heard_at.update(dict.fromkeys(hung, now))
        return hung

    def forget(self, pid: int) -> None:
        """Forget a process that has ended."""
        self._heard_at.pop(pid, None)

    def _receive(self) -> set[int]:
        senders = set()
        with contextlib.suppress(BlockingIOError):
            while True:
                message, ancillary, _, _ = self._socket.recvmsg(
                    100, socket.CMSG_SPACE(_CREDENTIALS.size)
                )
                if message == _MESSAGE and ancillary:
                    senders.add(_CREDENTIALS.unpack(ancillary[0][2])[0])
        return senders
