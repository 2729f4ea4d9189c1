"""Send a read-only volume to another pool, as a whole or what has changed.

The bytes pass through this process: when it is killed, the sender and the
receiver end by themselves. What was received by then is not read-only, and
never taken for a copy. The receiver is confined to the directory it writes
to, whatever the links in a share say.
"""

from collections.abc import Callable
import contextlib
import os
import pathlib
import struct
import subprocess
import tempfile
from typing import IO

from manila_lite import exception

_CHUNK = 1 << 20
_CHECKED_CHUNKS = 64
_STREAM_HEADER = len(b'btrfs-stream\0') + 4
_COMMAND_HEADER = struct.Struct('<IHI')
_SNAPSHOT, _END = 2, 21


class TransferFailed(exception.ShareBackendException):
    """A volume could not be sent or received; what was begun is not used."""

    is_out_of_space = False
    is_at_source = False


def transfer(
    source: pathlib.Path,
    parent: pathlib.Path | None,
    folder: pathlib.Path,
    check: Callable[[], None],
    count: Callable[[int], None] = lambda sent: None,
    *,
    always: bool = False,
) -> pathlib.Path | None:
    """Receive a volume in a folder, and return it.

    With a parent that has been received there, only the difference is sent;
    without a difference the result is None, unless the volume is `always` to
    be received. `check` is called repeatedly and
    may raise an error, which ends the transfer. `count` is called with the
    number of bytes of each part that was sent.
    """
    parents = ['-p', str(parent)] if parent is not None else []
    with (
        _Program('send', '-q', *parents, str(source)) as sender,
        contextlib.ExitStack() as stack,
    ):
        output = sender.output
        start = _read(output)
        if parent is not None and len(start) < _CHUNK:
            sender.finish()
            if _has_no_changes(start) and not always:
                return None
        receiver = stack.enter_context(
            _Program('receive', '-q', '-C', str(folder), reads=True)
        )
        # It says itself why it has stopped reading.
        with contextlib.suppress(BrokenPipeError):
            _pass_on(start, output, receiver.input, check, count)
            sender.finish()
        with contextlib.suppress(BrokenPipeError):
            receiver.input.close()
        receiver.finish()
        sender.finish()
    return folder / source.name


def _pass_on(
    chunk: bytes,
    output: IO[bytes],
    into: IO[bytes],
    check: Callable[[], None],
    count: Callable[[int], None],
) -> None:
    number = 0
    while chunk:
        if number % _CHECKED_CHUNKS == 0:
            check()
        number += 1
        into.write(chunk)
        count(len(chunk))
        chunk = _read(output)
    into.flush()


def _read(output: IO[bytes]) -> bytes:
    """Return a whole chunk, or less at the end."""
    chunk = bytearray()
    while len(chunk) < _CHUNK:
        part = output.read(_CHUNK - len(chunk))
        if not part:
            break
        chunk += part
    return bytes(chunk)


def _has_no_changes(stream: bytes) -> bool:
    """Return whether a stream only says that it equals its parent."""
    commands = []
    place = _STREAM_HEADER
    while place + _COMMAND_HEADER.size <= len(stream):
        length, command, _ = _COMMAND_HEADER.unpack_from(stream, place)
        commands.append(command)
        place += _COMMAND_HEADER.size + length
    return commands == [_SNAPSHOT, _END]


class _Program:
    """A command of btrfs-progs, which is killed if it is not awaited."""

    def __init__(self, command: str, *args: str, reads: bool = False):
        self._command = command
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 (closed by exit)
        self._process = subprocess.Popen(
            ['btrfs', command, *args],
            stdin=subprocess.PIPE if reads else subprocess.DEVNULL,
            stdout=subprocess.DEVNULL if reads else subprocess.PIPE,
            stderr=self._errors,
            env={'PATH': os.environ.get('PATH', os.defpath), 'LC_ALL': 'C'},
        )

    @property
    def input(self) -> IO[bytes]:
        assert self._process.stdin is not None
        return self._process.stdin

    @property
    def output(self) -> IO[bytes]:
        assert self._process.stdout is not None
        return self._process.stdout

    def finish(self) -> None:
        """Wait for its end; raise TransferFailed if it has failed."""
        if self._process.wait() == 0:
            return
        self._errors.seek(0)
        lines = self._errors.read().decode(errors='replace').splitlines()
        failed = TransferFailed(
            msg=f'btrfs {self._command}: '
            + ('; '.join(lines[-3:]) or f'status {self._process.returncode}')
        )
        failed.is_at_source = self._command == 'send'
        failed.is_out_of_space = not failed.is_at_source and any(
            text in line
            for line in lines
            for text in ('No space left', 'quota exceeded')
        )
        raise failed

    def __enter__(self) -> '_Program':
        return self

    def __exit__(self, *error: object) -> None:
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout, self._errors):
            if pipe is not None:
                with contextlib.suppress(BrokenPipeError):
                    pipe.close()
