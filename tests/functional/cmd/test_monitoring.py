"""The address at which processes answer questions about themselves."""

import socket
import threading

import pytest
import requests

from manila_lite import conf as options, metrics
from manila_lite.api.metrics_page import MetricsPage
from manila_lite.cmd import registered
from tests.support.processes import free_port

PAGE = MetricsPage([metrics.counted])


@pytest.fixture
def serve(configured):
    """`serve(checks, text)`: the URL of a server with these checks."""
    started = []

    def start(checks, text=''):
        _, path = configured(text)
        port = free_port()
        (server,) = registered.servers(options.new(files=[path]), port, checks, PAGE)
        server.start()
        started.append(server)
        return f'http://127.0.0.1:{port}'

    yield start
    for server in started:
        assert server.stop(10)


def healthy():
    return None


def failing():
    return 'does not accept messages'


@pytest.mark.parametrize(
    'text, code, answer',
    [
        ('', 200, 'OK\nbus: does not accept messages'),
        (
            '[DEFAULT]\nhealthcheck_required = bus\n',
            503,
            'bus: does not accept messages',
        ),
    ],
)
def test_bus_is_shown_and_required_only_if_configured(serve, text, code, answer):
    url = serve({'database': healthy, 'bus': failing}, text)
    found = requests.get(f'{url}/healthcheck', timeout=10)
    assert (found.status_code, found.text) == (code, answer)


def test_every_other_check_is_required(serve):
    url = serve({'work': healthy, 'node@one': failing})
    found = requests.get(f'{url}/healthcheck', timeout=10)
    assert found.status_code == 503


def test_head_has_the_code_without_a_body(serve):
    url = serve({'work': failing})
    found = requests.head(f'{url}/healthcheck', timeout=10)
    assert (found.status_code, found.content) == (503, b'')


def test_unknown_page_is_404_and_a_wrong_method_405(serve):
    url = serve({})
    unknown = requests.get(f'{url}/v2/shares', timeout=10)
    assert unknown.status_code == 404
    assert unknown.json()['itemNotFound']['code'] == 404
    wrong = requests.post(f'{url}/healthcheck', timeout=10)
    assert wrong.status_code == 405
    assert wrong.headers['Allow'] == 'GET, HEAD'


def test_metrics_are_at_the_same_address(serve):
    url = serve({})
    requests.get(f'{url}/healthcheck', timeout=10)
    found = requests.get(f'{url}/metrics', timeout=10)
    assert found.status_code == 200
    assert found.headers['Content-Type'].startswith('text/plain')
    assert 'route="/healthcheck",status="200"' in found.text


def test_one_check_that_hangs_leaves_room_for_others(serve):
    """Clients that wait for it occupy threads, but not all connections."""
    may_end = threading.Event()

    def hang():
        may_end.wait(10)

    url = serve({'work': hang})
    waiting = threading.Thread(
        target=requests.get, args=[f'{url}/healthcheck'], daemon=True
    )
    waiting.start()
    assert requests.get(f'{url}/other', timeout=10).status_code == 404
    may_end.set()
    waiting.join(10)


def test_nothing_listens_without_a_port():
    conf = options.new()
    assert conf.monitoring.scheduler_port is None
    assert conf.monitoring.share_port is None
    assert registered.servers(conf, None, {}, PAGE) == []


def test_port_in_use_is_refused_in_words():
    with socket.create_server(('127.0.0.1', 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(options.BadConfiguration) as error:
            registered.servers(options.new(), port, {}, PAGE)
    assert str(error.value) == (
        f'cannot listen on 127.0.0.1 port {port}: Address already in use'
    )
