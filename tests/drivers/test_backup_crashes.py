"""Backups of a driver that is killed at any step can be made again."""

import pytest

from manila_lite.share.drivers.contract.configuration import Configuration
from tests.drivers import backups_contract
from tests.drivers.conftest import own_options
from tests.drivers.crashes import killed_at_steps
from tests.drivers.driver_harness import CTX, DriverHarness
from tests.support import sampling

pytestmark = [sampling.enumeration, pytest.mark.usefixtures('no_power_failures')]


class Scene:
    """A share with a backup, and later changes."""

    def __init__(self, root):
        configuration = Configuration.from_values(
            own_options(root) | {'dummy_driver_backup_steps': 2}
        )
        self.harness = DriverHarness('dummy', lambda: configuration)
        self.driver = self.harness.start()
        self.share = self.harness.share()
        self.backup = self.harness.backup(self.share)
        self.new_backup = self.harness.backup(self.share)
        self.driver.create_share(CTX, self.share)
        self.driver.write(self.share.id, 'then')
        backups_contract.back_up(self.driver, self.share, self.backup)
        self.driver.write(self.share.id, 'now')

    @property
    def backups(self):
        return self.driver.backup_inventory()


def back_up(scene):
    backups_contract.back_up(scene.driver, scene.share, scene.new_backup)


def restore(scene):
    backups_contract.restore(scene.driver, scene.backup, scene.share)


def delete(scene):
    scene.driver.delete_backup(CTX, scene.backup, scene.share)


ENDS = {
    back_up: lambda scene: scene.backups[scene.new_backup.id] == 100,
    restore: lambda scene: scene.driver.read(scene.share.id) == 'then',
    delete: lambda scene: scene.backups == {},
}


@pytest.mark.parametrize('act', ENDS)
def test_operation_killed_at_every_step_can_be_repeated(act, tmp_path):
    for scene in killed_at_steps(lambda name: Scene(tmp_path / name), act):
        scene.driver = scene.harness.start()
        assert scene.driver.read(scene.share.id) in ('then', 'now')
        act(scene)
        assert ENDS[act](scene)
