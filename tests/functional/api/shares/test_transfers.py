"""Offers of shares to other projects: what is offered, refused and listed."""

import pytest

from manila_lite.db.queries.shares import shares as share_rows
from tests.functional.api import differences
from tests.functional.api.transfer_client import allow, listed
from tests.support import cloud_snapshots
from tests.support.share_transfers import accept, expire, offer, request_offer, withdraw

WITHOUT_KEY = {
    'id',
    'created_at',
    'name',
    'resource_type',
    'resource_id',
    'source_project_id',
    'destination_project_id',
    'accepted',
    'expires_at',
    'links',
}


@pytest.fixture
def cloud(build_cloud):
    return build_cloud(extra_conf='transfer_retention_time = 60')


# Offer


def test_share_awaits_its_transfer_and_the_key_is_shown_once(cloud, member, share):
    offered = offer(member, share, name='gift')
    assert set(offered) == WITHOUT_KEY | {'auth_key'}
    assert offered['name'] == 'gift'
    assert offered['resource_id'] == share
    assert offered['source_project_id'] == 'project'
    assert len(offered['auth_key']) == 16
    assert member.show(share)['status'] == 'awaiting_transfer'
    shown = member.get(f'/share-transfers/{offered["id"]}')['transfer']
    del offered['auth_key']
    assert shown == offered


def test_key_is_stored_nowhere(cloud, member, share):
    offered = offer(member, share)
    cloud.db.dispose()
    for path in cloud.folder.rglob('*'):
        if path.is_file():
            assert offered['auth_key'].encode() not in path.read_bytes(), path


def test_keys_differ(cloud, member):
    shares = [member.create()['id'] for _ in range(2)]
    cloud.settle()
    first, second = (offer(member, share) for share in shares)
    assert first['auth_key'] != second['auth_key']


@pytest.mark.facts('share-transfers.1')
@pytest.mark.parametrize('status', ['error', 'creating', 'deleting'])
def test_share_that_is_not_available_cannot_be_offered(admin, member, share, status):
    admin.act(share, 'reset_status', {'status': status})
    request_offer(member, share, expect=400)
    assert member.show(share)['status'] == status
    assert listed(member) == []


def test_share_is_offered_once(member, share):
    offered = offer(member, share)
    assert 'awaiting_transfer' in request_offer(member, share, expect=400).text
    assert listed(member) == [offered['id']]


@pytest.mark.facts('share-transfers.1')
def test_share_with_a_busy_snapshot_cannot_be_offered(cloud, member, share):
    cloud_snapshots.enable_snapshot_features(cloud)
    snapshot = cloud_snapshots.create_available(cloud, share)
    cloud_snapshots.delete(cloud, snapshot)
    assert snapshot in request_offer(member, share, expect=400).text
    cloud.settle()
    offer(member, share)


@pytest.mark.facts('human-readable.5')
@pytest.mark.parametrize(
    'prefix, code', [(None, 400), ('x-{project_id}', 400), ('own-', 202), ('', 202)]
)
def test_share_mounted_by_the_id_of_its_project_cannot_be_offered(
    cloud, member, make_type, prefix, code
):
    specs = {'mount_point_name_support': 'True'}
    if prefix is not None:
        specs['provisioning__mount_point_prefix'] = prefix
    make_type('mounts', **specs)
    share = member.create(share_type='mounts', mount_point_name='data')['id']
    cloud.settle()
    answer = request_offer(member, share, expect=code)
    assert ('mount point' in answer.text) == (code == 400)
    assert member.show(share)['status'] == (
        'available' if code == 400 else 'awaiting_transfer'
    )


@pytest.mark.facts('share-transfers.1')
def test_share_in_a_group_cannot_be_offered(cloud, member, share):
    cloud.db.write(share_rows.update, share, {'share_group_id': share})
    assert 'group' in request_offer(member, share, expect=400).text
    assert member.show(share)['status'] == 'available'


def test_share_in_the_recycle_bin_cannot_be_offered(member, share):
    member.act(share, 'soft_delete')
    request_offer(member, share, expect=403)


