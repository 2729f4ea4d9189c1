"""Export locations of snapshots."""

import pytest
import sqlalchemy as sa

from manila_lite.db.models import shares
from tests.functional.api.conftest import member_of
from tests.functional.api.snapshot_client import UNKNOWN, act_on_snapshot
from tests.support.snapshot_access import create_mountable_snapshot

KEY = 'share_snapshot_export_location'
INSTANCE = shares.ShareInstance.__table__


def list_exports(api, path, **options):
    return api.get(f'{path}/export-locations', **options).get(f'{KEY}s')


def test_users_see_public_export_locations(mount, member):
    (one,) = list_exports(member, mount.path)
    assert set(one) == {'id', 'path', 'links'}
    assert one['path'].startswith('10.0.0.10:/snapshots/')
    shown = member.get(f'{mount.path}/export-locations/{one["id"]}')[KEY]
    assert set(shown) == {*one, 'created_at', 'updated_at'}
    assert shown['links'] == one['links']


def test_links_lead_to_the_export_location(cloud, mount, member):
    (one,) = list_exports(member, mount.path)
    link = next(link['href'] for link in one['links'] if link['rel'] == 'self')
    path = link.partition('/v2')[2]
    assert member.get(path)[KEY]['id'] == one['id']


def test_administrators_see_all_with_their_instances(mount, admin, member):
    found = list_exports(admin, mount.path)
    assert sorted(one['is_admin_only'] for one in found) == [False, True]
    instance = f'/snapshot-instances/{mount.instance_id}'
    assert {one['share_snapshot_instance_id'] for one in found} == {mount.instance_id}
    hidden = next(one for one in found if one['is_admin_only'])
    member.get(f'{mount.path}/export-locations/{hidden["id"]}', expect=403)
    assert list_exports(admin, instance) == found
    shown = admin.get(f'{instance}/export-locations/{hidden["id"]}')
    assert shown == admin.get(f'{mount.path}/export-locations/{hidden["id"]}')


def test_exports_of_instances_are_for_administrators(mount, member):
    instance = f'/snapshot-instances/{mount.instance_id}'
    list_exports(member, instance, expect=403)
    el = list_exports(mount.cloud.api, mount.path)[0]['id']
    member.get(f'{instance}/export-locations/{el}', expect=403)


def test_unknown_and_foreign_exports_are_not_found(cloud, mount, admin, stranger):
    list_exports(stranger, mount.path, expect=404)
    el = list_exports(admin, mount.path)[0]['id']
    stranger.get(f'{mount.path}/export-locations/{el}', expect=404)
    for parent in (mount.path, f'/snapshot-instances/{mount.instance_id}'):
        admin.get(f'{parent}/export-locations/{UNKNOWN}', expect=404)
        list_exports(admin, parent, version='2.31', expect=404)
    list_exports(admin, f'/snapshots/{UNKNOWN}', expect=404)
    list_exports(admin, f'/snapshot-instances/{UNKNOWN}', expect=404)


def test_guests_see_nothing(cloud, mount):
    guest = member_of(cloud)
    guest.headers['X-Roles'] = 'guest'
    list_exports(guest, mount.path, expect=403)


@pytest.mark.facts('LP1660686')
def test_snapshots_that_cannot_be_mounted_have_none(cloud, member):
    mount = create_mountable_snapshot(cloud, member)
    assert list_exports(member, mount.path) == []
    assert list_exports(cloud.api, mount.path) == []


@pytest.mark.parametrize('status', ['error', 'deleting', 'restoring'])
def test_users_see_exports_of_available_snapshots_only(cloud, mount, member, status):
    act_on_snapshot(cloud.api, mount.snapshot_id, 'reset_status', {'status': status})
    assert list_exports(member, mount.path) == []
    assert len(list_exports(cloud.api, mount.path)) == 2


@pytest.mark.parametrize(
    'state, count', [('active', 1), ('in_sync', 0), ('out_of_sync', 0), (None, 1)]
)
def test_users_see_exports_of_the_active_replica(cloud, mount, member, state, count):
    cloud.db.write(
        lambda session: session.run(sa.update(INSTANCE).values(replica_state=state))
    )
    assert len(list_exports(member, mount.path)) == count


def test_exports_are_deleted_with_the_snapshot(cloud, mount, member):
    member.request('DELETE', mount.path, expect=202)
    cloud.settle()
    list_exports(member, mount.path, expect=404)
    cloud.check_invariants()
