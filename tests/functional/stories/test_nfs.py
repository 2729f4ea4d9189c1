"""Shares that NFS clients mount, from the request to the bytes.

Requests use the official command line. The clients are real ones, on other
addresses of this machine and in another network namespace.
"""

import json
import os
import pathlib
import signal
import time
import typing

import pytest

from tests.functional.stories import suites
from tests.functional.stories.conftest import new_installation
from tests.support import network_namespace, storage
from tests.support.cli import Cli
from tests.support.installation import Installation
from tests.support.nfs_client import NfsClient, NfsError
from tests.support.processes import wait_until
from tests.support.rest_client import RestClient

pytestmark = suites.clients

WRITER, READER, STRANGER = '127.0.0.2', '127.0.0.3', '127.0.0.4'
FEATURES = (
    'snapshot',
    'create-share-from-snapshot',
    'revert-to-snapshot',
    'mount-snapshot',
)


class Deployment(typing.NamedTuple):
    installation: Installation
    cli: Cli
    rest: RestClient
    root: pathlib.Path
    port: int

    def create(self, *args: object) -> str:
        """Create a share; return its id."""
        share = self.cli('share create', 'NFS', 1, *args)
        return self.wait('share', share['id'])['id']

    def wait(self, noun: str, id: str) -> dict:
        """Wait until a share or snapshot is available."""

        def found():
            resource = self.rest.get(f'/{noun}s/{id}')[noun]
            return resource['status'] == 'available' and resource

        return wait_until(found, f'{noun} {id} is available')

    def path(self, share: str) -> str:
        """Return what clients mount, without the address."""
        locations = self.rest.get(f'/shares/{share}/export_locations')
        (path,) = (one['path'] for one in locations['export_locations'])
        return path.partition(':')[2]

    def allow(self, share: str, client: str, level: str = 'rw') -> str:
        rule = self.cli(
            'share access create', share, 'ip', client, '--access-level', level
        )
        self.wait_for_rules(share)
        return rule['id']

    def deny(self, share: str, rule: str) -> None:
        self.cli('share access delete', share, rule)
        self.wait_for_rules(share)

    def wait_for_rules(self, share: str) -> None:
        wait_until(
            lambda: (
                self.rest.get(f'/shares/{share}')['share']['access_rules_status']
                == 'active'
                and self.installation.pending_work() == 0
            ),
            'the rules are active',
        )

    def client(self, source: str) -> NfsClient:
        return NfsClient('127.0.0.1', self.port, source)


@pytest.fixture(scope='module')
def deployment(tmp_path_factory):
    storage.require()
    with storage.folder() as folder:
        options = storage.options(folder)
        with new_installation(
            tmp_path_factory.mktemp('nfs') / 'installation',
            options='default_share_type = nfs',
            backends={
                'nfs': {
                    **options,
                    'share_driver': 'btrfs',
                    'btrfs_pools': f'pool:{options["btrfs_pools"]["pool"]}',
                    'btrfs_export_addresses': '127.0.0.1',
                }
            },
        ) as installation:
            installation.start()
            cli = Cli('--os-auth-type', 'none', '--os-endpoint', installation.url)
            supported = [(f'--{name}-support', 'true') for name in FEATURES]
            cli('share type create', 'nfs', 'false', *sum(supported, ()))
            yield Deployment(
                installation,
                cli,
                installation.rest('admin'),
                pathlib.Path(options['btrfs_root']),
                options['btrfs_nfs_port'],
            )


def refused(status):
    return pytest.raises(NfsError, match=f'NFS4ERR_{status} ')


def test_clients_have_the_access_of_their_rules(deployment):
    share = deployment.create()
    path = deployment.path(share)
    with refused('NOENT'):
        deployment.client(WRITER).look_up(path)
    rule = deployment.allow(share, WRITER)
    deployment.allow(share, READER, 'ro')
    writer, reader = deployment.client(WRITER), deployment.client(READER)
    writer.write(path, 'notes', b'hello')
    assert reader.read(path, 'notes') == b'hello'
    with refused('ROFS'):
        reader.write(path, 'notes', b'bye')
    with refused('NOENT'):
        deployment.client(STRANGER).look_up(path)
    file = writer.open(path, 'notes', create=True)
    deployment.deny(share, rule)
    with refused('ACCESS'):
        writer.write_at(file, 0, b'late')
    assert reader.read(path, 'notes') == b'hello'


def test_server_and_supervisor_that_hang_together_are_replaced(deployment):
    """What is asked for meanwhile is applied then."""
    share = deployment.create()
    deployment.allow(share, WRITER)
    path = deployment.path(share)
    deployment.client(WRITER).write(path, 'notes', b'hello')
    pids = _pids(deployment)
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    deployment.allow(share, READER, 'ro')
    assert deployment.client(READER).read(path, 'notes') == b'hello'
    assert set(pids).isdisjoint(_pids(deployment))