@differences.proves('locks of offered shares')
@pytest.mark.parametrize('locks', [{}, {'lock_visibility': True}])
@pytest.mark.facts('bp-allow-locking-shares.1')
def test_share_with_locks_cannot_be_offered(cloud, member, share, locks):
    """Its next owner could not remove them."""
    if locks:
        rule = {'access_type': 'ip', 'access_to': '10.0.0.1', **locks}
        member.act(share, 'allow_access', rule, expect=200)
        cloud.settle()
    else:
        lock = {'resource_id': share, 'resource_type': 'share'}
        member.request('POST', '/resource-locks', {'resource_lock': lock}, expect=200)
    assert 'locks' in request_offer(member, share, expect=400).text
    assert member.show(share)['status'] == 'available'


def test_share_of_another_project_is_not_found(stranger, share):
    request_offer(stranger, share, expect=404)


def test_public_share_of_another_project_cannot_be_offered(admin, stranger, share):
    admin.request('PUT', f'/shares/{share}', {'share': {'is_public': True}}, expect=200)
    request_offer(stranger, share, expect=403)


@pytest.mark.parametrize(
    'body',
    [
        {},
        {'transfer': {}},
        {'transfer': {'share_id': 'x'}},
        {'transfer': {'share_id': 7}},
    ],
)
def test_invalid_offer_is_refused(member, share, body):
    member.request('POST', '/share-transfers', body, expect=400)


def test_longest_name_has_255_characters(member, share):
    request_offer(member, share, expect=400, name='n' * 256)
    assert offer(member, share, name='n' * 255)['name'] == 'n' * 255


@differences.proves('links of share transfers')
def test_links_lead_to_the_transfer(member, share):
    link, _ = offer(member, share)['links']
    _, _, path = link['href'].partition('/v2')
    assert member.get(path)['transfer']['resource_id'] == share


# While it is open


@pytest.mark.parametrize(
    'action, args',
    [
        ('extend', {'new_size': 2}),
        ('shrink', {'new_size': 1}),
        ('soft_delete', None),
        ('unmanage', None),
    ],
)
def test_offered_share_is_left_as_it_is(admin, member, share, action, args):
    offer(member, share)
    answer = admin.act(share, action, args, expect=None)
    assert 400 <= answer.status_int < 500, answer.text
    assert member.show(share)['status'] == 'awaiting_transfer'


@differences.proves('access rules of offered shares')
def test_rules_of_an_offered_share_are_not_changed(cloud, member, share):
    rule = allow(member, share)
    cloud.settle()
    offer(member, share)
    deny = {'access_id': rule['id']}
    member.act(share, 'deny_access', deny, expect=400)
    another = {'access_type': 'ip', 'access_to': '10.0.0.9'}
    member.act(share, 'allow_access', another, expect=400)
    change = {'update_access': {'access_level': 'ro'}}
    path = f'/share-access-rules/{rule["id"]}'
    member.request('PUT', path, change, expect=400)


def test_offered_share_is_not_deleted(member, share):
    offer(member, share)
    assert member.delete(share, expect=None).status_int in (400, 403)


def test_no_snapshot_is_taken_of_an_offered_share(cloud, member, share):
    cloud_snapshots.enable_snapshot_features(cloud)
    offer(member, share)
    snapshot = {'snapshot': {'share_id': share}}
    member.request('POST', '/snapshots', snapshot, expect=400)


@pytest.mark.parametrize('action', ['delete', 'show'])
def test_offered_share_and_its_rules_are_not_locked(cloud, member, share, action):
    rule = allow(member, share)
    cloud.settle()
    offer(member, share)
    locks = [
        {'resource_id': rule['id'], 'resource_type': 'access_rule'},
        {'resource_id': share, 'resource_type': 'share'},
    ]
    for lock in locks[: 1 if action == 'show' else 2]:
        member.request(
            'POST',
            '/resource-locks',
            {'resource_lock': {**lock, 'resource_action': action}},
            expect=409,
        )


def test_force_delete_removes_the_offer_as_well(cloud, admin, member, share):
    offered = offer(member, share)
    admin.act(share, 'force_delete')
    cloud.settle()
    withdraw(member, offered, expect=404)
    assert listed(admin, '?all_tenants=1') == []


