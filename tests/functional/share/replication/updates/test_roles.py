"""Roles of replicas that differ on the back ends from the database."""

import datetime
import itertools

import pytest
import sqlalchemy as sa

from manila_lite import exception
from manila_lite.db.models import engine
from manila_lite.db.queries.recovery import recovery
from manila_lite.db.queries.replicas import replicas
from manila_lite.db.transitions import fire
from manila_lite.share.manager.replication import roles
from manila_lite.states.share_instance import SHARE_INSTANCE
from tests.support import sampling
from tests.support.replica_updates import ReplicaUpdateCloud

WORK = engine.Work.__table__
BROKEN = exception.ShareBackendException(msg='it is on fire')

DENIED = {'status': 'error', 'replica_state': 'out_of_sync'}
HEALTHY = {'status': 'available'}


def promotions(cloud, name='alpha'):
    """Return how often a back end was asked to promote a replica."""
    return sum(call.method == 'promote_replica' for call in cloud.driver(name).calls)


def decisions(cloud):
    """Return what the recovery log has on roles, oldest first."""
    return [
        one.action
        for one in reversed(cloud.db.read(recovery.list_log, limit=99))
        if one.resource == 'share_replica'
    ]


def contradict(cloud):
    """Make the back end of the active replica deny its role for good."""
    return cloud.stub_driver('alpha', get_replica_status=DENIED)


def request_pass(cloud, name='alpha'):
    """Run one pass of a back end, and no other work."""
    cloud.endpoint(name).request_pass()
    cloud.run(name)


def test_roles_swapped_on_the_back_ends_are_swapped_back(cloud):
    cloud.promote_on_backend(cloud.replica_id)
    with pytest.raises(exception.ShareBackendException):
        cloud.driver('alpha').write(cloud.active(cloud.share_id).id, 'one')
    cloud.update()
    cloud.driver('alpha').write(cloud.active(cloud.share_id).id, 'two')
    cloud.update()
    assert cloud.states(cloud.share_id) == {
        'alpha': ('available', 'active'),
        'beta': ('available', 'in_sync'),
    }
    cloud.check_invariants()


@pytest.mark.parametrize('name', ['alpha', 'beta'])
def test_either_replica_reveals_a_wrong_role(cloud, name):
    cloud.promote_on_backend(cloud.replica_id)
    request_pass(cloud, name)
    cloud.settle()
    assert promotions(cloud) == 1
    assert decisions(cloud) == ['corrected']
    cloud.check_invariants()


def test_the_role_of_the_last_replica_is_checked_when_others_are_gone(cloud):
    """It became passive before the one that was active was deleted."""
    cloud.promote_on_backend(cloud.replica_id)
    cloud.ask('reset_status', cloud.replica_id, 'deleting')
    cloud.settle()
    cloud.driver('alpha').write(cloud.active(cloud.share_id).id, 'written')
    assert cloud.states(cloud.share_id) == {'alpha': ('available', 'active')}
    cloud.check_invariants()


def test_a_correction_is_logged_and_the_project_notified(cloud):
    cloud.promote_on_backend(cloud.replica_id)
    request_pass(cloud)
    cloud.settle()
    (one,) = (
        one
        for one in cloud.db.read(recovery.list_log, limit=9)
        if one.resource == 'share_replica'
    )
    assert one.resource_id == cloud.active(cloud.share_id).id
    assert (one.status_before, one.status_after) == ('available', 'available')
    assert one.evidence == 'the back ends have another active replica'
    assert cloud.messages() == [('SHARE', cloud.share_id, '004')]


def test_after_a_correction_no_other_replica_is_taken_to_be_in_sync(cloud):
    assert cloud.show() == ('available', 'in_sync')
    contradict(cloud)
    request_pass(cloud)
    assert cloud.show() == ('available', 'out_of_sync')


