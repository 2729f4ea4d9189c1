"""The limits API: limits and usage of the caller's project."""

import pytest

from manila_lite.quota import charges
from tests.support import reference
from tests.support.api_client import ApiClient

WORDS = {
    'shares': 'Shares',
    'gigabytes': 'ShareGigabytes',
    'snapshots': 'ShareSnapshots',
    'snapshot_gigabytes': 'SnapshotGigabytes',
    'share_networks': 'ShareNetworks',
    'share_groups': 'ShareGroups',
    'share_group_snapshots': 'ShareGroupSnapshots',
    'share_replicas': 'ShareReplicas',
    'replica_gigabytes': 'ReplicaGigabytes',
    'backups': 'ShareBackups',
    'backup_gigabytes': 'BackupGigabytes',
}


@pytest.fixture
def api(cloud):
    return cloud.api


def absolute(api, **options):
    return api.get('/limits', **options)['limits']['absolute']


def set_limits(cloud, project, **values):
    cloud.api.request(
        'PUT', f'/quota-sets/{project}', {'quota_set': values}, expect=200
    )


@pytest.mark.facts('next-available', 'rate-limits', 'limits')
def test_every_version_shows_the_published_keys(api):
    rows = [
        row
        for row in reference.table('response-fields.csv')
        if row['resource'] == 'limits' and row['view'] == 'absolute'
    ]
    for minor in range(100):
        published = {row['field'] for row in rows if minor >= int(row['since'][2:])}
        found = api.get('/limits', version=f'2.{minor}')['limits']
        assert found['rate'] == []
        assert set(found) == {'absolute', 'rate'}
        assert set(found['absolute']) == published, minor


@pytest.mark.facts('limits')
def test_every_number_is_that_of_its_resource(cloud, api):
    used = {name: number for number, name in enumerate(WORDS, 1)}
    set_limits(
        cloud, 'project', **{name: 100 + number for name, number in used.items()}
    )
    cloud.db.write(
        charges.charge, charges.Owner('project'), used, limits=cloud.services.limits
    )
    wanted = {}
    for name, words in WORDS.items():
        wanted |= {
            f'maxTotal{words}': 100 + used[name],
            f'total{words}Used': used[name],
        }
    assert absolute(api) == wanted


def test_usage_is_shown(cloud, api):
    cloud.create_share(size=3)
    cloud.create_share(size=2)
    found = absolute(api)
    assert found['totalSharesUsed'] == 2
    assert found['totalShareGigabytesUsed'] == 5
    assert found['maxTotalShares'] == 50
    assert found['maxTotalShareGigabytes'] == 1000
    assert found['totalShareSnapshotsUsed'] == 0


def test_unlimited_is_shown_as_minus_one(cloud, api):
    set_limits(cloud, 'project', shares=-1, backups=-1)
    found = absolute(api)
    assert found['maxTotalShares'] == found['maxTotalShareBackups'] == -1


def test_every_role_sees_its_own_project(cloud):
    cloud.create_share(size=3)
    set_limits(cloud, 'other', shares=7)
    guest = ApiClient(cloud, project='other', roles='guest')
    found = absolute(guest)
    assert found['maxTotalShares'] == 7
    assert found['totalSharesUsed'] == 0


def test_the_limits_are_those_of_the_project_not_of_the_user(cloud, api):
    cloud.api.request(
        'PUT',
        '/quota-sets/project?user_id=user',
        {'quota_set': {'shares': 3}},
        expect=200,
    )
    assert absolute(api)['maxTotalShares'] == 50


def test_limits_take_two_statements(cloud, api):
    cloud.create_share()
    before = cloud.statements
    absolute(api)
    assert cloud.statements - before == 2
