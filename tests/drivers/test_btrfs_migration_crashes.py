"""Migrations of share servers of the btrfs driver killed at any step."""

from collections.abc import Callable
import contextlib
import dataclasses
import pathlib
import random
from typing import NamedTuple

import pytest

from manila_lite import exception
from manila_lite.share.drivers.btrfs.catalog import Kind
from tests.drivers.crashes import changes, killed_at, killed_at_steps
from tests.drivers.driver_harness import CTX
from tests.drivers.migration_contract import BtrfsPair
from tests.support import sampling, storage, tenant_network
from tests.support.smb_client import PASSWORD, SmbClient, SmbError
from tests.support.tenant_network import TenantClient

# With all of its steps, an operation takes minutes.
pytestmark = [
    pytest.mark.usefixtures('no_power_failures'),
    pytest.mark.timeout(1800),
    sampling.suite('kills of migrations', 2),
]

LATEST = 'latest'
CLIENT = '10.20.0.99'


class Network(NamedTuple):
    """A bridge for the servers of both back ends, and a client on it."""

    bridge: str
    client: TenantClient


class Scene(BtrfsPair):
    """A server with a client's writes, and its destination."""

    def __init__(self, folder: pathlib.Path, network: Network):
        super().__init__(folder, network.bridge)
        self.elsewhere = self.destination('10.20.0.9')
        self.allow(self.source)

    def allow(self, driver) -> None:
        """Admit only the client of a back end."""
        rule = self.made['here'].rule(self.share, CLIENT)
        driver.update_access(CTX, self.share, [rule], [], [], [])

    def restart(self) -> None:
        """Restart both back ends in new processes."""
        self.source, self.target = (
            self.made[name].start() for name in ('here', 'there')
        )

    def has_latest(self, driver) -> bool:
        """Return whether a back end has the share as it was at the end."""
        volume = self.volume(driver)
        return driver.backend.find(Kind.SHARE, self.share.name) is not None and (
            (volume / LATEST).exists() and (volume / 'notes').read_text() == 'content'
        )

    def is_served(self) -> bool:
        """Return whether the source lets its client in."""
        server = self.source.backend.servers.find(self.server.id)
        return (
            server is not None
            and not server.silent_daemon()
            and len(server.nfs.numbers()) > 0
        )

    # Actions

    def copy(self) -> None:
        self.target.share_server_migration_start(*self.arguments(self.elsewhere))
        self.run_first_phase(self.elsewhere)

    def copy_and_write(self) -> None:
        self.copy()
        (self.volume(self.source) / LATEST).touch()

    def cancel(self) -> None:
        self.target.share_server_migration_cancel(*self.arguments(self.elsewhere))

    def tear_down(self) -> None:
        self.target.teardown_server({'server_id': self.elsewhere.id})

    def complete(self) -> dict:
        return self.target.share_server_migration_complete(
            *self.arguments(self.elsewhere), self.info
        )

    def fail(self) -> None:
        with (
            self.failing_completion(),
            contextlib.suppress(exception.ShareBackendException),
        ):
            self.complete()

    # Results

    def check_access_at_the_destination(self) -> None:
        """NFS clients are tried elsewhere."""

    def check_that_it_stays(self) -> None:
        assert self.has_latest(self.source)
        assert self.has_share()
        assert self.is_served()
        assert self.remains(self.target) == []

    def check_that_it_has_moved(self) -> None:
        assert self.complete() == self.complete()
        assert self.has_latest(self.target)
        self.check_access_at_the_destination()
        assert self.has_share(self.target)
        assert self.remains(self.source) == []

    def check_after_failure(self) -> None:
        self.cancel()
        self.check_that_it_stays()


