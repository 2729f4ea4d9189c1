"""Ensuring of shares at the start of a service."""

import pytest

from manila_lite import exception
from manila_lite.states.share_instance import InstanceStatus
from tests.functional.share.ensuring.ensured import (
    answering,
    elsewhere,
    failing,
    lacking,
    moves,
    owed,
    paths,
    service,
    statuses,
)

HOST = 'node@alpha'


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
