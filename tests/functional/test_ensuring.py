"""Ensuring of shares, on request and at start."""

import pytest
import sqlalchemy as sa

from manila_lite import exception
from manila_lite.db.models import engine
from manila_lite.states.share_instance import InstanceStatus
from tests.support.cloud import BACKENDS
from tests.support.cloud import ApiClient
from tests.support.databases import database_url
from tests.support.databases import shared_database

__all__ = ['database_url', 'shared_database']

HOST = 'node@alpha'
PATH = '/services/ensure-shares'


@pytest.fixture
def build_cloud(build_cloud):
    """Build a cloud with one back end that has started and is at rest."""

    def build(*args, backends=('alpha',), **options):
        cloud = build_cloud(*args, backends=backends, **options)
        cloud.settle()
        return cloud

    return build


@pytest.fixture
def cloud(build_cloud):
    return build_cloud()


class Answering:
    """Wraps the driver of a back end with replies set by the test."""

    def __init__(self, backend, **answers):
        self._driver = backend.endpoints.ensuring.driver
        vars(self).update(answers)
        backend.endpoints.ensuring.driver = self

    def __getattr__(self, name):
        return getattr(self._driver, name)


def answering(cloud, **answers):
    return Answering(cloud.share.backends[0], **answers)


def lacking(*args):
    raise NotImplementedError


def failing(*args):
    raise exception.ShareBackendException(msg='it is on fire')


def elsewhere(context, shares):
    """Report other export paths than before."""
    return {
        share.id: {'export_locations': [f'new:/{share.share_id}']}
        for share in shares
    }


def statuses(cloud):
    return {
        share['id']: share['status']
        for share in cloud.api.get('/shares/detail')['shares']
    }


def paths(cloud, share_id):
    return [
        one['path']
        for one in cloud.api.get(f'/shares/{share_id}/export_locations')[
            'export_locations'
        ]
    ]


def service(cloud):
    return cloud.api.get(f'/services?host={HOST}')['services'][0]


def moves(cloud):
    journal = engine.Transition.__table__
    return [
        row.event
        for row in cloud.db.read(
            lambda session: session.rows(
                sa.select(journal).order_by(journal.c.id)
            )
        )
    ]


def owed(cloud):
    work = engine.Work.__table__
    return cloud.db.read(
        lambda session: session.value(
            sa.select(sa.func.count()).select_from(work)
        )
    )


# The request


def test_service_and_shares_show_ensuring(cloud):
    share = cloud.create_share()
    seen = []

    def ensure_shares(context, shares):
        seen.append(
            (
                statuses(cloud),
                service(cloud)['ensuring'],
                [one['status'] for one in shares],
            )
        )

    answering(cloud, ensure_shares=ensure_shares)
    answer = cloud.api.ensure(HOST)
    assert answer.body == b''
    assert service(cloud)['ensuring'] is True
    assert cloud.api.get('/services?ensuring=true', version='2.93')[
        'services'
    ] == [service(cloud)]
    cloud.settle()
    assert seen == [
        ({share: InstanceStatus.ENSURING}, True, [InstanceStatus.ENSURING])
    ]
    assert statuses(cloud) == {share: InstanceStatus.AVAILABLE}
    assert service(cloud)['ensuring'] is False


def test_shares_stay_available_if_configured(build_cloud):
    cloud = build_cloud('update_shares_status_on_ensure = false')
    share = cloud.create_share()
    before = moves(cloud)
    seen = []
    answering(
        cloud,
        ensure_shares=lambda context, shares: seen.append(
            (statuses(cloud), service(cloud)['ensuring'])
        ),
    )
    cloud.api.ensure(HOST)
    cloud.settle()
    assert seen == [({share: InstanceStatus.AVAILABLE}, True)]
    assert moves(cloud) == before
    cloud.check_invariants()
    cloud.db.dispose()


@pytest.mark.parametrize(
    'body',
    [
        {},
        {'ensure_shares': None},
        {'ensure_shares': {}},
        {'ensure_shares': {'host': ''}},
        {'ensure_shares': {'host': 5}},
        {'ensure_shares': {'host': 'x' * 256}},
        {'host': 5},
        [],
        None,
    ],
)
def test_invalid_body_is_refused(cloud, body):
    cloud.api.request('POST', PATH, body, expect=400)
    assert not owed(cloud)


@pytest.mark.parametrize(
    'host', ['node', 'node@beta', f'{HOST}#pool', 'NODE@alpha']
)
def test_only_hosts_of_share_services_are_accepted(cloud, host):
    cloud.api.ensure(host, expect=404)
    assert not owed(cloud)


def test_service_that_is_down_is_in_conflict(cloud):
    cloud.clock.advance(61)
    refused = cloud.api.ensure(HOST, expect=409)
    assert 'not up' in refused.json['conflictingRequest']['message']
    assert not owed(cloud)
    assert service(cloud)['ensuring'] is False


def test_service_with_a_failed_driver_is_in_conflict(cloud):
    (backend,) = cloud.share.backends
    backend.health = 'The driver failed to start.'
    backend.beat()
    cloud.api.ensure(HOST, expect=409)
    assert not owed(cloud)


