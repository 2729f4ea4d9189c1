"""The disk of the database becomes full while the service runs."""

import pytest
import requests

from tests.functional.stories import suites
from tests.support.processes import free_port, wait_until
from tests.support.rest_client import RestClient
from tests.support.small_disk import run_on_small_disk

pytestmark = suites.failures


@pytest.fixture
def service(tmp_path):
    """A service whose state is on a small disk: its client and the disk."""
    state = tmp_path / 'state'
    state.mkdir()
    port = free_port()
    with run_on_small_disk(
        state, '4m', 'manila-lite', 'serve', '--state-dir', state, '--port', port
    ) as disk:
        client = RestClient(f'http://127.0.0.1:{port}/v2')
        wait_until(lambda: health(client) == (200, 'OK'), 'it serves')
        yield client, disk


def health(client):
    try:
        response = requests.get(client.url.replace('/v2', '/healthcheck'), timeout=30)
    except requests.ConnectionError:
        return None
    return response.status_code, response.text


def create_type(client, number):
    """Ask for one more type; return the response."""
    return requests.post(
        f'{client.url}/types',
        json={
            'share_type': {
                'name': f'type-{number}',
                'description': 'long ' * 50,
                'extra_specs': {'driver_handles_share_servers': False},
            }
        },
        headers={'X-OpenStack-Manila-API-Version': '2.99'},
        timeout=30,
    )


def test_writes_are_refused_for_now_and_reads_are_answered(service):
    client, disk = service
    disk.fill()
    numbers = iter(range(10_000))
    # The log of the database has some room of its own.
    while (response := create_type(client, next(numbers))).ok:
        pass
    assert response.status_code == 503, response.text
    assert int(response.headers['Retry-After']) > 0
    assert 'cannot store' in response.json()['serviceUnavailable']['message']
    client.request('GET', '/shares/detail')
    wait_until(
        lambda: health(client) == (503, 'database: cannot be written'),
        'the health check notices it',
    )
    disk.empty()
    wait_until(lambda: health(client) == (200, 'OK'), 'it recovers')
    assert create_type(client, next(numbers)).ok
