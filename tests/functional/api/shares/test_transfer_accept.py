"""Acceptance of share transfers."""

import pytest

from manila_lite.exception import DriverCannotTransferShareWithRules
from tests.functional.api import differences
from tests.functional.api.conftest import member_of
from tests.functional.api.transfer_client import allow, listed, rules_of, usage_of
from tests.support import cloud_snapshots
from tests.support.share_transfers import accept, offer, withdraw


def test_share_changes_hands_with_its_snapshots_and_quota(
    cloud, member, stranger, share
):
    cloud_snapshots.enable_snapshot_features(cloud)
    snapshot = cloud_snapshots.create_available(cloud, share)
    offered = offer(member, share)
    accept(stranger, offered)
    assert usage_of(cloud, 'project', 'another') == [
        ((1, 0), (1, 0), (1, 0)),
        ((0, 1), (0, 1), (0, 1)),
    ]
    cloud.settle()
    shown = stranger.show(share)
    assert shown['status'] == 'available'
    assert shown['project_id'] == 'another'
    assert shown['user_id'] == 'user of another'
    snapshot = stranger.get(f'/snapshots/{snapshot}')['snapshot']
    assert snapshot['project_id'] == 'another'
    assert usage_of(cloud, 'project', 'another') == [
        ((0, 0), (0, 0), (0, 0)),
        ((1, 0), (1, 0), (1, 0)),
    ]
    member.get(f'/shares/{share}', expect=404)
    member.get(f'/snapshots/{snapshot["id"]}', expect=404)
    member.get(f'/share-transfers/{offered["id"]}', expect=404)
    cloud.check_invariants()


def test_back_end_learns_the_new_owner(cloud, admin, member, stranger, share):
    allow(member, share)
    cloud.settle()
    accept(stranger, offer(member, share))
    cloud.settle()
    (instance,) = admin.get(f'/shares/{share}/instances')['share_instances']
    (record,) = filter(
        None,
        (
            cloud.driver(name).backend.state.shares.find(instance['id'])
            for name in cloud.backend_names
        ),
    )
    assert record['owner'] == ['another', 'user of another']
    assert rules_of(stranger, share) == [('10.0.0.1', 'active')]
    cloud.check_invariants()


def test_rules_are_removed_on_request(cloud, member, stranger, share):
    for number in range(3):
        allow(member, share, f'10.0.0.{number}')
    cloud.settle()
    accept(stranger, offer(member, share), clear_access_rules=True)
    cloud.settle()
    assert rules_of(stranger, share) == []
    assert stranger.show(share)['access_rules_status'] == 'active'
    cloud.check_invariants()


def test_rules_that_cannot_be_removed_end_the_acceptance(
    cloud, member, stranger, share, fail_next_call
):
    allow(member, share)
    cloud.settle()
    offered = offer(member, share)
    fail_next_call('update_access')
    accept(stranger, offered, clear_access_rules=True)
    cloud.settle()
    assert member.show(share)['status'] == 'awaiting_transfer'
    assert listed(member) == [offered['id']]
    messages = stranger.get('/messages')['messages']
    assert '026' in {message['action_id'] for message in messages}
    cloud.check_invariants()


def test_driver_may_refuse_a_share_with_rules(
    cloud, member, stranger, share, fail_next_call
):
    allow(member, share)
    cloud.settle()
    offered = offer(member, share)
    fail_next_call('transfer_accept', DriverCannotTransferShareWithRules())
    accept(stranger, offered)
    cloud.settle()
    assert member.show(share)['status'] == 'awaiting_transfer'
    (message,) = stranger.get('/messages')['messages']
    assert (message['action_id'], message['detail_id']) == ('026', '026')
    assert message['resource_id'] == share
    assert usage_of(cloud, 'another') == [((0, 0), (0, 0), (0, 0))]
    accept(stranger, offered, clear_access_rules=True)
    cloud.settle()
    assert stranger.show(share)['status'] == 'available'
    cloud.check_invariants()


@pytest.mark.parametrize('change', [{'auth_key': 'x' * 16}, {'id': 'b' * 36}])
def test_wrong_key_and_unknown_transfer_answer_alike(
    cloud, member, stranger, share, change
):
    offered = offer(member, share)
    refused = accept(stranger, {**offered, **change}, expect=400)
    assert 'does not exist' in refused.json['badRequest']['message']
    assert offered['auth_key'] not in refused.text
    cloud.settle()
    assert member.show(share)['status'] == 'awaiting_transfer'


def test_wrong_keys_do_not_spoil_the_right_one(cloud, member, stranger, share):
    offered = offer(member, share)
    for number in range(20):
        accept(stranger, {**offered, 'auth_key': f'{number}'}, expect=400)
    accept(stranger, offered)
    cloud.settle()
    assert stranger.show(share)['status'] == 'available'


