"""Share groups that are created from snapshots of share groups."""

from functools import partial

import pytest
import sqlalchemy as sa

from tests.support import cloud_snapshots, sampling, share_groups, share_transfers
from tests.support.cloud import TYPE_ID
from tests.support.concurrent_calls import status_codes


class Watched:
    """A driver that notes what `watch` returns after each clone."""

    def __init__(self, driver):
        self._driver = driver
        self.seen = []

    def __getattr__(self, name):
        return getattr(self._driver, name)

    def create_share_from_snapshot(self, *args, **kwargs):
        reply = self._driver.create_share_from_snapshot(*args, **kwargs)
        self.seen.append(self.watch())
        return reply


SINGLE = 'share_driver = tests.support.single_copies_driver.SingleCopiesDriver'


@pytest.fixture(params=['', SINGLE], ids=['together', 'singly'])
def cloud(build_cloud, request):
    """A cloud whose driver creates the shares of a copy at once, or not."""
    return prepared(build_cloud(backends=['alpha'], backend_conf=request.param))


@pytest.fixture
def single(build_cloud):
    return prepared(build_cloud(backends=['alpha'], backend_conf=SINGLE))


@pytest.fixture
def whole(build_cloud):
    return prepared(build_cloud(backends=['alpha']))


def prepared(cloud):
    cloud_snapshots.enable_snapshot_features(cloud)
    return cloud


@pytest.fixture
def group(cloud):
    return with_shares(cloud)


def with_shares(cloud):
    """Create a group with two shares of different content."""
    group = share_groups.create(cloud)
    for size in (1, 2):
        share = cloud.create_share(share_group_id=group, size=size)
        cloud.driver().write(instance_of(cloud, share), f'{size} GiB')
    return group


@pytest.fixture
def snapshot(cloud, group):
    return share_groups.take_snapshot(cloud, group)


def instance_of(cloud, share):
    return cloud.api.get(f'/shares/{share}/instances')['share_instances'][0]['id']


def request(cloud, snapshot, expect=202, **body):
    return share_groups.request_copy(cloud.api, snapshot, expect, **body)


def shares_of(cloud, group):
    """Return the shares of a group, the smallest first."""
    listed = cloud.api.get(f'/shares/detail?share_group_id={group}')['shares']
    return sorted(listed, key=lambda share: share['size'])


@pytest.mark.facts('source_share_group_snapshot_member_id')
def test_group_has_a_share_with_the_content_of_each_member(cloud, group, snapshot):
    for share in shares_of(cloud, group):
        cloud.driver().write(instance_of(cloud, share['id']), 'later')
    copy = request(cloud, snapshot, name='copy').json['share_group']['id']
    cloud.settle()
    shown, source = (share_groups.show(cloud.api, id) for id in (copy, group))
    assert shown['status'] == 'available'
    assert shown['name'] == 'copy'
    assert shown['source_share_group_snapshot_id'] == snapshot
    for key in ('host', 'share_group_type_id', 'share_types'):
        assert shown[key] == source[key]
    members = share_groups.show_snapshot(cloud.api, snapshot)['members']
    copies = shares_of(cloud, copy)
    assert {one['source_share_group_snapshot_member_id'] for one in copies} == {
        one['id'] for one in members
    }
    assert {one['status'] for one in copies} == {'available'}
    assert [cloud.driver().read(instance_of(cloud, one['id'])) for one in copies] == [
        '1 GiB',
        '2 GiB',
    ]
    assert cloud.driver().group_inventory() == {group, copy}
    assert cloud.usage('share_groups') == (2, 0)
    assert cloud.usage('shares') == (4, 0)
    assert cloud.usage('gigabytes') == (6, 0)
    cloud.check_invariants()


@pytest.mark.facts('source_share_group_snapshot_id_query')
def test_copies_are_listed_by_their_snapshot(cloud, group, snapshot):
    copy = request(cloud, snapshot).json['share_group']['id']
    cloud.settle()
    for key in (
        'source_share_group_snapshot_id',
        'share_group_snapshot_id',
        'snapshot_id',
        'snapshot',
    ):
        for value, wanted in ((snapshot, [copy]), (group, [])):
            listed = cloud.api.get(f'/share-groups?{key}={value}')
            assert [one['id'] for one in listed['share_groups']] == wanted


