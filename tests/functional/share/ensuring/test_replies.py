"""What is done with the replies of a driver that ensures shares."""

import pytest

from manila_lite.states.share_instance import InstanceStatus
from tests.functional.share.ensuring.ensured import (
    answering,
    elsewhere,
    failing,
    lacking,
    paths,
    service,
    statuses,
)
from tests.support import sampling
from tests.support.api_client import ApiClient
from tests.support.cloud import BACKENDS

HOST = 'node@alpha'


# Replies of the driver


@sampling.dialects
def test_exports_are_replaced_by_reported_ones_on_each_database(
    build_cloud, database_url
):
    cloud = build_cloud(url=database_url)
    moved, lost = cloud.create_share(), cloud.create_share(name='lost')

    def ensure_shares(context, shares):
        return {
            share.id: {'status': InstanceStatus.ERROR}
            for share in shares
            if share.display_name
        } | elsewhere(context, [one for one in shares if not one.display_name])

    answering(cloud, ensure_shares=ensure_shares)
    before = paths(cloud, lost)
    cloud.api.ensure(HOST)
    cloud.settle()
    assert statuses(cloud) == {
        moved: InstanceStatus.AVAILABLE,
        lost: InstanceStatus.ERROR,
    }
    assert paths(cloud, moved) == [f'new:/{moved}']
    assert paths(cloud, lost) == before
    cloud.check_invariants()
    cloud.db.dispose()


def test_unchanged_export_keeps_its_id_and_metadata(cloud):
    share = cloud.create_share()
    url = f'/shares/{share}/export_locations'
    stays, goes = cloud.api.get(url)['export_locations']
    cloud.api.request(
        'POST',
        f'{url}/{stays["id"]}/metadata',
        {'metadata': {'color': 'red'}},
        expect=200,
    )
    answering(
        cloud,
        ensure_shares=lambda context, shares: {
            shares[0].id: {'export_locations': [stays['path'], 'new:/']}
        },
    )
    cloud.api.ensure(HOST)
    cloud.settle()
    found = {one['path']: one for one in cloud.api.get(url)['export_locations']}
    assert set(found) == {stays['path'], 'new:/'}
    assert found[stays['path']]['id'] == stays['id']
    assert found[stays['path']]['metadata']['color'] == 'red'
    assert goes['id'] not in {one['id'] for one in found.values()}


@pytest.mark.facts('LP2053100', 'export_location_preferred')
def test_metadata_of_exports_follow_the_reply(cloud):
    """A location is preferred only if the driver says so."""
    share = cloud.create_share()
    reply = []
    answering(
        cloud,
        ensure_shares=lambda context, shares: {
            shares[0].id: {'export_locations': reply}
        },
    )
    for reply[:], preferred in (
        (['a:/', 'b:/'], {'a:/': False, 'b:/': False}),
        (
            [location('a:/', preferred='True'), location('b:/')],
            {'a:/': True, 'b:/': False},
        ),
        (
            [location('a:/', preferred='False'), location('b:/', preferred='True')],
            {'a:/': False, 'b:/': True},
        ),
    ):
        cloud.api.ensure(HOST)
        cloud.settle()
        url = f'/shares/{share}/export_locations'
        found = cloud.api.get(url, version='2.14')['export_locations']
        assert {one['path']: one['preferred'] for one in found} == preferred
        older = cloud.api.get(url, version='2.13')['export_locations']
        assert not any('preferred' in one for one in older)


def location(path, is_admin_only=False, **metadata):
    return {'path': path, 'is_admin_only': is_admin_only, 'metadata': metadata}


def test_export_is_hidden_and_shown_by_the_reply(cloud):
    tenant = ApiClient(cloud, roles='member,reader')
    share = cloud.create_share()
    for hidden in (False, True, False):
        reply = [location('a:/', hidden), location('b:/')]
        answering(
            cloud,
            ensure_shares=lambda context, shares, reply=reply: {
                shares[0].id: {'export_locations': reply}
            },
        )
        cloud.api.ensure(HOST)
        cloud.settle()
        found = tenant.get(f'/shares/{share}/export_locations')
        assert {one['path'] for one in found['export_locations']} == (
            {'b:/'} if hidden else {'a:/', 'b:/'}
        )


def test_user_is_notified_of_a_lost_share(cloud):
    tenant = ApiClient(cloud, project='tenant', roles='member,reader')
    share = tenant.create()['id']
    cloud.settle()
    answering(
        cloud,
        ensure_shares=lambda context, shares: {
            one.id: {'status': InstanceStatus.ERROR} for one in shares
        },
    )
    request_id = cloud.api.ensure(HOST).headers['x-compute-request-id']
    cloud.settle()
    (message,) = tenant.get('/messages')['messages']
    assert (message['resource_type'], message['resource_id']) == ('SHARE', share)
    assert message['request_id'] == request_id
    assert (message['action_id'], message['detail_id']) == ('005', '001')


def test_reported_metadata_is_added(cloud):
    share = cloud.create_share(metadata={'color': 'red', 'size': 'small'})
    answering(
        cloud,
        ensure_shares=lambda context, shares: {
            one.id: {'metadata': {'color': 'blue', 'shape': 'round'}} for one in shares
        },
    )
    cloud.api.ensure(HOST)
    cloud.settle()
    assert cloud.api.show(share)['metadata'] == {
        'color': 'blue',
        'shape': 'round',
        'size': 'small',
    }


