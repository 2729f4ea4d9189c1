"""New shares that a back end refuses are placed on another pool."""

import json
import logging

import pytest
import sqlalchemy as sa

from manila_lite import exception
from manila_lite.db.queries.services import pools
from tests.functional.share.servers.server_calls import details
from tests.support import cloud_snapshots
from tests.support.dhss import ShareServersCloud
from tests.support.service_process import CTX, INSTANCE, POOL, SHARE

REFUSED = exception.ShareRefused(reason='no space left')
NAMES = ('alpha', 'beta', 'gamma', 'delta')
SCHEDULED_CLONES = 'use_scheduler_creating_share_from_snapshot = true'
WITH_LAST = 'delete_share_server_with_last_share = true'

on_sqlite = pytest.mark.parametrize('database_url', ['sqlite'], indirect=True)


@pytest.fixture
def begin(build_node):
    """`begin(**options)` builds a node that prefers back ends in order."""

    def begin(names=NAMES[:2], **options):
        node = build_node(backends=names, **options)
        node.register()
        node.run()
        for number, name in enumerate(names):
            node.db.write(pools.adjust_allocated, f'node@{name}#pool', 10 * number)
        return node

    return begin


def refuse(node, *names):
    for name in names:
        node.driver(name).fail_next('create_share', error=REFUSED)


def place(node, **facts):
    share = node.create(3, **facts)
    node.run()
    return share


def check(node):
    """Nothing is left, and allocations equal a recount."""
    for number, name in enumerate(node.names):
        node.db.write(pools.adjust_allocated, f'node@{name}#pool', -10 * number)
    assert node.owed() == []
    assert node.problems() == []


def creations(node):
    """Return on which back ends a share was to be created."""
    return [
        name
        for name in node.names
        for call in node.driver(name).calls
        if call.method == 'create_share'
    ]


def allocated(node):
    return {
        row.host: row.allocated_gb
        for row in node.rows(sa.select(POOL.c.host, POOL.c.allocated_gb))
    }


# The next pool


def test_refused_share_is_placed_on_another_pool(begin, caplog):
    node = begin()
    refuse(node, 'alpha')
    with caplog.at_level(logging.WARNING):
        share = place(node)
    assert node.outcome(share) == ('available', 3)
    assert node.target(share).host == 'node@beta#pool'
    assert node.messages() == []
    assert allocated(node) == {'node@alpha#pool': 0, 'node@beta#pool': 13}
    (logged,) = [
        record.getMessage()
        for record in caplog.records
        if 'refused' in record.getMessage()
    ]
    assert 'req-of-the-test' in logged
    assert 'node@alpha#pool' in logged
    assert 'no space left' in logged
    check(node)


@on_sqlite
def test_share_is_in_error_when_no_pool_is_left(begin):
    node = begin()
    refuse(node, 'alpha', 'beta')
    share = place(node)
    assert node.outcome(share) == ('error', 3)
    assert node.target(share).host is None
    assert node.messages() == [('001', '013')]
    check(node)
    node.ask('delete', share)
    node.run()
    assert node.rows(sa.select(SHARE)) == []
    assert node.problems() == []


@on_sqlite
@pytest.mark.parametrize('attempts', [1, 2, 3])
def test_number_of_placements_is_limited(begin, attempts):
    node = begin(NAMES, default=f'scheduler_max_attempts = {attempts}')
    refuse(node, *NAMES)
    share = place(node)
    assert creations(node) == list(NAMES[:attempts])
    assert node.outcome(share) == ('error', 3)
    assert node.target(share).host == f'node@{NAMES[attempts - 1]}#pool'
    assert node.messages() == [('002', '001')]
    check(node)


@on_sqlite
def test_other_errors_of_the_driver_are_not_tried_elsewhere(begin):
    node = begin()
    node.driver().fail_next('create_share')
    share = place(node)
    assert node.status(share) == 'error'
    assert node.target(share).host == 'node@alpha#pool'
    assert creations(node) == ['alpha']
    check(node)


@on_sqlite
def test_share_for_one_host_is_not_tried_elsewhere(begin):
    node = begin()
    refuse(node, 'beta')
    share = place(node, scheduler_hints={'only_host': 'node@beta#pool'})
    assert node.target(share).host == 'node@beta#pool'
    assert node.messages() == [('002', '001')]
    check(node)


@on_sqlite
def test_work_of_the_previous_release_is_not_placed_again(begin):
    node = begin()
    refuse(node, 'alpha')
    share = node.create(3)
    while node.scheduler.runners[0].step():
        pass
    node.db.write(
        lambda session: session.run(
            sa.text('UPDATE work SET args = :args'),
            args=json.dumps({'instance_id': node.target(share).instance_id}),
        )
    )
    node.run()
    assert node.status(share) == 'error'
    assert node.messages() == [('002', '001')]
    check(node)


# Requests while the driver is called


