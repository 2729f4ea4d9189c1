"""Migrations of shares on share servers, and to other share networks."""

from functools import partial

import pytest

from manila_lite.share.drivers.dummy import driver as dummy
from tests.support import network_migrations, sampling, share_migrations as migrations
from tests.support.api_client import ApiClient
from tests.support.cloud_images import prepared
from tests.support.concurrent_calls import status_codes
from tests.support.network_migrations import (
    COPY,
    DRIVER,
    FAR,
    PLAIN,
    NetworkMigrationCloud,
    instance_on,
    servers_on,
    shown_network,
)

ALPHA, BETA = 'node@alpha#pool', 'node@beta#pool'
WITH_LAST = 'delete_share_server_with_last_share = true\n'
NOWHERE = 'a0a0a0a0-0000-4000-8000-000000000000'
WAYS = pytest.mark.parametrize('options', [DRIVER, COPY], ids=['driver', 'copy'])


@pytest.fixture
def build(build_cloud):
    return partial(build_cloud, kind=NetworkMigrationCloud)


@pytest.fixture
def cloud(build):
    return build()


@pytest.fixture
def network(cloud):
    return cloud.add_network()


@pytest.fixture
def share(cloud, network):
    return network_migrations.create(cloud, network)


@prepared
def to_phase1(cloud, share, **options):
    migrations.start(cloud, share, **options)
    cloud.settle()
    assert migrations.task_state(cloud, share) in (
        'migration_driver_phase1_done',
        'data_copying_completed',
    )
    cloud.check_invariants()


def complete(cloud, share):
    migrations.complete(cloud, share)
    cloud.settle()
    assert migrations.task_state(cloud, share) == 'migration_success'
    assert cloud.api.show(share)['status'] == 'available'
    cloud.check_invariants()


def check_unchanged(cloud, share, before, state):
    shown = cloud.api.show(share)
    assert (shown['status'], shown['task_state']) == ('available', state)
    changing = {'updated_at', 'task_state'}
    assert {one for one in shown if shown[one] != before[one]} <= changing
    assert len(migrations.instances(cloud, share)) == 1
    assert cloud.driver('beta').inventory() == {}
    assert {
        level
        for rules in cloud.driver('alpha').access_inventory().values()
        for _, _, level in rules
    } == {'rw'}
    cloud.check_invariants()


# The ways of a share


@WAYS
def test_a_share_moves_to_a_share_server_of_the_destination(
    cloud, network, share, options
):
    source = cloud.server_of(share)
    to_phase1(cloud, share, **options)
    copy = instance_on(cloud, 'beta')
    assert copy.share_network_id == network
    assert servers_on(cloud, 'beta') == {copy.share_server_id}
    complete(cloud, share)
    shown = cloud.api.show(share)
    assert shown['host'] == BETA
    assert shown['share_network_id'] == network
    assert shown['share_server_id'] == copy.share_server_id
    assert dummy.servers_of_shares(cloud.folder / 'dummy' / 'beta') == {
        copy.id: copy.share_server_id
    }
    addresses = cloud.addresses()[copy.share_server_id]
    paths = {
        one['path']
        for one in cloud.api.get(f'/shares/{share}/export_locations')[
            'export_locations'
        ]
    }
    assert any(path.startswith(tuple(addresses)) for path in paths)
    assert cloud.driver('alpha').inventory() == {}
    assert cloud.driver('beta').access_inventory() == {
        copy.id: {('ip', '10.1.1.1', 'rw')}
    }
    (left,) = [row for row in cloud.servers() if row.id == source]
    assert (left.status, left.idle_since is None) == ('active', False)


@WAYS
@pytest.mark.parametrize('host', [ALPHA, BETA])
@pytest.mark.facts('newton-migration.4')
def test_a_share_moves_to_another_network(cloud, share, options, host):
    other = cloud.add_network()
    before = shown_network(cloud, share)
    to_phase1(cloud, share, host=host, new_share_network_id=other, **options)
    assert shown_network(cloud, share) == before
    complete(cloud, share)
    assert shown_network(cloud, share) == other
    assert cloud.api.show(share)['host'] == host
    (server,) = [row for row in cloud.servers() if row.id == cloud.server_of(share)]
    assert server.share_network_id == other
    cloud.api.request('DELETE', f'/share-networks/{before}', expect=202)
    cloud.api.request('DELETE', f'/share-networks/{other}', expect=409)
    cloud.settle()
    cloud.check_invariants()