def test_group_is_being_created_until_its_shares_are(single):
    cloud = single
    snapshot = share_groups.take_snapshot(cloud, with_shares(cloud))
    endpoint = cloud.share.backends[0].endpoints.provisioning
    endpoint.driver = driver = Watched(endpoint.driver)
    copy = request(cloud, snapshot).json['share_group']['id']
    driver.watch = lambda: share_groups.show(cloud.api, copy)['status']
    cloud.settle()
    assert driver.seen == ['creating', 'creating']
    assert share_groups.show(cloud.api, copy)['status'] == 'available'


def test_copy_of_an_empty_group_is_empty(cloud):
    snapshot = share_groups.take_snapshot(cloud, share_groups.create(cloud))
    copy = request(cloud, snapshot).json['share_group']['id']
    cloud.settle()
    assert share_groups.show(cloud.api, copy)['status'] == 'available'
    assert shares_of(cloud, copy) == []


def test_group_is_in_error_when_one_of_its_shares_is(single):
    cloud = single
    snapshot = share_groups.take_snapshot(cloud, with_shares(cloud))
    cloud.driver().fail_next('create_share_from_snapshot')
    copy = request(cloud, snapshot).json['share_group']['id']
    cloud.settle()
    assert share_groups.show(cloud.api, copy)['status'] == 'error'
    copies = shares_of(cloud, copy)
    assert sorted(one['status'] for one in copies) == ['available', 'error']
    messages = cloud.api.get('/messages')['messages']
    assert {(one['resource_type'], one['resource_id']) for one in messages} == {
        ('SHARE_GROUP', copy),
        ('SHARE', next(x['id'] for x in copies if x['status'] == 'error')),
    }
    for one in copies:
        path = f'/shares/{one["id"]}?share_group_id={copy}'
        cloud.api.request('DELETE', path, expect=202)
    cloud.settle()
    share_groups.delete(cloud.api, copy)
    cloud.settle()
    share_groups.check_gone(cloud.api, copy)
    assert cloud.usage('shares') == (2, 0)
    cloud.check_invariants()


# Together, in one call of the driver


def snapshot_of(cloud):
    return share_groups.take_snapshot(cloud, with_shares(cloud))


def called(cloud, *methods):
    return [call.method for call in cloud.driver().calls if call.method in methods]


WHOLE = 'create_share_group_from_share_group_snapshot'


def test_driver_creates_a_group_with_all_its_shares_in_one_call(whole):
    snapshot = snapshot_of(whole)
    before = called(whole, 'create_share_group')
    copy = request(whole, snapshot).json['share_group']['id']
    whole.settle()
    assert called(whole, WHOLE, 'create_share_from_snapshot') == [WHOLE]
    assert called(whole, 'create_share_group') == before
    for share in shares_of(whole, copy):
        path = f'/shares/{share["id"]}/export_locations'
        assert whole.api.get(path)['export_locations']
    assert not whole.has_pending_work()


@pytest.mark.parametrize('fault', ['fail_next', 'half_fail_next'])
def test_group_and_all_its_shares_are_in_error_if_the_call_fails(whole, fault):
    snapshot = snapshot_of(whole)
    getattr(whole.driver(), fault)(WHOLE)
    copy = request(whole, snapshot).json['share_group']['id']
    whole.settle()
    assert share_groups.show(whole.api, copy)['status'] == 'error'
    copies = shares_of(whole, copy)
    assert [one['status'] for one in copies] == ['error', 'error']
    messages = whole.api.get('/messages')['messages']
    assert {one['resource_id'] for one in messages} == {
        copy,
        *(one['id'] for one in copies),
    }
    for one in copies:
        path = f'/shares/{one["id"]}?share_group_id={copy}'
        whole.api.request('DELETE', path, expect=202)
    whole.settle()
    share_groups.delete(whole.api, copy)
    whole.settle()
    share_groups.check_gone(whole.api, copy)
    assert whole.usage('shares') == (2, 0)
    whole.check_invariants()


def test_lost_reply_of_the_call_is_repeated_or_fails_visibly(whole):
    snapshot = snapshot_of(whole)
    whole.driver().lose_reply_next(WHOLE)
    copy = request(whole, snapshot).json['share_group']['id']
    whole.settle()
    status = share_groups.show(whole.api, copy)['status']
    assert {one['status'] for one in shares_of(whole, copy)} == {status}
    whole.check_invariants()


