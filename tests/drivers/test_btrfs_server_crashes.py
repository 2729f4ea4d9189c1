"""Operations on share servers of the btrfs driver killed at any step."""

from collections.abc import Callable
import contextlib
import dataclasses
import json
import os
import pathlib
import random
import signal
import threading

import pytest

from manila_lite import exception
from manila_lite.share.drivers.base import ShareServerForDriver
from manila_lite.share.drivers.btrfs import kernel
from manila_lite.share.drivers.btrfs.daemons import processes
from manila_lite.share.drivers.contract.configuration import Configuration
from tests.drivers import test_crashes
from tests.drivers.conftest import BTRFS
from tests.drivers.crashes import changes, killed_at, killed_at_steps
from tests.drivers.driver_harness import CTX, DriverHarness
from tests.drivers.served_harness import ServedHarness
from tests.support import sampling, storage
from tests.unit.share.drivers.btrfs.nfs_site import eventually

pytestmark = [
    pytest.mark.usefixtures('no_power_failures'),
    sampling.suite('kills beside share servers', 2),
]

ADDRESSES = ('10.20.0.5', '10.20.0.6', '10.20.0.7')
DEVICES = pathlib.Path('/sys/class/net')


class ServedScene(test_crashes.Scene):
    """The same on a share server."""

    new_harness = ServedHarness

    def clean_up(self) -> None:
        self.harness.clean_up()


@sampling.enumeration
@pytest.mark.parametrize('operation', test_crashes.OPERATIONS)
def test_operation_on_a_server_killed_at_every_step_can_be_repeated(
    operation, btrfs_server_options, tmp_path
):
    operation = test_crashes.OPERATIONS[operation]
    for scene in killed_at_steps(
        lambda folder: ServedScene(BTRFS, tmp_path / folder, **btrfs_server_options),
        operation.act,
        most=1,
        least=5,
    ):
        test_crashes._finish(scene, operation)
        scene.clean_up()


class Servers:
    """A server to be set up, and one with a share of its own."""

    def __init__(self, options: dict):
        self.root = pathlib.Path(options['btrfs_root'])
        self.harness = DriverHarness(BTRFS, lambda: Configuration.from_values(options))
        self.driver = self.harness.start()
        self.new = self.harness.network_info(ADDRESSES[1])
        self.server = self.harness.set_up_server(self.driver, ADDRESSES[0])
        self.idle = self.harness.set_up_server(self.driver, ADDRESSES[2])
        self.idle_traces = self.traces(self.idle)
        self.share = self.harness.share()
        self.driver.create_share(CTX, self.share, share_server=self.server)
        rule = self.harness.rule(self.share, '10.0.0.1')
        self.driver.update_access(CTX, self.share, [rule], [], [], [])

    def restart(self) -> None:
        self.driver = self.harness.start()

    def folder(self, server: ShareServerForDriver) -> pathlib.Path:
        return self.root / 'servers' / server.id

    def namespace(self) -> pathlib.Path:
        return self.folder(self.server) / 'netns'

    def traces(self, server: ShareServerForDriver) -> list[pathlib.Path]:
        """Return the paths of all that there is of a server."""
        folder = self.folder(server)
        record = json.loads((folder / 'server.json').read_text())
        pids = [
            json.loads((folder / 'nfs' / f'{name}.json').read_text())['pid']
            for name in ('server', 'bus')
        ]
        return [
            folder,
            *(DEVICES / link[0] for link in record['links']),
            *(pathlib.Path('/proc', str(pid), 'exe') for pid in pids),
        ]

    def is_served(self, server: ShareServerForDriver) -> bool:
        """Return whether a share can be exported from a server."""
        share = self.harness.share()
        with contextlib.ExitStack() as stack:
            stack.callback(self.harness.shares.remove, share)
            stack.callback(self.driver.delete_share, CTX, share)
            self.driver.create_share(CTX, share, share_server=server)
            rule = self.harness.rule(share, '10.0.0.2')
            self.driver.update_access(CTX, share, [rule], [], [], [])
            return bool(self.harness.clients(self.driver, share)) and (
                self.is_in_its_network(server)
            )

    def is_in_its_network(self, server: ShareServerForDriver) -> bool:
        found = self.driver.backend.servers.get(server.id)
        pid = processes.find_pid(self.folder(server) / 'nfs' / 'server.json')
        return (
            pid is not None
            and os.path.samefile(f'/proc/{pid}/ns/net', self.folder(server) / 'netns')
            and found.network.is_complete(found.links())
        )

    def lose_the_network(self) -> None:
        kernel.unmount(self.namespace())

    def lose_everything(self) -> None:
        """Leave what a restart of the machine leaves."""
        storage.stop(self.root)
        kernel.unmount_below(self.root)

    def clean_up(self) -> None:
        self.driver.delete_share(CTX, self.share)
        for server in (self.server, self.idle, self.harness.server(self.new)):
            self.driver.teardown_server({'server_id': server.id})


