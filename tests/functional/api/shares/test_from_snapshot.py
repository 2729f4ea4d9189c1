"""Shares are created from snapshots."""

import pytest

from manila_lite.db.queries.services import services
from tests.functional.api import snapshot_client
from tests.functional.api.access.access_client import allow_access, list_rules
from tests.functional.api.conftest import member_of
from tests.support.access import ShareRules

SPECS = {'snapshot_support': 'True', 'create_share_from_snapshot_support': 'True'}
WITH_SCHEDULER = 'use_scheduler_creating_share_from_snapshot = true'
TWO_ZONES = """
[alpha]
backend_availability_zone = east
replication_domain = domain
[beta]
backend_availability_zone = west
replication_domain = domain
"""
SLOW_COPY = 'dummy_driver_from_snapshot_steps = 2'
UNKNOWN = '00000000-0000-4000-8000-000000000000'


def create_copy_type(cloud, **more):
    """Create a share type whose snapshots can become shares."""
    cloud.api.request(
        'POST',
        '/types',
        {
            'share_type': {
                'name': 'copied',
                'extra_specs': {
                    'driver_handles_share_servers': 'False',
                    **SPECS,
                    **more,
                },
            }
        },
        expect=200,
    )


def source(cloud, content='precious', size=2, **body):
    """Create a share with content, and a snapshot of it."""
    share = cloud.create_share(share_type='copied', size=size, **body)
    driver, instance = driver_and_instance(cloud, share)
    driver.write(instance, content)
    return share, snapshot_client.create_available_snapshot(cloud, cloud.api, share)


def driver_and_instance(cloud, share_id):
    """Return the driver of a share and the id of its instance."""
    (instance,) = cloud.api.get(f'/shares/{share_id}/instances')['share_instances']
    _, _, backend = instance['host'].partition('@')
    return cloud.driver(backend.partition('#')[0]), instance['id']


def read(cloud, share_id):
    driver, instance = driver_and_instance(cloud, share_id)
    return driver.read(instance)


@pytest.fixture
def source_and_snapshot(cloud):
    create_copy_type(cloud)
    return source(cloud)


@pytest.mark.facts('add-create-share-from-snapshot-another-pool.2')
def test_copy_has_the_content_and_the_host_of_its_source(
    cloud, admin, member, source_and_snapshot
):
    share, snapshot = source_and_snapshot
    copied = member.create(snapshot_id=snapshot, size=None)
    assert (copied['status'], copied['size']) == ('creating', 2)
    assert copied['snapshot_id'] == snapshot
    cloud.settle()
    shown = admin.show(copied['id'])
    assert shown['status'] == 'available'
    assert shown['progress'] == '100%'
    assert shown['share_type_name'] == 'copied'
    for key in ('host', 'availability_zone', 'share_proto'):
        assert shown[key] == admin.show(share)[key]
    assert read(cloud, copied['id']) == 'precious'
    assert cloud.usage('gigabytes') == (4, 0)
    cloud.check_invariants()


@pytest.mark.facts('zfs-inherit')
def test_copy_has_no_rules_of_its_source(cloud, member, source_and_snapshot):
    share, snapshot = source_and_snapshot
    allow_access(member, share)
    cloud.settle()
    copied = member.create(snapshot_id=snapshot, size=None)['id']
    cloud.settle()
    assert list_rules(member, copied) == []
    assert ShareRules(cloud, copied).clients == {}
    assert ShareRules(cloud, share).clients == {'10.0.0.1': 'rw'}


def test_copy_may_be_larger_but_not_smaller(cloud, member, source_and_snapshot):
    _, snapshot = source_and_snapshot
    member.create(snapshot_id=snapshot, size=1, expect=400)
    member.create(snapshot_id=snapshot, size=5)
    cloud.settle()
    assert cloud.usage('gigabytes') == (7, 0)
    cloud.check_invariants()


def test_quota_holds(cloud, admin, member, source_and_snapshot):
    admin.request(
        'PUT', '/quota-sets/project', {'quota_set': {'shares': 1}}, expect=200
    )
    member.create(snapshot_id=source_and_snapshot[1], expect=413, size=2)


@pytest.mark.parametrize('wrong', [{'share_proto': 'CIFS'}, {'share_type': 'default'}])
def test_copy_has_protocol_and_type_of_its_source(member, source_and_snapshot, wrong):
    member.create(snapshot_id=source_and_snapshot[1], size=2, expect=400, **wrong)


