"""Snapshot instances, and the status they give their snapshot."""

import itertools

import pytest
import sqlalchemy as sa

from manila_lite.db.models import shares, snapshots
from tests.functional.api.snapshot_client import (
    UNKNOWN,
    create_available_snapshot,
    list_snapshot_instances,
    show_snapshot,
)


@pytest.fixture
def snapshot(cloud, member, share):
    return create_available_snapshot(cloud, member, share, name='one')


@pytest.mark.facts('add-snapshot-instances-admin-api')
def test_summary_and_detail_of_the_instances_of_a_snapshot(
    cloud, admin, share, snapshot
):
    other = create_available_snapshot(cloud, admin, share)
    (detail,) = list_snapshot_instances(admin, snapshot)
    assert (
        detail['snapshot_id'],
        detail['share_id'],
        detail['status'],
        detail['progress'],
    ) == (snapshot, share, 'available', '100%')
    (instance,) = admin.get(f'/shares/{share}/instances')['share_instances']
    assert detail['share_instance_id'] == instance['id']
    (summary,) = admin.get(f'/snapshot-instances?snapshot_id={snapshot}')[
        'snapshot_instances'
    ]
    assert summary == {key: detail[key] for key in ('id', 'snapshot_id', 'status')}
    assert [
        one['snapshot_id']
        for one in admin.get('/snapshot-instances/detail')['snapshot_instances']
    ] == [other, snapshot]
    assert list_snapshot_instances(admin, UNKNOWN) == []


def test_list_is_paged(cloud, admin, share, snapshot):
    create_available_snapshot(cloud, admin, share)
    for path in ('/snapshot-instances', '/snapshot-instances/detail'):
        everything = admin.get(path)['snapshot_instances']
        page = admin.get(f'{path}?limit=1')
        assert page['snapshot_instances'] == everything[:1]
        (link,) = page['snapshot_instances_links']
        _, _, following = link['href'].partition('/v2')
        assert following.startswith(f'{path}?')
        page = admin.get(following)
        assert page['snapshot_instances'] == everything[1:]


@pytest.mark.facts('add-snapshot-instances-admin-api')
def test_show_is_the_detail(admin, snapshot):
    (detail,) = list_snapshot_instances(admin, snapshot)
    path = f'/snapshot-instances/{detail["id"]}'
    assert admin.get(path)['snapshot_instance'] == detail
    admin.get(f'/snapshot-instances/{UNKNOWN}', expect=404)
    admin.get(path, version='2.18', expect=404)


def reset(api, instance_id, status, expect=202):
    return api.request(
        'POST',
        f'/snapshot-instances/{instance_id}/action',
        {'reset_status': {'status': status}},
        expect=expect,
    )


@pytest.mark.facts('add-snapshot-instances-admin-api')
@pytest.mark.parametrize(
    'status, code',
    [
        ('available', 202),
        ('error', 202),
        ('creating', 202),
        ('deleting', 202),
        ('error_deleting', 202),
        ('migrating', 202),
        ('migrating_to', 202),
        ('server_migrating', 202),
        ('restoring', 400),
        ('manage_error', 400),
        ('moon', 400),
        ('', 400),
        (None, 400),
    ],
)
def test_reset_accepts_the_generic_statuses(admin, snapshot, status, code):
    (instance,) = list_snapshot_instances(admin, snapshot)
    reset(admin, instance['id'], status, expect=code)
    expected = status if code == 202 else 'available'
    assert show_snapshot(admin, snapshot)['status'] == expected


@pytest.mark.facts('add-snapshot-instances-admin-api')
def test_instances_are_for_administrators(member, snapshot, admin):
    (instance,) = list_snapshot_instances(admin, snapshot)
    for path in ('', '/detail', f'/{instance["id"]}', f'/{UNKNOWN}'):
        member.get(f'/snapshot-instances{path}', expect=403)
    reset(member, instance['id'], 'error', expect=403)


# The status of a snapshot

ORDER = (
    'deleting',
    'creating',
    'error',
    'migrating',
    'server_migrating',
    'available',
    'restoring',
)


@pytest.fixture
def add_instance(cloud, share, snapshot):
    """Return a function that adds an instance on another share instance."""

    def add_instance(status, replica_state):
        cloud.db.write(_copy, share, snapshot, status, replica_state)

    return add_instance


def _copy(session, share_id, snapshot_id, status, replica_state):
    instance = shares.ShareInstance.__table__
    of_snapshot = snapshots.SnapshotInstance.__table__
    written = [column for column in instance.c if not column.computed]
    row = session.first(sa.select(*written).where(instance.c.share_id == share_id))
    copy = dict(row._mapping) | {'id': session.new_id(), 'replica_state': replica_state}
    session.run(sa.insert(instance), **copy)
    session.run(
        sa.insert(of_snapshot),
        id=session.new_id(),
        snapshot_id=snapshot_id,
        share_instance_id=copy['id'],
        status=status,
        progress='100%',
        created_at=session.now,
        provider_location=f'on {status}',
    )


@pytest.mark.parametrize('first, second', [*itertools.pairwise(ORDER)])
def test_status_is_the_first_of_the_published_order(
    cloud, admin, snapshot, add_instance, first, second
):
    cloud.db.write(_drop_instances, snapshot)
    for status in (second, first, second):
        add_instance(status, 'active' if status == first else 'in_sync')
    for found in (
        show_snapshot(admin, snapshot),
        *admin.get('/snapshots/detail')['snapshots'],
    ):
        assert found['status'] == first
        assert found['provider_location'] == f'on {first}'


def test_instances_on_replicas_out_of_sync_do_not_count(
    cloud, admin, snapshot, add_instance
):
    cloud.db.write(_drop_instances, snapshot)
    add_instance('error', 'out_of_sync')
    add_instance('available', 'active')
    add_instance('deleting', 'error')
    assert show_snapshot(admin, snapshot)['status'] == 'available'
    for key in ('status', 'progress', 'provider_location'):
        page = admin.get(f'/snapshots/detail?sort_key={key}&limit=5&with_count=true')
        assert page['count'] == len(page['snapshots']) == 1


def _drop_instances(session, snapshot_id):
    table = snapshots.SnapshotInstance.__table__
    session.run(sa.delete(table).where(table.c.snapshot_id == snapshot_id))
