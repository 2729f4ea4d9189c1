"""Replicas are deleted, promoted, resynced and reset."""

import pytest
import sqlalchemy as sa

from manila_lite.db.models import shares
from tests.functional.api.replica_client import (
    act_on_replica,
    delete_replica,
    list_replica_ids,
    show_replica,
)
from tests.functional.api.samples.cloud import pending_work_kinds
from tests.functional.api.samples.replicas import insert_replica, make_replicable
from tests.support.cloud_images import prepared

INSTANCE = shares.ShareInstance.__table__


@pytest.fixture
@prepared
def share(cloud, member):
    share_id = member.create()['id']
    cloud.settle()
    make_replicable(cloud, share_id)
    return share_id


@pytest.fixture
def active(member, share):
    (one,) = list_replica_ids(member)
    return one


@pytest.fixture
def replica(cloud, share):
    return insert_replica(cloud, share)


def update_instance(cloud, replica_id, **columns):
    cloud.db.write(
        lambda session: session.run(
            sa.update(INSTANCE).where(INSTANCE.c.id == replica_id).values(**columns)
        )
    )


def pending_work(cloud):
    return [kind.partition('.')[2] for kind in cloud.db.read(pending_work_kinds)]


# Deleting


@pytest.mark.facts('share-replication')
def test_passive_replica_is_deleted(cloud, member, share, replica):
    delete_replica(member, replica)
    assert show_replica(member, replica)['status'] == 'deleting'
    assert pending_work(cloud) == ['delete_share_replica']


@pytest.mark.facts('share-replicas.1')
@pytest.mark.parametrize('action', ['delete', 'force_delete'])
def test_last_active_replica_is_not_deleted(
    cloud, admin, member, active, replica, action
):
    if action == 'delete':
        delete_replica(member, active, expect=400)
    else:
        act_on_replica(admin, active, action, expect=400)
    assert show_replica(member, active)['status'] == 'available'
    assert pending_work(cloud) == []


def test_active_replica_can_be_deleted_if_another_is_active(
    cloud, member, share, active
):
    make_replicable(cloud, share, 'writable')
    other = insert_replica(cloud, share, replica_state='active')
    delete_replica(member, active)
    delete_replica(member, other, expect=400)


@pytest.mark.parametrize(
    'status, code',
    [
        ('available', 202),
        ('error', 202),
        ('creating', 400),
        ('deleting', 400),
        ('replication_change', 400),
    ],
)
def test_replica_is_deleted_at_rest_only(cloud, member, replica, status, code):
    update_instance(cloud, replica, status=status)
    delete_replica(member, replica, expect=code)


@pytest.mark.facts('force_delete')
def test_force_delete_is_for_administrators_in_any_status(
    cloud, admin, member, replica
):
    update_instance(cloud, replica, status='error_deleting')
    act_on_replica(member, replica, 'force_delete', expect=403)
    act_on_replica(admin, replica, 'force_delete')
    assert pending_work(cloud) == ['delete_share_replica']


def test_unplaced_replica_is_deleted_at_once(cloud, member, replica):
    update_instance(cloud, replica, status='error', host=None)
    delete_replica(member, replica)
    member.get(f'/share-replicas/{replica}', expect=404)
    assert pending_work(cloud) == []


# Promoting


@pytest.mark.parametrize(
    'version, body',
    [
        ('2.56', None),
        ('2.74', {'quiesce_wait_time': 'ignored'}),
        ('2.75', {'quiesce_wait_time': 5}),
        ('2.99', None),
        ('2.99', {}),
        ('2.99', {'quiesce_wait_time': '5'}),
    ],
)
def test_promotion_is_answered_with_the_replica(cloud, member, replica, version, body):
    answer = act_on_replica(member, replica, 'promote', body, version=version)
    shown = answer.json['share_replica']
    assert (shown['id'], shown['status'], shown['replica_state']) == (
        replica,
        'replication_change',
        'in_sync',
    )
    assert pending_work(cloud) == ['promote_share_replica']


@pytest.mark.facts('share_replica_quiesce_wait_time')
@pytest.mark.parametrize('wait', [0, -1, 'x', 1.5, None, [], True])
def test_invalid_quiesce_wait_time_is_refused(cloud, member, replica, wait):
    act_on_replica(member, replica, 'promote', {'quiesce_wait_time': wait}, expect=400)
    assert pending_work(cloud) == []


@pytest.mark.facts('share-replicas.2')
def test_promotion_of_the_active_replica_does_nothing(cloud, member, active, replica):
    answer = act_on_replica(member, active, 'promote', expect=200)
    assert answer.body == b''
    assert pending_work(cloud) == []