@pytest.mark.parametrize(
    'answer', [None, {}, {'unknown': {'status': InstanceStatus.ERROR}}]
)
def test_driver_without_news_changes_nothing(cloud, answer):
    share = cloud.create_share()
    before = paths(cloud, share)
    answering(cloud, ensure_shares=lambda context, shares: answer)
    cloud.api.ensure(HOST)
    cloud.settle()
    assert statuses(cloud) == {share: InstanceStatus.AVAILABLE}
    assert paths(cloud, share) == before


@pytest.mark.facts('LP2127023')
def test_driver_may_ensure_shares_one_by_one(cloud):
    shares = [cloud.create_share(name=name) for name in ('a', 'b', 'c')]
    before = paths(cloud, shares[1])

    def ensure_share(context, share, share_server=None):
        if share.display_name == 'b':
            failing()
        return None if share.display_name == 'c' else 'new:/a'

    answering(cloud, ensure_shares=lacking, ensure_share=ensure_share)
    cloud.api.ensure(HOST)
    cloud.settle()
    assert set(statuses(cloud).values()) == {InstanceStatus.AVAILABLE}
    assert paths(cloud, shares[0]) == ['new:/a']
    assert paths(cloud, shares[1]) == before
    assert paths(cloud, shares[2])


def test_driver_failure_leaves_shares_available(cloud):
    share = cloud.create_share()
    before = paths(cloud, share)
    answering(cloud, ensure_shares=failing)
    cloud.api.ensure(HOST)
    cloud.settle()
    assert statuses(cloud) == {share: InstanceStatus.AVAILABLE}
    assert paths(cloud, share) == before
    assert service(cloud)['ensuring'] is False
    assert cloud.api.get('/messages')['messages'] == []


def test_invalid_reply_ends_the_work_without_harm(cloud):
    share = cloud.create_share()
    answering(
        cloud,
        ensure_shares=lambda context, shares: {
            one.id: {'export_locations': [{'no': 'path'}]} for one in shares
        },
    )
    cloud.api.ensure(HOST)
    cloud.settle()
    assert statuses(cloud) == {share: InstanceStatus.AVAILABLE}
    assert cloud.api.get('/messages')['messages'] == []
    cloud.check_invariants()


# Concurrent work


def test_only_available_shares_of_the_service_are_ensured(build_cloud):
    cloud = build_cloud(backends=BACKENDS)
    ids = [cloud.create_share() for _ in range(8)]
    cloud.api.act(ids[0], 'reset_status', {'status': 'error'})
    expected = {
        id for id in ids[1:] if cloud.api.show(id)['host'].startswith(f'{HOST}#')
    }
    assert 0 < len(expected) < 7
    asked = []
    answering(
        cloud,
        ensure_shares=lambda context, shares: asked.extend(
            one.share_id for one in shares
        ),
    )
    cloud.api.ensure(HOST)
    cloud.settle()
    assert sorted(asked) == sorted(expected)
    cloud.db.dispose()


def test_many_shares_take_several_pages_and_yield_to_other_work(cloud):
    ids = {cloud.create_share() for _ in range(5)}
    cloud.share.backends[0].endpoints.ensuring.page = 2
    asked = []
    answering(
        cloud,
        ensure_shares=lambda context, shares: asked.append(
            [one.share_id for one in shares]
        ),
    )
    cloud.api.ensure(HOST)
    cloud.step()
    created = cloud.api.create(size=1)['id']
    cloud.scheduler.runners[0].step()
    cloud.step()
    cloud.step()
    assert cloud.api.show(created)['status'] == InstanceStatus.AVAILABLE
    assert service(cloud)['ensuring'] is True
    cloud.settle()
    asked_ids = {id for page in asked for id in page}
    assert ids <= asked_ids <= ids | {created}
    assert max(map(len, asked)) == 2
    assert set(statuses(cloud).values()) == {InstanceStatus.AVAILABLE}


def test_share_that_changes_during_the_call_is_skipped(cloud):
    changed, gone, stays = (cloud.create_share() for _ in range(3))
    before = paths(cloud, changed)

    def ensure_shares(context, shares):
        cloud.api.act(changed, 'reset_status', {'status': 'error'})
        cloud.api.act(gone, 'force_delete')
        return elsewhere(context, shares)

    answering(cloud, ensure_shares=ensure_shares)
    cloud.api.ensure(HOST)
    cloud.settle()
    assert statuses(cloud) == {
        changed: InstanceStatus.ERROR,
        stays: InstanceStatus.AVAILABLE,
    }
    assert paths(cloud, changed) == before
    assert paths(cloud, stays) == [f'new:/{stays}']
    cloud.check_invariants()


def test_reconciliation_leaves_ensuring_shares_to_their_work(cloud):
    share = cloud.create_share()
    reconciliation = cloud.share.backends[0].endpoints.reconciliation
    rescued = []

    def ensure_shares(context, shares):
        rescued.append(reconciliation.run_pass())
        return elsewhere(context, shares)

    answering(cloud, ensure_shares=ensure_shares)
    cloud.api.ensure(HOST)
    cloud.settle()
    assert rescued == [0]
    assert paths(cloud, share) == [f'new:/{share}']
