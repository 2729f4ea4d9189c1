"""A worker is paused inside its driver call, until all has changed.

Another worker takes over its work and completes it; then the user undoes
what was asked for. The paused worker had checked its claim before, so its
call reaches the back end last. A back end with fencing refuses it. On one
without, what the call did is put right.
"""

import threading

import pytest

from tests.simulation.pausing import Another, pause_in
from tests.support import cloud_snapshots, sampling, share_backups
from tests.support.access import ShareRules
from tests.support.cloud import Cloud
from tests.support.snapshot_access import (
    create_mountable_snapshot,
    enable_snapshot_mounts,
)

pytestmark = sampling.combinations('database_url', 'cloud')


@pytest.fixture(params=[True, False], ids=['fencing', 'no_fencing'])
def cloud(request, tmp_path, database_url):
    cloud = Cloud(
        tmp_path,
        url=database_url,
        backends=['alpha'],
        backend_conf=f'dummy_driver_fencing = {request.param}',
    )
    cloud.has_fencing = request.param
    yield cloud
    cloud.db.dispose()


def check_late_call(cloud, method):
    """The late call was made; in the end nothing is left of it."""
    cloud.settle()
    assert not cloud.pending_pauses
    refused = [name for name, _ in cloud.driver().refused_calls]
    assert (method in refused) == cloud.has_fencing
    assert cloud.driver().overlaps == []
    cloud.check_invariants()


def test_a_client_denied_meanwhile_stays_out(cloud):
    rules = ShareRules(cloud, cloud.create_share())
    rule_id = rules.allow('10.0.0.1')
    pause_in(cloud, 'apply_access', lambda: rules.deny(rule_id))
    check_late_call(cloud, 'update_access')
    assert rules.clients == {}


def test_a_client_allowed_again_meanwhile_stays_in(cloud):
    rules = ShareRules(cloud, cloud.create_share())
    rule_id = rules.allow('10.0.0.1')
    cloud.settle()
    rules.deny(rule_id)
    pause_in(cloud, 'apply_access', lambda: rules.allow('10.0.0.1'))
    check_late_call(cloud, 'update_access')
    assert rules.clients == {'10.0.0.1': 'rw'}


def test_a_level_changed_back_meanwhile_stays(cloud):
    rules = ShareRules(cloud, cloud.create_share())
    rule_id = rules.allow('10.0.0.1', 'ro')
    cloud.settle()
    rules.change(rule_id, 'rw')
    pause_in(cloud, 'apply_access', lambda: rules.change(rule_id, 'ro'))
    check_late_call(cloud, 'update_access')
    assert rules.clients == {'10.0.0.1': 'ro'}


def test_a_client_of_a_snapshot_denied_meanwhile_stays_out(cloud):
    enable_snapshot_mounts(cloud)
    rules = create_mountable_snapshot(cloud)
    rule_id = rules.allow('10.0.0.1')['id']
    pause_in(cloud, 'snapshot_update_access', lambda: rules.deny(rule_id))
    check_late_call(cloud, 'snapshot_update_access')
    assert rules.clients == set()


@pytest.mark.parametrize('verb, size', [('extend', 5), ('shrink', 1)])
def test_the_size_is_that_of_the_back_end(cloud, verb, size):
    """The resize was given up, and nothing is left in doubt."""
    share_id = cloud.create_share(size=3)
    cloud.api.act(share_id, verb, {'new_size': size})
    pause_in(cloud, f'{verb}_share')
    check_late_call(cloud, f'{verb}_share')
    (real,) = cloud.driver().inventory().values()
    assert cloud.api.show(share_id)['size'] == real
    assert real == (3 if cloud.has_fencing else size)


def test_a_share_deleted_meanwhile_is_not_left_behind(cloud):
    share_id = cloud.api.create(size=3)['id']
    pause_in(cloud, 'create_share', lambda: cloud.api.delete(share_id))
    check_late_call(cloud, 'create_share')
    assert cloud.driver().inventory() == {}


def test_a_snapshot_deleted_meanwhile_is_not_left_behind(cloud):
    cloud_snapshots.enable_snapshot_features(cloud)
    share_id = cloud.create_share()
    snapshot_id = cloud_snapshots.create(cloud, share_id)
    pause_in(
        cloud, 'create_snapshot', lambda: cloud_snapshots.delete(cloud, snapshot_id)
    )
    check_late_call(cloud, 'create_snapshot')
    assert cloud.driver().snapshot_inventory() == {}


def test_a_backup_that_is_being_deleted_is_not_left_behind(cloud):
    """The late call comes between the driver's deletion and its record."""
    share_id = cloud.create_share()
    another = Another(cloud)
    late = PausedThread(cloud, 'before create_backup', cloud.run_pending)
    share_backups.request(cloud.api, share_id, **share_backups.BY_DRIVER)
    late.start()
    another.take_over()
    (backup,) = share_backups.listed(cloud.api)
    share_backups.delete(cloud.api, backup['id'])
    cloud.pause_at('after delete_backup', late.finish)
    check_late_call(cloud, 'create_backup')
    assert cloud.driver().backup_inventory() == {}


class PausedThread:
    """A thread whose work is paused at a crash point."""

    def __init__(self, cloud, point, work):
        self._is_paused, self._may_go_on = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=work, daemon=True)
        cloud.pause_at(point, self._pause)

    def _pause(self):
        self._is_paused.set()
        assert self._may_go_on.wait(60)

    def start(self):
        """Return when it is paused."""
        self._thread.start()
        assert self._is_paused.wait(60)

    def finish(self):
        """Return when it has done its work."""
        self._may_go_on.set()
        self._thread.join(60)
        assert not self._thread.is_alive()