def test_group_waits_for_shares_that_are_copied_in_the_background(build_cloud):
    cloud = prepared(
        build_cloud(
            backends=['alpha'], backend_conf='dummy_driver_from_snapshot_steps = 3'
        )
    )
    snapshot = snapshot_of(cloud)
    copy = request(cloud, snapshot).json['share_group']['id']
    while called(cloud, WHOLE) == []:
        cloud.step()
    assert share_groups.show(cloud.api, copy)['status'] == 'creating'
    assert {one['status'] for one in shares_of(cloud, copy)} == {
        'creating_from_snapshot'
    }
    cloud.settle()
    assert share_groups.show(cloud.api, copy)['status'] == 'available'
    assert {one['status'] for one in shares_of(cloud, copy)} == {'available'}
    cloud.check_invariants()


class Silent:
    """A driver that reports nothing about the shares of a group."""

    def __init__(self, driver):
        self._driver = driver

    @property
    def __class__(self):
        return type(self._driver)

    def __getattr__(self, name):
        return getattr(self._driver, name)

    def create_share_group_from_share_group_snapshot(self, *args, **kwargs):
        self._driver.create_share_group_from_share_group_snapshot(*args, **kwargs)
        return None


def test_share_that_the_driver_reports_nothing_about_is_in_error(whole):
    copies = whole.share.backends[0].endpoints.share_groups.copies
    copies.driver = Silent(copies.driver)
    copy = request(whole, snapshot_of(whole)).json['share_group']['id']
    whole.settle()
    assert share_groups.show(whole.api, copy)['status'] == 'error'
    assert {one['status'] for one in shares_of(whole, copy)} == {'error'}


def test_share_deleted_while_its_group_is_created_leaves_nothing(whole):
    copy, deleted = None, []

    def delete_one():
        share = shares_of(whole, copy)[0]['id']
        deleted.append(share)
        whole.api.request(
            'POST', f'/shares/{share}/action', {'force_delete': None}, expect=202
        )
        for _ in range(5):
            for runner in competing_runners:
                runner.step()

    snapshot = snapshot_of(whole)
    competing_runners = whole.competing_runners()
    whole.pause_at(f'before {WHOLE}', delete_one)
    copy = request(whole, snapshot).json['share_group']['id']
    whole.settle()
    assert deleted
    (left,) = shares_of(whole, copy)
    assert left['status'] == 'available'
    assert share_groups.show(whole.api, copy)['status'] == 'available'
    whole.check_invariants()


def test_shares_are_created_singly_if_an_older_process_awaits_them(whole):
    """It has created the group only, and handed its work over."""
    snapshot = snapshot_of(whole)
    copy = request(whole, snapshot).json['share_group']['id']
    whole.driver().create_share_group(None, {'id': copy})

    def hand_over(session):
        session.run(
            sa.text(
                "UPDATE work SET kind = 'share_groups.await_shares_of_group' "
                "WHERE kind = 'share_groups.create_share_group'"
            )
        )

    whole.db.write(hand_over)
    whole.settle()
    assert share_groups.show(whole.api, copy)['status'] == 'available'
    assert (
        called(whole, WHOLE, 'create_share_from_snapshot')
        == ['create_share_from_snapshot'] * 2
    )
    whole.check_invariants()


def test_group_removed_by_force_while_it_is_created_leaves_its_shares(whole):
    copy = None

    def remove():
        share_groups.act(whole.api, copy, 'force_delete')

    snapshot = snapshot_of(whole)
    whole.pause_at(f'after {WHOLE}', remove)
    copy = request(whole, snapshot).json['share_group']['id']
    shares = [one['id'] for one in shares_of(whole, copy)]
    whole.settle()
    share_groups.check_gone(whole.api, copy)
    assert {whole.api.show(id)['status'] for id in shares} == {'available'}
    whole.check_invariants()


# The snapshot


def test_snapshot_is_not_deleted_while_a_group_is_created_from_it(cloud, snapshot):
    copy = request(cloud, snapshot).json['share_group']['id']
    answer = share_groups.delete_snapshot(cloud.api, snapshot, expect=409)
    assert 'is being created from' in str(answer.json)
    share_groups.act(cloud.api, copy, 'reset_status', {'status': 'available'})
    share_groups.delete_snapshot(cloud.api, snapshot, expect=409)
    cloud.settle()
    share_groups.delete_snapshot(cloud.api, snapshot)
    cloud.settle()
    share_groups.check_snapshot_gone(cloud.api, snapshot)
    assert {one['status'] for one in shares_of(cloud, copy)} == {'available'}


