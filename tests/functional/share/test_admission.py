"""Admission control: the API refuses what would wait in a full queue."""

import pytest
import sqlalchemy as sa

from manila_lite.db.models import services
from manila_lite.db.queries.services import services as service_rows
from manila_lite.work import table
from tests.support.unserved import lose

LIMIT = 2
ALPHA, BETA = 'node@alpha', 'node@beta'


@pytest.fixture
def cloud(build_cloud):
    return build_cloud(f'[work]\nmax_queue = {LIMIT}', backends=['alpha'])


@pytest.fixture
def pair(build_cloud):
    return build_cloud(f'[work]\nmax_queue = {LIMIT}')


def next_second(cloud):
    """Let admission control read the queues again."""
    cloud.clock.advance(1)


def fill(cloud, queue, number=LIMIT):
    """Add waiting work of a kind that no runner knows."""

    def submit(session):
        for _ in range(number):
            table.submit(
                session,
                {},
                kind='unknown.kind',
                topic='manila-share',
                queue=queue,
                resource='thing',
                resource_id=session.new_id(),
                args={},
            )

    cloud.db.write(submit)
    next_second(cloud)


def set_service(cloud, host, **values):
    cloud.db.write(
        lambda session: session.run(
            sa.update(services.Service.__table__)
            .where(services.Service.__table__.c.host == host)
            .values(**values)
        )
    )
    next_second(cloud)


def share_on(cloud, host):
    """Create a share on a back end."""
    other = {ALPHA: BETA, BETA: ALPHA}[host]
    cloud.db.write(service_rows.set_disabled, other, 'manila-share', True, None)
    share = cloud.create_share(size=2)
    cloud.db.write(service_rows.set_disabled, other, 'manila-share', False, None)
    next_second(cloud)
    return share


def test_new_shares_are_refused_while_the_scheduler_is_behind(cloud):
    share = cloud.create_share(size=2)
    next_second(cloud)
    for _ in range(LIMIT):
        cloud.api.create()
    next_second(cloud)
    body = {'share': {'share_proto': 'NFS', 'size': 1}}
    answers = [
        cloud.api.request('POST', '/shares', body, expect=503),
        cloud.api.act(share, 'extend', {'new_size': 3}, expect=503),
    ]
    assert {int(answer.headers['Retry-After']) > 0 for answer in answers} == {True}
    assert cloud.api.show(share)['status'] == 'available'
    cloud.api.act(share, 'shrink', {'new_size': 1})
    cloud.settle()
    next_second(cloud)
    cloud.api.act(share, 'extend', {'new_size': 3})
    cloud.settle()
    cloud.check_invariants()


def test_requests_that_end_work_are_never_refused(cloud):
    share = cloud.create_share(size=2)
    next_second(cloud)
    for _ in range(LIMIT):
        cloud.api.create()
    fill(cloud, ALPHA)
    cloud.api.create(expect=503)
    cloud.api.delete(share)


def test_full_queue_of_a_back_end_refuses_requests_for_it_only(pair):
    shares = {host: share_on(pair, host) for host in (ALPHA, BETA)}
    fill(pair, ALPHA)
    pair.api.act(shares[ALPHA], 'shrink', {'new_size': 1}, expect=503)
    pair.api.act(shares[ALPHA], 'extend', {'new_size': 3}, expect=503)
    pair.api.act(shares[BETA], 'shrink', {'new_size': 1})
    pair.api.create()


def test_new_shares_are_refused_when_all_back_ends_are_behind(pair):
    fill(pair, ALPHA)
    pair.api.create()
    fill(pair, BETA)
    pair.api.create(expect=503)


@pytest.mark.parametrize(
    'values', [{'health': 'it hangs'}, {'disabled': True}], ids=['unwell', 'disabled']
)
def test_back_end_that_takes_no_shares_has_no_room_for_them(pair, values):
    set_service(pair, BETA, **values)
    fill(pair, ALPHA)
    pair.api.create(expect=503)


def test_dead_back_end_has_no_room_for_shares(pair):
    lose(pair.db, BETA)
    fill(pair, ALPHA)
    pair.api.create(expect=503)


def test_queue_of_a_dead_service_does_not_count(pair):
    share = share_on(pair, ALPHA)
    lose(pair.db, ALPHA)
    fill(pair, ALPHA)
    pair.api.create()
    pair.api.act(share, 'shrink', {'new_size': 1})


def test_without_a_living_service_shares_are_accepted(pair):
    for host in (ALPHA, BETA):
        lose(pair.db, host)
        fill(pair, host)
    pair.api.create()


def test_back_end_that_hangs_refuses_only_its_own_requests(pair):
    shares = {host: share_on(pair, host) for host in (ALPHA, BETA)}
    set_service(pair, ALPHA, health='it hangs')
    fill(pair, ALPHA)
    pair.api.act(shares[ALPHA], 'shrink', {'new_size': 1}, expect=503)
    pair.api.act(shares[BETA], 'shrink', {'new_size': 1})
    pair.api.create()