def test_withdrawn_share_is_available(cloud, member, stranger, share):
    offered = offer(member, share)
    withdraw(member, offered)
    assert member.show(share)['status'] == 'available'
    assert listed(member) == []
    accept(stranger, offered, expect=400)
    withdraw(member, offered, expect=404)


def test_offer_of_a_reset_share_is_replaced_by_the_next_one(
    cloud, admin, member, stranger, share
):
    former = offer(member, share)
    admin.act(share, 'reset_status', {'status': 'available'})
    withdraw(member, former, expect=400)
    accept(stranger, former, expect=400)
    offered = offer(member, share)
    assert listed(member) == [offered['id']]
    accept(stranger, former, expect=400)
    accept(stranger, offered)
    cloud.settle()
    assert stranger.show(share)['status'] == 'available'


def test_other_projects_do_not_see_an_offer(admin, member, stranger, share):
    offered = offer(member, share)
    stranger.get(f'/share-transfers/{offered["id"]}', expect=404)
    withdraw(stranger, offered, expect=404)
    assert listed(stranger, '?all_tenants=1') == []
    assert listed(stranger, '?source_project_id=project') == []
    assert listed(admin, '?all_tenants=1') == [offered['id']]


# Expire


@pytest.mark.facts('transfer_expires_at')
def test_share_is_available_when_the_offer_has_expired(cloud, member, stranger, share):
    offered = offer(member, share)
    expire(cloud)
    assert listed(member) == [offered['id']]
    cloud.clock.advance(61)
    accept(stranger, offered, expect=400)
    expire(cloud)
    assert listed(member) == []
    assert member.show(share)['status'] == 'available'


def test_offer_that_is_being_accepted_does_not_expire(cloud, member, stranger, share):
    accept(stranger, offer(member, share))
    cloud.clock.advance(61)
    cloud.beat()
    expire(cloud)
    cloud.settle()
    assert stranger.show(share)['status'] == 'available'


def test_offer_of_a_reset_share_expires(cloud, admin, member, share):
    offer(member, share)
    admin.act(share, 'reset_status', {'status': 'error'})
    cloud.clock.advance(61)
    expire(cloud)
    assert listed(member) == []
    assert member.show(share)['status'] == 'error'


# List


def test_offers_are_filtered_sorted_and_paged(cloud, member):
    shares = [member.create()['id'] for _ in range(3)]
    cloud.settle()
    offers = [
        offer(member, share, name=name)['id']
        for share, name in zip(shares, 'bca', strict=True)
    ]
    assert listed(member) == offers[::-1]
    assert listed(member, '?name=c') == [offers[1]]
    assert listed(member, f'?resource_id={shares[2]}') == [offers[2]]
    assert listed(member, '?resource_type=share&limit=1') == [offers[2]]
    assert listed(member, '?offset=1&limit=1') == [offers[1]]
    assert listed(member, '?source_project_id=another') == []
    by_name = [offers[2], offers[0], offers[1]]
    assert listed(member, '?sort_key=name&sort_dir=asc') == by_name
    assert listed(member, '?sort_key=display_name&sort_dir=asc') == by_name
    page = member.get('/share-transfers?limit=1')
    assert page['transfers_links'][0]['rel'] == 'next'
    member.get('/share-transfers?sort_key=salt', expect=400)
    member.get('/share-transfers?sort_key=crypt_hash', expect=400)


@pytest.mark.facts('name_inexact_query')
@pytest.mark.parametrize('key', ['name~', 'display_name~'])
def test_part_of_a_name_finds_offers(cloud, member, key):
    shares = [member.create()['id'] for _ in range(3)]
    cloud.settle()
    green, _, evergreen = (
        offer(member, share, name=name)['id']
        for share, name in zip(shares, ('green', 'blue', 'evergreen'), strict=True)
    )
    assert listed(member, f'?{key}=green') == [evergreen, green]
    assert listed(member, f'?{key}=green&limit=1&offset=1') == [green]
    assert listed(member, f'?{key}=green&name=green') == [green]
    assert listed(member, f'?{key}=%25') == []
    assert len(listed(member, f'?{key}=')) == 3