@pytest.mark.parametrize('verb', ['force_delete', 'reset_status'])
def test_request_during_the_call_wins_over_another_placement(begin, verb):
    node = begin()
    refuse(node, 'alpha')
    share = node.create(3)

    def on_commit(name):
        if name != 'committed':
            return
        node.db.on_step = lambda name: None
        if ('provisioning.create_share_instance', 'running') in {
            work[:2] for work in node.owed()
        }:
            ask()
        else:
            node.db.on_step = on_commit

    def ask():
        if verb == 'force_delete':
            node.ask('force_delete', share)
        else:
            node.operations.reset_status(CTX, node.target(share).instance_id, 'error')

    node.db.on_step = on_commit
    node.run()
    assert creations(node) == ['alpha']
    if verb == 'force_delete':
        assert node.rows(sa.select(SHARE)) == []
    else:
        assert node.status(share) == 'error'
        assert node.target(share).host == 'node@alpha#pool'
    check(node)


# Zones


def test_requested_zone_is_kept_and_a_chosen_one_is_not(begin):
    node = begin()
    refuse(node, 'alpha', 'beta')
    refuse(node, 'alpha', 'beta')
    place(node)
    place(node, availability_zone='nova')
    zones = [
        row.availability_zone_id is not None
        for row in node.rows(
            sa.select(INSTANCE.c.availability_zone_id).order_by(INSTANCE.c.created_at)
        )
    ]
    assert zones == [False, True]
    check(node)


# Snapshots


def clone_of(cloud, snapshot):
    clone = cloud.api.create(snapshot_id=snapshot, size=1)['id']
    cloud.settle()
    return cloud.api.show(clone)


def snapshot_of_a_share(cloud):
    cloud_snapshots.enable_snapshot_features(cloud)
    share = cloud.create_share(size=1)
    return share, cloud_snapshots.create_available(cloud, share)


def test_refused_clone_is_placed_on_another_pool_of_its_back_end(build_cloud):
    cloud = build_cloud(SCHEDULED_CLONES, backend_conf='dummy_driver_pools = one,two')
    share, snapshot = snapshot_of_a_share(cloud)
    backend, _, _ = cloud.api.show(share)['host'].partition('#')
    driver = cloud.driver(backend.removeprefix('node@'))
    driver.fail_next('create_share_from_snapshot', error=REFUSED)
    clone = clone_of(cloud, snapshot)
    assert clone['status'] == 'available'
    assert clone['host'].partition('#')[0] == backend
    calls = [call.method for call in driver.calls]
    assert calls.count('create_share_from_snapshot') == 2
    cloud.check_invariants()


def test_clone_is_in_error_when_no_other_pool_can_clone(build_cloud):
    cloud = build_cloud(SCHEDULED_CLONES)
    share, snapshot = snapshot_of_a_share(cloud)
    backend, _, _ = cloud.api.show(share)['host'].partition('#')
    driver = cloud.driver(backend.removeprefix('node@'))
    driver.fail_next('create_share_from_snapshot', error=REFUSED)
    clone = clone_of(cloud, snapshot)
    assert clone['status'] == 'error'
    assert details(cloud) == ['013']
    cloud.check_invariants()


# Share servers


@pytest.mark.parametrize('extra_conf, left', [('', 1), (WITH_LAST, 0)])
def test_refused_share_leaves_its_share_server(build_cloud, extra_conf, left):
    cloud = build_cloud(extra_conf, kind=ShareServersCloud)
    cloud.db.write(pools.adjust_allocated, 'node@beta#pool', 10)
    cloud.driver('alpha').fail_next('create_share', error=REFUSED)
    share = cloud.create_share_on_network(cloud.add_network())
    cloud.db.write(pools.adjust_allocated, 'node@beta#pool', -10)
    servers = {server.host: server for server in cloud.servers()}
    assert cloud.server_of(share) == servers.pop('node@beta').id
    assert len(servers) == left
    assert all(server.idle_since for server in servers.values())
    cloud.check_invariants()


def test_failed_build_of_a_share_server_is_not_tried_elsewhere(build_cloud):
    """The server in error shows that something may be left of it."""
    cloud = build_cloud(kind=ShareServersCloud)
    for name in cloud.backend_names:
        cloud.driver(name).faults.fail_next('_setup_server', error=REFUSED)
    share = cloud.api.create(share_network_id=cloud.add_network())['id']
    cloud.settle()
    assert cloud.api.show(share)['status'] == 'error'
    assert [server.status for server in cloud.servers()] == ['error']
    assert details(cloud) == ['004']
    cloud.check_invariants()


def test_user_is_notified_why_there_is_no_share_server(build_cloud):
    cloud = build_cloud(SCHEDULED_CLONES, kind=ShareServersCloud)
    cloud_snapshots.enable_snapshot_features(cloud)
    share = cloud.create_share_on_network(cloud.add_network())
    snapshot = cloud_snapshots.create_available(cloud, share)
    cloud.api.request(
        'POST',
        f'/share-servers/{cloud.server_of(share)}/action',
        {'reset_status': {'status': 'error'}},
        expect=202,
    )
    clone = clone_of(cloud, snapshot)
    assert (clone['status'], clone['host']) == ('error', None)
    assert details(cloud) == ['004']
    cloud.check_invariants()
