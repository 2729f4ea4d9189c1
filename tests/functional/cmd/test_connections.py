"""Clients that hold connections do not keep others from being served."""

import contextlib
import socket
import threading
import time

import pytest
from waitress.trigger import trigger as waitress_trigger

from manila_lite import conf as options
from manila_lite.api import faults, middleware
from manila_lite.cmd import registered
from manila_lite.cmd.web import web_server
from tests.support.processes import free_port, open_files, wait_until

LONG = b'x' * 4_000_000
REQUEST = b'GET /%s HTTP/1.1\r\nHost: here\r\n\r\n'
TIMEOUT = 60


def answer(environ, start_response):
    length = int(environ.get('CONTENT_LENGTH') or 0)
    body = environ['wsgi.input'].read(length)
    if environ['PATH_INFO'] == '/long':
        body = LONG
    start_response('200 OK', [('Content-Length', str(len(body)))])
    return [body]


@pytest.fixture
def serve(tmp_path):
    """Return a function that starts a server and returns its port."""
    with contextlib.ExitStack() as cleanup:

        def start(text='', app=answer):
            file = tmp_path / 'manila.conf'
            file.write_text(
                '[DEFAULT]\nosapi_share_listen = 127.0.0.1\n'
                f'osapi_share_listen_port = 0\n{text}'
            )
            conf = options.new(files=[str(file)])
            app = middleware.BodyLimitMiddleware(app, conf.max_request_body_size)
            server = web_server(faults.FaultMiddleware(app), conf)
            thread = threading.Thread(target=server.run, daemon=True)
            thread.start()
            cleanup.callback(thread.join, TIMEOUT)
            cleanup.callback(server.close)
            return server.port

        yield start


@pytest.fixture
def connect():
    """Return a function that opens many connections to a port."""
    with contextlib.ExitStack() as cleanup:

        def open_connections(port, count):
            # The server is in this process, too.
            cleanup.enter_context(open_files(2 * count + 200))
            return [
                cleanup.enter_context(
                    socket.create_connection(('127.0.0.1', port), TIMEOUT)
                )
                for _ in range(count)
            ]

        yield open_connections


def ask(client, path=b''):
    """Send a request; return the body of the response."""
    client.sendall(REQUEST % path)
    return read_response(client)


def read_response(client):
    received = b''
    while b'\r\n\r\n' not in received:
        received += receive(client)
    headers, _, body = received.partition(b'\r\n\r\n')
    assert headers.startswith(b'HTTP/1.1 200'), headers
    _, _, rest = headers.partition(b'Content-Length: ')
    length = int(rest.partition(b'\r\n')[0])
    while len(body) < length:
        body += receive(client)
    return body


def receive(client):
    data = client.recv(1 << 16)
    assert data, 'the server closed the connection'
    return data


def test_a_thousand_connections_are_all_served_and_again(serve, connect):
    clients = connect(serve(), 1000)
    for _ in range(2):
        for client in clients:
            client.sendall(REQUEST % b'')
        for client in clients:
            read_response(client)


def test_half_sent_requests_and_stalled_readers_delay_no_other_client(serve, connect):
    port = serve()
    for number, client in enumerate(connect(port, 600)):
        client.sendall(
            b'GET /half HTTP/1.1\r\nHos'
            if number % 2
            else b'POST / HTTP/1.1\r\nContent-Length: 10\r\n\r\nhalf'
        )
    for client in connect(port, 40):
        # More responses than threads, each larger than all socket buffers.
        client.sendall(REQUEST % b'long' * 10)
    began = time.monotonic()
    for client in connect(port, 20):
        ask(client)
    assert time.monotonic() - began < 10


def test_changes_are_answered_beside_the_thread_of_reads(serve, connect):
    threads = {'GET': [], 'POST': []}

    def app(environ, start_response):
        threads[environ['REQUEST_METHOD']].append(threading.get_ident())
        return answer(environ, start_response)

    (client,) = connect(serve(app=app), 1)
    for _ in range(20):
        ask(client)
        client.sendall(b'POST / HTTP/1.1\r\nContent-Length: 0\r\n\r\n')
        read_response(client)
    # A read that is slow by chance makes another thread the one of reads.
    pairs = zip(threads['GET'], threads['POST'], strict=True)
    assert any(read != change for read, change in pairs)


def test_requests_in_one_packet_are_answered_when_the_client_reads(serve, connect):
    (client,) = connect(serve(), 1)
    client.sendall(REQUEST % b'long' * 5)
    received = 0
    while received < 5 * len(LONG):
        received += len(receive(client))


def test_a_new_connection_replaces_the_one_inactive_for_longest(serve, connect):
    port = serve('client_max_connections = 20\n')
    first = connect(port, 1)[0]
    ask(first)
    for _ in range(40):
        (latest,) = connect(port, 1)
        ask(latest)
    assert has_ended(first)
    ask(latest)


@pytest.mark.parametrize(
    'option, sent, more',
    [
        ('client_header_timeout', b'GET / HTTP/1.1\r\n', b'X-More: 1\r\n'),
        (
            'client_body_timeout',
            b'POST / HTTP/1.1\r\nContent-Length: 100000\r\n\r\n',
            b'more',
        ),
        ('client_idle_timeout', b'', b''),
        ('client_idle_timeout', REQUEST % b'long' * 2, b''),
    ],
    ids=['headers', 'body', 'idle', 'reader'],
)
def test_a_client_beyond_its_time_is_disconnected_however_active(
    serve, connect, option, sent, more
):
    port = serve(f'{option} = 1\n')
    (slow,) = connect(port, 1)
    slow.sendall(sent)
    began = time.monotonic()

    def is_disconnected():
        with contextlib.suppress(ConnectionError):
            slow.sendall(more)
        return has_ended(slow)

    wait_until(is_disconnected, 'the server closes the connection')
    assert time.monotonic() - began > 0.9


