"""Requests wait for back ends that have yet to report for the first time."""

import datetime

import pytest
import sqlalchemy as sa

from manila_lite.db.queries.services import services
from manila_lite.rpc.scheduler import PlacementRpc
from tests.support.rescues import force_status
from tests.support.service_process import CTX, INSTANCE, WORK

PLACEMENT = 'placement.create_share_instance'


@pytest.fixture
def node(build_node):
    """The drivers of both back ends have yet to start."""
    node = build_node()
    node.scheduler.register()
    for backend in node.share.backends:
        backend.register()
    return node


def place(node):
    """Let the scheduler do all placements, also those due later."""
    node.db.write(lambda session: session.run(sa.update(WORK).values(next_try_at=0.0)))
    runner = node.scheduler.runners[0]
    runner.sweep()
    while runner.step():
        pass


def test_share_waits_for_the_restart_of_a_back_end_that_was_stopped(build_node):
    old = build_node(backends=['alpha'])
    old.register()
    old.backend().deregister(old.process.id)
    share = old.create(2)
    place(old)
    assert old.status(share) == 'creating'
    node = build_node(backends=['alpha'])
    node.register()
    place(node)
    node.run()
    assert node.status(share) == 'available'
    assert node.messages() == []


def make_older(node, seconds):
    (row,) = node.rows(sa.select(WORK.c.created_at))
    node.db.write(
        lambda session: session.run(
            sa.update(WORK).values(
                created_at=row.created_at - datetime.timedelta(seconds=seconds)
            )
        )
    )


def test_share_asked_for_before_the_first_report_is_created(node):
    share = node.create(2)
    place(node)
    place(node)
    assert node.status(share) == 'creating'
    node.backend('beta').set_up()
    place(node)
    node.run()
    assert node.status(share) == 'available'
    assert node.target(share).host == 'node@beta#pool'
    assert node.messages() == []
    assert node.problems() == []


def test_waiting_share_shows_progress_and_its_work_the_reason(node):
    node.create(2)
    place(node)
    assert node.value(sa.select(INSTANCE.c.progress)) == '0%'
    ((kind, state, _, attempt, reason),) = node.owed()
    assert (kind, state, attempt) == (PLACEMENT, 'queued', 0)
    assert reason == 'Waiting for node@alpha, node@beta to start.'


def test_waiting_share_occupies_no_worker(node):
    """It is due again later, and later each time."""
    delays = []
    node.create(2)
    place(node)
    for age in (0, 8, 30):
        make_older(node, age)
        place(node)
        delays.append(
            node.db.read(
                lambda session: (
                    session.value(sa.select(WORK.c.next_try_at))
                    - session.value(sa.select(services.db_now()))
                )
            )
        )
        assert not node.scheduler.runners[0].step()
    assert delays == [
        pytest.approx(1.0, abs=0.5),
        pytest.approx(2.0, abs=0.5),
        pytest.approx(9.5, abs=0.5),
    ]


def test_user_is_notified_that_the_storage_did_not_become_ready(node):
    share = node.create(2)
    place(node)
    make_older(node, 59)
    place(node)
    assert node.status(share) == 'creating'
    make_older(node, 2)
    place(node)
    assert node.status(share) == 'error'
    assert node.messages() == [('001', '028')]
    assert node.problems() == []


def test_time_to_wait_is_configured(build_node):
    node = build_node(default='scheduler_wait_for_backends = 0')
    node.scheduler.register()
    node.backend().register()
    share = node.create(2)
    place(node)
    assert node.status(share) == 'error'
    assert node.messages() == [('001', '028')]


def test_share_that_another_pool_can_hold_does_not_wait(node):
    node.backend('beta').set_up()
    share = node.create(2)
    place(node)
    assert node.target(share).host == 'node@beta#pool'


def test_share_that_no_pool_can_hold_waits_for_the_rest(node):
    """The back end that starts may be the one that has the space."""
    node.backend('beta').set_up()
    share = node.create(5000)
    place(node)
    assert node.status(share) == 'creating'
    node.backend('alpha').set_up()
    place(node)
    assert node.status(share) == 'error'
    assert node.messages() == [('001', '009')]


def test_disabled_back_end_is_not_waited_for(node):
    for name in node.names:
        node.db.write(services.set_disabled, f'node@{name}', 'manila-share', True, None)
    share = node.create(2)
    place(node)
    assert node.status(share) == 'error'
    assert node.messages() == [('001', '028')]


def test_back_end_that_has_reported_is_not_waited_for_when_it_fails(node):
    """Its requests are retried as those of any service that is down."""
    for backend in node.share.backends:
        backend.set_up()
        backend.health = 'its disk is gone'
        backend.beat()
    node.create(2)
    place(node)
    ((_, _, _, attempt, reason),) = [one for one in node.owed() if one[0] == PLACEMENT]
    assert attempt > 0
    assert 'No share service is up' in reason


def test_extension_waits_for_the_restart_of_its_own_back_end(build_node):
    """Other back ends that start cannot help."""
    old = build_node()
    old.register()
    old.run()
    share = old.create(2)
    old.run()
    host = old.target(share).host
    name = 'alpha' if host == 'node@alpha#pool' else 'beta'
    other = 'beta' if name == 'alpha' else 'alpha'
    node = build_node()
    node.backend(other).register()
    old.backend(other).deregister(old.process.id)
    old.ask('extend', share, 5000)
    place(old)
    assert old.status(share) == 'available'  # it does not fit
    node.backend(name).register()
    old.backend(name).deregister(old.process.id)
    old.ask('extend', share, 4)
    place(old)
    assert old.status(share) == 'extending'
    node.backend(name).set_up()
    place(old)
    node.run()
    assert (old.status(share), old.target(share).size) == ('available', 4)
    assert old.problems() == []


def test_share_to_manage_shows_no_progress_while_its_back_end_starts(build_node):
    old = build_node(backends=['alpha'])
    old.register()
    old.run()
    share = old.create(2)
    old.run()
    force_status(
        old.db, 'share_instance', old.target(share).instance_id, 'manage_starting'
    )
    old.db.write(lambda session: session.run(sa.update(INSTANCE).values(progress=None)))
    node = build_node(backends=['alpha'])
    node.backend().register()
    old.backend().deregister(old.process.id)
    node.db.write(
        lambda session: node.process.client(PlacementRpc).manage_share_instance(
            session, CTX, instance_id=old.target(share).instance_id, driver_options={}
        )
    )
    place(node)
    ((_, state, _, _, reason),) = node.owed()
    assert (state, reason) == ('queued', 'Waiting for node@alpha to start.')
    assert node.value(sa.select(INSTANCE.c.progress)) is None
