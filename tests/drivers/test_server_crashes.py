"""Killed at any step, what is done to share servers can be repeated."""

from collections.abc import Callable
import dataclasses
import itertools
import os
import random

import pytest

from manila_lite import exception
from manila_lite.share.drivers.base import normalise_export_locations
from tests.drivers.crashes import killed_at
from tests.drivers.driver_harness import CTX
from tests.drivers.migration_contract import MigrationPair
from tests.drivers.servers_contract import details_of

ADDRESSES = ('10.20.0.21', '10.20.0.22')


@pytest.fixture(autouse=True)
def no_power_failures(monkeypatch):
    """A kill takes nothing from the kernel; waiting for disks is slow."""
    monkeypatch.setattr(os, 'sync', lambda: None)
    monkeypatch.setattr(os, 'fsync', lambda file: None)


class Scene(MigrationPair):
    """A server with a share, an idle one, one let go, one that arrives."""

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
        """Have both back ends go on in processes of their own."""
        self.source, self.target = (
            self.made[name].start() for name in ('here', 'there')
        )

    # What is there

    def serves(self, server):
        """Whether a share can be made on a server, and goes again."""
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
        """What is left of a server, but for torn files."""
        return [
            path
            for path in self.folder.rglob(f'*{server.id}*')
            if path.name.partition('.')[2] in ('', 'json')
        ]

    def addresses(self):
        """Where the share is said to be reached."""
        found = self.source.get_share_status(self.share, self.server)
        return {
            one['path'].partition(':')[0]
            for one in normalise_export_locations(found['export_locations'])
        }

    def keeps(self, driver=None):
        """Whether one back end has the share whole."""
        driver = driver or self.source
        return (
            driver.inventory() == {self.share.id: self.share.size}
            and driver.read(self.share.id) == 'content'
        )

    # What is done

    def manage(self):
        return self.source.manage_server(CTX, self.new_server, self.old, {})

    def more_addresses(self):
        subnet = self.made['here'].network_info(
            '10.20.0.30', server_id=self.server.id
        )[0]
        return self.source.update_share_server_network_allocations(
            CTX, self.server, {}, subnet, [], [self.share], [self.snapshot]
        )

    def migrate(self, verb, *more):
        return getattr(self.target, f'share_server_migration_{verb}')(
            *self.what(self.elsewhere), *more
        )

    def copy_anew(self):
        self.migrate('start')
        self.copied(self.elsewhere)

    def cancel(self):
        self.migrate('cancel')

    def complete(self):
        """The addresses at which the share is reached from now on."""
        answer = self.migrate('complete', self.info)
        return {
            one['path'].partition(':')[0]
            for one in normalise_export_locations(
                answer['share_updates'][self.share.id]['export_locations']
            )
        }


@dataclasses.dataclass
class Verb:
    """What is done, and what is there in the end."""

    act: Callable[[Scene], object]
    ended: Callable[[Scene], bool]
    before: Callable[[Scene], object] = lambda scene: None
    moves: bool = False


VERBS = {
    'setup': Verb(
        act=lambda s: s.source.setup_server(s.new),
        ended=lambda s: (
            s.serves(s.new_server)
            and s.source.setup_server(s.new)['primary_public_ip']
            == ADDRESSES[0]
        ),
    ),
    'teardown': Verb(
        act=lambda s: s.source.teardown_server(details_of(s.idle)),
        ended=lambda s: s.is_gone(s.idle) and not s.leftovers(s.idle),
    ),
    'manage': Verb(
        act=lambda s: s.manage(),
        ended=lambda s: s.serves(s.new_server) and s.manage()[0] == 'old',
    ),
    'unmanage': Verb(
        act=lambda s: s.source.unmanage_server(details_of(s.idle)),
        ended=lambda s: (
            s.is_gone(s.idle)
            and s.source.manage_server(
                CTX, s.new_server, s.idle.backend_details['identifier'], {}
            )[1]['primary_public_ip']
            == ADDRESSES[1]
        ),
    ),
    'add addresses': Verb(
        act=lambda s: s.more_addresses(),
        ended=lambda s: s.addresses() == {'10.20.0.5', '10.20.0.30'},
    ),
    'migrate': Verb(
        act=lambda s: s.copy_anew(),
        ended=lambda s: s.complete() == {'10.20.0.9'} and s.keeps(s.target),
    ),
    'cancel a migration': Verb(
        before=lambda s: s.copy_anew(),
        act=lambda s: s.cancel(),
        ended=lambda s: not s.target.incoming() and s.target.inventory() == {},
    ),
    'complete a migration': Verb(
        before=lambda s: s.copy_anew(),
        moves=True,
        act=lambda s: s.complete(),
        ended=lambda s: (
            s.keeps(s.target)
            and s.source.inventory() == {}
            and not s.target.incoming()
            and s.complete() == {'10.20.0.9'}
        ),
    ),
}


def _finish(scene: Scene, verb: Verb) -> None:
    """Repeat the verb in new processes, and see that all is well.

    Whatever was done, the share that clients use is whole, on one of the
    two back ends.
    """
    scene.restart()
    assert scene.keeps() or verb.moves and scene.keeps(scene.target)
    verb.act(scene)
    if not verb.moves:
        assert scene.keeps()
    assert verb.ended(scene)


@pytest.mark.parametrize('name', VERBS)
def test_verb_killed_at_every_step_can_be_repeated(name, tmp_path):
    verb = VERBS[name]
    for step in itertools.count(1):
        scene = Scene(tmp_path / str(step))
        verb.before(scene)
        killed = killed_at(step, lambda s=scene: verb.act(s))
        _finish(scene, verb)
        if not killed:
            break
    assert step > 1, 'there was no step to be killed at'


@pytest.mark.parametrize('seed', range(10))
def test_verb_killed_again_and_again_can_be_repeated(seed, tmp_path):
    rng = random.Random(seed)
    verb = VERBS[rng.choice(sorted(VERBS))]
    scene = Scene(tmp_path / 'pair')
    verb.before(scene)
    for _ in range(rng.randint(2, 5)):
        killed_at(rng.randint(1, 40), lambda: verb.act(scene))
        scene.restart()
    _finish(scene, verb)