def test_a_suitable_server_of_the_destination_is_used(cloud, network, share):
    migrations.set_disabled(cloud, 'alpha', True)
    neighbour = cloud.create_share_on_network(network)
    migrations.set_disabled(cloud, 'alpha', False)
    assert cloud.api.show(neighbour)['host'] == BETA
    to_phase1(cloud, share)
    assert len(cloud.servers()) == 2
    complete(cloud, share)
    assert cloud.server_of(share) == cloud.server_of(neighbour)


@pytest.mark.facts('LP1920942')
@pytest.mark.parametrize('nondisruptive', [True, False])
def test_a_share_stays_on_its_server_if_clients_must_not_notice(build, nondisruptive):
    """Even on one that has more shares than it may now."""
    cloud = build(backend_conf='dummy_driver_pools = one,two\n')
    network = cloud.add_network()
    migrations.set_disabled(cloud, 'beta', True)
    first, share = (cloud.create_share_on_network(network) for _ in range(2))
    server = cloud.server_of(share)
    assert cloud.server_of(first) == server
    cloud.configure(
        backend_conf='dummy_driver_pools = one,two\nmax_shares_per_share_server = 1\n'
    )
    cloud.restart()
    cloud.settle()
    host, _, pool = cloud.api.show(share)['host'].partition('#')
    (other,) = {'one', 'two'} - {pool}
    migrations.start(cloud, share, host=f'{host}#{other}', nondisruptive=nondisruptive)
    cloud.settle()
    complete(cloud, share)
    assert cloud.api.show(share)['host'] == f'{host}#{other}'
    assert (cloud.server_of(share) == server) is nondisruptive
    assert len(cloud.servers()) == 2 - nondisruptive


@WAYS
def test_a_type_without_share_servers_takes_the_network_away(cloud, share, options):
    plain = migrations.create_type(cloud, 'plain')
    to_phase1(cloud, share, host=PLAIN, new_share_type_id=plain, **options)
    complete(cloud, share)
    shown = cloud.api.show(share)
    assert (shown['host'], shown['share_type']) == (PLAIN, plain)
    assert shown['share_network_id'] is None
    assert shown['share_server_id'] is None


@WAYS
def test_a_type_with_share_servers_needs_a_network(cloud, network, options):
    share = network_migrations.create_plain(cloud)
    default = cloud.api.get('/types/default')['share_type']['id']
    answer = migrations.start(cloud, share, new_share_type_id=default, expect=400)
    assert 'new_share_network_id' in answer.json['badRequest']['message']
    to_phase1(
        cloud, share, new_share_type_id=default, new_share_network_id=network, **options
    )
    complete(cloud, share)
    assert shown_network(cloud, share) == network
    assert cloud.server_of(share) in servers_on(cloud, 'beta')
    assert cloud.usage('shares') == (1, 0)


@pytest.mark.parametrize('named', [True, False])
def test_a_share_that_is_there_already_stays(cloud, network, share, named):
    migrations.start(
        cloud,
        share,
        host=ALPHA,
        new_share_network_id=network if named else None,
        expect=200,
    )
    assert cloud.api.show(share)['status'] == 'available'


def test_the_driver_gets_both_share_servers(build, monkeypatch):
    cloud = build(backend_conf='dummy_driver_share_migration_steps = 2\n')
    share = network_migrations.create(cloud, cloud.add_network())
    source, seen = cloud.server_of(share), {}
    driver = cloud.driver('alpha')

    def record(name):
        method = getattr(driver, name)

        def call(*args):
            seen[name] = [
                one and (one['id'], one['host'], one['status']) for one in args[-2:]
            ]
            return method(*args)

        monkeypatch.setattr(driver, name, call)

    names = [
        'migration_check_compatibility',
        'migration_start',
        'migration_continue',
        'migration_cancel',
        'migration_get_progress',
        'migration_complete',
    ]
    for name in names:
        record(name)
    to_phase1(cloud, share)
    destination = instance_on(cloud, 'beta').share_server_id
    migrations.cancel(cloud, share)
    cloud.settle()
    to_phase1(cloud, share)
    assert instance_on(cloud, 'beta').share_server_id == destination
    complete(cloud, share)
    assert seen == dict.fromkeys(
        names, [(source, 'node@alpha', 'active'), (destination, 'node@beta', 'active')]
    )


