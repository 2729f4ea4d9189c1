"""Clients that read long answers slowly, and notice if the end is missing."""

import contextlib
from http import client
import socket
import threading
import typing
import urllib.parse

READERS = 4
PATH = '/openapi.json'
"""What is long whatever shares there are."""

BUFFER = 4096
PAUSE = 0.005


class SlowReaders:
    """Some of them, which read again and again until the end of the block."""

    def __init__(self, url: str):
        self._url = urllib.parse.urlsplit(url)
        self._end = threading.Event()
        self._counting = threading.Lock()
        self.complete = 0
        self.incomplete = 0
        """How many answers began and had no end."""
        self._reading = 0
        self._threads = [
            threading.Thread(target=self._run, daemon=True) for _ in range(READERS)
        ]

    @property
    def are_reading(self) -> bool:
        """Whether each of them is in the middle of an answer."""
        return self._reading == READERS

    def __enter__(self) -> typing.Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._end.set()
        for thread in self._threads:
            thread.join()

    def _run(self) -> None:
        while not self._end.is_set():
            # Without the beginning of an answer, it counts as none.
            with contextlib.suppress(OSError, client.HTTPException):
                self._read()

    def _read(self) -> None:
        connection = client.HTTPConnection(self._url.netloc)
        # Hardly anything may be on its way to the client.
        connection.sock = socket.socket()
        connection.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, BUFFER)
        connection.sock.settimeout(10)
        with contextlib.closing(connection):
            connection.sock.connect((self._url.hostname, self._url.port))
            connection.request(
                'GET', self._url.path + PATH, headers={'X-Auth-Token': 'user:project'}
            )
            answer = connection.getresponse()
            if answer.status != 200:
                return
            with self._counting:
                self._reading += 1
            is_complete = self._is_complete(answer)
            with self._counting:
                self._reading -= 1
                self.complete += is_complete
                self.incomplete += not is_complete

    def _is_complete(self, answer: client.HTTPResponse) -> bool:
        """Read an answer; return whether it had an end."""
        left = answer.length
        # A connection may be reset as well.
        with contextlib.suppress(OSError, client.HTTPException):
            while left and (part := answer.read1(BUFFER)):
                left -= len(part)
                self._end.wait(PAUSE)
        return not left