def test_service_that_is_ensuring_is_in_conflict(cloud):
    cloud.api.ensure(HOST)
    refused = cloud.api.ensure(HOST, expect=409)
    assert 'already' in refused.json['conflictingRequest']['message']
    cloud.settle()
    cloud.api.ensure(HOST)


def test_request_is_forbidden_for_users(cloud):
    ApiClient(cloud, roles='member,reader').ensure(HOST, expect=403)
    assert not owed(cloud)


def test_older_versions_have_no_such_action(cloud):
    body = {'ensure_shares': {'host': HOST}}
    cloud.api.request('POST', PATH, body, version='2.85', expect=404)
    assert not owed(cloud)
    cloud.api.request('POST', PATH, body, version='2.86', expect=202)


# Replies of the driver


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
    found = {
        one['path']: one for one in cloud.api.get(url)['export_locations']
    }
    assert set(found) == {stays['path'], 'new:/'}
    assert found[stays['path']]['id'] == stays['id']
    assert found[stays['path']]['metadata']['color'] == 'red'
    assert goes['id'] not in {one['id'] for one in found.values()}


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
    assert (message['resource_type'], message['resource_id']) == (
        'SHARE',
        share,
    )
    assert message['request_id'] == request_id
    assert (message['action_id'], message['detail_id']) == ('005', '001')


def test_reported_metadata_is_added(cloud):
    share = cloud.create_share(metadata={'color': 'red', 'size': 'small'})
    answering(
        cloud,
        ensure_shares=lambda context, shares: {
            one.id: {'metadata': {'color': 'blue', 'shape': 'round'}}
            for one in shares
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
        id
        for id in ids[1:]
        if cloud.api.show(id)['host'].startswith(f'{HOST}#')
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


# Start


def start(cloud):
    (backend,) = cloud.share.backends
    backend.set_up()


def test_unchanged_back_end_ensures_nothing(cloud):
    cloud.create_share()
    cloud.restart()
    assert not owed(cloud)
    assert service(cloud)['ensuring'] is False


def test_changed_back_end_ensures_its_shares_once(cloud):
    share = cloud.create_share()
    seen = []

    def ensure_shares(context, shares):
        seen.append((statuses(cloud), service(cloud)['ensuring']))
        return elsewhere(context, shares)

    answering(
        cloud,
        ensure_shares=ensure_shares,
        get_backend_info=lambda context: {'address': 'new'},
    )
    start(cloud)
    assert cloud.share.backends[0].is_up
    cloud.settle()
    assert seen == [({share: InstanceStatus.AVAILABLE}, True)]
    assert paths(cloud, share) == [f'new:/{share}']
    assert service(cloud)['ensuring'] is False
    start(cloud)
    cloud.settle()
    assert len(seen) == 1


def test_driver_without_backend_info_ensures_at_every_start(cloud):
    share = cloud.create_share()
    before = moves(cloud)
    asked = []
    answering(
        cloud,
        get_backend_info=lacking,
        ensure_shares=lambda context, shares: asked.append(
            [one.share_id for one in shares]
        ),
    )
    for _ in range(2):
        start(cloud)
        cloud.settle()
    assert asked == [[share], [share]]
    assert moves(cloud) == before


def test_share_lost_at_start_is_shown_in_error(cloud):
    lost, stays = cloud.create_share(), cloud.create_share()
    answering(
        cloud,
        get_backend_info=lacking,
        ensure_shares=lambda context, shares: {
            one.id: {'status': InstanceStatus.ERROR}
            for one in shares
            if one.share_id == lost
        },
    )
    start(cloud)
    cloud.settle()
    assert statuses(cloud) == {
        lost: InstanceStatus.ERROR,
        stays: InstanceStatus.AVAILABLE,
    }


def test_share_deleted_during_start_stays_deleted(cloud):
    share = cloud.create_share()

    def ensure_shares(context, shares):
        cloud.api.delete(share)
        return elsewhere(context, shares)

    answering(cloud, ensure_shares=ensure_shares, get_backend_info=lacking)
    start(cloud)
    cloud.settle()
    assert statuses(cloud) == {}
    cloud.check_invariants()


def test_driver_with_failing_backend_info_does_not_start(cloud):
    answering(cloud, get_backend_info=failing)
    with pytest.raises(exception.ShareBackendException, match='on fire'):
        start(cloud)
    assert not owed(cloud)


@pytest.mark.parametrize('page, turn', [(2, 1), (2, 2), (100, 1)])
def test_change_on_any_page_restarts_ensuring(cloud, page, turn):
    ids = sorted(cloud.create_share() for _ in range(3))
    cloud.share.backends[0].endpoints.ensuring.page = page
    asked, shown = [], []

    def ensure_shares(context, shares):
        asked.append([one.share_id for one in shares])
        if len(asked) == turn:
            start(cloud)
        shown.append(service(cloud)['ensuring'])

    answering(
        cloud,
        ensure_shares=ensure_shares,
        get_backend_info=lambda context: {'address': 'new'},
    )
    cloud.api.ensure(HOST)
    cloud.settle()
    assert sorted(id for some in asked[turn:] for id in some) == ids
    assert all(shown)
    cloud.check_invariants()


def test_request_conflicts_with_ensuring_at_start(cloud):
    answering(cloud, get_backend_info=lacking)
    start(cloud)
    cloud.api.ensure(HOST, expect=409)
    cloud.settle()
    cloud.api.ensure(HOST)
