"""The destination of a server migration has room reserved for the shares."""

from functools import partial

import pytest
import sqlalchemy as sa

from manila_lite.db.models import services
from manila_lite.db.queries.services import pools
from tests.support import sampling
from tests.support.concurrent_calls import status_codes
from tests.support.server_migrations import MIGRATION, ServerMigrationCloud

THICK = 'max_over_subscription_ratio = 1\n'
TWO_POOLS = 'dummy_driver_pools = one, two\n'
POOL = services.Pool.__table__


@pytest.fixture
def cloud(build_cloud):
    """A cloud with 10 GiB on each back end."""
    return build_cloud(kind=ServerMigrationCloud, capacity=10, backend_conf=THICK)


@pytest.fixture
def server(cloud):
    """A server on alpha with shares of 4 and 2 GiB."""
    network = cloud.add_network()
    first, second = (cloud.create_share_on_alpha(network, size=size) for size in (4, 2))
    server = cloud.server_of(first)
    assert cloud.server_of(second) == server
    return server


def allocated(cloud):
    """Return the GiB allocated on the pools that have any."""
    return {
        row.host.removeprefix('node@'): row.allocated_gb
        for row in cloud.rows(sa.select(POOL.c.host, POOL.c.allocated_gb))
        if row.allocated_gb
    }


def pool(cloud, host='node@beta#pool'):
    (row,) = cloud.rows(sa.select(POOL).where(POOL.c.host == host))
    return row.allocated_gb, row.pending_gb, row.free_gb


def report(cloud):
    for backend in cloud.share.backends:
        backend.report()


def fits_on_beta(cloud, size):
    """Whether a new share of this size is placed on beta."""
    cloud.disable('alpha', True)
    share = cloud.api.create(size=size, share_network_id=cloud.add_network())['id']
    cloud.settle()
    cloud.disable('alpha', False)
    status = cloud.api.show(share)['status']
    assert status in ('available', 'error')
    return status == 'available'


def test_both_back_ends_count_the_shares_until_the_end(cloud, server):
    cloud.start(server)
    assert allocated(cloud) == {'alpha#pool': 6, 'beta#pool': 6}
    cloud.settle()
    assert allocated(cloud) == {'alpha#pool': 6, 'beta#pool': 6}
    cloud.complete(server)
    assert allocated(cloud) == {'alpha#pool': 6, 'beta#pool': 6}
    cloud.settle()
    assert allocated(cloud) == {'beta#pool': 6}
    cloud.check_invariants()


def test_reserved_room_is_not_given_to_others(cloud, server):
    cloud.start(server)
    assert not fits_on_beta(cloud, 5)
    assert fits_on_beta(cloud, 4)


def test_reports_during_the_copy_do_not_free_what_is_reserved(cloud, server):
    """The back end does not know yet what will arrive."""
    cloud.start(server)
    report(cloud)
    assert pool(cloud) == (6, 6, 10.0)
    assert not fits_on_beta(cloud, 5)
    cloud.settle()
    report(cloud)
    assert cloud.server(server)['task_state'] == ('migration_driver_phase1_done')
    assert pool(cloud)[:2] == (6, 0)
    cloud.complete(server)
    cloud.settle()
    report(cloud)
    assert pool(cloud) == (6, 0, 4.0)


def test_a_cancelled_migration_releases_its_room(cloud, server):
    cloud.start_to_phase1(server)
    cloud.cancel(server)
    cloud.settle()
    assert allocated(cloud) == {'alpha#pool': 6}
    report(cloud)
    assert fits_on_beta(cloud, 10)


@pytest.mark.parametrize(
    'method',
    [
        'share_server_migration_check_compatibility',
        'share_server_migration_start',
        'share_server_migration_continue',
    ],
)
def test_a_failed_first_phase_releases_its_room(cloud, server, method):
    cloud.driver('beta').fail_next(method)
    cloud.start(server)
    cloud.settle()
    assert cloud.server(server)['task_state'] == 'migration_error'
    assert allocated(cloud) == {'alpha#pool': 6}
    cloud.check_invariants()


def test_a_failed_second_phase_releases_its_room(cloud, server):
    """The shares remain on the source, in error."""
    cloud.start_to_phase1(server)
    cloud.driver('beta').fail_next('share_server_migration_complete', None)
    cloud.complete(server)
    cloud.settle()
    assert cloud.server(server)['status'] == 'error'
    assert allocated(cloud) == {'alpha#pool': 6}


@pytest.mark.parametrize('size, code', [(4, 202), (5, 409)])
def test_a_migration_needs_room_for_all_shares(cloud, server, size, code):
    assert fits_on_beta(cloud, size)
    before = allocated(cloud)
    cloud.start(server, expect=code)
    reserved = 6 if code == 202 else 0
    assert allocated(cloud) == {**before, 'beta#pool': size + reserved}


def test_a_pool_that_returns_counts_what_is_reserved(cloud, server):
    cloud.start(server)
    cloud.db.write(pools.save_report, 'node@beta', [], {})
    assert allocated(cloud) == {'alpha#pool': 6}
    report(cloud)
    assert allocated(cloud) == {'alpha#pool': 6, 'beta#pool': 6}
    cloud.settle()
    cloud.cancel(server)
    cloud.settle()
    assert allocated(cloud) == {'alpha#pool': 6}


