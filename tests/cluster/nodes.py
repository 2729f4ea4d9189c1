"""Nodes: network namespaces with addresses and host names of their own.

All links are in namespaces: a cluster adds no interface and no address to
this machine, and nothing outside reaches its nodes. What runs in the
namespace of a node has been started for it, so that a node is stopped by the
ids of exactly these processes.
"""

from collections.abc import Iterable, Iterator, Sequence
import contextlib
import ctypes
import email.utils
import itertools
import os
import pathlib
import shlex
import signal
import subprocess
import sys
import time

from manila_lite.share.drivers.btrfs import kernel
from tests.support.processes import wait_until

NETWORK = '198.18.210'
"""Addresses reserved for tests of networks, which are routed nowhere."""

NAMESPACES = pathlib.Path('/run/netns')
PREFIX = 'ml'
"""Begins the names of namespaces; the id of the process follows."""

# $0 is the host name of the node, $@ the command.
ENTER = 'mount --bind {hosts} /etc/hosts && hostname "$0" && exec "$@"'
SMALL_DISK = 'disk'
"""The folder of a node that is a small disk for each of its services."""

DISK_SIZE = 24 << 20  # bytes
NO_NAME_SERVER = f'{NETWORK}.254'
NO_HARDWARE = '02:00:00:00:00:fe'
"""A hardware address that no node has."""