@pytest.mark.parametrize('chunked', [False, True], ids=['length', 'chunks'])
@pytest.mark.parametrize('length', [1 << 20, 8 << 20])
def test_client_that_sends_too_large_a_body_reads_the_refusal(
    serve, connect, length, chunked
):
    (client,) = connect(serve(), 1)
    part = b'x' * (1 << 16)
    kind = b'Transfer-Encoding: chunked' if chunked else b'Content-Length: %d' % length
    client.sendall(b'POST / HTTP/1.1\r\nHost: here\r\n%s\r\n\r\n' % kind)
    for _ in range(length >> 16):
        client.sendall(b'10000\r\n%s\r\n' % part if chunked else part)
    if chunked:
        client.sendall(b'0\r\n\r\n')
    assert client.recv(1 << 16).startswith(b'HTTP/1.1 413 ')


def test_body_of_the_configured_size_is_read_and_a_longer_one_is_not(serve, connect):
    limit = 3 << 20
    port = serve(f'max_request_body_size = {limit}\n')
    for length, code in [(limit, 200), (limit + 1, 413)]:
        (client,) = connect(port, 1)
        client.sendall(b'POST / HTTP/1.1\r\nContent-Length: %d\r\n\r\n' % length)
        client.sendall(b'x' * length)
        assert client.recv(100).startswith(b'HTTP/1.1 %d ' % code)


MALFORMED = [b'get / HTTP/1.1\r\n\r\n', b'GET / HTTP/1.1\r\n(: b\r\n\r\n']


@pytest.mark.parametrize('headers', MALFORMED)
def test_what_cannot_be_parsed_reaches_no_page(serve, connect, headers):
    (client,) = connect(serve(), 1)
    client.sendall(headers)
    assert b' 400 Bad Request' in client.recv(100)


@pytest.mark.parametrize('headers', MALFORMED)
def test_pages_of_other_services_refuse_what_cannot_be_parsed(connect, headers):
    (pages,) = registered.servers(options.new(files=[]), free_port(), {}, answer)
    pages.start()
    (client,) = connect(pages.server.port, 1)
    client.sendall(headers)
    assert b' 400 Bad Request' in client.recv(100)
    pages.stop(1)


def test_failure_of_the_application_itself_is_answered(serve, connect):
    def fail(environ, start_response):
        start_response('200 OK', [('Connection', 'refused by waitress')])

    (client,) = connect(serve(app=fail), 1)
    client.sendall(REQUEST % b'')
    assert client.recv(100).startswith(b'HTTP/1.1 500 ')


def test_client_that_asks_before_it_sends_is_refused_at_once(serve, connect):
    (client,) = connect(serve(), 1)
    client.sendall(
        b'POST / HTTP/1.1\r\nHost: here\r\nExpect: 100-continue\r\n'
        b'Content-Length: 99999999\r\n\r\n'
    )
    assert client.recv(1 << 16).startswith(b'HTTP/1.1 413 ')


@pytest.mark.parametrize('step', [3600.0, -3600.0], ids=['on', 'back'])
def test_a_clock_that_is_set_changes_no_time_limit(serve, connect, monkeypatch, step):
    port = serve('client_header_timeout = 1\nclient_idle_timeout = 600\n')
    idle, slow = connect(port, 2)
    ask(idle)
    slow.sendall(b'GET / HTTP/1.1\r\n')
    read_clock = time.time
    monkeypatch.setattr(time, 'time', lambda: read_clock() + step)
    wait_until(lambda: has_ended(slow), 'the server closes the connection')
    assert not has_ended(idle)
    ask(idle)


def has_ended(client):
    """Return whether the server has closed, without reading from it."""
    established = 1
    info = client.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1)
    return info[0] != established


def test_requests_that_run_end_before_the_server_does(tmp_path, connect):
    running, may_end = threading.Event(), threading.Event()

    def app(environ, start_response):
        running.set()
        may_end.wait(TIMEOUT)
        start_response('200 OK', [('Content-Length', '2')])
        return [b'OK']

    file = tmp_path / 'manila.conf'
    file.write_text(
        '[DEFAULT]\nosapi_share_listen = 127.0.0.1\nosapi_share_listen_port = 0\n'
    )
    server = web_server(app, options.new(files=[str(file)]))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    idle, busy = connect(server.port, 2)
    busy.sendall(REQUEST % b'')
    assert running.wait(TIMEOUT)
    closing = threading.Thread(target=server.close, args=(TIMEOUT,))
    closing.start()
    assert idle.recv(1) == b''
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(('127.0.0.1', server.port), TIMEOUT)
    may_end.set()
    assert busy.recv(1000).startswith(b'HTTP/1.1 200 OK')
    closing.join(TIMEOUT)
    thread.join(TIMEOUT)
    assert not thread.is_alive()


def test_server_can_end_when_its_loop_is_awake_already(configured, monkeypatch):
    """Something else may wake the loop between a request and its signal."""
    wake = waitress_trigger._physical_pull

    def wake_twice(trigger):
        wake(trigger)
        time.sleep(0.1)
        wake(trigger)

    _, path = configured(
        '[DEFAULT]\nosapi_share_listen = 127.0.0.1\nosapi_share_listen_port = 0\n'
    )
    server = web_server(answer, options.new(files=[path]))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    monkeypatch.setattr(waitress_trigger, '_physical_pull', wake_twice)
    server.close()
    thread.join(TIMEOUT)
    assert not thread.is_alive()