def test_a_migration_of_an_earlier_release_has_nothing_reserved(cloud, server):
    cloud.start_to_phase1(server)
    cloud.db.write(
        lambda session: (
            session.run(sa.update(MIGRATION).values(reserved=None)),
            pools.adjust_allocated(session, 'node@beta#pool', -6),
        )
    )
    cloud.complete(server)
    cloud.settle()
    assert allocated(cloud) == {'beta#pool': 6}
    cloud.check_invariants()


# Pools


@pytest.fixture
def spread(build_cloud):
    """A cloud with two pools of 10 GiB on each back end."""
    return build_cloud(
        kind=ServerMigrationCloud, capacity=10, backend_conf=THICK + TWO_POOLS
    )


@pytest.fixture
def spread_server(spread):
    """A server with 6 GiB in each pool of alpha."""
    network = spread.add_network()
    shares = [spread.create_share_on_alpha(network, size=6) for _ in range(2)]
    (server,) = {spread.server_of(share) for share in shares}
    assert allocated(spread) == {'alpha#one': 6, 'alpha#two': 6}
    return server


def test_room_is_reserved_in_the_pool_of_the_same_name(spread, spread_server):
    spread.start(spread_server)
    assert allocated(spread) == {
        'alpha#one': 6,
        'alpha#two': 6,
        'beta#one': 6,
        'beta#two': 6,
    }
    spread.settle()
    spread.complete(spread_server)
    spread.settle()
    assert allocated(spread) == {'beta#one': 6, 'beta#two': 6}
    spread.check_invariants()


@pytest.mark.parametrize('wanted', ['one', 'two'])
def test_room_is_reserved_in_the_requested_pool(spread, wanted):
    share = spread.create_share_on_alpha(spread.add_network(), size=6)
    spread.start(spread.server_of(share), host=f'node@beta#{wanted}')
    assert allocated(spread).keys() > {f'beta#{wanted}'}
    assert allocated(spread)[f'beta#{wanted}'] == 6


def test_all_shares_have_to_fit_into_the_requested_pool(spread, spread_server):
    spread.start(spread_server, host='node@beta#two', expect=409)
    assert allocated(spread) == {'alpha#one': 6, 'alpha#two': 6}


def test_room_is_corrected_when_shares_arrive_elsewhere(spread):
    """The pool of the same name is full, so others are reserved first."""
    network = spread.add_network()
    share = spread.create_share_on_alpha(network, size=6)
    pool = spread.instance(share).host.partition('#')[2]
    other = {'one': 'two', 'two': 'one'}[pool]
    spread.db.write(pools.adjust_allocated, f'node@beta#{pool}', 6)
    server = spread.server_of(share)
    spread.start(server)
    # 4 GiB are left in the one, so the rest would be in the other.
    assert allocated(spread) == {
        f'alpha#{pool}': 6,
        f'beta#{pool}': 10,
        f'beta#{other}': 2,
    }
    spread.settle()
    spread.complete(server)
    spread.settle()
    assert allocated(spread) == {f'beta#{pool}': 12}
    spread.db.write(pools.adjust_allocated, f'node@beta#{pool}', -6)
    spread.check_invariants()


# Races


@sampling.dialects
def test_of_concurrent_migrations_those_that_fit_are_accepted(database_url, tmp_path):
    cloud = ServerMigrationCloud(
        tmp_path, url=database_url, capacity=16, backend_conf=THICK
    )
    servers = [
        cloud.server_of(cloud.create_share_on_alpha(cloud.add_network(), size=4))
        for _ in range(4)
    ]
    assert fits_on_beta(cloud, 3)
    codes = status_codes(
        *[partial(cloud.start, server, expect=None) for server in servers],
        rng=cloud.rng,
    )
    # 13 GiB are left.
    assert sorted(codes) == [202] * 3 + [409]
    assert allocated(cloud) == {'alpha#pool': 16, 'beta#pool': 15}
    cloud.settle()
    for server, code in zip(servers, codes, strict=True):
        if code == 202:
            cloud.complete(server)
    cloud.settle()
    cloud.check_invariants()
    assert allocated(cloud) == {'alpha#pool': 4, 'beta#pool': 15}
    cloud.db.dispose()


class GrowingShare:
    """A scheduler client; a share grows while a migration is planned."""

    def __init__(self, client, grow):
        self.client = client
        self.grow = [grow]

    def plan_server_destination(self, *args, **kwargs):
        answer = self.client.plan_server_destination(*args, **kwargs)
        if self.grow:
            self.grow.pop()()
        return answer


def test_a_share_that_grows_meanwhile_has_its_room_reserved(cloud, server):
    share = cloud.api.get('/shares')['shares'][0]['id']
    size = cloud.api.show(share)['size']

    def grow():
        cloud.api.act(share, 'extend', {'new_size': size + 1}, expect=202)
        cloud.settle()

    operations = cloud.services.server_migrations
    operations.scheduler = GrowingShare(operations.scheduler, grow)
    cloud.start(server)
    assert allocated(cloud) == {'alpha#pool': 7, 'beta#pool': 7}
    cloud.settle()
    cloud.complete(server)
    cloud.settle()
    assert allocated(cloud) == {'beta#pool': 7}
    cloud.check_invariants()