def test_shares_are_in_error_when_the_snapshot_is_removed_by_force(cloud, snapshot):
    copy = request(cloud, snapshot).json['share_group']['id']
    share_groups.act_on_snapshot(cloud.api, snapshot, 'force_delete')
    cloud.settle()
    assert share_groups.show(cloud.api, copy)['status'] == 'error'
    assert {one['status'] for one in shares_of(cloud, copy)} == {'error'}


@pytest.mark.parametrize(
    'body, text',
    [
        ({'share_types': ['7fa1342b-de9d-4d89-bdc8-af67795c0e52']},
         'share_types'),
        ({'share_group_type_id': '7fa1342b-de9d-4d89-bdc8-af67795c0e52'},
         'share_group_type_id'),
        ({'share_network_id': '7fa1342b-de9d-4d89-bdc8-af67795c0e52'},
         'share_network_id'),
        ({'availability_zone': 'nowhere'}, 'availability_zone'),
    ],
)  # fmt: skip
def test_request_that_contradicts_the_snapshot_is_refused(cloud, snapshot, body, text):
    answer = request(cloud, snapshot, expect=400, **body)
    assert text in str(answer.json)
    assert cloud.usage('share_groups') == (1, 0)


def test_request_may_repeat_what_the_group_of_the_snapshot_has(cloud, group, snapshot):
    shown = share_groups.show(cloud.api, group)
    request(
        cloud,
        snapshot,
        share_group_type_id=shown['share_group_type_id'],
        availability_zone=shown['availability_zone'],
    )


def test_snapshot_of_another_project_is_not_found(cloud, snapshot):
    another = share_transfers.client_of(cloud, 'another')
    refused = share_groups.request_copy(another, snapshot, expect=400)
    unknown = share_groups.request_copy(another, 'unknown', expect=400)
    assert refused.text.replace(snapshot, 'unknown') == unknown.text


def test_snapshot_that_is_not_available_is_no_source(cloud, snapshot):
    share_groups.act_on_snapshot(
        cloud.api, snapshot, 'reset_status', {'status': 'error'}
    )
    request(cloud, snapshot, expect=409)


def test_shares_that_cannot_be_cloned_are_no_source(build_cloud):
    cloud = build_cloud(backends=['alpha'])
    group = share_groups.create(cloud)
    cloud.api.request(
        'POST',
        f'/types/{TYPE_ID}/extra_specs',
        {'extra_specs': {'snapshot_support': 'True'}},
    )
    cloud.create_share(share_group_id=group)
    snapshot = share_groups.take_snapshot(cloud, group)
    answer = request(cloud, snapshot, expect=409)
    assert 'does not support creating shares' in str(answer.json)


@pytest.mark.parametrize('resource', ['share_groups', 'shares', 'gigabytes'])
def test_quota_limits_the_shares_of_a_new_group(cloud, snapshot, resource):
    used, _ = cloud.usage(resource)
    path = '/quota-sets/project'
    body = {'quota_set': {resource: used, 'force': True}}
    cloud.api.request('PUT', path, body, expect=200)
    request(cloud, snapshot, expect=413)
    assert cloud.usage(resource) == (used, 0)
    assert len(cloud.api.get('/share-groups')['share_groups']) == 1


@sampling.dialects
def test_snapshot_is_either_deleted_or_the_source_of_a_group(build_cloud, database_url):
    cloud = prepared(build_cloud(url=database_url, backends=['alpha']))
    group = with_shares(cloud)
    for seed in range(4):
        snapshot = share_groups.take_snapshot(cloud, group)
        cloud.rng.seed(f'race {seed}')
        codes = status_codes(
            partial(request, cloud, snapshot, None),
            partial(share_groups.delete_snapshot, cloud.api, snapshot, None),
            rng=cloud.rng,
        )
        assert sorted(codes) in ([202, 404], [202, 409]), (seed, codes)
        cloud.settle()
        groups = cloud.api.get('/share-groups/detail')['share_groups']
        assert {one['status'] for one in groups} == {'available'}
    cloud.check_invariants()
