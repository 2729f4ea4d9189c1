"""Requests to ensure the shares of a service."""

import pytest

from manila_lite.states.share_instance import InstanceStatus
from tests.functional.share.ensuring.ensured import (
    answering,
    moves,
    owed,
    service,
    statuses,
)
from tests.support.api_client import ApiClient

HOST = 'node@alpha'
PATH = '/services/ensure-shares'


@pytest.mark.facts('add-ensure-shares-api.1')
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
    assert cloud.api.get('/services?ensuring=true', version='2.93')['services'] == [
        service(cloud)
    ]
    cloud.settle()
    assert seen == [({share: InstanceStatus.ENSURING}, True, [InstanceStatus.ENSURING])]
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


@pytest.mark.parametrize('host', ['node', 'node@beta', f'{HOST}#pool', 'NODE@alpha'])
def test_only_hosts_of_share_services_are_accepted(cloud, host):
    cloud.api.ensure(host, expect=404)
    assert not owed(cloud)


def test_service_that_is_down_is_in_conflict(cloud):
    cloud.clock.advance(61)
    refused = cloud.api.ensure(HOST, expect=409)
    assert 'down' in refused.json['conflictingRequest']['message']
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


@pytest.mark.facts('add-ensure-shares-api.3')
def test_request_is_forbidden_for_users(cloud):
    ApiClient(cloud, roles='member,reader').ensure(HOST, expect=403)
    assert not owed(cloud)


def test_older_versions_have_no_such_action(cloud):
    body = {'ensure_shares': {'host': HOST}}
    cloud.api.request('POST', PATH, body, version='2.85', expect=404)
    assert not owed(cloud)
    cloud.api.request('POST', PATH, body, version='2.86', expect=202)