class CifsScene(Scene):
    """The same with a CIFS share, which alice writes to."""

    share_proto = 'CIFS'

    def __init__(self, folder: pathlib.Path, network: Network):
        self._client = network.client
        super().__init__(folder, network)

    def allow(self, driver) -> None:
        if driver is self.source:
            driver.backend.servers.users(self.server.id).add('alice', PASSWORD)
        rule = self.made['here'].rule(self.share, 'alice', access_type='user')
        replies = driver.update_access(CTX, self.share, [rule], [], [], [])
        assert replies[rule['access_id']]['state'] == 'active'

    def _alice(self, address: str) -> SmbClient:
        return self._client.smb('alice', address, 445)

    def is_served(self) -> bool:
        server = self.source.backend.servers.find(self.server.id)
        if server is None or server.silent_daemon():
            return False
        alice = self._alice('10.20.0.5')
        return alice.read(self.share.name, 'notes') == b'content'

    def check_access_at_the_destination(self) -> None:
        """She has the password that she had at the source."""
        self.allow(self.target)
        alice = self._alice('10.20.0.9')
        assert alice.read(self.share.name, 'notes') == b'content'
        with pytest.raises(SmbError):
            self._alice('10.20.0.5')(self.share.name, 'ls')


@dataclasses.dataclass
class Operation:
    """An operation, what is done before it, and a check of its end."""

    act: Callable[[Scene], object]
    check: Callable[[Scene], object]
    before: Callable[[Scene], object] = Scene.copy_and_write


OPERATIONS = {
    'copy': Operation(
        before=lambda scene: (scene.volume(scene.source) / LATEST).touch(),
        act=Scene.copy,
        check=Scene.check_that_it_has_moved,
    ),
    'cancel': Operation(act=Scene.cancel, check=Scene.check_that_it_stays),
    'tear down': Operation(act=Scene.tear_down, check=Scene.check_that_it_stays),
    'complete': Operation(act=Scene.complete, check=Scene.check_that_it_has_moved),
    'fail to complete': Operation(act=Scene.fail, check=Scene.check_after_failure),
}


@pytest.fixture(params=[Scene, CifsScene], ids=lambda scene: scene.share_proto)
def new_scene(request):
    """Provide what creates a scene, which is closed with its stack."""
    storage.require_servers()
    if request.param is CifsScene:
        storage.require_cifs()

    def create(operation: Operation, stack: contextlib.ExitStack) -> Scene:
        # Another scene that is open has the same addresses.
        bridge = stack.enter_context(tenant_network.bridge())
        client = stack.enter_context(tenant_network.client_on(bridge, f'{CLIENT}/24'))
        folder = stack.enter_context(storage.folder())
        scene = request.param(folder, Network(bridge, client))
        operation.before(scene)
        return scene

    return create


def _finish(scene: Scene, operation: Operation) -> None:
    """Repeat the operation in new processes and check the result.

    In any case one of the two back ends has what clients wrote last.
    """
    scene.restart()
    assert scene.has_latest(scene.source) or scene.has_latest(scene.target)
    operation.act(scene)
    operation.check(scene)


@sampling.enumeration
@pytest.mark.parametrize('name', OPERATIONS)
def test_migration_killed_at_every_step_can_be_repeated(name, new_scene):
    operation = OPERATIONS[name]
    with contextlib.ExitStack() as stack:

        def build(_: str) -> tuple[Scene, contextlib.ExitStack]:
            own = stack.enter_context(contextlib.ExitStack())
            return new_scene(operation, own), own

        for scene, own in killed_at_steps(
            build, lambda built: operation.act(built[0]), changes, 2, 5
        ):
            _finish(scene, operation)
            own.close()


@sampling.enumeration
@pytest.mark.parametrize('seed', sampling.seeds(30, 1))
def test_migration_killed_again_and_again_can_be_repeated(seed, new_scene):
    rng = random.Random(seed)
    operation = OPERATIONS[rng.choice(sorted(OPERATIONS))]
    with contextlib.ExitStack() as stack:
        scene = new_scene(operation, stack)
        for _ in range(rng.randint(2, 5)):
            killed_at(rng.randint(1, 80), lambda: operation.act(scene))
            scene.restart()
        _finish(scene, operation)
