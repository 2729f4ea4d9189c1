"""Work of a back end that no process serves ends after a time."""

import pytest
import sqlalchemy as sa

from manila_lite.db.models import services
from manila_lite.work import cancel, table
from tests.support.service_process import CTX, WORK

SERVICE = services.Service.__table__
ALPHA = 'node@alpha'
TIMEOUT = 900


@pytest.fixture
def node(build_node):
    node = build_node(backends=['alpha', 'beta'])
    node.register()
    node.run()
    return node


def silence(node, seconds=TIMEOUT + 5, host=ALPHA):
    """Make the last heartbeat of a back end older."""
    node.db.write(
        lambda session: session.run(
            sa.update(SERVICE)
            .where(SERVICE.c.host == host)
            .values(heartbeat_at=SERVICE.c.heartbeat_at - seconds)
        )
    )


def create(node):
    share = node.create(2, scheduler_hints={'only_host': f'{ALPHA}#pool'})
    node.scheduler.runners[0].step()
    return share


def available(node):
    share = create(node)
    node.run()
    assert node.status(share) == 'available'
    return share


def allow(node, share):
    node.access.allow(
        CTX,
        node.target(share),
        access_type='ip',
        access_to='10.0.0.1',
        target='10.0.0.1',
    )


def work_of(node):
    """Return the ids of unfinished work, oldest first."""
    return [
        row.id for row in node.rows(sa.select(WORK.c.id).order_by(WORK.c.created_at))
    ]


def test_creation_on_a_lost_back_end_fails_with_a_message(node):
    share = create(node)
    silence(node)
    assert node.scheduler.unserved_work.run_pass() == 1
    assert node.status(share) == 'error'
    assert node.owed() == []
    assert [action for action, _ in node.messages()] == ['002']
    log = node.rows(sa.text('SELECT reason FROM recovery_log'))
    assert [row.reason for row in log] == [
        f'No process has served {ALPHA} for {TIMEOUT} s.'
    ]
    assert node.problems() == []


def test_work_waits_for_a_back_end_that_is_down_for_less(node):
    share = create(node)
    silence(node, TIMEOUT - 100)
    assert node.scheduler.unserved_work.run_pass() == 0
    assert node.status(share) == 'creating'


def test_back_end_that_returns_keeps_its_work(node):
    share = create(node)
    silence(node)
    node.backend().beat()
    assert node.scheduler.unserved_work.run_pass() == 0
    node.run()
    assert node.status(share) == 'available'


def test_every_kind_of_work_ends_at_rest(node):
    extended, deleted, ruled = (available(node) for _ in range(3))
    node.ask('extend', extended, 5, force=True)
    node.operations.delete(CTX, node.target(deleted))
    allow(node, ruled)
    silence(node)
    assert node.scheduler.unserved_work.run_pass() == 3
    assert node.owed() == []
    assert node.status(extended) == 'extending_error'
    assert node.status(deleted) == 'error_deleting'
    states = node.rows(sa.text('SELECT state FROM share_instance_access_map'))
    assert [row.state for row in states] == ['error']
    # Once the back end is back, all of its rules are sent again.
    node.backend().beat()
    node.backend().endpoints.reconciliation.run_pass()
    node.run()
    assert node.problems() == []


def test_work_with_a_lease_is_left_to_its_process(node):
    """The process lives, but cannot write its heartbeat."""
    share = create(node)
    (work_id,) = [row.id for row in node.rows(sa.select(WORK.c.id))]
    held = node.db.write(table.claim, work_id, [ALPHA], 'another', 60.0)
    silence(node)
    assert node.scheduler.unserved_work.run_pass() == 0
    assert node.status(share) == 'creating'
    node.db.write(table.release, held, 0.0)
    assert node.scheduler.unserved_work.run_pass() == 1
    assert node.status(share) == 'error'


def test_work_that_waits_for_other_work_does_not_end_the_pass(node):
    blocked, other = available(node), available(node)
    allow(node, blocked)
    (sync,) = work_of(node)
    node.ask('extend', blocked, 5, force=True)
    node.ask('extend', other, 5, force=True)
    held = node.db.write(table.claim, sync, [ALPHA], 'another', 60.0)
    silence(node)
    assert node.scheduler.unserved_work.run_pass() == 1
    assert node.status(other) == 'extending_error'
    assert node.status(blocked) == 'extending'
    node.db.write(table.release, held, 0.0)
    assert node.scheduler.unserved_work.run_pass() == 2
    assert node.owed() == []


def test_abandoned_work_ends_in_the_pass_with_what_it_blocks(node):
    share = available(node)
    allow(node, share)
    (blocked,) = work_of(node)
    node.ask('extend', share, 5, force=True)
    (extend,) = set(work_of(node)) - {blocked}
    node.db.write(table.claim, extend, [ALPHA], 'dead', -1.0)
    silence(node)
    assert node.scheduler.unserved_work.run_pass() == 2
    assert node.owed() == []


def submit_unknown_work(session, count):
    """Submit work of a newer release, all at the same time."""
    for number in range(count):
        table.submit(
            session,
            {},
            kind='newer.kind',
            topic='manila-share',
            queue=ALPHA,
            resource='newer',
            resource_id=str(number),
            args={},
        )


def test_work_that_cannot_end_does_not_hide_what_follows(node):
    node.db.write(submit_unknown_work, 2 * cancel.BATCH + 1)
    share = create(node)
    silence(node)
    assert node.scheduler.unserved_work.run_pass() == 1
    assert node.status(share) == 'error'
    assert len(work_of(node)) == 2 * cancel.BATCH + 1


def test_process_that_was_only_paused_undoes_what_it_created(node):
    share = create(node)
    driver, passes = node.driver(), []
    original = driver.create_share

    def create_share(*args, **kwargs):
        node.db.write(
            lambda session: session.run(sa.update(WORK).values(lease_until=0.0))
        )
        silence(node)
        passes.append(node.scheduler.unserved_work.run_pass())
        return original(*args, **kwargs)

    driver.create_share = create_share
    node.backend().runner.step()
    assert passes == [1]
    assert node.status(share) == 'error'
    del driver.create_share
    node.backend().beat()
    node.operations.delete(CTX, node.target(share))
    node.run()
    assert driver.inventory() == {}
    assert node.problems() == []
