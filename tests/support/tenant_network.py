"""Networks of tenants: bridges of this machine, and clients attached to them.

This machine has no address on such a bridge unless a test adds one. What a
test run that was killed has left behind is removed by the next one.
"""

from collections.abc import Callable, Iterator, Sequence
from concurrent import futures
import contextlib
import ctypes
import itertools
import json
import os
import pathlib
import subprocess
import typing

from tests.support import raw_smb
from tests.support.nfs_client import NfsClient
from tests.support.smb_client import PASSWORD, SmbClient

_BRIDGE, _CLIENT = 'mlt', 'mlc'
_DEVICES = pathlib.Path('/sys/class/net')
_NEW_NETWORK = 0x40000000  # CLONE_NEWNET
_libc = ctypes.CDLL(None, use_errno=True)
_serial = itertools.count()
T = typing.TypeVar('T')


def new_name() -> str:
    """Return a name for a bridge; up to three characters may follow it."""
    return _name(_BRIDGE)


def _name(prefix: str) -> str:
    return f'{prefix}{os.getpid():x}-{next(_serial):x}'


@contextlib.contextmanager
def bridge(name: str | None = None) -> Iterator[str]:
    """Provide a bridge without addresses; finally remove it."""
    _remove_leftovers()
    name = name or new_name()
    _ip('link', 'add', name, 'type', 'bridge')
    try:
        _ip('link', 'set', name, 'up')
        yield name
    finally:
        _ip('link', 'delete', name)


class TenantClient:
    """A client on a bridge, in a network namespace of its own."""

    def __init__(self, namespace: str):
        self.namespace = namespace
        self._namespace = pathlib.Path('/run/netns', namespace)

    def smb(self, user: str, host: str, port: int) -> SmbClient:
        """Return a user who connects to an SMB server from the namespace."""
        return SmbClient(user, port, address=host, namespace=self._namespace.name)

    def nfs(self, host: str, port: int) -> NfsClient:
        """Connect to an NFS server from the namespace."""
        return self.call(lambda: NfsClient(host, port))

    def raw_smb(
        self, host: str, share: str, user: str, calls: Sequence[Sequence[str]]
    ) -> list[str | None]:
        """Return the answers to calls with any names, see `raw_smb`."""
        done = subprocess.run(
            [
                *('ip', 'netns', 'exec', self._namespace.name),
                *('/usr/bin/python3', raw_smb.__file__),
                *(host, share, user, PASSWORD),
            ],
            input=json.dumps(calls),
            check=True,
            stdout=subprocess.PIPE,
            text=True,
            timeout=60,
        )
        return json.loads(done.stdout)

    def call(self, function: Callable[[], T]) -> T:
        """Call a function; sockets that it opens belong to the namespace."""

        def call() -> T:
            enter(self._namespace)
            return function()

        # Only this thread, which ends, is in the other namespace.
        with futures.ThreadPoolExecutor(1) as executor:
            return executor.submit(call).result()


@contextlib.contextmanager
def client_on(bridge: str, *addresses: str) -> Iterator[TenantClient]:
    """Provide a client with addresses such as 10.20.0.99/24."""
    name = _name(_CLIENT)
    _ip('netns', 'add', name)
    try:
        _ip('link', 'add', name, 'type', 'veth', 'peer', 'eth0', 'netns', name)
        _ip('link', 'set', name, 'master', bridge, 'up')
        for device in ('lo', 'eth0'):
            _ip('-n', name, 'link', 'set', device, 'up')
        for address in addresses:
            nodad = ('nodad',) if ':' in address else ()
            _ip(*f'-n {name} address add {address} dev eth0'.split(), *nodad)
        yield TenantClient(name)
    finally:
        if (_DEVICES / name).exists():
            _ip('link', 'delete', name)
        _ip('netns', 'delete', name)


def add_address(bridge: str, address: str) -> None:
    """Give this machine an address on a bridge, such as 10.20.0.1/24."""
    _ip('address', 'add', address, 'dev', bridge)


@contextlib.contextmanager
def cut(bridge: str, address: str) -> Iterator[None]:
    """Let what this machine sends to an address be lost in the block."""
    neighbour = (address, 'dev', bridge)
    lost = ('lladdr', '02:00:00:00:00:99', 'nud', 'permanent')
    _ip('neighbour', 'replace', *neighbour, *lost)
    try:
        yield
    finally:
        _ip('neighbour', 'delete', *neighbour)


def enter(namespace: pathlib.Path) -> None:
    """Let the current thread use another network namespace for good."""
    with namespace.open('rb') as file:
        if _libc.setns(file.fileno(), _NEW_NETWORK):
            code = ctypes.get_errno()
            raise OSError(code, os.strerror(code), str(namespace))


def _remove_leftovers() -> None:
    for path in pathlib.Path('/run/netns').glob(f'{_CLIENT}*-*'):
        if _is_left_behind(path.name):
            _ip('netns', 'delete', path.name, check=False)
    for path in _DEVICES.glob(f'{_BRIDGE}*-*'):
        if _is_left_behind(path.name):
            _ip('link', 'delete', path.name, check=False)


def _is_left_behind(name: str) -> bool:
    pid = int(name[len(_BRIDGE) :].partition('-')[0], 16)
    return not pathlib.Path('/proc', str(pid)).exists()


def _ip(*arguments: str, check: bool = True) -> None:
    subprocess.run(['ip', *arguments], check=check, capture_output=True)


def delete_link(name: str) -> None:
    """Remove a network device of this machine, as an operator might."""
    _ip('link', 'delete', name)
