"""What may be done to replicas, and by whom."""

import pytest
import sqlalchemy as sa

from manila_lite.db.models import shares
from tests.functional.api.replica_client import act_on_replica
from tests.functional.api.replica_client import delete_replica
from tests.functional.api.replica_client import list_replica_ids
from tests.functional.api.replica_client import show_replica
from tests.functional.api.sample_cloud import pending_work_kinds
from tests.functional.api.sample_replicas import insert_replica
from tests.functional.api.sample_replicas import make_replicable

INSTANCE = shares.ShareInstance.__table__


@pytest.fixture
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


def plant(cloud, replica_id, **columns):
    cloud.db.write(
        lambda session: session.run(
            sa.update(INSTANCE)
            .where(INSTANCE.c.id == replica_id)
            .values(**columns)
        )
    )


def owed(cloud):
    return [
        kind.partition('.')[2] for kind in cloud.db.read(pending_work_kinds)
    ]


# Deleting


def test_passive_replica_is_deleted(cloud, member, share, replica):
    delete_replica(member, replica)
    assert show_replica(member, replica)['status'] == 'deleting'
    assert owed(cloud) == ['delete_share_replica']


@pytest.mark.parametrize('action', ['delete', 'force_delete'])
def test_last_active_replica_stays(
    cloud, admin, member, active, replica, action
):
    if action == 'delete':
        delete_replica(member, active, expect=400)
    else:
        act_on_replica(admin, active, action, expect=400)
    assert show_replica(member, active)['status'] == 'available'
    assert owed(cloud) == []


def test_active_replica_goes_where_another_is_active(
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
    plant(cloud, replica, status=status)
    delete_replica(member, replica, expect=code)


def test_force_is_for_administrators_and_any_status(
    cloud, admin, member, replica
):
    plant(cloud, replica, status='error_deleting')
    act_on_replica(member, replica, 'force_delete', expect=403)
    act_on_replica(admin, replica, 'force_delete')
    assert owed(cloud) == ['delete_share_replica']


def test_replica_that_was_never_placed_goes_at_once(cloud, member, replica):
    plant(cloud, replica, status='error', host=None)
    delete_replica(member, replica)
    member.get(f'/share-replicas/{replica}', expect=404)
    assert owed(cloud) == []


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
def test_promotion_is_answered_with_the_replica(
    cloud, member, replica, version, body
):
    answer = act_on_replica(member, replica, 'promote', body, version=version)
    shown = answer.json['share_replica']
    assert (shown['id'], shown['status'], shown['replica_state']) == (
        replica,
        'replication_change',
        'in_sync',
    )
    assert owed(cloud) == ['promote_share_replica']


@pytest.mark.parametrize('wait', [0, -1, 'x', 1.5, None, [], True])
def test_wait_that_is_none_is_refused(cloud, member, replica, wait):
    act_on_replica(
        member, replica, 'promote', {'quiesce_wait_time': wait}, expect=400
    )
    assert owed(cloud) == []


def test_active_replica_need_not_be_promoted(cloud, member, active, replica):
    answer = act_on_replica(member, active, 'promote', expect=200)
    assert answer.body == b''
    assert owed(cloud) == []


@pytest.mark.parametrize('state', ['out_of_sync', 'error'])
def test_what_is_not_in_sync_is_promoted_by_administrators(
    cloud, admin, member, replica, state
):
    plant(cloud, replica, replica_state=state)
    act_on_replica(member, replica, 'promote', expect=403)
    act_on_replica(admin, replica, 'promote')


def test_one_promotion_at_a_time(cloud, member, share, replica):
    other = insert_replica(cloud, share)
    act_on_replica(member, replica, 'promote')
    for one in (replica, other):
        act_on_replica(member, one, 'promote', expect=400)
    assert owed(cloud) == ['promote_share_replica']


@pytest.mark.parametrize('status', ['error', 'creating', 'deleting'])
def test_what_is_promoted_has_to_be_available(cloud, admin, replica, status):
    plant(cloud, replica, status=status)
    act_on_replica(admin, replica, 'promote', expect=400)


def test_writable_replicas_are_not_promoted(cloud, admin, share):
    make_replicable(cloud, share, 'writable')
    replica = insert_replica(cloud, share, replica_state='out_of_sync')
    act_on_replica(admin, replica, 'promote', expect=400)


# Resyncing


def test_resync_is_asked_for_by_administrators(cloud, admin, member, replica):
    act_on_replica(member, replica, 'resync', expect=403)
    act_on_replica(admin, replica, 'resync')
    assert owed(cloud) == ['update_share_replica']


def test_active_replica_need_not_be_resynced(cloud, admin, active, replica):
    assert act_on_replica(admin, active, 'resync', expect=200).body == b''
    assert owed(cloud) == []


# Decrees


@pytest.mark.parametrize(
    'action, field, value',
    [
        ('reset_status', 'status', 'error'),
        ('reset_replica_state', 'replica_state', 'out_of_sync'),
        ('reset_replica_state', 'replica_state', 'error'),
    ],
)
def test_administrators_decree_how_a_replica_is(
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
def test_decree_that_makes_no_sense_is_refused(admin, replica, action, body):
    act_on_replica(admin, replica, action, body, expect=400)


@pytest.mark.parametrize(
    'state', ['in_sync', 'out_of_sync', 'error', 'active']
)
def test_active_replica_is_not_decreed_away(admin, active, replica, state):
    act_on_replica(
        admin,
        active,
        'reset_replica_state',
        {'replica_state': state},
        expect=400,
    )
    assert show_replica(admin, active)['replica_state'] == 'active'


def test_decree_makes_no_second_active_replica(admin, active, replica):
    act_on_replica(
        admin,
        replica,
        'reset_replica_state',
        {'replica_state': 'active'},
        expect=400,
    )


def test_replica_state_is_decreed_by_those_who_decree_the_status(
    make_cloud, tmp_path
):
    rules = tmp_path / 'rules.yaml'
    rules.write_text('"share_replica:reset_replica_state": "role:member"\n')
    cloud = make_cloud(f'[oslo_policy]\npolicy_file = {rules}\n')
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


# What a share with replicas cannot do


@pytest.mark.parametrize('action', ['soft_delete', 'force_delete', 'unmanage'])
def test_share_with_replicas_is_not_given_up(admin, share, replica, action):
    admin.act(share, action, expect=409)
    admin.delete(share, expect=409)
    assert admin.show(share)['status'] == 'available'
