"""The page about shares that clients mount, followed word for word.

The machine is a network namespace, in which all ports are free, and its
client is another one. Kernels without an NFS client cannot mount: what the
page does below /mnt is done by a client of the tests in that namespace.
"""

import contextlib
import os
import pathlib
import re
import subprocess
import sys

import pytest

from manila_lite.share.drivers.btrfs.daemons import processes
from tests.functional.stories import suites
from tests.support import requirements, storage
from tests.support.record_writer import Writer
from tests.support.smb_client import PASSWORD
from tests.support.tenant_network import TenantClient
from tests.support.terminal import Terminal

pytestmark = suites.clients

ROOT = pathlib.Path(__file__).resolve().parents[3]
PAGE = ROOT / 'doc/source/btrfs_storage.rst'
README = ROOT / 'README.md'
PORT = 2049
READY = 'manila_lite answers at '
DAEMONS = ('supervisor', 'bus', 'server', 'smbd')


def steps(text):
    """Return the commands of a text, with the output that it shows."""
    blocks = re.findall(
        r'(?:console\n\n((?: {3}.*\n|\n)+)|```console\n((?:.*\n)+?)```)', text
    )
    lines = [
        line.strip()
        for block in blocks
        for line in ''.join(block).splitlines()
        if line.strip()
    ]
    found = []
    for line in lines:
        if line[:2] in ('# ', '$ '):
            found.append((line[2:], []))
        else:
            found[-1][1].append(line)
    return [(command, '\n'.join(shown)) for command, shown in found]


def section(path, title):
    text = path.read_text().partition(f'{title}\n')[2]
    return re.split(r'\n(?:## |[A-Z]\w+\n-+\n)', text)[0]


def test_the_readme_shows_what_the_page_does():
    shown = steps(section(README, '## Try it'))
    start = shown.index(('ip netns add client', ''))
    page = iter(steps(section(PAGE, 'Try it')))
    assert shown[start:]
    for step in shown[start:]:
        assert step in page, f'{step} is not on the page, or not in order'


class Reader:
    """Does what the page says, and looks at what comes of it."""

    def __init__(self, stack, folder, machine):
        self.folder = folder
        self.client = f'{machine}-client'
        self.tenant = TenantClient(self.client)
        self.mounted = None
        self.seen = []
        self.service, self.second = (
            Terminal(machine, folder, folder / f'{name}.log', PASSWD=PASSWORD)
            for name in ('first', 'second')
        )
        for terminal in (self.service, self.second):
            stack.callback(terminal.close)
        self.terminal = self.service
        self.acts = {
            r'make run-nfs .*': self.start_service,
            r'nsenter \S+ mount -t nfs4 "\$location" /mnt': self.mount,
            r'umount /mnt': self.unmount,
            r'echo (\w+) > /mnt/(\w+)': self.write,
            r'cat /mnt/(\w+)': self.read,
            r'make stop-nfs': self.stop_all,
        }

    def follow(self, command, shown):
        line = re.sub(r'\bclient\b', self.client, command)
        for pattern, act in self.acts.items():
            if match := re.fullmatch(pattern, line):
                printed = act(*match.groups())
                break
        else:
            stdin = f'{PASSWORD}\n' if 'user add' in line else ''
            printed = self.terminal.run(line, stdin)
            self.seen.append((command, printed))
        assert shown in ('', printed)

    def start_service(self):
        self.line = next(
            command
            for command, _ in steps(section(PAGE, 'Try it'))
            if command.startswith('make run-nfs')
        )
        self.terminal.start(self.line)
        self.terminal.wait_for(READY, self.line)
        self.terminal = self.second

    def connect(self):
        """Return a client in its namespace, and the path of the share."""
        location = self.terminal.run('echo "$location"').strip()
        address, _, path = location.partition(':')
        return self.tenant.nfs(address, PORT), path

    def mount(self):
        client, path = self.connect()
        client.look_up(path)
        self.mounted = client, path

    def unmount(self):
        self.mounted[0].close()

    def write(self, text, name):
        client, path = self.mounted
        client.write(path, name, text.encode())

    def read(self, name):
        client, path = self.mounted
        return client.read(path, name).decode()

    def stop_all(self):
        """See that only this stops the servers, not the end of the service."""
        client, path = self.tenant.nfs(self.host, PORT), self.mounted[1]
        writer = Writer(client, path)
        writer.wait_for_more()
        self.service.interrupt()
        writer.wait_for_more()
        self.terminal.run('make stop-nfs')
        writer.join()
        with pytest.raises(ConnectionRefusedError):
            self.tenant.nfs(self.host, PORT)

    @property
    def host(self):
        return re.search(r'--nfs-address (\S+?)\'?$', self.line)[1]


def copy_checkout(folder):
    """Make a directory look like this checkout without its state."""
    for path in ROOT.iterdir():
        if not path.name.startswith(('.', 'state')):
            (folder / path.name).symlink_to(path)
    (folder / '.venv').mkdir()
    (folder / '.venv/bin').symlink_to(pathlib.Path(sys.executable).parent)
    (folder / '.venv/.ready').touch()


@contextlib.contextmanager
def namespace():
    """A machine without a network besides its loopback."""
    name = f'manila-page-{os.getpid()}'
    ip('netns', 'add', name)
    try:
        ip('-n', name, 'link', 'set', 'lo', 'up')
        yield name
    finally:
        ip('netns', 'delete', name)
        if pathlib.Path('/run/netns', f'{name}-client').exists():
            ip('netns', 'delete', f'{name}-client')


def ip(*arguments):
    subprocess.run(['ip', *arguments], check=True, capture_output=True)


@pytest.fixture
def reader():
    storage.require_cifs()
    storage.require_servers()
    if not pathlib.Path(sys.executable).with_name('activate').exists():
        requirements.missing('the tests do not run in a virtual environment')
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(storage.folder())
        machine = stack.enter_context(namespace())
        copy_checkout(folder)
        yield Reader(stack, folder, machine)


def test_the_page_leads_to_shares_that_clients_use(reader):
    for command, shown in steps(section(PAGE, 'Try it')):
        reader.follow(command, shown)
    listed = next(out for line, out in reader.seen if line.endswith('-c ls'))
    assert 'README.md' in listed
    state = reader.folder / 'state-nfs'
    assert (state / 'nfs.img').exists()
    assert not (state / 'nfs/pools/nfs/shares').exists()
    records = {name: state / f'nfs/nfs/{name}.json' for name in DAEMONS}
    # Without its record, the supervisor is not started again.
    existing = {name for name, record in records.items() if record.exists()}
    assert existing == {*DAEMONS} - {'supervisor'}
    assert not any(map(processes.is_running, records.values()))


@pytest.mark.parametrize(
    'prefix, reason',
    [
        (
            ('env', 'PATH=/nowhere'),
            'ganesha.nfsd is missing (install the package nfs-ganesha)',
        ),
        (
            ('setpriv', '--bounding-set=-sys_admin'),
            'CAP_SYS_ADMIN is missing (run it as root',
        ),
    ],
    ids=['programs', 'privileges'],
)
def test_machine_that_cannot_serve_nfs_is_told_why(tmp_path, prefix, reason):
    storage.require()
    ended = subprocess.run(
        [
            *(*prefix, sys.executable, '-m', 'manila_lite.cmd.serve'),
            *('serve', '--nfs', '--state-dir', tmp_path / 'state'),
        ],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert ended.returncode == 1
    (line,) = ended.stderr.splitlines()
    assert line.startswith('manila-lite: this machine cannot serve NFS: ')
    assert reason in line
    assert list(tmp_path.iterdir()) == []
