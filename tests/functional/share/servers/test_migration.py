"""Migration of a share server and everything on it."""

import shutil

import pytest

from tests.support.server_migrations import ServerMigrationCloud
from tests.support.snapshot_access import enable_snapshot_mounts


@pytest.fixture(scope='module')
def prepared(tmp_path_factory):
    """An image of a cloud: a server with two shares, a rule and a snapshot."""
    folder = tmp_path_factory.mktemp('moving')
    cloud = ServerMigrationCloud(folder)
    enable_snapshot_mounts(cloud)
    network = cloud.add_network()
    first = cloud.create_share_on_alpha(network, size=2, metadata={'key': 'value'})
    second = cloud.create_share_on_alpha(network, size=3)
    cloud.allow(first)
    cloud.snapshot(first)
    server = cloud.server_of(first)
    assert cloud.server_of(second) == server
    cloud.db.dispose()
    return folder, (server, first, second)


@pytest.fixture
def cloud(prepared, tmp_path):
    copy = tmp_path / 'cloud'
    shutil.copytree(prepared[0], copy)
    # With another seed, its ids are not those of the image once more.
    cloud = ServerMigrationCloud(copy, initialize=False, seed=1)
    cloud.restart()
    cloud.settle()  # its back ends are in another folder than before
    yield cloud
    cloud.db.dispose()


@pytest.fixture
def moved(prepared):
    """The server and the shares on it."""
    return prepared[1]


def test_migration_moves_everything_on_the_server(cloud, moved):
    server, first, second = moved
    before = cloud.exports(first)
    usage = cloud.usage('gigabytes'), cloud.usage('snapshot_gigabytes')
    rules = cloud.driver('alpha').access_inventory()
    cloud.start_to_phase1(server)
    assert cloud.exports(first) == before
    there = cloud.complete(server)['destination_share_server_id']
    cloud.settle()
    cloud.check_invariants()
    assert cloud.server(server, expect=404) is None
    found = cloud.server(there)
    assert found['status'] == 'active'
    assert found['host'] == 'node@beta'
    assert found['task_state'] == 'migration_success'
    assert found['source_share_server_id'] == server
    for share in (first, second):
        shown = cloud.api.show(share)
        assert shown['status'] == 'available'
        assert shown['host'] == 'node@beta#pool'
        assert shown['share_server_id'] == there
    assert cloud.api.show(first)['metadata'] == {'key': 'value'}
    assert not before & cloud.exports(first)
    assert cloud.driver('alpha').inventory() == {}
    assert cloud.driver('beta').access_inventory() == rules
    assert (cloud.usage('gigabytes'), cloud.usage('snapshot_gigabytes')) == usage
    assert cloud.has_no_incoming_servers()


@pytest.mark.facts('add-share-server-migration.2')
def test_shares_show_the_migration_of_their_server(cloud, moved):
    server, *shares = moved

    def statuses():
        return [cloud.api.show(share)['status'] for share in shares]

    for end in (cloud.cancel, cloud.complete):
        assert statuses() == ['available'] * 2
        cloud.start_to_phase1(server)
        assert statuses() == ['server_migrating'] * 2
        end(server)
        cloud.settle()
    assert statuses() == ['available'] * 2


def test_server_can_migrate_back(cloud, moved):
    server, first, second = moved
    for host in ('node@beta', 'node@alpha'):
        cloud.start_to_phase1(server, host=host)
        server = cloud.complete(server)['destination_share_server_id']
        cloud.settle()
        cloud.check_invariants()
        assert cloud.api.show(first)['host'] == f'{host}#pool'
        assert cloud.server(server)['status'] == 'active'
    assert cloud.driver('beta').server_inventory() == {}


def test_content_written_during_phase_one_is_migrated(cloud, moved):
    server, first, _ = moved
    cloud.start_to_phase1(server)
    id = cloud.instance(first).id
    cloud.driver('alpha').write(id, 'late')
    cloud.complete(server)
    cloud.settle()
    assert cloud.driver('beta').read(id) == 'late'