def test_the_driver_is_given_the_roles_that_its_back_end_has(cloud):
    given = []
    driver = cloud.driver('alpha')
    endpoint = next(
        one.endpoints.replica_roles
        for one in cloud.share.backends
        if one.host == 'node@alpha'
    )

    class Recording:
        def __getattr__(self, name):
            return getattr(driver, name)

        def promote_replica(self, context, replica_list, replica, *args, **kw):
            given.append((replica, replica_list))

    endpoint.driver = Recording()
    contradict(cloud)
    request_pass(cloud)
    active = cloud.active(cloud.share_id).id
    ((replica, replica_list),) = given
    assert (replica['id'], replica['replica_state']) == (active, 'out_of_sync')
    assert {one['id']: one['replica_state'] for one in replica_list} == {
        active: 'out_of_sync',
        cloud.replica_id: 'active',
    }


def test_attempts_are_limited_and_their_pauses_grow(cloud):
    contradict(cloud)
    seen = []
    for minute in range(60):
        request_pass(cloud)
        if len(seen) < promotions(cloud):
            seen.append(minute)
        cloud.clock.advance(60)
    assert len(seen) == roles.MAX_ATTEMPTS
    pauses = [after - before for before, after in itertools.pairwise(seen)]
    assert pauses == [1, 2, 4, 8]
    active = cloud.active(cloud.share_id).id
    assert cloud.show(active) == ('error', 'active')
    assert decisions(cloud) == [*['corrected'] * len(seen), 'given up']
    assert len(cloud.messages()) == len(seen) + 1


def test_failed_attempts_end_in_error_too(cloud):
    contradict(cloud)
    cloud.driver('alpha').fail_next('promote_replica', times=None)
    for _ in range(60):
        request_pass(cloud)
        cloud.clock.advance(60)
    attempts = roles.MAX_ATTEMPTS
    assert promotions(cloud) == attempts
    assert decisions(cloud) == [*['not corrected'] * attempts, 'given up']
    assert cloud.show(cloud.active(cloud.share_id).id) == ('error', 'active')
    assert cloud.messages() == [('SHARE', cloud.share_id, '004')]
    (message,) = cloud.api.get('/messages')['messages']
    assert 'promote_replica of back end' in message['user_message']


def test_a_replica_given_up_recovers_with_its_back_end(cloud):
    contradict(cloud)
    cloud.driver('alpha').fail_next('promote_replica', times=None)
    for _ in range(60):
        request_pass(cloud)
        cloud.clock.advance(60)
    cloud.stub_driver('alpha', get_replica_status=HEALTHY)
    cloud.update()
    active = cloud.active(cloud.share_id).id
    assert cloud.show(active) == ('available', 'active')


def test_attempts_of_the_day_before_do_not_count(cloud):
    contradict(cloud)
    for _ in range(3):
        request_pass(cloud)
        cloud.clock.advance(
            (roles.WINDOW + datetime.timedelta(hours=1)).total_seconds()
        )
    assert promotions(cloud) == 3


def test_several_reports_make_one_piece_of_work(cloud):
    cloud.promote_on_backend(cloud.replica_id)
    for name in ('alpha', 'beta'):
        cloud.endpoint(name).request_pass()
    cloud.run('beta')  # queues work for alpha
    cloud.settle()
    assert promotions(cloud) == 1


def test_a_driver_without_get_replica_status_is_skipped(cloud, caplog):
    driver = cloud.stub_driver('alpha', get_replica_status=NotImplementedError())
    known = cloud.journal_rows()
    for _ in range(3):
        cloud.update()
    assert driver.names == ['get_replica_status'] * 3
    assert caplog.text.count('its driver has no get_replica_status') == 1
    assert cloud.journal_rows() == known
    assert promotions(cloud) == 0


@pytest.mark.parametrize(
    'reply', [{'status': 'error'}, BROKEN, None, 'available', HEALTHY]
)
def test_a_reply_without_a_role_contradicts_nothing(cloud, reply):
    cloud.stub_driver('alpha', get_replica_status=reply)
    known = cloud.journal_rows()
    cloud.update()
    assert cloud.journal_rows() == known
    assert promotions(cloud) == 0


