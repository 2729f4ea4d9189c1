"""Concurrent requests about one share transfer.

In real threads, on each database, over the API.
"""

from functools import partial

import pytest
import sqlalchemy as sa

from manila_lite import exception
from manila_lite.context import RequestContext
from manila_lite.db.models import snapshots
from manila_lite.db.queries.shares import shares
from tests.support import cloud_snapshots, databases, sampling, share_transfers
from tests.support.cloud_images import prepared
from tests.support.concurrent_calls import at_once, status_codes

pytestmark = [sampling.dialects, sampling.enumeration]

SNAPSHOT = snapshots.Snapshot.__table__
CLIENTS = 8
SEEDS = sampling.seeds(40, 2)
_CONF = '[quota]\nsnapshots = -1\nsnapshot_gigabytes = -1'


@pytest.fixture
def cloud(build_cloud, database_url):
    cloud = build_cloud(_CONF, url=database_url, backends=('alpha',))
    cloud_snapshots.enable_snapshot_features(cloud)
    return cloud


@pytest.fixture
@prepared
def share_id(cloud):
    """A share with a snapshot and a rule."""
    share_id = cloud.create_share(size=2)
    cloud_snapshots.create_available(cloud, share_id)
    rule = {'access_type': 'ip', 'access_to': '10.0.0.1'}
    cloud.api.act(share_id, 'allow_access', rule, expect=200)
    cloud.settle()
    return share_id


def accept(cloud, transfer, project='another', expect=None, **more):
    return share_transfers.accept(
        share_transfers.client_of(cloud, project), transfer, expect, **more
    )


def test_one_of_many_concurrent_offers_of_a_share_is_accepted(cloud, share_id):
    for seed in SEEDS:
        cloud.rng.seed(f'race {seed}')
        answers = at_once(
            *[partial(share_transfers.request_offer, cloud.api, share_id)] * CLIENTS,
            rng=cloud.rng,
        )
        codes = sorted(answer.status_int for answer in answers)
        assert codes == [202] + [400] * (CLIENTS - 1), seed
        (offered,) = (
            answer.json['transfer'] for answer in answers if answer.status_int == 202
        )
        share_transfers.withdraw(cloud.api, offered)
    cloud.check_invariants()


def test_one_of_many_projects_that_accept_gets_the_share(cloud, share_id):
    for seed in SEEDS:
        cloud.rng.seed(f'race {seed}')
        offered = share_transfers.offer(cloud.api, share_id)
        projects = [f'p{number}' for number in range(CLIENTS)]
        codes = status_codes(
            *(
                partial(
                    accept, cloud, offered, project, clear_access_rules=number % 2 == 0
                )
                for number, project in enumerate(projects)
            ),
            rng=cloud.rng,
        )
        assert sorted(codes) == [202] + [400] * (CLIENTS - 1), seed
        cloud.settle()
        winner = projects[codes.index(202)]
        shown = cloud.api.show(share_id)
        assert (shown['status'], shown['project_id']) == ('available', winner)
        assert cloud.usage('gigabytes', winner) == (2, 0)
        assert cloud.usage('snapshot_gigabytes', winner) == (2, 0)
        cloud.check_invariants()


def withdraw(cloud, share_id, offered):
    return share_transfers.withdraw(cloud.api, offered, expect=None)


def force_delete(cloud, share_id, offered):
    for one in cloud.api.get(f'/snapshots?share_id={share_id}')['snapshots']:
        cloud_snapshots.act(cloud, one['id'], 'force_delete', expect=None)
        cloud.run_pending()
    return cloud.api.act(share_id, 'force_delete', expect=None)


def expire(cloud, share_id, offered):
    cloud.clock.advance(301)
    share_transfers.expire(cloud)
    return None


def reset(cloud, share_id, offered):
    return cloud.api.act(share_id, 'reset_status', {'status': 'available'}, expect=None)


def delete_snapshot(cloud, share_id, offered):
    (snapshot,) = cloud.api.get(f'/snapshots?share_id={share_id}')['snapshots']
    return cloud_snapshots.delete(cloud, snapshot['id'], expect=None)


