"""Share server operations killed at any step can be repeated."""

from collections.abc import Callable
import dataclasses
import random

import pytest

from manila_lite import exception
from manila_lite.share.drivers.base import normalise_export_locations
from tests.drivers.crashes import killed_at, killed_at_steps
from tests.drivers.driver_harness import CTX
from tests.drivers.migration_contract import MigrationPair
from tests.drivers.servers_contract import details_of
from tests.support import sampling

ADDRESSES = ('10.20.0.21', '10.20.0.22')


pytestmark = pytest.mark.usefixtures('no_power_failures')


class Scene(MigrationPair):
    """A used, an idle, an unmanaged and a migrating server."""

    def __init__(self, folder):
        folder.mkdir()
        super().__init__(folder)
        self.folder = folder
        here = self.made['here']
        self.new = here.network_info(ADDRESSES[0])
        idle = here.network_info(ADDRESSES[1])
        self.idle = here.server(idle, self.source.setup_server(idle))
        self.old = self.source.add_unmanaged_server('old')
        self.new_server = here.server(self.new)
        self.elsewhere = self.destination('10.20.0.9')

    def restart(self):
        """Restart both back ends in new processes."""
        self.source, self.target = (
            self.made[name].start() for name in ('here', 'there')
        )

    # State

    def serves(self, server):
        """Return whether a share can be created on a server."""
        share = self.made['here'].share()
        exports = normalise_export_locations(
            self.source.create_share(CTX, share, server)
        )
        self.source.delete_share(CTX, share, server)
        return bool(exports)

    def is_gone(self, server):
        try:
            self.serves(server)
        except exception.ShareBackendException:
            return True
        return False

    def leftovers(self, server):
        """Return what is left of a server, except partial files."""
        return [
            path
            for path in self.folder.rglob(f'*{server.id}*')
            if path.name.partition('.')[2] in ('', 'json')
        ]

    def addresses(self):
        """Return the addresses in the export locations of the share."""
        found = self.source.get_share_status(self.share, self.server)
        return {
            one['path'].partition(':')[0]
            for one in normalise_export_locations(found['export_locations'])
        }

    # Actions

    def manage(self):
        return self.source.manage_server(CTX, self.new_server, self.old, {})

    def more_addresses(self):
        subnet = self.made['here'].network_info('10.20.0.30', server_id=self.server.id)[
            0
        ]
        return self.source.update_share_server_network_allocations(
            CTX, self.server, {}, subnet, [], [self.share], [self.snapshot]
        )

    def migrate(self, operation, *more):
        return getattr(self.target, f'share_server_migration_{operation}')(
            *self.arguments(self.elsewhere), *more
        )

    def copy_again(self):
        self.migrate('start')
        self.run_first_phase(self.elsewhere)

    def cancel(self):
        self.migrate('cancel')

    def complete(self):
        """Complete the migration; return the new addresses of the share."""
        reply = self.migrate('complete', self.info)
        return {
            one['path'].partition(':')[0]
            for one in normalise_export_locations(
                reply['share_updates'][self.share.id]['export_locations']
            )
        }


@dataclasses.dataclass
class Operation:
    """An operation and its final state."""

    act: Callable[[Scene], object]
    ended: Callable[[Scene], bool]
    before: Callable[[Scene], object] = lambda scene: None
    moves: bool = False


OPERATIONS = {
    'setup': Operation(
        act=lambda s: s.source.setup_server(s.new),
        ended=lambda s: (
            s.serves(s.new_server)
            and s.source.setup_server(s.new)['primary_public_ip'] == ADDRESSES[0]
        ),
    ),
    'teardown': Operation(
        act=lambda s: s.source.teardown_server(details_of(s.idle)),
        ended=lambda s: s.is_gone(s.idle) and not s.leftovers(s.idle),
    ),
    'manage': Operation(
        act=lambda s: s.manage(),
        ended=lambda s: s.serves(s.new_server) and s.manage()[0] == 'old',
    ),
    'unmanage': Operation(
        act=lambda s: s.source.unmanage_server(details_of(s.idle)),
        ended=lambda s: (
            s.is_gone(s.idle)
            and s.source.manage_server(
                CTX, s.new_server, s.idle.backend_details['identifier'], {}
            )[1]['primary_public_ip']
            == ADDRESSES[1]
        ),
    ),
    'add addresses': Operation(
        act=lambda s: s.more_addresses(),
        ended=lambda s: s.addresses() == {'10.20.0.5', '10.20.0.30'},
    ),
    'migrate': Operation(
        act=lambda s: s.copy_again(),
        ended=lambda s: s.complete() == {'10.20.0.9'} and s.has_share(s.target),
    ),
    'cancel a migration': Operation(
        before=lambda s: s.copy_again(),
        act=lambda s: s.cancel(),
        ended=lambda s: not s.target.incoming() and s.target.inventory() == {},
    ),
    'complete a migration': Operation(
        before=lambda s: s.copy_again(),
        moves=True,
        act=lambda s: s.complete(),
        ended=lambda s: (
            s.has_share(s.target)
            and s.source.inventory() == {}
            and not s.target.incoming()
            and s.complete() == {'10.20.0.9'}
        ),
    ),
}


def _finish(scene: Scene, operation: Operation) -> None:
    """Repeat the operation in new processes and check the result.

    In any case one of the two back ends has the complete share.
    """
    scene.restart()
    assert scene.has_share() or operation.moves and scene.has_share(scene.target)
    operation.act(scene)
    if not operation.moves:
        assert scene.has_share()
    assert operation.ended(scene)


@sampling.enumeration
@pytest.mark.parametrize('name', OPERATIONS)
def test_operation_killed_at_every_step_can_be_repeated(name, tmp_path):
    operation = OPERATIONS[name]

    def build(folder):
        scene = Scene(tmp_path / folder)
        operation.before(scene)
        return scene

    for scene in killed_at_steps(build, operation.act):
        _finish(scene, operation)


@sampling.enumeration
@pytest.mark.parametrize('seed', sampling.seeds(150, 2))
def test_operation_killed_again_and_again_can_be_repeated(seed, tmp_path):
    rng = random.Random(seed)
    operation = OPERATIONS[rng.choice(sorted(OPERATIONS))]
    scene = Scene(tmp_path / 'pair')
    operation.before(scene)
    for _ in range(rng.randint(2, 5)):
        killed_at(rng.randint(1, 40), lambda: operation.act(scene))
        scene.restart()
    _finish(scene, operation)
