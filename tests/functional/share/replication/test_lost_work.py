"""Lost work of replicas: what reconciliation does about it."""

import pytest
import sqlalchemy as sa

from manila_lite.db.models import access, engine, services
from tests.functional.share.replication.replica_states import messages, rules_on
from tests.support import rescues
from tests.support.cloud import Crash
from tests.support.replicated import INSTANCE

MAPPING = access.InstanceAccessRule.__table__
MESSAGE = services.Message.__table__
WORK = engine.Work.__table__


def bring(cloud, replica_id, status):
    """Put a replica into a status in flight, without work."""
    assert rescues.force_status(cloud.db, 'share_instance', replica_id, status)


def test_lost_replica_creation_converges_if_it_exists(cloud, share_id):
    cloud.allow(share_id)
    replica_id = cloud.replicate(share_id, 'beta')
    cloud.db.write(
        lambda session: session.run(
            sa.update(INSTANCE)
            .where(INSTANCE.c.id == replica_id)
            .values(status='creating')
        )
    )
    cloud.crash_at(None)
    cloud.settle()
    assert 'after get_replica_status' in cloud.crash_points
    assert cloud.replica(replica_id).status == 'available'
    assert cloud.replica(replica_id).access_rules_status == 'active'


def test_lost_replica_creation_is_given_up_if_it_does_not_exist(cloud, share_id):
    cloud.allow(share_id)
    replica_id = cloud.request_replica(share_id, 'beta')
    while cloud.replica(replica_id).host is None:
        assert cloud.scheduler.runners[0].step()
    cloud.db.write(lambda session: session.run(sa.delete(WORK)))
    cloud.settle()
    assert cloud.states(share_id)['beta'] == ('error', 'error')
    assert rules_on(cloud, replica_id) == ['error']


def test_lost_replica_deletion_is_repeated_as_replica_work(cloud, share_id):
    replica_id = cloud.replicate(share_id, 'beta')
    bring(cloud, replica_id, 'deleting')
    cloud.crash_at(None)
    cloud.settle()
    assert 'after delete_replica' in cloud.crash_points
    assert cloud.replica(replica_id) is None
    cloud.check_invariants()


def test_last_active_replica_survives_reset_to_deleting(cloud, share_id):
    cloud.replicate(share_id, 'beta')
    active = cloud.active(share_id)
    bring(cloud, active.id, 'deleting')
    cloud.settle()
    assert cloud.states(share_id)['alpha'] == ('error_deleting', 'active')


@pytest.mark.parametrize('times', [1, 2])
@pytest.mark.parametrize(
    'point', ['committed', 'before promote_replica', 'after promote_replica']
)
def test_abandoned_promotion_is_made_once_more(cloud, share_id, point, times):
    """The process that takes over knows what was requested."""
    replica_id = cloud.replicate(share_id, 'beta')
    cloud.update()
    cloud.ask('promote', replica_id, quiesce_wait_time=7)
    for _ in range(times):
        cloud.pause_at(point, lambda: cloud.crash_at(0))
        with pytest.raises(Crash):
            cloud.settle()
        cloud.restart()
    cloud.settle()
    cloud.update()
    assert cloud.states(share_id) == {
        'alpha': ('available', 'in_sync'),
        'beta': ('available', 'active'),
    }
    assert cloud.driver('beta').last_quiesce_wait == 7
    assert messages(cloud) == []
    cloud.check_invariants()


def test_promotion_abandoned_too_often_fails(cloud, share_id):
    replica_id = cloud.replicate(share_id, 'beta')
    cloud.ask('promote', replica_id)
    for _ in range(cloud.conf.work.max_attempts):
        cloud.pause_at('before promote_replica', lambda: cloud.crash_at(0))
        with pytest.raises(Crash):
            cloud.settle()
        cloud.restart()
    cloud.crash_at(None)
    while cloud.has_pending_work():
        cloud.run_pending()
        cloud.clock.advance(8)
    assert 'before promote_replica' not in cloud.crash_points
    assert cloud.states(share_id) == {
        'alpha': ('error', 'active'),
        'beta': ('error', 'error'),
    }
    assert messages(cloud)[-1] == ('004', '001')


def test_lost_promotion_fails(cloud, share_id):
    """Without work it is not known what was requested, and when."""
    replica_id = cloud.replicate(share_id, 'beta')
    cloud.replicate(share_id, 'gamma')
    bring(cloud, replica_id, 'replication_change')
    cloud.share.backends[1].endpoints.reconciliation.run_pass()
    while cloud.step():
        pass
    assert cloud.states(share_id) == {
        'alpha': ('error', 'active'),
        'beta': ('error', 'error'),
        'gamma': ('error', 'out_of_sync'),
    }
    assert messages(cloud)[-1] == ('004', '001')


def test_replica_state_is_left_to_the_updates(cloud, share_id):
    cloud.snapshot(share_id)
    replica_id = cloud.replicate(share_id, 'beta')
    cloud.crash_at(None)
    for backend in cloud.share.backends:
        backend.endpoints.reconciliation.run_pass()
    assert set(cloud.snapshots_on(replica_id).values()) == {'creating'}
    assert not cloud.step()