def test_nondisruptive_migration_keeps_addresses_and_exports(cloud, moved):
    server, first, _ = moved
    exports, addresses = cloud.exports(first), cloud.addresses()[server]
    cloud.start_to_phase1(server, nondisruptive=True)
    assert cloud.addresses() == {server: addresses}
    there = cloud.complete(server)['destination_share_server_id']
    cloud.settle()
    assert cloud.exports(first) == exports
    assert cloud.addresses() == {there: addresses}
    assert cloud.server(there)['status'] == 'active'
    assert cloud.driver('beta').inventory().keys() >= {cloud.instance(first).id}


def test_server_migrates_to_the_requested_network(cloud, moved):
    server, first, _ = moved
    network = cloud.add_network()
    cloud.start_to_phase1(server, new_share_network_id=network)
    there = cloud.complete(server)['destination_share_server_id']
    cloud.settle()
    cloud.check_invariants()
    assert cloud.server(there)['share_network_id'] == network
    assert cloud.api.show(first)['share_network_id'] == network


def test_driver_may_choose_an_existing_destination(cloud, moved):
    server, first, _ = moved
    cloud.disable('alpha', True)
    other = cloud.create_share_on_network(cloud.instance(first).share_network_id)
    cloud.disable('alpha', False)
    there = cloud.server_of(other)
    cloud.driver('beta').set_migration_target(there)
    cloud.start_to_phase1(server)
    assert cloud.server(there)['status'] == 'server_migrating_to'
    cloud.cancel(server)
    cloud.settle()
    cloud.check_invariants()
    assert cloud.server(there)['status'] == 'active'
    cloud.start_to_phase1(server)
    assert cloud.complete(server) == {'destination_share_server_id': there}
    cloud.settle()
    cloud.check_invariants()
    assert cloud.server_of(first) == cloud.server_of(other) == there


# The first phase

PHASE_ONE = [
    'share_server_migration_check_compatibility',
    '_setup_server',
    'share_server_migration_start',
    'share_server_migration_continue',
]


@pytest.mark.parametrize('writable', [True, False])
@pytest.mark.parametrize('method', PHASE_ONE)
def test_failure_in_phase_one_rolls_back(cloud, moved, method, writable):
    server, first, _ = moved
    before = cloud.state_summary()
    cloud.driver('beta').half_fail_next(method) if method not in (
        PHASE_ONE[0],
    ) else cloud.driver('beta').fail_next(method)
    cloud.start(server, writable=writable)
    cloud.settle()
    assert cloud.state_summary() == before
    cloud.check_invariants()
    assert cloud.server(server)['task_state'] == 'migration_error'
    assert cloud.progress(server)['task_state'] == 'migration_error'
    (migration,) = cloud.migrations()
    assert migration.open_for is None
    assert migration.error
    cloud.start_to_phase1(server)  # and it can be requested again
    cloud.complete(server)
    cloud.settle()
    cloud.check_invariants()


@pytest.mark.parametrize(
    'lacking', ['compatible', 'writable', 'nondisruptive', 'preserve_snapshots']
)
def test_unsupported_migration_fails_and_the_check_reports_it(cloud, moved, lacking):
    server, _, _ = moved
    before = cloud.state_summary()
    cloud.driver('beta').set_migration_capabilities(
        {'compatible', 'writable', 'nondisruptive', 'preserve_snapshots'} - {lacking}
    )
    wish = {'writable': True, 'nondisruptive': True}
    answer = cloud.check(server, **wish)
    assert answer['compatible'] is False
    assert len(answer['reasons']) == 1
    assert cloud.migrations() == []
    cloud.start(server, **wish)
    cloud.settle()
    assert cloud.state_summary() == before
    assert cloud.server(server)['task_state'] == 'migration_error'
    cloud.check_invariants()


