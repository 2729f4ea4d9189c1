"""A read that takes too long ends with 503 and its reason."""

import pytest
import sqlalchemy as sa
import webob

from manila_lite import exception
from tests.support import bulk_shares, sampling
from tests.support.cloud import TYPE_ID

pytestmark = sampling.dialects


SLOW = '/shares/detail?all_tenants=1&sort_key=host'


def fill(cloud):
    cloud.db.write(bulk_shares.insert_shares, 2000, type_id=TYPE_ID)


def test_slow_list_answers_503_with_the_reason(build_cloud, database_url):
    cloud = build_cloud('read_time_limit = 0.001', url=database_url)
    fill(cloud)
    response = cloud.api.request('GET', SLOW, expect=503)
    fault = response.json['serviceUnavailable']
    assert 'took longer than 0.001 s' in fault['message']
    assert int(response.headers['Retry-After']) > 0


def test_there_is_no_limit_if_it_is_0(build_cloud, database_url):
    cloud = build_cloud('read_time_limit = 0', url=database_url)
    fill(cloud)
    assert len(cloud.api.get(f'{SLOW}&limit=1')['shares']) == 1


def test_default_limit_allows_ordinary_lists(build_cloud, database_url):
    cloud = build_cloud(url=database_url)
    fill(cloud)
    assert len(cloud.api.get(f'{SLOW}&limit=1000')['shares']) == 1000


@pytest.mark.parametrize('database_url', ['sqlite'], indirect=True)
def test_busy_database_does_not_answer(build_cloud, database_url):
    cloud = build_cloud(url=database_url)

    def fail(name):
        raise exception.DatabaseBusy

    cloud.db.on_step = fail
    response = webob.Request.blank('/healthcheck').get_response(cloud.app)
    assert response.status_int == 503
    assert 'does not answer' in response.text


@pytest.mark.parametrize('database_url', ['mysql', 'postgresql'], indirect=True)
def test_database_that_keeps_readers_waiting_does_not_answer(build_cloud, database_url):
    cloud = build_cloud('read_time_limit = 0.1', url=database_url)
    lock, unlock = {
        'mysql': ('LOCK TABLES availability_zones WRITE', 'UNLOCK TABLES'),
        'postgresql': ('LOCK TABLE availability_zones', 'COMMIT'),
    }[cloud.db.dialect]
    with cloud.db.engine.begin() as connection:
        connection.execute(sa.text(lock))
        response = webob.Request.blank('/healthcheck').get_response(cloud.app)
        connection.execute(sa.text(unlock))
    assert response.status_int == 503
    assert 'does not answer' in response.text
