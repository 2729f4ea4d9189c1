"""Backups that the data service makes."""

from tests.simulation.crashing import Scene
from tests.support import share_backups


def create(cloud, backup):
    share = share_backups.show(cloud.api, backup)['share_id']
    share_backups.request(cloud.api, share)
    cloud.settle()


def restore(cloud, backup):
    share_backups.restore(cloud.api, backup)
    cloud.settle()


def delete(cloud, backup):
    share_backups.delete(cloud.api, backup)
    cloud.settle()


VERBS = Scene.named(create, restore, delete)


SCENE = Scene(
    name='share backups',
    prepare=share_backups.create,
    verbs=VERBS,
    options={'backends': ['alpha']},
    without_driver=['delete'],
    seeds=(50, 1),
)