def test_check_leaves_nothing_behind(cloud, moved):
    server, _, _ = moved
    before = cloud.state_summary()
    answer = cloud.check(server)
    assert answer == {
        'compatible': True,
        'requested_capabilities': {
            'writable': True,
            'nondisruptive': False,
            'host': 'node@beta',
            'preserve_snapshots': True,
            'share_network_id': None,
        },
        'supported_capabilities': {
            'writable': True,
            'nondisruptive': True,
            'preserve_snapshots': True,
            'migration_cancel': True,
            'migration_get_progress': True,
            'share_network_id': cloud.server(server)['share_network_id'],
        },
        'reasons': [],
    }
    assert cloud.state_summary() == before
    assert cloud.server(server)['task_state'] is None
    cloud.settle()
    cloud.check_invariants()


@pytest.mark.parametrize('phase_one_done', [True, False])
@pytest.mark.parametrize('wish', [{}, {'writable': False}, {'nondisruptive': True}])
def test_cancel_rolls_back(cloud, moved, wish, phase_one_done):
    server, _, _ = moved
    before = cloud.state_summary()
    cloud.driver('beta').configuration.override(
        {'dummy_driver_server_migration_steps': 3}
    )
    cloud.start(server, **wish)
    while cloud.server(server)['task_state'] != (
        'migration_driver_phase1_done'
        if phase_one_done
        else 'migration_driver_in_progress'
    ):
        cloud.clock.advance(3)
        cloud.step()
    cloud.cancel(server)
    assert cloud.server(server)['task_state'] == 'migration_cancel_in_progress'
    cloud.settle()
    assert cloud.state_summary() == before
    assert cloud.server(server)['task_state'] == 'migration_cancelled'
    assert cloud.has_no_incoming_servers()
    cloud.check_invariants()
    cloud.cancel(server, expect=400)
    cloud.complete(server, expect=400)


def test_cancel_is_refused_if_the_driver_does_not_support_it(cloud, moved):
    server, _, _ = moved
    cloud.driver('beta').set_migration_capabilities(
        {'compatible', 'writable', 'preserve_snapshots'}
    )
    cloud.start_to_phase1(server)
    cloud.cancel(server, expect=400)
    assert cloud.server(server)['task_state'] == ('migration_driver_phase1_done')


def test_failed_cancel_rolls_back(cloud, moved):
    server, _, _ = moved
    before = cloud.state_summary()
    cloud.start_to_phase1(server)
    cloud.driver('beta').fail_next('share_server_migration_cancel')
    cloud.cancel(server)
    cloud.settle()
    assert cloud.state_summary() == before
    assert cloud.server(server)['task_state'] == 'migration_error'


def test_rules_are_read_only_while_shares_are_copied(cloud, moved):
    server, first, _ = moved
    id = cloud.instance(first).id
    cloud.start(server, writable=False)
    seen = set()
    cloud.pause_at(
        'before share_server_migration_start',
        lambda: seen.add(frozenset(cloud.driver('alpha').access_inventory()[id])),
    )
    cloud.settle()
    assert seen == {frozenset({('ip', '10.1.1.1', 'ro')})}
    cloud.complete(server)
    cloud.settle()
    assert cloud.driver('beta').access_inventory()[id] == {('ip', '10.1.1.1', 'rw')}
    cloud.check_invariants()


def test_failed_cast_of_rules_fails_phase_one(cloud, moved):
    server, first, _ = moved
    before = cloud.state_summary()
    cloud.driver('alpha').refuse_rules(lambda verb, rule: rule['access_level'] == 'ro')
    cloud.start(server, writable=False)
    cloud.settle()
    assert cloud.server(server)['task_state'] == 'migration_error'
    assert cloud.state_summary() == before | {
        # A rule in error grants no access.
        'clients': [{}, {}]
    }


# The second phase


