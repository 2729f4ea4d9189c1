"""Concurrent requests about one share and its backups.

In real threads, on each database, over the API.
"""

from functools import partial

import pytest

from tests.support import sampling, share_backups
from tests.support.concurrent_calls import status_codes

pytestmark = [sampling.dialects, sampling.enumeration]

CLIENTS = 8
SEEDS = sampling.seeds(20, 2)
_CONF = """
[quota]
backups = -1
backup_gigabytes = -1
shares = -1
gigabytes = -1
"""


@pytest.fixture
def cloud(build_cloud, database_url):
    cloud = build_cloud(_CONF, url=database_url, backends=('alpha',))
    yield cloud
    cloud.check_invariants()


def delete_share(cloud, share):
    return cloud.api.request('DELETE', f'/shares/{share}', expect=None)


def status(cloud, share):
    return cloud.api.show(share)['status']


def test_one_of_many_backups_of_a_share_is_accepted_at_a_time(cloud):
    share = cloud.create_share()
    for seed in SEEDS:
        cloud.rng.seed(f'race {seed}')
        codes = status_codes(
            *[partial(share_backups.request, cloud.api, share, None)] * CLIENTS,
            rng=cloud.rng,
        )
        assert sorted(codes) == [202] + [400] * (CLIENTS - 1), seed
        cloud.settle()
        assert status(cloud, share) == 'available'


def test_share_gets_no_backups_of_two_types_at_once(cloud):
    """Whichever of two requests comes first, by the data service or not."""
    for seed in SEEDS:
        share = cloud.create_share()
        cloud.rng.seed(f'race of types {seed}')
        codes = status_codes(
            partial(share_backups.request, cloud.api, share, None),
            partial(
                share_backups.request, cloud.api, share, None, **share_backups.BY_DRIVER
            ),
            rng=cloud.rng,
        )
        assert sorted(codes) == [202, 400], seed
        cloud.settle()
        assert status(cloud, share) == 'available'


def test_one_of_many_restores_of_a_backup_is_accepted_at_a_time(cloud):
    shares = [cloud.create_share() for _ in range(2)]
    backup = share_backups.create(cloud, shares[0])
    for seed in SEEDS:
        cloud.rng.seed(f'race {seed}')
        codes = status_codes(
            *[
                partial(
                    share_backups.restore, cloud.api, backup, shares[number % 2], None
                )
                for number in range(CLIENTS)
            ],
            rng=cloud.rng,
        )
        assert codes.count(202) == 1, (seed, codes)
        assert set(codes) == {202, 400}, (seed, codes)
        cloud.settle()
        assert {status(cloud, share) for share in shares} == {'available'}


def test_one_of_two_backups_is_restored_to_a_share_at_a_time(cloud):
    share = cloud.create_share()
    backups = [share_backups.create(cloud, share) for _ in range(2)]
    for seed in SEEDS:
        cloud.rng.seed(f'race {seed}')
        codes = status_codes(
            *[
                partial(share_backups.restore, cloud.api, one, share, None)
                for one in backups
            ],
            rng=cloud.rng,
        )
        assert sorted(codes) == [202, 400], seed
        cloud.settle()
        assert status(cloud, share) == 'available'


def test_backup_is_either_restored_or_deleted(cloud):
    for seed in SEEDS:
        share = cloud.create_share()
        backup = share_backups.create(cloud, share)
        cloud.rng.seed(f'race {seed}')
        restored, deleted = status_codes(
            partial(share_backups.restore, cloud.api, backup, share, None),
            partial(share_backups.delete, cloud.api, backup, None),
            rng=cloud.rng,
        )
        assert [restored, deleted].count(202) == 1, (restored, deleted)
        cloud.settle()
        assert status(cloud, share) == 'available'
        if deleted == 202:
            share_backups.check_gone(cloud.api, backup)


def test_share_is_either_backed_up_or_deleted(cloud):
    for seed in SEEDS:
        share = cloud.create_share()
        cloud.rng.seed(f'race {seed}')
        backed_up, deleted = status_codes(
            partial(share_backups.request, cloud.api, share, None),
            partial(delete_share, cloud, share),
            rng=cloud.rng,
        )
        assert [backed_up, deleted].count(202) == 1, (backed_up, deleted)
        cloud.settle()
        if backed_up == 202:
            assert status(cloud, share) == 'available'