@pytest.mark.parametrize('clear', [False, True])
def test_offer_is_either_accepted_or_withdrawn(cloud, share_id, clear):
    for seed in SEEDS:
        cloud.rng.seed(f'race {seed}')
        owner = cloud.api.show(share_id)['project_id']
        offered = share_transfers.offer(cloud.api, share_id)
        accepted, withdrawn = status_codes(
            partial(accept, cloud, offered, f'p{seed}', clear_access_rules=clear),
            partial(withdraw, cloud, share_id, offered),
            rng=cloud.rng,
        )
        assert (accepted, withdrawn) in ((202, 400), (400, 200)), seed
        cloud.settle()
        shown = cloud.api.show(share_id)
        assert shown['status'] == 'available'
        assert shown['project_id'] == (f'p{seed}' if accepted == 202 else owner)
        cloud.check_invariants()


@pytest.mark.parametrize(
    'other',
    [force_delete, expire, reset, delete_snapshot],
    ids=lambda other: other.__name__,
)
def test_acceptance_beside_other_requests_keeps_the_books(cloud, share_id, other):
    for seed in SEEDS[:2]:
        cloud.rng.seed(f'race {seed}')
        share = cloud.create_share(size=2)
        cloud_snapshots.create_available(cloud, share)
        offered = share_transfers.offer(cloud.api, share)
        answers = at_once(
            partial(accept, cloud, offered),
            partial(other, cloud, share, offered),
            rng=cloud.rng,
        )
        for answer in answers:
            assert answer is None or answer.status_int < 500, answer.text
        cloud.beat()
        cloud.settle()
        cloud.check_invariants()


@pytest.mark.parametrize('database_url', ['mysql', 'postgresql'], indirect=True)
def test_snapshots_that_are_transferred_are_locked_before_they_are_counted(
    cloud, share_id, database_url
):
    (snapshot,) = cloud.api.get(f'/snapshots?share_id={share_id}')['snapshots']
    accept(cloud, share_transfers.offer(cloud.api, share_id))
    locked = []

    @sa.event.listens_for(cloud.db.engine, 'after_cursor_execute')
    def look(connection, cursor, statement, *rest):
        if 'FROM share_snapshots' in statement and 'size' in statement:
            locked.append(databases.is_locked(database_url, SNAPSHOT, snapshot['id']))

    cloud.settle()
    assert cloud.api.show(share_id)['project_id'] == 'another'
    assert locked == [True]


def accept_in_time(cloud, offered):
    cloud.clock.advance(-301)
    accept(cloud, offered, expect=202)
    cloud.clock.advance(301)


@pytest.mark.parametrize('database_url', ['mysql', 'postgresql'], indirect=True)
def test_offer_that_is_accepted_once_it_is_found_to_expire_does_not(cloud, share_id):
    offered = share_transfers.offer(cloud.api, share_id)
    # The second statement begins the transaction that ends the offer.
    cloud.pause_at('statement', partial(accept_in_time, cloud, offered), 2)
    expire(cloud, share_id, offered)
    expire(cloud, share_id, offered)
    cloud.beat()
    cloud.settle()
    assert cloud.api.show(share_id)['project_id'] == 'another'
    cloud.check_invariants()


@pytest.mark.parametrize('verb', ['delete', 'force_delete'])
def test_former_project_cannot_delete_a_share_it_has_just_given_away(cloud, verb):
    """Its request was authorized before, and is carried out after."""
    share_id = cloud.create_share(size=2)
    before = cloud.db.read(shares.get_target, share_id)
    accept(cloud, share_transfers.offer(cloud.api, share_id), expect=202)
    cloud.settle()
    with pytest.raises(exception.ShareNotFound):
        getattr(cloud.services.shares, verb)(
            RequestContext(project_id='project', user_id='user'), before
        )
    assert cloud.api.show(share_id)['status'] == 'available'


def test_shares_that_are_exchanged_keep_the_books(cloud, share_id):
    """Two transfers change the usage of the same projects, in both ways."""
    mine, theirs = share_id, cloud.create_share(size=3)
    accept(cloud, share_transfers.offer(cloud.api, theirs), expect=202)
    cloud.settle()
    for _ in SEEDS:
        owners = [cloud.api.show(id)['project_id'] for id in (mine, theirs)]
        offers = [share_transfers.offer(cloud.api, id) for id in (mine, theirs)]
        codes = status_codes(
            *(
                partial(accept, cloud, offered, project)
                for offered, project in zip(offers, reversed(owners), strict=True)
            ),
            rng=cloud.rng,
        )
        assert codes == [202, 202]
        cloud.settle()
        assert [cloud.api.show(id)['project_id'] for id in (mine, theirs)] == owners[
            ::-1
        ]
        cloud.check_invariants()