@pytest.mark.parametrize(
    'how, writable',
    [('fail_next', False), ('half_fail_next', False), ('lose_reply_next', True)],
)
def test_failure_in_phase_two_deletes_nothing(cloud, moved, how, writable):
    server, first, second = moved
    cloud.start_to_phase1(server, writable=writable)
    getattr(cloud.driver('beta'), how)('share_server_migration_complete')
    there = cloud.complete(server)['destination_share_server_id']
    cloud.settle()
    assert cloud.server(server)['status'] == 'error'
    assert cloud.server(server)['task_state'] == 'migration_error'
    assert cloud.server(there)['status'] == 'error'
    for share in (first, second):
        assert cloud.api.show(share)['status'] == 'error'
        assert cloud.instance(share).share_server_id == server
        assert not cloud.instance(share).cast_rules_to_readonly
    (snapshot,) = cloud.api.get('/snapshots/detail')['snapshots']
    assert snapshot['status'] == 'error'
    kept = set().union(*(cloud.driver(name).inventory() for name in ('alpha', 'beta')))
    assert kept == {cloud.instance(share).id for share in (first, second)}
    assert {server, there} == set(cloud.addresses())
    cloud.cancel(server, expect=400)
    cloud.complete(server, expect=400)


# Progress


def test_progress_is_unknown_or_as_reported(cloud, moved):
    server, _, _ = moved
    cloud.progress(server, expect=400)
    cloud.driver('beta').configuration.override(
        {'dummy_driver_server_migration_steps': 4}
    )
    cloud.start(server)
    found = cloud.progress(server)
    assert (found['total_progress'], found['last_heard_at']) == (None, None)
    assert found['task_state'] == 'migration_starting'
    assert found['destination_share_server_id'] == ''
    for _ in range(20):
        cloud.step()
    assert cloud.progress(server)['total_progress'] == 25
    cloud.driver('beta').fail_next('share_server_migration_get_progress')
    found = cloud.progress(server)
    assert found['total_progress'] == 25
    assert found['task_state'] == 'migration_driver_in_progress'
    assert found['phase'] == 1
    cloud.settle()
    assert cloud.progress(server)['total_progress'] == 100
    there = cloud.complete(server)['destination_share_server_id']
    assert cloud.progress(server)['phase'] == 2
    cloud.settle()
    assert cloud.server(server, expect=404) is None
    found = cloud.progress(server)
    assert found['task_state'] == 'migration_success'
    assert found['total_progress'] == 100
    assert found['destination_share_server_id'] == there
    cloud.progress('11111111-1111-1111-1111-111111111111', expect=404)


def test_progress_is_unknown_without_driver_support(cloud, moved):
    server, _, _ = moved
    cloud.driver('beta').set_migration_capabilities(
        {'compatible', 'writable', 'preserve_snapshots'}
    )
    cloud.driver('beta').configuration.override(
        {'dummy_driver_server_migration_steps': 4}
    )
    cloud.start(server)
    for _ in range(20):
        cloud.step()
    found = cloud.progress(server)
    assert found['total_progress'] is None
    assert found['last_heard_at'] is not None


def test_progress_of_a_back_end_that_has_died_is_the_last_known(cloud, moved):
    server, _, _ = moved
    cloud.driver('beta').configuration.override(
        {'dummy_driver_server_migration_steps': 4}
    )
    cloud.start(server)
    for _ in range(20):
        cloud.step()
    known = cloud.progress(server)
    assert known['last_heard_at'] is not None
    cloud.clock.advance(60)
    cloud.process.transport.silence('node@beta', cloud.clock.advance)
    asked_at = cloud.clock.now
    assert cloud.progress(server) == known
    assert 1 < cloud.clock.now - asked_at < 3


def test_check_reports_a_driver_failure(cloud, moved):
    server, _, _ = moved
    cloud.driver('beta').fail_next('share_server_migration_check_compatibility')
    answer = cloud.check(server)
    assert answer['compatible'] is False
    assert len(answer['reasons']) == 1
    assert cloud.server(server)['status'] == 'active'
