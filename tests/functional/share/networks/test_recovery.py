"""Share networks in flight, as recovery shows them to administrators."""

import pytest
import sqlalchemy as sa

from manila_lite.db.models import engine
from tests.functional.share.networks.networks_in_use import NetworkCloud

WORK = engine.Work.__table__
UPDATE = 'update_security_service'
UPDATE_CHECK = 'update_security_service_check'


@pytest.fixture
def cloud(build_cloud, database_url):
    return build_cloud(kind=NetworkCloud, url=database_url)


@pytest.fixture
def changing(cloud):
    """The cloud, with a change of its network that waits for a worker."""
    ask = {'current_service_id': cloud.service, 'new_service_id': cloud.new_service()}
    cloud.check(UPDATE_CHECK, **ask)
    cloud.act(UPDATE, expect=202, **ask)
    return cloud


def listed(cloud, path='in-flight', **filters):
    filters = {'resource_type': 'share_network', **filters}
    query = '&'.join(f'{name}={value}' for name, value in filters.items())
    ((_, found),) = cloud.api.get(f'/recovery/{path}?{query}').items()
    return found


@pytest.mark.parametrize('path', ['in-flight', 'preview'])
def test_network_that_no_server_changes_is_listed_until_rescued(cloud, path):
    cloud.act('reset_status', status='network_change')
    (shown,) = listed(cloud, path)
    assert (
        shown
        | {
            'resource_id': cloud.network,
            'status': 'network_change',
            'host': None,
            'holder': 'nobody',
            'next_step': 'it is given up: change_failed, which ends in error',
        }
        == shown
    )
    cloud.settle()
    assert cloud.status() == 'error'
    assert listed(cloud, path) == []


def test_network_is_held_by_the_work_that_changes_its_server(changing):
    (shown,) = listed(changing)
    assert (shown['holder'], shown['resource_id']) == ('waiting', changing.network)
    assert listed(changing, 'preview') == []
    changing.settle()
    assert changing.status() == 'active'
    assert listed(changing) == []


def test_network_waits_for_a_server_whose_change_was_lost(changing):
    changing.db.write(lambda session: session.run(sa.delete(WORK)))
    (shown,) = listed(changing)
    assert shown['next_step'] == 'the resource it waits for is rescued first'
    assert changing.scheduler.orphan_sweep.run_pass() == 0
    changing.settle()
    assert changing.status() == changing.server_status() == 'error'


def test_network_in_flight_is_on_no_host(changing):
    (host,) = {row.host for row in changing.servers()}
    assert listed(changing, host=host) == []


def test_network_is_rescued_by_a_scheduler_only(changing):
    run = {'resource_type': 'share_network', 'resource_id': changing.network}
    answer = changing.api.request('POST', '/recovery/run', {'run': run}, expect=409)
    assert 'a scheduler handles it' in answer.text
