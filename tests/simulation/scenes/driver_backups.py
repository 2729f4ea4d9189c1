"""Backups that a back end makes itself."""

from tests.simulation.crashing import Scene
from tests.support import share_backups


def prepare(cloud):
    other = cloud.create_share()
    return share_backups.create(cloud, **share_backups.BY_DRIVER), other


def create(cloud, prepared):
    share = share_backups.show(cloud.api, prepared[0])['share_id']
    share_backups.request(cloud.api, share, expect=None, **share_backups.BY_DRIVER)
    cloud.settle()


def fail(cloud, prepared):
    cloud.driver().fail_next('create_backup_continue')
    create(cloud, prepared)


def create_and_delete(cloud, prepared):
    create(cloud, prepared)
    for backup in share_backups.listed(cloud.api):
        share_backups.delete(cloud.api, backup['id'], expect=None)
    cloud.settle()


def restore(cloud, prepared):
    share_backups.restore(cloud.api, prepared[0], expect=None)
    cloud.settle()


def restore_to_another(cloud, prepared):
    share_backups.restore(cloud.api, *prepared, expect=None)
    cloud.settle()


def delete(cloud, prepared):
    share_backups.delete(cloud.api, prepared[0], expect=None)
    cloud.settle()


VERBS = Scene.named(
    create, fail, create_and_delete, restore, restore_to_another, delete
)


SCENE = Scene(
    name='driver backups',
    prepare=prepare,
    verbs=VERBS,
    options={'backends': ['alpha']},
    seeds=(50, 1),
    conf={
        'backend_conf': 'dummy_driver_backup_steps = 2',
        'extra_conf': share_backups.SHORT_POLL_INTERVALS,
    },
)
