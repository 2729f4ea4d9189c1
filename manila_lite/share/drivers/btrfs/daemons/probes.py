"""Calls that show whether a daemon answers.

A process may run and serve no client: it is stopped, or waits for a lock for
ever. So each daemon is called every second, where its clients call it: an NFS
server does nothing when it is asked to (NULL), smbd says which protocol it
speaks, and the bus and the NFS server on it reply to a ping.

No call waits. What has not been answered is looked at again in the next
round, and any of the replies counts, also a late one: a busy server is slow,
but answers. The connection that was answered is used again. So a server
that clients have left no file descriptor is not taken for one that hangs.
"""

from collections.abc import Callable
import errno
import os
import pathlib
import socket
import struct
import time
from typing import Any, NamedTuple

from jeepney import DBusAddress, HeaderFields, MessageType, new_method_call
from jeepney.low_level import Parser

from manila_lite.share.drivers.btrfs import kernel

SILENCE = 5.0
"""Seconds without any reply after which a daemon does not answer.

A server that swaps, or shares two processors with many others, is late by
one or two seconds; clients begin to report errors after some ten."""

CALLS = 3
"""The least number of calls without a reply in that time.

A process that has not run for a while, such as on a machine that was
suspended, has not called, so that it has not heard nothing."""

RETRY_INTERVAL = 0.5
_INTERVAL = 1.0
_TOLERANCE = 0.1
_SIZE = 4096
_XID = 0x6D616E69
_REPLY = struct.pack('>II', _XID, 1)
_PING = 2


class Question(NamedTuple):
    """What a daemon is asked, and how to know the reply."""

    family: socket.AddressFamily
    address: Any
    text: bytes
    is_reply: Callable[[bytes], bool]
    again: bytes | None = None
    """What to send on the same connection next; None: there is another."""

    namespace: pathlib.Path | None = None
    interval: float = _INTERVAL


def nfs(port: int, namespace: pathlib.Path | None = None) -> Question:
    """Ask an NFS server to do nothing."""
    call = struct.pack('>10I', _XID, 0, 2, 100003, 4, 0, 0, 0, 0, 0)
    text = struct.pack('>I', len(call) | 1 << 31) + call
    return Question(
        socket.AF_INET,
        ('127.0.0.1', port),
        text,
        lambda data: data[4:].startswith(_REPLY),
        text,
        namespace,
    )


def smb(address: str, port: int, namespace: pathlib.Path | None = None) -> Question:
    """Ask smbd for its protocol; it starts a process for each connection."""
    header = struct.pack(
        '<4sHHIHHIIQIIQ16s', b'\xfeSMB', 64, *(0,) * 3, 1, *(0,) * 6, b''
    )
    body = struct.pack('<HHHHI16sQH', 36, 1, 1, 0, 0, b'', 0, 0x0210)
    return Question(
        socket.AF_INET6 if ':' in address else socket.AF_INET,
        (address, port),
        struct.pack('>I', len(header + body)) + header + body,
        lambda data: data[4:].startswith(b'\xfeSMB'),
        None,
        namespace,
        interval=2 * _INTERVAL,
    )


def bus(path: str, name: str = 'org.freedesktop.DBus') -> Question:
    """Ping the bus, or what has a name on it."""
    own = DBusAddress(
        '/org/freedesktop/DBus',
        bus_name='org.freedesktop.DBus',
        interface='org.freedesktop.DBus',
    )
    other = DBusAddress('/', bus_name=name, interface='org.freedesktop.DBus.Peer')
    user = str(os.geteuid()).encode().hex()
    ping = new_method_call(other, 'Ping').serialise(serial=_PING)
    return Question(
        socket.AF_UNIX,
        path,
        f'\0AUTH EXTERNAL {user}\r\nBEGIN\r\n'.encode()
        + new_method_call(own, 'Hello').serialise(serial=1)
        + ping,
        _is_pong,
        ping,
    )


def _is_pong(data: bytes) -> bool:
    """Return whether a ping has returned; the bus itself sends errors."""
    if data.startswith(b'OK '):
        data = data.partition(b'\r\n')[2]
    return any(
        message.header.message_type is MessageType.method_return
        and message.header.fields.get(HeaderFields.reply_serial) == _PING
        for message in Parser().feed(data)
    )