def test_no_correction_while_a_replica_is_promoted(cloud):
    contradict(cloud)
    cloud.ask('promote', cloud.replica_id)
    request_pass(cloud)
    assert promotions(cloud) == 0
    cloud.settle()
    assert cloud.states(cloud.share_id)['beta'] == ('available', 'active')
    cloud.check_invariants()


def test_a_promotion_requested_meanwhile_is_not_undone(cloud):
    """The correction was submitted for an earlier generation."""
    contradict(cloud)
    cloud.endpoint('alpha').request_pass()
    (runner,) = (one for one in cloud.runners if 'node@alpha' in one.queues)
    runner.step()  # the pass
    assert cloud.has_pending_work()
    cloud.ask('promote', cloud.replica_id)
    cloud.settle()
    assert promotions(cloud) == 0
    assert cloud.states(cloud.share_id)['beta'] == ('available', 'active')
    cloud.check_invariants()


def test_a_correction_overtaken_by_a_promotion_leads_to_updates(cloud):
    """Its driver call may have come after that of the promotion."""
    cloud.promote_on_backend(cloud.replica_id)
    cloud.pause_at(
        'after promote_replica',
        lambda: cloud.db.write(replicas.advance_generation, cloud.share_id),
    )
    request_pass(cloud)
    assert decisions(cloud) == []
    kinds = {row.kind for row in cloud.rows(sa.select(WORK))}
    assert 'replica_updates.update_share_replica' in kinds
    cloud.settle()
    cloud.check_invariants()


def test_roles_are_left_alone_after_a_failed_promotion(cloud):
    """An administrator decides: it is unknown which one is to be active."""
    active = cloud.active(cloud.share_id).id
    cloud.driver('beta').lose_reply_next('promote_replica')
    cloud.ask('promote', cloud.replica_id)
    cloud.settle()
    for _ in range(3):
        cloud.update()
    assert cloud.show(active) == ('error', 'active')
    assert cloud.show() == ('error', 'error')
    assert promotions(cloud) == 0


def test_several_writable_replicas_may_be_active(tmp_path):
    cloud = ReplicaUpdateCloud(tmp_path, style='writable')
    drivers = [
        cloud.stub_driver(name, get_replica_status=DENIED) for name in ('alpha', 'beta')
    ]
    cloud.update()
    assert [driver.names for driver in drivers] == [[], []]
    assert set(cloud.states(cloud.share_id).values()) == {('available', 'active')}
    cloud.db.dispose()


def test_sole_replicas_are_not_asked(cloud):
    share_id = cloud.create_share_on('alpha')
    driver = cloud.stub_driver('alpha', get_replica_status=HEALTHY)
    cloud.update()
    (call,) = driver.asked
    assert call[1][0]['share_id'] != share_id


def test_active_replica_of_another_operation_is_left_alone(cloud):
    active = cloud.active(cloud.share_id).id
    cloud.db.write(fire, SHARE_INSTANCE, active, 'extend')
    contradict(cloud)
    request_pass(cloud)
    assert promotions(cloud) == 0


@sampling.dialects
def test_roles_are_corrected_on_every_database(database_url, tmp_path):
    cloud = ReplicaUpdateCloud(tmp_path, url=database_url)
    cloud.allow(cloud.share_id)
    cloud.promote_on_backend(cloud.replica_id)
    cloud.update()
    assert decisions(cloud) == ['corrected']
    assert promotions(cloud) == 1
    cloud.update()
    cloud.check_invariants()
    contradict(cloud)
    cloud.driver('alpha').fail_next('promote_replica', times=None)
    for _ in range(60):
        request_pass(cloud)
        cloud.clock.advance(60)
    assert decisions(cloud)[-1] == 'given up'
    cloud.db.dispose()
