"""A share server made by hand: what the driver's is compared with."""

from collections.abc import Iterator
import contextlib
import os
import pathlib
import subprocess
import time

from manila_lite.share.drivers import ganesha
from manila_lite.share.drivers.btrfs.daemons import daemons

NFS_PORT = 2049
POLL_INTERVAL = 0.001
TIMEOUT = 60.0


def set_up(folder: pathlib.Path, bridge: str, address: str) -> float:
    """Return the seconds that the bare commands take; remove it again."""
    name = f'mlb{os.getpid():x}'
    folder.mkdir()
    began = time.perf_counter()
    with _namespace(name, bridge, address), contextlib.ExitStack() as stack:
        (folder / 'recovery').mkdir()
        socket = folder / 'bus.sock'
        specification = daemons.nfs_specification(
            folder,
            folder / 'exports',
            socket,
            NFS_PORT,
            ['nsenter', f'--net=/run/netns/{name}', '--'],
        )
        for daemon in ('bus', 'server'):
            settings = specification[daemon]
            pathlib.Path(settings['config']).write_text(settings['text'])
            process = stack.enter_context(
                subprocess.Popen(
                    settings['command'],
                    env=os.environ | {'DBUS_SYSTEM_BUS_ADDRESS': f'unix:path={socket}'},
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                )
            )
            stack.callback(process.kill)
            while not socket.exists():
                _wait(process, began)
        server = ganesha.Ganesha(socket)
        while not server.is_answering():
            _wait(process, began)
        return time.perf_counter() - began


def _wait(process: subprocess.Popen, began: float) -> None:
    if process.poll() is not None:
        raise RuntimeError(f'{process.args} has ended')
    if time.perf_counter() - began > TIMEOUT:
        raise TimeoutError(f'{process.args} does not answer')
    time.sleep(POLL_INTERVAL)


@contextlib.contextmanager
def _namespace(name: str, bridge: str, address: str) -> Iterator[None]:
    _ip(f'netns add {name}')
    try:
        _ip(f'link add {name} type veth peer name eth0 netns {name}')
        _ip(f'-n {name} link set lo up')
        _ip(f'-n {name} link set eth0 up')
        _ip(f'-n {name} address add {address} dev eth0')
        _ip(f'link set {name} master {bridge} up')
        yield
    finally:
        _ip(f'netns delete {name}')  # and the link with it


def _ip(command: str) -> None:
    subprocess.run(['ip', *command.split()], check=True, capture_output=True)