# Share servers that are no longer used


@WAYS
def test_the_server_of_the_source_is_deleted_with_its_last_share(build, options):
    cloud = build(extra_conf=WITH_LAST)
    share = network_migrations.create(cloud, cloud.add_network())
    to_phase1(cloud, share, **options)
    complete(cloud, share)
    cloud.settle()
    assert servers_on(cloud, 'alpha') == set()
    assert servers_on(cloud, 'beta') == {cloud.server_of(share)}
    cloud.check_invariants()


@WAYS
def test_the_server_of_a_cancelled_migration_is_deleted(build, options):
    cloud = build(extra_conf=WITH_LAST)
    share = network_migrations.create(cloud, cloud.add_network())
    before = cloud.api.show(share)
    to_phase1(cloud, share, **options)
    migrations.cancel(cloud, share)
    cloud.settle()
    check_unchanged(cloud, share, before, 'migration_cancelled')
    assert servers_on(cloud, 'beta') == set()
    assert [row.id for row in cloud.servers()] == [cloud.server_of(share)]


@WAYS
def test_the_server_of_a_cancelled_migration_becomes_idle(cloud, share, options):
    before = cloud.api.show(share)
    to_phase1(cloud, share, **options)
    server = instance_on(cloud, 'beta').share_server_id
    migrations.cancel(cloud, share)
    cloud.settle()
    check_unchanged(cloud, share, before, 'migration_cancelled')
    (left,) = [row for row in cloud.servers() if row.id == server]
    assert (left.status, left.idle_since is None) == ('active', False)


# Failures


@WAYS
@pytest.mark.parametrize('fail', ['fail_next', 'half_fail_next'])
def test_a_server_that_cannot_be_set_up_ends_the_migration(cloud, share, options, fail):
    before = cloud.api.show(share)
    getattr(cloud.driver('beta'), fail)('_setup_server')
    migrations.start(cloud, share, **options)
    cloud.settle()
    check_unchanged(cloud, share, before, 'migration_error')
    (message,) = cloud.api.get('/messages')['messages']
    assert message['resource_id'] == share
    statuses = {row.host: row.status for row in cloud.servers()}
    assert statuses == {'node@alpha': 'active', 'node@beta': 'error'}
    to_phase1(cloud, share, **options)
    complete(cloud, share)


@pytest.mark.parametrize('method', ['migration_start', 'migration_continue'])
def test_what_a_failed_first_phase_has_copied_is_removed(cloud, share, method):
    before = cloud.api.show(share)
    cloud.driver('alpha').fail_next(method)
    migrations.start(cloud, share)
    cloud.settle()
    check_unchanged(cloud, share, before, 'migration_error')


def test_a_driver_that_cannot_do_it_leaves_no_server_in_use(build):
    cloud = build(extra_conf=WITH_LAST)
    share = network_migrations.create(cloud, cloud.add_network())
    before = cloud.api.show(share)
    cloud.driver('alpha').set_share_migration_capabilities(())
    migrations.start(cloud, share)  # writable, so nothing else can do it
    cloud.settle()
    check_unchanged(cloud, share, before, 'migration_error')
    assert servers_on(cloud, 'beta') == set()


def test_the_data_service_copies_if_the_driver_cannot(cloud, share):
    cloud.driver('alpha').set_share_migration_capabilities(())
    to_phase1(cloud, share, writable=False)
    assert migrations.task_state(cloud, share) == 'data_copying_completed'
    complete(cloud, share)


def test_a_destination_without_share_servers_is_no_place(cloud, share):
    before = cloud.api.show(share)
    cloud.add_subnet(before['share_network_id'], FAR)
    migrations.start(cloud, share, host=PLAIN)
    cloud.settle()
    check_unchanged(cloud, share, before, 'migration_error')