@pytest.mark.parametrize('state', ['out_of_sync', 'error'])
def test_only_administrators_promote_replicas_out_of_sync(
    cloud, admin, member, replica, state
):
    update_instance(cloud, replica, replica_state=state)
    act_on_replica(member, replica, 'promote', expect=403)
    act_on_replica(admin, replica, 'promote')


def test_one_promotion_at_a_time(cloud, member, share, replica):
    other = insert_replica(cloud, share)
    act_on_replica(member, replica, 'promote')
    for one in (replica, other):
        act_on_replica(member, one, 'promote', expect=400)
    assert pending_work(cloud) == ['promote_share_replica']


@pytest.mark.parametrize('status', ['error', 'creating', 'deleting'])
def test_promoted_replica_must_be_available(cloud, admin, replica, status):
    update_instance(cloud, replica, status=status)
    act_on_replica(admin, replica, 'promote', expect=400)


def test_writable_replicas_are_not_promoted(cloud, admin, share):
    make_replicable(cloud, share, 'writable')
    replica = insert_replica(cloud, share, replica_state='out_of_sync')
    act_on_replica(admin, replica, 'promote', expect=400)


# Resyncing


@pytest.mark.facts('share-replication')
def test_only_administrators_request_a_resync(cloud, admin, member, replica):
    act_on_replica(member, replica, 'resync', expect=403)
    act_on_replica(admin, replica, 'resync')
    assert pending_work(cloud) == ['update_share_replica']


def test_resync_of_the_active_replica_does_nothing(cloud, admin, active, replica):
    assert act_on_replica(admin, active, 'resync', expect=200).body == b''
    assert pending_work(cloud) == []


# Resets


@pytest.mark.parametrize(
    'action, field, value',
    [
        ('reset_status', 'status', 'error'),
        ('reset_replica_state', 'replica_state', 'out_of_sync'),
        ('reset_replica_state', 'replica_state', 'error'),
    ],
)
def test_administrators_reset_status_and_replica_state(
    admin, member, replica, action, field, value
):
    act_on_replica(member, replica, action, {field: value}, expect=403)
    act_on_replica(admin, replica, action, {field: value})
    assert show_replica(member, replica)[field] == value


@pytest.mark.parametrize(
    'action, body',
    [
        ('reset_status', {'status': 'moon'}),
        ('reset_status', {}),
        ('reset_status', {'replica_state': 'error'}),
        ('reset_status', None),
        ('reset_replica_state', {'replica_state': 'moon'}),
        ('reset_replica_state', {'replica_state': None}),
        ('reset_replica_state', {}),
        ('moon', None),
    ],
)
def test_invalid_reset_is_refused(admin, replica, action, body):
    act_on_replica(admin, replica, action, body, expect=400)


@pytest.mark.facts('LP2015328')
@pytest.mark.parametrize('state', ['in_sync', 'out_of_sync', 'error', 'active'])
def test_state_of_the_active_replica_cannot_be_reset(admin, active, replica, state):
    act_on_replica(
        admin, active, 'reset_replica_state', {'replica_state': state}, expect=400
    )
    assert show_replica(admin, active)['replica_state'] == 'active'


def test_reset_cannot_make_a_second_active_replica(admin, active, replica):
    act_on_replica(
        admin, replica, 'reset_replica_state', {'replica_state': 'active'}, expect=400
    )


def test_reset_of_the_replica_state_requires_both_policies(build_cloud, tmp_path):
    rules = tmp_path / 'rules.yaml'
    rules.write_text('"share_replica:reset_replica_state": "role:member"\n')
    cloud = build_cloud(f'[oslo_policy]\npolicy_file = {rules}\n')
    share_id = cloud.create_share()
    make_replicable(cloud, share_id)
    replica = insert_replica(cloud, share_id)
    cloud.api.headers['X-Roles'] = 'member,reader'
    act_on_replica(
        cloud.api,
        replica,
        'reset_replica_state',
        {'replica_state': 'error'},
        expect=403,
    )


# Shares with replicas


@pytest.mark.facts(
    'LP-unmanage-preconditions', 'shares.delete', 'share-actions.softdelete.2'
)
@pytest.mark.parametrize('action', ['soft_delete', 'force_delete', 'unmanage'])
def test_share_with_replicas_is_not_deleted_or_unmanaged(admin, share, replica, action):
    admin.act(share, action, expect=409)
    admin.delete(share, expect=409)
    assert admin.show(share)['status'] == 'available'