STOPPED_WITHIN = 120.0
FAKETIME = pathlib.Path('/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1')
_CLONE_NEWNS, _CLONE_NEWUTS, _CLONE_NEWNET = (*(0x00020000, 0x04000000, 0x40000000),)
_MS_BIND, _MS_REC, _MS_PRIVATE = 0x1000, 0x4000, 0x40000
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
        self._names = network.names
        self._clock = self.folder / 'clock'

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
        """Move this process into the namespaces of the node, for good.

        It gets the names of the cluster, and a small disk of its own.
        """
        with (NAMESPACES / self.namespace).open('rb') as namespace:
            _checked(_libc.setns(namespace.fileno(), _CLONE_NEWNET))
        _checked(_libc.unshare(_CLONE_NEWUTS | _CLONE_NEWNS))
        name = self.name.encode()
        _checked(_libc.sethostname(name, len(name)))
        _mount(None, '/', None, _MS_REC | _MS_PRIVATE)
        # Otherwise the pools of other tests are busy until the node ends.
        for target in kernel.pool_mounts(outside=self.folder):
            kernel.unmount(target)
        for file in ('hosts', 'resolv.conf'):
            _mount(self._names / file, f'/etc/{file}', None, _MS_BIND)
        disk = self.folder / SMALL_DISK
        disk.mkdir(exist_ok=True)
        _mount('disk', disk, 'tmpfs', 0, f'size={DISK_SIZE}')
        (disk / 'tmp').mkdir()
        os.environ['TMPDIR'] = str(disk / 'tmp')

    def enter_with_clock(self, command: Sequence[str]) -> None:
        """Do the same and run a Python command on a clock that is set."""
        self.enter()
        os.environ.update(
            LD_PRELOAD=str(FAKETIME),
            FAKETIME_TIMESTAMP_FILE=str(self._clock),
            FAKETIME_CACHE_DURATION='1',
            # Nobody sets that clock.
            FAKETIME_DONT_FAKE_MONOTONIC='1',
        )
        os.execve(sys.executable, [sys.executable, *command], os.environ)

    def enter_with_code(self, folder: pathlib.Path, command: Sequence[str]) -> None:
        """Do the same and run a Python command with the code of a folder."""
        self.enter()
        os.environ['PYTHONPATH'] = str(folder)
        os.execve(command[0], command, os.environ)

    def step_clock(self, seconds: float) -> None:
        """Do that to the clock of a node, if it has one of its own."""
        if not self._clock.exists():
            raise RuntimeError(
                f'{self.name} uses the clock of this machine; some other '
                'services have one of their own'
            )
        self.set_clock(seconds)

    def set_clock(self, seconds: float) -> None:
        """Let the clock of `enter_with_clock` differ by some seconds."""
        new = self._clock.with_suffix('.new')
        new.write_text(f'{seconds:+g}\n')
        new.replace(self._clock)

    def clock_of(self, url: str) -> float | None:
        """Return how far the clock of the process at a URL is ahead."""
        done = self.run(*('curl', '-sI', '-X', 'GET', '--max-time', 5, url))
        for line in done.stdout.splitlines():
            name, _, value = line.partition(': ')
            if name.lower() == 'date':
                at = email.utils.parsedate_to_datetime(value).timestamp()
                return at - time.time()
        return None

    def fill_disk(self) -> None:
        """Leave no space on the small disk of each process."""
        wait_until(lambda: [*self._logs()], f'{self.name} has a log', 120)
        for path in self._disks():
            # That there is no space left ends it.
            with (
                contextlib.suppress(OSError),
                (path / 'filler').open('wb', buffering=0) as file,
            ):
                while file.write(bytes(1 << 16)):
                    pass

    def has_full_disk(self) -> bool:
        """Whether the log of a process is on a disk without any space."""
        return any(os.statvfs(path).f_bavail == 0 for path in self._logs())

    def _logs(self) -> Iterator[pathlib.Path]:
        """Yield the logs of processes; one that starts has none yet."""
        for path in self._disks():
            if (path / 'log').exists():
                yield path / 'log'

    def clear_disk(self) -> None:
        for path in self._disks():
            with contextlib.suppress(OSError):  # the process has ended
                (path / 'filler').unlink()

    def _disks(self) -> Iterator[pathlib.Path]:
        inside = str(self.folder / SMALL_DISK).lstrip('/')
        for pid in self.pids():
            path = pathlib.Path(f'/proc/{pid}/root', inside)
            with contextlib.suppress(OSError):
                if (path / 'tmp').is_dir():
                    yield path

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

    def stop(self) -> None:
        """End every process in order, and wait for that."""
        self.signal(signal.SIGTERM)
        wait_until(lambda: not self.pids(), f'{self.name} has ended', STOPPED_WITHIN)

    def pause(self) -> None:
        """Stop every process: the node is not gone, and answers nothing."""
        self.signal(signal.SIGSTOP)

    def resume(self) -> None:
        self.signal(signal.SIGCONT)

    def is_stopped(self) -> bool:
        """Whether there are processes, and none of them runs."""
        found = self.pids()
        return bool(found) and {_state(pid) for pid in found} <= set('TZ')

    def is_unplugged(self) -> bool:
        return 'state DOWN' in ip('-n', self.namespace, 'link', 'show', 'dev', 'eth0')

    def unplug(self) -> None:
        """Cut the node off, without any notice to its peers."""
        ip('-n', self.namespace, 'link', 'set', 'eth0', 'down')

    def plug(self) -> None:
        ip('-n', self.namespace, 'link', 'set', 'eth0', 'up')

    def avoid(self, other: 'Node') -> None:
        """Send what is for another node to no node, without any error.

        That lasts until `plug` after `unplug`, at most.
        """
        ip(
            *('-n', self.namespace, 'neighbour', 'replace', other.address),
            *('lladdr', NO_HARDWARE, 'dev', 'eth0', 'nud', 'permanent'),
        )

    def avoid_none(self) -> None:
        ip(
            *('-n', self.namespace, 'neighbour', 'flush', 'dev', 'eth0'),
            *('nud', 'permanent'),
        )

    def avoids(self) -> set[str]:
        """Return the addresses that are not reached."""
        shown = ip('-n', self.namespace, 'neighbour', 'show', 'dev', 'eth0')
        return {line.split()[0] for line in shown.splitlines() if NO_HARDWARE in line}

    def delay(self, milliseconds: float) -> None:
        """Delay what the node sends; 0 mends it."""
        self._emulate(milliseconds, 'delay', f'{milliseconds:g}ms')

    def lose(self, percent: float) -> None:
        """Lose some of what the node sends; 0 mends it."""
        self._emulate(percent, 'loss', f'{percent:g}%')

    def _emulate(self, value: float, *how: str) -> None:
        """Let `tc netem` do something, in place of what it did before."""
        words = ('root', 'netem', *how) if value else ('root',)
        done = subprocess.run(
            [
                *('tc', '-n', self.namespace, 'qdisc'),
                *('replace' if value else 'del', 'dev', 'eth0', *words),
            ],
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode and value:
            raise RuntimeError(
                'tc netem: this kernel may be without it, '
                f'CONFIG_NET_SCH_NETEM: {" ".join(done.stderr.split())}'
            )


class Network:
    """A bridge in a namespace of its own, and the nodes on it.

    The names of its namespaces begin with `prefix`.
    """

    def __init__(self, folder: pathlib.Path, prefix: str, names: Iterable[str]):
        self.folder = folder
        self.prefix = prefix
        self.hub = self.namespace('hub')
        self.names = folder / 'names'
        self.hosts = folder / 'hosts'
        self.nodes = {
            name: Node(self, name, number) for number, name in enumerate(names, start=1)
        }

    def namespace(self, name: str) -> str:
        return f'{self.prefix}-{name}'

    def create(self) -> None:
        """Create the namespaces and the links."""
        remove_abandoned()
        ip('netns', 'add', self.hub)
        ip('-n', self.hub, 'link', 'add', 'bridge', 'type', 'bridge')
        ip('-n', self.hub, 'link', 'set', 'bridge', 'up')
        self.hosts.write_text(
            '127.0.0.1 localhost\n'
            + ''.join(f'{node.address} {name}\n' for name, node in self.nodes.items())
        )
        self.names.mkdir()
        (self.names / 'resolv.conf').write_text(
            f'nameserver {NO_NAME_SERVER}\noptions timeout:1 attempts:2\n'
        )
        self.restore_names()
        for node in self.nodes.values():
            node.create()

    def part(self, groups: Iterable[Iterable[Node]]) -> None:
        """Let no node of a group reach, or be reached by, those of others."""
        for group, others in itertools.permutations(groups, 2):
            for node, other in itertools.product(group, others):
                node.avoid(other)

    def join(self) -> None:
        """End all partitions."""
        for node in self.nodes.values():
            node.avoid_none()

    def forget_names(self) -> None:
        """Let services look up names at a server that does not answer."""
        (self.names / 'hosts').write_text('127.0.0.1 localhost\n')

    def has_forgotten_names(self, pid: int) -> bool:
        """Whether a process of a node finds no other node by its name."""
        try:
            hosts = pathlib.Path(f'/proc/{pid}/root/etc/hosts').read_text()
        except OSError:  # it has ended
            return True
        return not any(f' {name}\n' in hosts for name in self.nodes)

    def restore_names(self) -> None:
        # It is mounted: the same file has to be written.
        (self.names / 'hosts').write_text(self.hosts.read_text())

    def remove(self) -> None:
        remove(self.prefix)


def remove(prefix: str) -> None:
    """End all processes of the nodes of a network and remove it."""
    for path in NAMESPACES.glob(f'{prefix}-*'):
        end_all(path.name)
        ip('netns', 'delete', path.name)


def remove_abandoned() -> None:
    """Remove the networks of processes that were killed and left them."""
    for path in NAMESPACES.glob(f'{PREFIX}*-hub'):
        prefix = path.name.removesuffix('-hub')
        pid = prefix.removeprefix(PREFIX)
        if pid.isdecimal() and not pathlib.Path('/proc', pid).exists():
            remove(prefix)


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
    return _state(pid) == 'Z'


def _state(pid: int) -> str:
    """Return the letter of a process's state; Z also if it is gone."""
    with contextlib.suppress(OSError):
        stat = pathlib.Path(f'/proc/{pid}/stat').read_text()
        return stat.rpartition(')')[2].split()[0]
    return 'Z'


def ip(*arguments: str) -> str:
    done = subprocess.run(
        ['ip', *arguments], capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise RuntimeError(f'ip {" ".join(arguments)}: {done.stderr.strip()}')
    return done.stdout


def _mount(
    source: object, target: object, kind: str | None, flags: int, more: str = ''
) -> None:
    _checked(
        _libc.mount(
            None if source is None else os.fsencode(str(source)),
            os.fsencode(str(target)),
            kind and kind.encode(),
            ctypes.c_ulong(flags),
            more.encode(),
        )
    )


def _checked(result: int) -> None:
    if result:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))