@pytest.mark.parametrize('options', [DRIVER, COPY], ids=['driver', 'copy'])
@pytest.mark.parametrize('where', ['before setup_server', 'after setup_server'])
def test_a_reset_while_the_server_is_set_up_ends_the_migration(build, options, where):
    cloud = build(extra_conf=WITH_LAST)
    share = network_migrations.create(cloud, cloud.add_network())
    before = cloud.api.show(share)
    cloud.pause_at(
        where,
        lambda: migrations.act(
            cloud, share, 'reset_task_state', {'task_state': 'migration_error'}
        ),
    )
    migrations.start(cloud, share, **options)
    cloud.settle()
    assert not cloud.pending_pauses
    check_unchanged(cloud, share, before, 'migration_error')


# What is refused


def check_refused(cloud, share, word, expect=400, **options):
    before = cloud.api.show(share)
    answer = migrations.start(cloud, share, expect=expect, **options)
    assert word in str(answer.json)
    assert cloud.api.show(share) == before
    cloud.check_invariants()


def test_a_network_that_does_not_exist_is_refused(cloud, share):
    check_refused(cloud, share, 'new_share_network_id', new_share_network_id=NOWHERE)


def create_network_of_another_project(cloud):
    return (
        ApiClient(cloud, project='another')
        .request('POST', '/share-networks', {'share_network': {}}, expect=200)
        .json['share_network']['id']
    )


def test_a_network_of_another_project_is_refused(cloud, share):
    theirs = create_network_of_another_project(cloud)
    check_refused(cloud, share, 'another project', new_share_network_id=theirs)


def test_users_cannot_tell_networks_of_others_from_unknown_ones(build, tmp_path):
    rules = tmp_path / 'rules.yaml'
    rules.write_text('"share:migration_start": "role:member"\n')
    cloud = build(f'[oslo_policy]\npolicy_file = {rules}\n')
    share = network_migrations.create(cloud, cloud.add_network())
    theirs = create_network_of_another_project(cloud)
    cloud.api.headers['X-Roles'] = 'member,reader'
    theirs, unknown = (
        migrations.start(cloud, share, new_share_network_id=id, expect=400)
        .json['badRequest']['message']
        .replace(id, '')
        for id in (theirs, NOWHERE)
    )
    assert theirs == unknown


def test_a_network_without_a_subnet_for_the_zone_is_refused(cloud, share):
    far = cloud.add_network(FAR)
    check_refused(cloud, share, 'subnet', new_share_network_id=far)


def test_a_network_for_a_type_without_share_servers_is_refused(cloud, network):
    share = network_migrations.create_plain(cloud)
    check_refused(cloud, share, 'new_share_network_id', new_share_network_id=network)


@pytest.mark.parametrize('which', ['source', 'destination'])
def test_a_network_that_is_not_active_is_refused(cloud, network, share, which):
    other = cloud.add_network()
    cloud.api.request(
        'POST',
        f'/share-networks/{network if which == "source" else other}/action',
        {'reset_status': {'status': 'error'}},
        expect=202,
    )
    check_refused(cloud, share, 'active', new_share_network_id=other)


def test_a_share_server_that_is_not_active_is_refused(cloud, share):
    cloud.api.request(
        'POST',
        f'/share-servers/{cloud.server_of(share)}/action',
        {'reset_status': {'status': 'error'}},
        expect=202,
    )
    check_refused(cloud, share, 'share server')


# What a migration needs stays as it is


def delete_network(cloud, network, expect=None):
    return cloud.api.request('DELETE', f'/share-networks/{network}', expect=expect)


def delete_subnet(cloud, network, expect=None):
    (subnet,) = cloud.api.get(f'/share-networks/{network}/subnets')[
        'share_network_subnets'
    ]
    return cloud.api.request(
        'DELETE', f'/share-networks/{network}/subnets/{subnet["id"]}', expect=expect
    )


@pytest.mark.parametrize('placed', [False, True])
@pytest.mark.parametrize('remove', [delete_network, delete_subnet])
def test_the_network_of_a_running_migration_is_not_deleted(
    cloud, share, placed, remove
):
    other = cloud.add_network()
    migrations.start(cloud, share, new_share_network_id=other)
    if placed:
        cloud.settle()
    remove(cloud, other, expect=409)
    cloud.settle()
    migrations.cancel(cloud, share)
    cloud.settle()
    remove(cloud, other, expect=202)
    cloud.settle()
    cloud.check_invariants()


