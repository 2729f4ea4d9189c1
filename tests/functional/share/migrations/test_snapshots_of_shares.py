"""Migrations of shares with their snapshots, by the driver."""

from functools import partial

import pytest

from tests.support import (
    cloud_snapshots as snapshots,
    sampling,
    share_migrations as migrations,
)
from tests.support.cloud import Cloud
from tests.support.concurrent_calls import status_codes

SEEDS = sampling.seeds(20, 2)
PRESERVE = {'preserve_snapshots': True}
CONTENT = ('first', 'second')


@pytest.fixture
def cloud(build_cloud):
    cloud = build_cloud(extra_conf=migrations.SHORT_POLL_INTERVAL)
    snapshots.enable_snapshot_features(cloud)
    yield cloud
    cloud.check_invariants()


@pytest.fixture
def share(cloud):
    return migrations.create_on_alpha(cloud, size=2)


@pytest.fixture
def taken(cloud, share):
    """Two snapshots with different content."""
    return [take(cloud, share, content) for content in CONTENT]


def take(cloud, share, content):
    cloud.driver('alpha').write(migrations.instance_of(cloud, share), content)
    return snapshots.create_available(cloud, share)


def to_phase1(cloud, share, **options):
    migrations.start(cloud, share, **PRESERVE | options)
    cloud.settle()
    assert migrations.task_state(cloud, share) == 'migration_driver_phase1_done'


def instances_of(cloud, snapshot):
    """Return id and status of the instances by their share instances."""
    found = cloud.api.request(
        'GET', f'/snapshot-instances/detail?snapshot_id={snapshot}', expect=200
    ).json['snapshot_instances']
    return {row['share_instance_id']: (row['id'], row['status']) for row in found}


def statuses(cloud, taken):
    return [snapshots.show(cloud, one)['status'] for one in taken]


def test_snapshots_move_with_their_share(cloud, share, taken):
    before = [instances_of(cloud, one) for one in taken]
    usage = cloud.usage('snapshots'), cloud.usage('snapshot_gigabytes')
    to_phase1(cloud, share)
    assert statuses(cloud, taken) == ['migrating'] * 2
    listed = cloud.api.get('/snapshots/detail')['snapshots']
    assert [one['status'] for one in listed] == ['migrating'] * 2
    for one, (source,) in zip(taken, before, strict=True):
        found = instances_of(cloud, one)
        assert found.pop(source)[1] == 'migrating'
        assert [status for _, status in found.values()] == ['migrating_to']
    migrations.complete(cloud, share)
    cloud.settle()
    assert cloud.api.show(share)['host'] == migrations.DESTINATION
    assert statuses(cloud, taken) == ['available'] * 2
    there = migrations.instance_of(cloud, share)
    for one, (source,) in zip(taken, before, strict=True):
        assert [*instances_of(cloud, one)] == [there] != [source]
    assert cloud.driver('alpha').snapshot_inventory() == {}
    assert len(cloud.driver('beta').snapshot_inventory()) == 2
    assert usage == (cloud.usage('snapshots'), cloud.usage('snapshot_gigabytes'))
    # They are used and deleted there as before.
    snapshots.revert(cloud, share, taken[1])
    cloud.settle()
    assert cloud.driver('beta').read(there) == CONTENT[1]
    for one in taken:
        snapshots.delete(cloud, one)
    cloud.settle()
    assert cloud.driver('beta').snapshot_inventory() == {}


def test_driver_gets_snapshots_of_both_sides(cloud, share, taken):
    given, driver = [], cloud.driver('alpha')
    start = driver.migration_start

    def watched(context, *args):
        given.append(args)
        return start(context, *args)

    driver.migration_start = watched
    to_phase1(cloud, share)
    ((source, destination, mine, mapped, *_),) = given
    assert {one['snapshot_id'] for one in mine} == set(taken)
    assert mapped.keys() == {one['id'] for one in mine}
    for one in mine:
        copy = mapped[one['id']]
        assert copy['snapshot_id'] == one['snapshot_id']
        assert copy['name'] == f'share-snapshot-{copy["id"]}'
        assert one['share']['id'] == source['id']
        assert copy['share']['id'] == destination['id']
        assert (one['status'], copy['status']) == ('migrating', 'migrating_to')