def test_type_of_the_source_may_be_given(cloud, member, source_and_snapshot):
    member.create(snapshot_id=source_and_snapshot[1], size=2, share_type='copied')


@pytest.mark.facts('add-create-share-from-snapshot-another-pool.2')
def test_another_zone_is_refused(cloud, admin, member, source_and_snapshot):
    cloud.db.write(_second_zone)
    member.create(
        snapshot_id=source_and_snapshot[1],
        size=2,
        expect=400,
        availability_zone='second',
    )
    member.create(snapshot_id=source_and_snapshot[1], size=2, availability_zone='nova')


def _second_zone(session):
    services.get_or_create_zone_id(session, 'second')


@pytest.mark.parametrize('status', ['creating', 'error', 'deleting'])
def test_snapshot_must_be_available(admin, member, source_and_snapshot, status):
    admin.request(
        'POST',
        f'/snapshots/{source_and_snapshot[1]}/action',
        {'reset_status': {'status': status}},
        expect=202,
    )
    member.create(snapshot_id=source_and_snapshot[1], size=2, expect=400)


def test_snapshot_must_exist(member):
    member.create(snapshot_id=UNKNOWN, size=2, expect=404)


def test_foreign_snapshot_does_not_exist(cloud, source_and_snapshot):
    stranger = member_of(cloud, 'another')
    fault = stranger.create(snapshot_id=source_and_snapshot[1], expect=404)
    unknown = stranger.create(snapshot_id=UNKNOWN, expect=404)
    assert fault['itemNotFound']['message'].replace(source_and_snapshot[1], '') == (
        unknown['itemNotFound']['message'].replace(UNKNOWN, '')
    )


def test_source_must_support_it_from_2_24_on(cloud, admin, member):
    share = cloud.create_share(size=2)
    snapshot = snapshot_client.create_available_snapshot(cloud, cloud.api, share)
    member.create(snapshot_id=snapshot, size=2, expect=400)
    member.create(snapshot_id=snapshot, size=2, expect=400, version='2.24')
    member.create(snapshot_id=snapshot, size=2, version='2.23')


def test_snapshot_cannot_be_deleted_while_it_is_copied(
    cloud, admin, member, source_and_snapshot
):
    _, snapshot = source_and_snapshot
    member.create(snapshot_id=snapshot, size=2)
    path = f'/snapshots/{snapshot}'
    member.request('DELETE', path, expect=400)
    admin.request('POST', f'{path}/action', {'unmanage': None}, expect=403)
    assert admin.get(path)['snapshot']['status'] == 'available'
    cloud.settle()
    member.request('DELETE', path, expect=202)
    cloud.settle()
    cloud.check_invariants()


def test_force_deleted_snapshot_is_an_error(cloud, admin, member, source_and_snapshot):
    _, snapshot = source_and_snapshot
    copied = member.create(snapshot_id=snapshot, size=2)['id']
    driver, _ = driver_and_instance(cloud, source_and_snapshot[0])
    driver.fail_next('create_share_from_snapshot')
    admin.request(
        'POST', f'/snapshots/{snapshot}/action', {'force_delete': None}, expect=202
    )
    cloud.settle()
    assert admin.show(copied)['status'] == 'error'
    cloud.check_invariants()


def test_failure_is_reported(cloud, member, source_and_snapshot, fail_next_call):
    copied = member.create(snapshot_id=source_and_snapshot[1], size=2)['id']
    fail_next_call('create_share_from_snapshot')
    cloud.settle()
    assert member.show(copied)['status'] == 'error'
    (message,) = member.get('/messages')['messages']
    assert (message['action_id'], message['detail_id']) == ('002', '017')
    assert message['resource_id'] == copied


# Drivers that copy in the background


@pytest.fixture
def slow(build_cloud):
    cloud = build_cloud(backend_conf=SLOW_COPY)
    create_copy_type(cloud)
    return cloud