def test_the_network_of_a_running_migration_is_not_changed(cloud, share):
    other = cloud.add_network()
    migrations.start(cloud, share, new_share_network_id=other)
    ids = {'neutron_net_id': NOWHERE, 'neutron_subnet_id': NOWHERE}
    cloud.api.request(
        'PUT', f'/share-networks/{other}', {'share_network': ids}, expect=403
    )
    cloud.settle()
    complete(cloud, share)


def create_service(cloud, name):
    return cloud.api.request(
        'POST',
        '/security-services',
        {'security_service': {'type': 'ldap', 'name': name}},
        expect=200,
    ).json['security_service']['id']


def test_the_security_services_of_a_running_migration_stay(cloud, share):
    other = cloud.add_network()
    first, second = (create_service(cloud, name) for name in ('one', 'two'))

    def change(action, expect, **ids):
        cloud.api.request(
            'POST',
            f'/share-networks/{other}/action',
            {action: ids},
            expect=expect,
            version='2.99',
        )

    change('add_security_service', 200, security_service_id=first)
    migrations.start(cloud, share, new_share_network_id=other)
    change('add_security_service', 400, security_service_id=second)
    change(
        'update_security_service', 400, current_service_id=first, new_service_id=second
    )
    change('remove_security_service', 403, security_service_id=first)
    cloud.settle()
    complete(cloud, share)


@pytest.mark.parametrize('which', ['source', 'destination'])
def test_the_servers_of_a_running_migration_are_not_deleted(cloud, share, which):
    server = cloud.server_of(share)
    to_phase1(cloud, share)
    if which == 'destination':
        server = instance_on(cloud, 'beta').share_server_id
    cloud.api.request('DELETE', f'/share-servers/{server}', expect=409)
    cloud.api.request(
        'POST',
        f'/share-servers/{server}/action',
        {
            'migration_start': {
                'host': 'node@alpha' if which == 'destination' else 'node@beta',
                'writable': True,
                'nondisruptive': False,
                'preserve_snapshots': True,
            }
        },
        expect=409,
        version='2.99',
    )
    complete(cloud, share)


@sampling.dialects
@pytest.mark.parametrize('remove', [delete_network, delete_subnet])
@pytest.mark.parametrize('round', range(3))
def test_of_a_migration_and_a_deletion_of_its_network_one_is_accepted(
    database_url, tmp_path, remove, round
):
    cloud = NetworkMigrationCloud(tmp_path, url=database_url, seed=round)
    share = network_migrations.create(cloud, cloud.add_network())
    other = cloud.add_network()
    codes = status_codes(
        partial(
            migrations.start, cloud, share, new_share_network_id=other, expect=None
        ),
        partial(remove, cloud, other),
        rng=cloud.rng,
    )
    assert sorted(codes) in ([202, 400], [202, 409])
    cloud.settle()
    shown = cloud.api.show(share)
    if codes[0] == 202:
        assert shown['task_state'] == 'migration_driver_phase1_done'
        complete(cloud, share)
        assert shown_network(cloud, share) == other
    else:
        assert shown['status'] == 'available'
    cloud.check_invariants()
    cloud.db.dispose()


def start_server_migration(cloud, server):
    return cloud.api.request(
        'POST',
        f'/share-servers/{server}/action',
        {
            'migration_start': {
                'host': 'node@beta',
                'writable': True,
                'nondisruptive': False,
                'preserve_snapshots': True,
            }
        },
        version='2.99',
    )


@sampling.dialects
@pytest.mark.parametrize('round', range(3))
def test_of_a_migration_of_a_share_and_of_its_server_one_is_accepted(
    database_url, tmp_path, round
):
    cloud = NetworkMigrationCloud(tmp_path, url=database_url, seed=round)
    share = network_migrations.create(cloud, cloud.add_network())
    codes = status_codes(
        partial(migrations.start, cloud, share, expect=None),
        partial(start_server_migration, cloud, cloud.server_of(share)),
        rng=cloud.rng,
    )
    assert sorted(codes) in ([202, 400], [202, 409])
    cloud.settle()
    shown = cloud.api.show(share)
    assert shown['status'] == ('migrating' if codes[0] == 202 else 'server_migrating')
    cloud.db.dispose()