def _pids(deployment):
    """Return the recorded ids of the supervisor and of the NFS server."""
    records = (
        deployment.root / 'nfs' / f'{name}.json' for name in ('supervisor', 'server')
    )
    return [json.loads(record.read_text())['pid'] for record in records]


def test_size_is_a_limit_until_it_is_extended(deployment):
    share = deployment.create()
    deployment.allow(share, WRITER)
    path, client = deployment.path(share), deployment.client(WRITER)
    volume = deployment.root / 'pools' / 'pool' / path.lstrip('/')
    with (volume / 'large').open('wb') as file:
        os.posix_fallocate(file.fileno(), 0, 1000 << 20)
    with refused('DQUOT'):
        client.write(path, 'more', bytes(32 << 20))
    deployment.cli('share resize', share, 2)
    deployment.wait('share', share)
    client.write(path, 'more', bytes(32 << 20))
    deployment.cli('share resize', share, 1)
    assert deployment.rest.wait_at_rest(share)['size'] == 2
    assert client.read(path, 'more') == bytes(32 << 20)


def test_snapshot_is_mounted_cloned_and_reverted_to(deployment):
    share = deployment.create()
    deployment.allow(share, WRITER)
    path, client = deployment.path(share), deployment.client(WRITER)
    client.write(path, 'notes', b'then')
    snapshot = deployment.cli('share snapshot create', share)['id']
    deployment.wait('snapshot', snapshot)
    client.write(path, 'notes', b'now!')

    deployment.cli('share snapshot access create', snapshot, 'ip', READER)
    locations = deployment.rest.get(f'/snapshots/{snapshot}/export-locations')
    (location,) = locations['share_snapshot_export_locations']
    mounted = location['path'].partition(':')[2]
    reader = deployment.client(READER)
    wait_until(lambda: _sees(reader, mounted), 'the snapshot is mounted by its client')
    assert reader.read(mounted, 'notes') == b'then'
    with refused('ROFS'):
        reader.write(mounted, 'notes', b'')
    with refused('NOENT'):
        client.look_up(mounted)

    clone = deployment.create('--snapshot-id', snapshot)
    deployment.allow(clone, WRITER)
    assert client.read(deployment.path(clone), 'notes') == b'then'
    client.write(deployment.path(clone), 'notes', b'mine')

    deployment.cli('share revert', snapshot)
    deployment.wait('share', share)
    assert client.read(path, 'notes') == b'then'
    assert reader.read(mounted, 'notes') == b'then'
    assert client.read(deployment.path(clone), 'notes') == b'mine'


def _sees(client, path):
    try:
        return client.look_up(path)
    except NfsError:
        return False


def test_clients_do_not_notice_that_the_service_is_killed(deployment):
    share = deployment.create()
    rule = deployment.allow(share, WRITER)
    path, client = deployment.path(share), deployment.client(WRITER)
    file = client.open(path, 'journal', create=True)
    longest = 0.0

    def write(number):
        nonlocal longest
        began = time.monotonic()
        client.write_at(file, 4 * number, b'%03d\n' % number)
        longest = max(longest, time.monotonic() - began)

    write(0)
    deployment.installation.kill('serve')
    for number in range(1, 50):
        write(number)
    deployment.installation.start()
    for number in range(50, 100):
        write(number)
    print(f'the slowest write took {longest:.3f} s')
    assert client.read(path, 'journal') == b''.join(
        b'%03d\n' % number for number in range(100)
    )
    deployment.deny(share, rule)
    with refused('ACCESS'):
        write(100)


def test_another_machine_mounts_by_ipv4_and_ipv6(deployment):
    share = deployment.create()
    deployment.allow(share, WRITER)
    path = deployment.path(share)
    deployment.client(WRITER).write(path, 'notes', b'hello')
    with network_namespace.machine() as machine:
        hosts = list(zip(machine.addresses, machine.hosts, strict=True))
        for _, host in hosts:
            assert machine.mount(host, deployment.port, path) == ['2']
        for level, printed in (('ro', ['30']), ('rw', ['written'])):
            for address, host in hosts:
                rule = deployment.allow(share, address, level)
                lines = machine.mount(host, deployment.port, path)
                assert lines == ["b'hello'", *printed]
                deployment.deny(share, rule)
    assert deployment.client(WRITER).read(path, 'from-far') == b'hello'


def test_deleted_share_is_gone_for_its_clients(deployment):
    share = deployment.create()
    deployment.allow(share, WRITER)
    path, client = deployment.path(share), deployment.client(WRITER)
    file = client.open(path, 'notes', create=True)
    deployment.cli('share delete', share)
    deployment.rest.wait_gone(share)
    with refused('STALE'):
        client.write_at(file, 0, b'late')
    with refused('NOENT'):
        client.look_up(path)
    volume = path.rpartition('/')[2]
    assert not list(deployment.root.glob(f'**/*{volume}*'))