@pytest.mark.facts(
    'add-create-share-from-snapshot-another-pool.3',
    'add-create-share-from-snapshot-another-pool.4',
)
def test_copy_is_polled_until_it_is_available(slow):
    _, snapshot = source(slow)
    member = member_of(slow)
    copied = member.create(snapshot_id=snapshot, size=2)['id']
    while slow.step():
        pass
    shown = member.show(copied)
    assert shown['status'] == 'creating_from_snapshot'
    assert shown['progress'].endswith('%')
    assert shown['progress'] != '100%'
    assert member.show(copied, version='2.53')['status'] == 'creating'
    slow.settle()
    shown = member.show(copied)
    assert (shown['status'], shown['progress']) == ('available', '100%')
    assert read(slow, copied) == 'precious'
    assert member.get(f'/shares/{copied}/export_locations')['export_locations']
    slow.check_invariants()


def test_a_back_end_that_hangs_during_the_copy_keeps_no_worker(build_cloud):
    cloud = build_cloud(backend_conf=f'{SLOW_COPY}\n[recovery]\nquestion_timeout = 2')
    create_copy_type(cloud)
    _, snapshot = source(cloud)
    member = member_of(cloud)
    copied = member.create(snapshot_id=snapshot, size=2)['id']
    driver, _ = driver_and_instance(cloud, copied)
    hang = driver.hang_next('get_share_status')
    while cloud.step():
        pass  # the work is released while the call is pending
    assert hang.wait_reached()
    assert member.show(copied)['status'] == 'creating_from_snapshot'
    while member.show(copied)['status'] == 'creating_from_snapshot':
        cloud.clock.advance(2)
        cloud.run_pending()
    assert member.show(copied)['status'] == 'error'
    hang.release()
    cloud.check_invariants()


def test_failure_during_the_copy_is_reported(slow):
    _, snapshot = source(slow)
    member = member_of(slow)
    copied = member.create(snapshot_id=snapshot, size=2)['id']
    while slow.step():
        pass
    driver, instance = driver_and_instance(slow, copied)
    driver.set_error(instance)
    slow.settle()
    assert member.show(copied)['status'] == 'error'
    (message,) = member.get('/messages')['messages']
    assert message['detail_id'] == '017'
    slow.check_invariants()


def test_copy_in_progress_can_be_force_deleted(slow):
    _, snapshot = source(slow)
    copied = slow.api.create(snapshot_id=snapshot, size=2)['id']
    while slow.step():
        pass
    slow.api.delete(copied, expect=403)
    slow.api.act(copied, 'force_delete')
    slow.settle()
    slow.api.get(f'/shares/{copied}', expect=404)
    slow.check_invariants()


# Placed by the scheduler


def test_scheduler_prefers_the_back_end_of_the_source(build_cloud):
    cloud = build_cloud(WITH_SCHEDULER)
    create_copy_type(cloud)
    share, snapshot = source(cloud)
    copied = cloud.api.create(snapshot_id=snapshot, size=3)['id']
    assert cloud.api.show(copied)['host'] is None
    cloud.settle()
    shown = cloud.api.show(copied)
    assert shown['status'] == 'available'
    assert shown['host'] == cloud.api.show(share)['host']
    assert read(cloud, copied) == 'precious'
    cloud.check_invariants()


def test_unreachable_pool_is_reported(build_cloud):
    cloud = build_cloud(WITH_SCHEDULER)
    create_copy_type(cloud)
    share, snapshot = source(cloud)
    here = cloud.api.show(share)['host'].partition('@')[2]
    other = 'beta' if here.startswith('alpha') else 'alpha'
    copied = cloud.api.create(
        snapshot_id=snapshot,
        size=2,
        scheduler_hints={'only_host': f'node@{other}#pool'},
    )['id']
    cloud.settle()
    assert cloud.api.show(copied)['status'] == 'error'
    (message,) = cloud.api.get('/messages')['messages']
    assert message['detail_id'] == '016'
    cloud.check_invariants()


@pytest.mark.facts(
    'add-create-share-from-snapshot-another-pool.1',
    'add-create-share-from-snapshot-another-pool.5',
)
def test_copy_may_be_in_another_zone_of_the_replication_domain(build_cloud):
    cloud = build_cloud(WITH_SCHEDULER, backend_conf=TWO_ZONES)
    create_copy_type(cloud)
    share, snapshot = source(cloud, availability_zone='east')
    copied = cloud.api.create(snapshot_id=snapshot, size=3, availability_zone='west')[
        'id'
    ]
    cloud.settle()
    shown = cloud.api.show(copied)
    assert (shown['status'], shown['availability_zone']) == ('available', 'west')
    assert read(cloud, copied) == 'precious'
    cloud.check_invariants()