def test_provider_locations_of_the_reply_are_stored(cloud, share, taken):
    given, driver = [], cloud.driver('beta')
    delete = driver.delete_snapshot

    def watched(context, snapshot, **given_server):
        given.append(snapshot)
        return delete(context, snapshot, **given_server)

    driver.delete_snapshot = watched
    to_phase1(cloud, share)
    migrations.complete(cloud, share)
    cloud.settle()
    snapshots.delete(cloud, taken[0])
    cloud.settle()
    (one,) = given
    assert one['provider_location'] == one['name']


@pytest.mark.parametrize('end', ['cancel', 'fail', 'reset'])
def test_snapshots_are_as_before_if_the_first_phase_ends(cloud, share, taken, end):
    before = [instances_of(cloud, one) for one in taken]
    if end == 'fail':
        cloud.driver('alpha').fail_next('migration_continue')
        migrations.start(cloud, share, **PRESERVE)
    else:
        to_phase1(cloud, share)
    if end == 'cancel':
        migrations.cancel(cloud, share)
    elif end == 'reset':
        migrations.act(
            cloud, share, 'reset_task_state', {'task_state': 'migration_error'}
        )
    cloud.settle()
    assert cloud.api.show(share)['status'] == 'available'
    assert [instances_of(cloud, one) for one in taken] == before
    assert len(cloud.driver('alpha').snapshot_inventory()) == 2
    assert cloud.driver('beta').snapshot_inventory() == {}


def test_copies_that_could_not_be_removed_go_with_their_share(cloud, share, taken):
    before = [instances_of(cloud, one) for one in taken]
    to_phase1(cloud, share)
    cloud.driver('alpha').fail_next('migration_cancel')
    migrations.cancel(cloud, share)
    cloud.settle()
    assert [instances_of(cloud, one) for one in taken] == before
    rows = cloud.api.get(f'/shares/{share}/instances')['share_instances']
    (remains,) = (row['id'] for row in rows if row['status'] == 'error')
    cloud.api.request(
        'POST', f'/share_instances/{remains}/action', {'force_delete': None}, expect=202
    )
    cloud.settle()
    assert cloud.driver('beta').snapshot_inventory() == {}


def test_failed_second_phase_leaves_both_sides_in_error(cloud, share, taken):
    to_phase1(cloud, share)
    cloud.driver('alpha').fail_next('migration_complete')
    migrations.complete(cloud, share)
    cloud.settle()
    assert statuses(cloud, taken) == ['error'] * 2
    for one in taken:
        found = instances_of(cloud, one).values()
        assert [status for _, status in found] == ['error'] * 2


def test_nothing_else_is_done_with_snapshots_meanwhile(cloud, share, taken):
    one, other = taken
    to_phase1(cloud, share)
    snapshots.delete(cloud, one, expect=400)
    snapshots.act(cloud, one, 'force_delete', expect=403)
    snapshots.act(cloud, one, 'unmanage', expect=403)
    snapshots.act(cloud, one, 'reset_status', {'status': 'available'}, expect=400)
    snapshots.act(
        cloud,
        one,
        'allow_access',
        {'access_type': 'ip', 'access_to': '10.0.0.1'},
        expect=400,
    )
    snapshots.revert(cloud, share, other, expect=409)
    snapshots.create(cloud, share, expect=400)
    cloud.api.request(
        'POST',
        '/shares',
        {'share': {'share_proto': 'NFS', 'size': 2, 'snapshot_id': one}},
        expect=400,
    )
    for id, _ in instances_of(cloud, one).values():
        cloud.api.request(
            'POST',
            f'/snapshot-instances/{id}/action',
            {'reset_status': {'status': 'error'}},
            expect=400,
        )
    assert statuses(cloud, taken) == ['migrating'] * 2


def test_access_rules_of_snapshots_move_with_them(cloud, share, taken):
    rule = {'access_type': 'ip', 'access_to': '10.0.0.1'}
    snapshots.act(cloud, taken[0], 'allow_access', rule)
    cloud.settle()
    rules = access_list(cloud, taken[0])
    to_phase1(cloud, share)
    assert access_list(cloud, taken[0]) == rules
    migrations.complete(cloud, share)
    cloud.settle()
    assert access_list(cloud, taken[0]) == rules
    assert [rule['state'] for rule in rules] == ['active']
    there = migrations.instance_of(cloud, share)
    id, _ = instances_of(cloud, taken[0])[there]
    assert cloud.driver('beta').snapshot_access_inventory() == {
        id: {('ip', '10.0.0.1', 'ro')}
    }
    assert cloud.driver('alpha').snapshot_access_inventory() == {}


