"""The connection of one back end to its cluster: commands and objects.

Every call has a limit of its own, after which the process that makes it is
killed: what was not sent by then is never sent.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
import contextlib
import errno
import json
import os
import pathlib
import queue
import subprocess
import sys
import threading
from typing import Any

from oslo_log import log

from manila_lite import exception
from manila_lite.share.drivers.cephfs import rados_worker

LOG = log.getLogger(__name__)

NAMESPACE = 'manila_lite'
"""The RADOS namespace of the objects that the driver writes."""

GATEWAYS = 'manila_lite_nfs'
"""That of the objects that NFS gateways write."""

_SCRIPT = pathlib.Path(rados_worker.__file__)
_MARGIN = 5
"""Seconds by which the limit of librados is longer: it would still send the call."""

_FULL = (errno.ENOSPC, errno.EDQUOT)
_DENIED = {
    'mon': (errno.EACCES,),
    'mgr': (errno.EACCES,),
    'mds': (errno.EACCES,),
    'read': (errno.EPERM, errno.EACCES),
    'write': (errno.EPERM, errno.EACCES),
}
_SILENT = (errno.ETIMEDOUT, errno.ESHUTDOWN, errno.ENOTCONN, errno.EPIPE)


class CommandFailed(exception.ShareBackendException):
    """A command was refused, with this error number."""

    message = 'Ceph refused "{command}": {status} ({name})'

    @property
    def errno(self) -> int:
        return int(str(self.params['number']))

    @property
    def status(self) -> str:
        return str(self.params['status'])


@contextlib.contextmanager
def ignoring(*numbers: int) -> Iterator[None]:
    """Ignore that a command is refused with one of these error numbers."""
    try:
        yield
    except CommandFailed as error:
        if error.errno not in numbers:
            raise


class Fenced(Exception):
    """A command was not sent."""


class ConnectionRefused(exception.ShareBackendException):
    message = 'The Ceph cluster refused the connection: {status}'

    @property
    def status(self) -> str:
        return str(self.params['status'])


def error_for(code: int, command: str, status: str) -> exception.DriverError:
    """Return the error to raise for an error number of a reply."""
    number = abs(code)
    if number in _SILENT:
        return exception.FileServerUnresponsive(server='Ceph')
    # The manager wraps some errors of the file system into EINVAL.
    if number in _FULL or any(os.strerror(full) in status for full in _FULL):
        return exception.FileSystemUnusable(
            reason=f'Ceph refused "{command}", because it is full: {status}'
        )
    return CommandFailed(
        command=command,
        status=status or os.strerror(number),
        name=errno.errorcode.get(number, str(number)),
        number=number,
    )


class Process:
    """A process that makes calls, until it is ended."""

    def __init__(
        self,
        interpreter: str,
        script: pathlib.Path,
        settings: Mapping[str, Any],
        limit: float,
    ):
        self.is_over = False
        self._numbers = 0
        self._lock = threading.Lock()
        self._waiting: dict[int, queue.SimpleQueue] = {0: queue.SimpleQueue()}
        first = self._waiting[0]
        try:
            # Isolated: it must not see our packages or our environment.
            self._process = subprocess.Popen(
                [interpreter, '-I', str(script)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
        except OSError as error:
            raise exception.BadConfiguration(
                reason=f'cephfs_python {interpreter} cannot be run: {error.strerror}'
            ) from error
        threading.Thread(target=self._read_replies, daemon=True).start()
        self._send(settings)
        self.greeting = self._get(0, first, limit)

    def call(self, request: Mapping[str, Any], limit: float) -> dict[str, Any]:
        waiting: queue.SimpleQueue = queue.SimpleQueue()
        with self._lock:
            self._numbers += 1
            number = self._numbers
            self._waiting[number] = waiting
            self._send({'number': number, **request})
        return self._get(number, waiting, limit)

    def _send(self, request: Mapping[str, Any]) -> None:
        assert self._process.stdin is not None
        with contextlib.suppress(OSError, ValueError):  # the reader sees its end
            self._process.stdin.write((json.dumps(request) + '\n').encode())
            self._process.stdin.flush()

    def _get(
        self, number: int, waiting: queue.SimpleQueue, limit: float
    ) -> dict[str, Any]:
        try:
            reply = None if self.is_over else waiting.get(timeout=limit)
        except queue.Empty:
            reply = None
        self._waiting.pop(number, None)
        if reply is None:
            self.end()
            raise exception.FileServerUnresponsive(server='Ceph')
        return reply

    def _read_replies(self) -> None:
        assert self._process.stdout is not None
        with contextlib.suppress(OSError, ValueError):
            for line in self._process.stdout:
                reply = json.loads(line)
                if waiting := self._waiting.get(reply['number']):
                    waiting.put(reply)
        self.is_over = True
        for waiting in list(self._waiting.values()):
            waiting.put(None)

    def end(self) -> None:
        """Kill it; nothing that it was asked for is sent from now on."""
        self.is_over = True
        self._process.kill()
        self._process.wait()


class _Processes:
    """The processes that call clusters for us, by their connection settings.

    Back ends with the same settings share one. A process that was forked starts
    its own, since two cannot read from one pipe.
    """

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        self._lock = threading.Lock()
        self._found: dict[str, Process] = {}

    def get(self, interpreter: str, settings: Mapping[str, Any]) -> Process:
        key = json.dumps([interpreter, settings])
        with self._lock:
            process = self._found.get(key)
            if process is None or process.is_over:
                process = self._found[key] = _connect(interpreter, settings)
            return process

    def end(self, interpreter: str, settings: Mapping[str, Any]) -> None:
        with self._lock:
            process = self._found.pop(json.dumps([interpreter, settings]), None)
        if process is not None:
            process.end()


_processes = _Processes()
os.register_at_fork(after_in_child=_processes.forget)


def _connect(interpreter: str, settings: Mapping[str, Any]) -> Process:
    process = Process(interpreter, _SCRIPT, settings, settings['limit'] - _MARGIN)
    code = process.greeting['code']
    if code == 0:
        return process
    process.end()
    status = process.greeting['status']
    if code == rados_worker.NO_MODULE:
        raise exception.BadConfiguration(
            reason=f'cephfs_python {interpreter} lacks the module rados '
            f"({status}); install Debian's python3-rados, or name an "
            'interpreter that has it'
        )
    if abs(code) in _SILENT:
        raise exception.FileServerUnresponsive(server='Ceph')
    raise ConnectionRefused(status=status)


class Cluster:
    """A cluster as one of its clients sees it."""

    def __init__(
        self,
        *,
        interpreter: str,
        conffile: str,
        client_id: str,
        keyring: str | None,
        limit: float,
    ):
        self.client_id = client_id
        self.pool = ''  # of our own objects
        self._interpreter = interpreter
        self._limit = limit
        self._settings = {
            'conffile': conffile,
            'id': client_id,
            'keyring': keyring,
            'limit': limit + _MARGIN,
        }

    def mgr(
        self, prefix: str, fence: Mapping[str, Any] | None = None, **arguments: object
    ) -> str:
        """Run a command of the manager; return its output.

        It is not sent, and Fenced is raised, if the omap of an object forbids it.
        """
        command = {'prefix': prefix, **arguments}
        if fence is None:
            return self._command('mgr', command)
        place = {'pool': self.pool, 'namespace': NAMESPACE}
        return self._command('mgr', command, fence={**fence, **place})

    def mon(self, prefix: str, **arguments: object) -> Any:
        """Run a command of the monitors; return its output from JSON."""
        return json.loads(
            self._command('mon', {'prefix': prefix, **arguments, 'format': 'json'})
        )

    def mds(self, target: int, prefix: str, **arguments: object) -> str:
        """Run a command of the metadata server with this global id."""
        command = {'prefix': prefix, **arguments}
        return self._command('mds', command, target=str(target))

    def read(
        self, name: str, keys: Sequence[str], namespace: str = NAMESPACE
    ) -> dict[str, str]:
        """Return the values of those keys of an object that exist."""
        return self._on_object('read', name, namespace, keys=list(keys))['values']

    def read_all(
        self, name: str, prefix: str, namespace: str = NAMESPACE
    ) -> dict[str, str]:
        """Return the values of all keys of an object with a prefix."""
        return self._on_object('read', name, namespace, prefix=prefix)['values']

    def write(
        self,
        name: str,
        compare: Mapping[str, str],
        values: Mapping[str, str],
        remove: Iterable[str] = (),
        namespace: str = NAMESPACE,
    ) -> bool:
        """Change keys of an object in one step, and return whether it was done.

        Nothing is changed if one of the compared keys has another value; a
        key that does not exist has the value ''.
        """
        with ignoring(errno.ECANCELED):
            self._on_object(
                'write',
                name,
                namespace,
                compare=dict(compare),
                set=dict(values),
                remove=list(remove),
            )
            return True
        return False

    def _on_object(
        self, kind: str, name: str, namespace: str, **values: object
    ) -> dict[str, Any]:
        return self._call(
            f'{kind} {self.pool}/{namespace}/{name}',
            {
                'kind': kind,
                'pool': self.pool,
                'namespace': namespace,
                'object': name,
                **values,
            },
        )

    def _command(self, kind: str, command: dict[str, Any], **more: object) -> str:
        request = {'kind': kind, 'command': command, **more}
        reply = self._call(command['prefix'], request)
        if 'fenced' in reply:
            raise Fenced
        output: str = reply['output']
        return output

    def _call(self, what: str, request: dict[str, Any]) -> dict[str, Any]:
        sys.audit('manila_lite.ceph', what)
        process = _processes.get(self._interpreter, self._settings)
        reply = process.call(request, self._limit)
        if abs(reply['code']) in _SILENT:
            process.end()  # librados might still send it
        if abs(reply['code']) in _DENIED[request['kind']]:
            process.end()  # it keeps the capabilities that it began with
        if reply['code'] != 0:  # the manager's limit has no sign
            raise error_for(reply['code'], what, reply.get('status', ''))
        return reply

    def close(self) -> None:
        """End the process that makes our calls; the next call starts another."""
        _processes.end(self._interpreter, self._settings)
