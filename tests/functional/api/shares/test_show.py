"""Views of a single share."""

import pytest
import sqlalchemy as sa

from manila_lite.db.models import shares
from tests.functional.api.samples.replicas import insert_replica, make_replicable
from tests.support.cloud import TYPE_ID

INSTANCE = shares.ShareInstance.__table__


def test_any_administrator_sees_the_host(sample):
    assert sample.admin.show(sample.share)['host'].startswith('node@')
    assert 'host' not in sample.member.show(sample.share)


def test_share_type_becomes_the_id_at_2_6(sample):
    for version, expected in (('2.5', 'default'), ('2.6', TYPE_ID)):
        share = sample.member.show(sample.share, version=version)
        assert share['share_type'] == expected
        assert share['volume_type'] == 'default'


@pytest.mark.facts('task_state')
def test_task_state_is_null_before_any_migration(cloud, member):
    share = cloud.create_share()
    for version in ('2.5', '2.99'):
        assert member.show(share, version=version)['task_state'] is None
    assert 'task_state' not in member.show(share, version='2.4')


@pytest.mark.facts('has_replicas')
def test_has_replicas_with_two_or_more(sample):
    assert sample.member.show(sample.replicated_share)['has_replicas'] is True
    assert sample.member.show(sample.share)['has_replicas'] is False


STATUSES = pytest.mark.parametrize(
    'statuses',
    [
        ('migrating', 'available'),
        ('server_migrating', 'available'),
        ('available', 'error'),
        ('available', 'creating'),
        ('error', 'deleting'),
        ('error', 'error_deleting'),
        ('error_deleting', 'creating'),
    ],
)
SWAPPED = pytest.mark.parametrize('swapped', [False, True])


def displayed_status(cloud, api, share_id, instance_ids, statuses):
    """Return the status of a share whose instances have these statuses."""
    for id, status in zip(instance_ids, statuses, strict=True):
        update_instance(cloud, id, status=status)
    (share,) = api.get('/shares/detail')['shares']
    assert api.show(share_id)['status'] == share['status']
    return share['status']


def update_instance(cloud, instance_id, **columns):
    cloud.db.write(
        lambda session: session.run(
            sa.update(INSTANCE).where(INSTANCE.c.id == instance_id).values(**columns)
        )
    )


@STATUSES
@SWAPPED
def test_status_is_that_of_one_instance(cloud, member, statuses, swapped):
    """The first of the two statuses is that of the share."""
    share = cloud.create_share()
    instances = [make_replicable(cloud, share), insert_replica(cloud, share)]
    for one in instances:
        update_instance(cloud, one, replica_state=None, sole_active_of=None)
    order = reversed(statuses) if swapped else statuses
    assert displayed_status(cloud, member, share, instances, order) == statuses[0]


@STATUSES
@SWAPPED
def test_status_is_that_of_the_active_replica(cloud, member, statuses, swapped):
    share = cloud.create_share()
    instances = [make_replicable(cloud, share), insert_replica(cloud, share)]
    first, second = reversed(statuses) if swapped else statuses
    assert displayed_status(cloud, member, share, instances, (first, second)) == first


@pytest.mark.parametrize('status', ['available', 'error', 'reverting'])
def test_share_is_in_replication_change_during_a_promotion(cloud, member, status):
    share = cloud.create_share()
    instances = [make_replicable(cloud, share), insert_replica(cloud, share)]
    assert displayed_status(
        cloud, member, share, instances, (status, 'replication_change')
    ) == ('reverting' if status == 'reverting' else 'replication_change')


def test_share_in_the_recycle_bin_is_shown(cloud, member):
    share = cloud.create_share()
    member.act(share, 'soft_delete')
    assert member.show(share)['is_soft_deleted'] is True


def test_times_are_utc_with_microseconds(sample):
    created = sample.member.show(sample.share)['created_at']
    assert created.startswith('2027-01-15T0')
    assert len(created) == len('2027-01-15T08:00:00.000000')


def test_errors_name_version_and_request(sample):
    answer = sample.member.request('GET', '/shares/moon', version='2.42', expect=404)
    headers = answer.headers
    assert headers['X-OpenStack-Manila-API-Version'] == '2.42'
    assert headers['Vary'] == 'X-OpenStack-Manila-API-Version'
    assert headers['x-compute-request-id'].startswith('req-')
    assert headers['x-openstack-request-id'].startswith('req-')
