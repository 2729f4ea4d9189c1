"""Nodes: network namespaces with addresses and host names of their own.

All links are in namespaces: a cluster adds no interface and no address to
this machine, and nothing outside reaches its nodes. What runs in the
namespace of a node has been started for it, so that a node is stopped by the
ids of exactly these processes.
"""

from collections.abc import Iterable
import contextlib
import ctypes
import os
import pathlib
import shlex
import signal
import subprocess

from tests.support.processes import wait_until

NETWORK = '198.18.210'
"""Addresses reserved for tests of networks, which are routed nowhere."""

NAMESPACES = pathlib.Path('/run/netns')
# $0 is the host name of the node, $@ the command.
ENTER = 'mount --bind {hosts} /etc/hosts && hostname "$0" && exec "$@"'
_CLONE_NEWUTS, _CLONE_NEWNET = 0x04000000, 0x40000000
_libc = ctypes.CDLL(None, use_errno=True)


class Node:
    """A namespace with a link to the bridge, and what runs in it."""

    def __init__(self, network: 'Network', name: str, number: int):
        self.name = name
        self.address = f'{NETWORK}.{number}'
        self.namespace = network.namespace(name)
        self.folder = network.folder / name
        self._enter = ENTER.format(hosts=shlex.quote(str(network.hosts)))
        self._hub = network.hub

    def create(self) -> None:
        self.folder.mkdir(exist_ok=True)
        link = ('-n', self._hub, 'link')
        ip('netns', 'add', self.namespace)
        ip(
            *(*link, 'add', self.name, 'type', 'veth'),
            *('peer', 'name', 'eth0', 'netns', self.namespace),
        )
        ip(*link, 'set', self.name, 'master', 'bridge', 'up')
        inside = ('-n', self.namespace)
        ip(*inside, 'address', 'add', f'{self.address}/24', 'dev', 'eth0')
        ip(*inside, 'link', 'set', 'lo', 'up')
        ip(*inside, 'link', 'set', 'eth0', 'up')

    def enter(self) -> None:
        """Move this process into the namespaces of the node, for good."""
        with (NAMESPACES / self.namespace).open('rb') as namespace:
            _checked(_libc.setns(namespace.fileno(), _CLONE_NEWNET))
        _checked(_libc.unshare(_CLONE_NEWUTS))
        name = self.name.encode()
        _checked(_libc.sethostname(name, len(name)))

    def spawn(
        self, *command: object, env: dict[str, str] | None = None
    ) -> subprocess.Popen:
        """Start a program of the system; its output goes to the log."""
        with (self.folder / 'log').open('ab') as log:
            return subprocess.Popen(
                self.words(command),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self.folder,
                env=self._env(env),
            )

    def run(
        self, *command: object, env: dict[str, str] | None = None
    ) -> subprocess.CompletedProcess:
        return subprocess.run(
            self.words(command),
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
            cwd=self.folder,
            env=self._env(env),
        )

    def words(self, command: Iterable[object]) -> list[str]:
        """Return the words that run a command on the node."""
        enter = ('ip', 'netns', 'exec', self.namespace, 'unshare', '--uts')
        return [*enter, 'sh', '-c', self._enter, self.name, *map(str, command)]

    def _env(self, env: dict[str, str] | None) -> dict[str, str]:
        return {
            'PATH': os.environ['PATH'],
            'LC_ALL': 'C.UTF-8',
            'HOME': str(self.folder),
            **(env or {}),
        }

    @property
    def log(self) -> str:
        return (self.folder / 'log').read_text(errors='replace')

    def pids(self) -> list[int]:
        return pids_of(self.namespace)

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to every process of the node."""
        for pid in self.pids():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)

    def kill(self) -> None:
        """End every process of the node at once, as a power failure does."""
        end_all(self.namespace)

    def pause(self) -> None:
        """Stop every process: the node is not gone, and answers nothing."""
        self.signal(signal.SIGSTOP)

    def resume(self) -> None:
        self.signal(signal.SIGCONT)

    def unplug(self) -> None:
        """Cut the node off, without any notice to its peers."""
        ip('-n', self.namespace, 'link', 'set', 'eth0', 'down')

    def plug(self) -> None:
        ip('-n', self.namespace, 'link', 'set', 'eth0', 'up')


class Network:
    """A bridge in a namespace of its own, and the nodes on it.

    The names of its namespaces begin with `prefix`.
    """

    def __init__(
        self, folder: pathlib.Path, prefix: str, names: Iterable[str]
    ):
        self.folder = folder
        self.prefix = prefix
        self.hub = self.namespace('hub')
        self.hosts = folder / 'hosts'
        self.nodes = {
            name: Node(self, name, number)
            for number, name in enumerate(names, start=1)
        }

    def namespace(self, name: str) -> str:
        return f'{self.prefix}-{name}'

    def create(self) -> None:
        """Create the namespaces and the links."""
        ip('netns', 'add', self.hub)
        ip('-n', self.hub, 'link', 'add', 'bridge', 'type', 'bridge')
        ip('-n', self.hub, 'link', 'set', 'bridge', 'up')
        self.hosts.write_text(
            '127.0.0.1 localhost\n'
            + ''.join(
                f'{node.address} {name}\n' for name, node in self.nodes.items()
            )
        )
        for node in self.nodes.values():
            node.create()

    def remove(self) -> None:
        remove(self.prefix)


def remove(prefix: str) -> None:
    """End all processes of the nodes of a network and remove it."""
    for path in NAMESPACES.glob(f'{prefix}-*'):
        end_all(path.name)
        ip('netns', 'delete', path.name)


def pids_of(namespace: str) -> list[int]:
    return [int(pid) for pid in ip('netns', 'pids', namespace).split()]


def end_all(namespace: str) -> None:
    """Kill every process of a namespace, also those it starts meanwhile."""

    def is_empty() -> bool:
        found = [pid for pid in pids_of(namespace) if not _is_zombie(pid)]
        for pid in found:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        return not found

    wait_until(is_empty, f'{namespace} has no processes', timeout=30)


def _is_zombie(pid: int) -> bool:
    """Whether a process has ended and only its parent is yet to see it."""
    with contextlib.suppress(OSError):
        stat = pathlib.Path(f'/proc/{pid}/stat').read_text()
        return stat.rpartition(')')[2].split()[0] == 'Z'
    return True


def ip(*arguments: str) -> str:
    done = subprocess.run(
        ['ip', *arguments], capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise RuntimeError(f'ip {" ".join(arguments)}: {done.stderr.strip()}')
    return done.stdout


def _checked(result: int) -> None:
    if result:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))