@dataclasses.dataclass
class Operation:
    """An operation, what is done before it, and the final state."""

    act: Callable[[Servers], object]
    ended: Callable[[Servers], bool]
    before: Callable[[Servers], object] = lambda servers: None


SERVER_OPERATIONS = {
    'setup': Operation(
        act=lambda s: s.driver.setup_server(s.new),
        ended=lambda s: (
            s.is_served(s.harness.server(s.new))
            and s.driver.setup_server(s.new)['addresses'] == ADDRESSES[1]
        ),
    ),
    'teardown': Operation(
        act=lambda s: s.driver.teardown_server({'server_id': s.idle.id}),
        ended=lambda s: not any(path.exists() for path in s.idle_traces),
    ),
    'repair': Operation(
        before=lambda s: s.lose_the_network(),
        act=lambda s: s.driver.check_health(),
        ended=lambda s: s.is_served(s.server),
    ),
    'start': Operation(
        before=lambda s: s.lose_everything(),
        act=lambda s: s.harness.start(),
        ended=lambda s: s.is_served(s.server) and s.is_served(s.idle),
    ),
}


def _finish(servers: Servers, operation: Operation) -> None:
    """Repeat the operation in a new process and check the result."""
    servers.restart()
    operation.act(servers)
    assert operation.ended(servers)
    assert servers.harness.clients(servers.driver, servers.share)
    servers.clean_up()


@sampling.enumeration
@pytest.mark.parametrize('name', SERVER_OPERATIONS)
def test_server_operation_killed_at_every_step_can_be_repeated(
    name, btrfs_server_options
):
    operation = SERVER_OPERATIONS[name]

    def build(folder: str) -> Servers:
        servers = Servers(btrfs_server_options)
        operation.before(servers)
        return servers

    for servers in killed_at_steps(build, operation.act, changes, most=2, least=5):
        _finish(servers, operation)


@sampling.enumeration
@pytest.mark.parametrize('seed', sampling.seeds(40, 2))
def test_server_operation_killed_again_and_again_can_be_repeated(
    seed, btrfs_server_options
):
    rng = random.Random(seed)
    operation = SERVER_OPERATIONS[rng.choice(sorted(SERVER_OPERATIONS))]
    servers = Servers(btrfs_server_options)
    operation.before(servers)
    for _ in range(rng.randint(2, 5)):
        killed_at(rng.randint(1, 60), lambda: operation.act(servers))
    _finish(servers, operation)


@sampling.enumeration
@pytest.mark.parametrize(
    'daemons',
    [('server',), ('bus',), ('supervisor',), ('supervisor', 'server')],
    ids='-'.join,
)
def test_server_is_set_up_while_daemons_are_killed(daemons, btrfs_server_options):
    servers = Servers(btrfs_server_options)
    operation = SERVER_OPERATIONS['setup']
    new = servers.folder(servers.harness.server(servers.new)) / 'nfs'
    records = [
        (servers.root / 'nfs' if daemon == 'supervisor' else new) / f'{daemon}.json'
        for daemon in daemons
    ]

    def kill():
        eventually(lambda: all(record.exists() for record in records))
        for record in records:
            assert processes.end(record, signal.SIGKILL, 60)
        # As the next report of the share service does.
        _is_healthy(servers)

    killing = threading.Thread(target=kill)
    killing.start()
    operation.act(servers)
    killing.join()
    eventually(lambda: _is_healthy(servers))
    assert operation.ended(servers)
    servers.clean_up()


def _is_healthy(servers: Servers) -> bool:
    try:
        servers.driver.check_health()
    except exception.StorageUnavailable:  # on a machine that is busy
        return False
    return True
