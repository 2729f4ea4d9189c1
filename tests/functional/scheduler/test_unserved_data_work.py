"""Work of the data service ends if no data service comes back."""

import contextlib
import datetime

import pytest
import sqlalchemy as sa

from manila_lite.db.models import engine, services
from manila_lite.rpc import data
from tests.support import host_assisted, share_backups, share_migrations as migrations
from tests.support.databases import EACH

SERVICE = services.Service.__table__
WORK = engine.Work.__table__
BEATS = SERVICE.c.binary == data.BINARY
TIMEOUT = 900
REASON = 'No process has served manila-data for 900 s.'


@pytest.fixture
def cloud(build_cloud):
    return build_cloud(extra_conf=migrations.SHORT_POLL_INTERVAL)


def write(cloud, statement):
    cloud.db.write(lambda session: session.run(statement))


def silence(cloud, seconds=TIMEOUT + 5):
    """Let the last heartbeat of the data services be older."""
    write(
        cloud,
        sa.update(SERVICE)
        .where(BEATS)
        .values(heartbeat_at=SERVICE.c.heartbeat_at - seconds),
    )


def let_it_wait(cloud):
    """Let the work have waited for longer than any time-out."""
    write(
        cloud,
        sa.update(WORK)
        .where(WORK.c.queue == data.TOPIC)
        .values(created_at=datetime.datetime(2020, 1, 1)),
    )


def run_without_data_service(cloud):
    cloud.runners = [
        runner for runner in cloud.runners if runner not in cloud.data.runners
    ]
    for _ in range(5):
        cloud.run_pending()
        cloud.clock.advance(7)
        cloud.beat()


def run_pass(cloud):
    return cloud.scheduler.unserved_work.run_pass()


@pytest.mark.parametrize('kind', EACH)
@pytest.mark.parametrize('is_removed', [False, True])
def test_a_backup_ends_in_error_with_a_message(
    cloud, kind, is_removed, shared_database
):
    share = cloud.create_share()
    backup = share_backups.request(cloud.api, share).json['share_backup']
    with contextlib.ExitStack() as stack:
        if kind != 'sqlite':
            stack.enter_context(cloud.moved_to(shared_database(kind)))
        let_it_wait(cloud)
        if is_removed:
            write(cloud, sa.delete(SERVICE).where(BEATS))
        else:
            silence(cloud)
        assert run_pass(cloud) == 1
        found = share_backups.show(cloud.api, backup['id'])
        assert found['status'] == 'error'
        assert cloud.api.show(share)['status'] == 'available'
        [message] = cloud.api.get('/messages')['messages']
        assert message['resource_id'] == share
        assert cloud.usage('backups') == (1, 0)
        cloud.check_invariants()


def test_a_migration_fails_and_leaves_no_destination(cloud):
    share = host_assisted.create(cloud)
    host_assisted.start(cloud, share)
    run_without_data_service(cloud)
    assert cloud.api.show(share)['task_state'] == 'data_copying_starting'
    let_it_wait(cloud)
    silence(cloud)
    assert run_pass(cloud) == 1
    cloud.restart()
    cloud.settle()
    shown = cloud.api.show(share)
    assert (shown['status'], shown['task_state']) == ('available', 'migration_error')
    assert cloud.driver('beta').inventory() == {}
    cloud.check_invariants()


def test_new_work_waits_for_a_data_service_that_is_started_later(cloud):
    share = cloud.create_share()
    write(cloud, sa.delete(SERVICE).where(BEATS))
    backup = share_backups.request(cloud.api, share).json['share_backup']
    assert run_pass(cloud) == 0
    cloud.settle()
    found = share_backups.show(cloud.api, backup['id'])
    assert found['status'] == 'available'


def test_work_waits_while_one_data_service_is_alive(cloud):
    share = cloud.create_share()
    backup = share_backups.request(cloud.api, share).json['share_backup']
    let_it_wait(cloud)
    silence(cloud, TIMEOUT - 100)
    assert run_pass(cloud) == 0
    found = share_backups.show(cloud.api, backup['id'])
    assert found['status'] == 'creating'