def access_list(cloud, snapshot):
    return cloud.api.get(f'/snapshots/{snapshot}/access-list')['snapshot_access_list']


def refused(cloud, share, **options):
    answer = migrations.start(cloud, share, expect=400, **options)
    assert cloud.api.show(share)['status'] == 'available'
    return answer.json['badRequest']['message']


def test_unsuitable_requests_are_refused(cloud, share, taken):
    assert 'preserve_snapshots' in refused(cloud, share)
    answer = migrations.start(
        cloud, share, expect=409, force_host_assisted_migration=True
    )
    assert 'preserve_snapshots' in answer.json['conflictingRequest']['message']
    assert 'preserve_snapshots' in refused(
        cloud, share, force_host_assisted_migration=True, **PRESERVE
    )
    assert statuses(cloud, taken) == ['available'] * 2


def test_share_with_a_snapshot_in_error_is_refused(cloud, share, taken):
    snapshots.act(cloud, taken[0], 'reset_status', {'status': 'error'})
    refused(cloud, share, **PRESERVE)
    assert statuses(cloud, taken) == ['error', 'available']


def test_rules_that_are_changing_are_waited_for(cloud, share, taken):
    rule = {'access_type': 'ip', 'access_to': '10.0.0.1'}
    snapshots.act(cloud, taken[0], 'allow_access', rule)
    assert 'access rules' in refused(cloud, share, **PRESERVE)
    cloud.settle()
    to_phase1(cloud, share)


@pytest.mark.parametrize(
    'offered', [{'compatible'}, {'writable', 'preserve_snapshots'}]
)
def test_driver_that_does_not_preserve_snapshots_migrates_nothing(
    cloud, share, taken, offered
):
    cloud.driver('alpha').set_share_migration_capabilities(offered)
    migrations.start(cloud, share, writable=False, **PRESERVE)
    cloud.settle()
    assert migrations.task_state(cloud, share) == 'migration_error'
    assert cloud.api.show(share)['status'] == 'available'
    assert statuses(cloud, taken) == ['available'] * 2
    assert cloud.driver('beta').inventory() == {}


def test_full_destination_leaves_snapshots_as_they_were(cloud, share, taken):
    migrations.set_disabled(cloud, 'beta', True)
    migrations.start(cloud, share, **PRESERVE)
    cloud.settle()
    assert migrations.task_state(cloud, share) == 'migration_error'
    assert statuses(cloud, taken) == ['available'] * 2


def test_share_that_is_there_already_keeps_its_snapshots(cloud, share, taken):
    host = cloud.api.show(share)['host']
    migrations.start(cloud, share, host=host, expect=200, **PRESERVE)
    assert statuses(cloud, taken) == ['available'] * 2


@sampling.dialects
@sampling.enumeration
@pytest.mark.parametrize('verb', ['create', 'delete'])
def test_migration_races_with_changes_of_snapshots(tmp_path, database_url, verb):
    cloud = Cloud(tmp_path, url=database_url, extra_conf=migrations.SHORT_POLL_INTERVAL)
    share = migrations.create_on_alpha(cloud)
    kept = snapshots.create_available(cloud, share)
    hosts = ['node@alpha#pool', migrations.DESTINATION]
    for seed in SEEDS:
        host = cloud.api.show(share)['host']
        (other,) = {*hosts} - {host}
        passing = snapshots.create_available(cloud, share)
        cloud.rng.seed(f'{verb} against migration {seed}')
        codes = status_codes(
            partial(
                migrations.start, cloud, share, host=other, expect=None, **PRESERVE
            ),
            partial(_request, cloud, verb, share, passing),
            rng=cloud.rng,
        )
        assert 202 in codes, (seed, codes)
        if verb == 'create':
            assert codes.count(202) == 1, (seed, codes)
        cloud.settle()
        if codes[0] == 202:
            migrations.complete(cloud, share)
            cloud.settle()
            assert cloud.api.show(share)['host'] == other
        cloud.check_invariants()
        assert snapshots.show(cloud, kept)['status'] == 'available'
    cloud.db.dispose()


def _request(cloud, verb, share, snapshot):
    if verb == 'delete':
        return snapshots.delete(cloud, snapshot, expect=None)
    return cloud.api.request(
        'POST', '/snapshots', {'snapshot': {'share_id': share}}, expect=None
    )