class _Unasked(Exception):
    """There is no way to call the daemon now: its network is missing."""


class _Connection:
    """A call that was sent, and what has come back."""

    def __init__(self, question: Question):
        self._question = question
        self._received = b''
        self._unsent = question.text
        self._socket = _opened(question)
        try:
            self._connect()
        except OSError:
            self.close()
            raise

    def _connect(self) -> None:
        result = self._socket.connect_ex(self._question.address)
        if result not in (0, errno.EINPROGRESS):
            raise OSError(result, os.strerror(result))
        self._send()

    def send_again(self, text: bytes) -> None:
        self._received, self._unsent = b'', text
        self._send()

    def _send(self) -> None:
        try:
            sent = self._socket.send(self._unsent, socket.MSG_NOSIGNAL)
        except BlockingIOError:  # it is still being connected
            return
        self._unsent = self._unsent[sent:]
        if not self._unsent and self._question.again is None:
            # It ends with its reply, and is not taken for a client.
            self._socket.shutdown(socket.SHUT_WR)

    def has_reply(self) -> bool:
        """Return whether there is a reply by now; raises OSError."""
        if self._unsent:
            self._send()
        while True:
            try:
                data = self._socket.recv(_SIZE)
            except BlockingIOError:
                break
            if not data:
                raise ConnectionResetError(errno.ECONNRESET, 'closed')
            self._received += data
            if self._question.is_reply(self._received):
                return True
        return False

    def close(self) -> None:
        self._socket.close()


def _opened(question: Question) -> socket.socket:
    """Return a socket in the right namespace, which does not block."""
    try:
        found = (
            socket.socket(question.family, socket.SOCK_STREAM)
            if question.namespace is None
            else kernel.socket_in(question.namespace, question.family)
        )
    except OSError as error:
        raise _Unasked from error
    found.setblocking(False)
    if question.family != socket.AF_UNIX:
        try:
            # An address that has moved to another machine is no reason to
            # end the daemon of this one.
            found.bind((question.address[0], 0))
        except OSError as error:
            found.close()
            raise _Unasked from error
    return found


class Probe:
    """Asks one question again and again.

    `waited` is the time in seconds for which it was not asked before.
    """

    def __init__(
        self,
        question: Question,
        waited: float = 0.0,
        clock: Callable[[], float] = time.monotonic,
    ):
        self._question = question
        self._clock = clock
        self._connections: list[_Connection] = []
        self.reset()
        self._since -= waited

    def reset(self) -> None:
        """Begin again, with another process of the daemon."""
        self._close()
        self.has_reply = False
        self._since = self._next = self._clock()
        self._failed = 0
        self._is_asked = False
        self._can_ask = True

    @property
    def is_waiting(self) -> bool:
        """Whether there was no reply to the last call but one, or any."""
        return bool(self._failed) or (self._can_ask and not self.has_reply)

    def silent_for(self) -> float:
        """Return the seconds during which no call was answered."""
        if self._failed < CALLS:
            return 0.0
        return self._clock() - self._since

    def ask(self) -> None:
        """Look for a reply and call again, unless it is too early."""
        now = self._clock()
        if now < self._next:
            return
        answered = self._answered()
        if answered is not None:
            self.has_reply = True
            self._failed, self._since = 0, now
        elif self._is_asked:
            self._failed += 1
        self._call(answered, now)
        interval = RETRY_INTERVAL if self.is_waiting else self._question.interval
        self._next = now + interval - _TOLERANCE

    def _answered(self) -> _Connection | None:
        """Return a connection with a reply, if any; the others are closed."""
        for each in list(self._connections):
            try:
                if each.has_reply():
                    self._connections.remove(each)
                    self._close()
                    return each
            except OSError:
                self._connections.remove(each)
                each.close()
        return None

    def _call(self, connection: _Connection | None, now: float) -> None:
        self._is_asked = self._can_ask = True
        try:
            if connection is None or self._question.again is None:
                if connection is not None:
                    connection.close()
                self._connections.append(_Connection(self._question))
            else:
                self._connections.append(connection)
                connection.send_again(self._question.again)
        except OSError:
            return  # that is no reply, too
        except _Unasked:
            self._is_asked = self._can_ask = False
            self._failed, self._since = 0, now

    def _close(self) -> None:
        for each in self._connections:
            each.close()
        self._connections = []