@pytest.mark.parametrize(
    'body',
    [
        {},
        {'accept': {}},
        {'accept': {'auth_key': None}},
        {'accept': {'auth_key': 'right', 'clear_access_rules': 'maybe'}},
    ],
)
def test_invalid_acceptance_is_refused(member, stranger, share, body):
    offered = offer(member, share)
    if body.get('accept', {}).get('auth_key') == 'right':
        body['accept']['auth_key'] = offered['auth_key']
    stranger.request(
        'POST', f'/share-transfers/{offered["id"]}/accept', body, expect=400
    )


def test_transfer_is_accepted_once(cloud, member, stranger, share):
    offered = offer(member, share)
    accept(stranger, offered)
    accept(member_of(cloud, 'third'), offered, expect=400)
    withdraw(member, offered, expect=400)
    cloud.settle()
    accept(member_of(cloud, 'third'), offered, expect=400)
    assert stranger.show(share)['status'] == 'available'
    cloud.check_invariants()


@pytest.mark.parametrize('limited', ['shares', 'gigabytes', 'snapshots'])
def test_quota_of_the_accepting_project_counts(
    cloud, admin, member, stranger, share, limited
):
    cloud_snapshots.enable_snapshot_features(cloud)
    cloud_snapshots.create_available(cloud, share)
    offered = offer(member, share)
    quota = {'quota_set': {limited: 0, 'force': True}}
    admin.request('PUT', '/quota-sets/another', quota, expect=200)
    accept(stranger, offered, expect=413)
    assert listed(member) == [offered['id']]
    cloud.check_invariants()


def test_type_must_be_usable_by_the_accepting_project(
    cloud, admin, member, stranger, make_type
):
    make_type('private', public=False)
    type_id = next(
        one['id']
        for one in admin.get('/types?is_public=all')['share_types']
        if one['name'] == 'private'
    )
    access = {'addProjectAccess': {'project': 'project'}}
    admin.request('POST', f'/types/{type_id}/action', access, expect=202)
    share = member.create(share_type='private')['id']
    cloud.settle()
    offered = offer(member, share)
    accept(stranger, offered, expect=400)
    access['addProjectAccess']['project'] = 'another'
    admin.request('POST', f'/types/{type_id}/action', access, expect=202)
    accept(stranger, offered)
    cloud.settle()
    assert stranger.show(share)['status'] == 'available'


def test_own_project_may_accept(cloud, member, colleague, share):
    accept(colleague, offer(member, share))
    cloud.settle()
    assert member.show(share)['user_id'] == 'colleague'
    assert usage_of(cloud, 'project') == [((1, 0), (1, 0), (0, 0))]
    cloud.check_invariants()


def test_snapshot_deleted_meanwhile_is_not_charged(
    cloud, admin, member, stranger, share
):
    cloud_snapshots.enable_snapshot_features(cloud)
    snapshot = cloud_snapshots.create_available(cloud, share)
    offered = offer(member, share)
    accept(stranger, offered)
    cloud_snapshots.delete(cloud, snapshot)
    cloud.settle()
    if listed(member):  # the snapshot was still there
        accept(stranger, offered)
        cloud.settle()
    assert stranger.show(share)['status'] == 'available'
    assert usage_of(cloud, 'project', 'another') == [
        ((0, 0), (0, 0), (0, 0)),
        ((1, 0), (1, 0), (0, 0)),
    ]
    cloud.check_invariants()


def test_reset_share_is_not_transferred(cloud, admin, member, stranger, share):
    offered = offer(member, share)
    accept(stranger, offered)
    admin.act(share, 'reset_status', {'status': 'available'})
    cloud.settle()
    assert member.show(share)['project_id'] == 'project'
    assert usage_of(cloud, 'another') == [((0, 0), (0, 0), (0, 0))]
    cloud.check_invariants()


# Wait


@pytest.fixture
def waits(cloud):
    """Wait for the back end, which works meanwhile, as in other processes."""
    cloud.services.share_transfers.wait = 5.0
    cloud.db.sleep = lambda seconds: cloud.run_pending()


def test_share_is_in_the_project_when_the_request_is_answered(
    waits, cloud, member, stranger, share
):
    accept(stranger, offer(member, share))
    assert stranger.show(share)['status'] == 'available'


def test_failure_meanwhile_is_answered(
    waits, cloud, member, stranger, share, fail_next_call
):
    offered = offer(member, share)
    fail_next_call('transfer_accept')
    accept(stranger, offered, expect=400)
    assert listed(member) == [offered['id']]
    assert stranger.get('/messages')['messages']


@differences.proves('acceptance that takes long')
def test_slow_back_end_is_not_waited_for(cloud, member, stranger, share):
    cloud.services.share_transfers.wait = 5.0
    offered = offer(member, share)
    before = cloud.clock.now
    accept(stranger, offered)
    assert 5 <= cloud.clock.now - before < 10
    assert member.show(share)['status'] == 'awaiting_transfer'
    cloud.beat()
    cloud.settle()
    assert stranger.show(share)['status'] == 'available'
