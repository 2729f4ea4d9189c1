"""The web server: its addresses, and the options of its connections."""

import json
import os
import socket
import subprocess
import sys

import pytest

SERVE_ONE_CLIENT = """
import json
import os
import socket
import threading

from manila_lite.cmd.web import web_server
from manila_lite import conf as options


def answer(environ, start_response):
    port = int(environ['REMOTE_PORT'])
    start_response('200 OK', [])
    return [json.dumps(options_of_connection_from(port)).encode()]


def options_of_connection_from(port):
    for name in os.listdir('/proc/self/fd'):
        try:
            found = socket.socket(fileno=os.dup(int(name)))
            if found.getpeername()[1] != port:
                continue
        except OSError:  # not a socket, or not connected
            continue
        return [
            found.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE),
            found.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL),
            found.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT),
        ]


server = web_server(answer, options.new(files=[{file!r}]))
threading.Thread(target=server.run, daemon=True).start()
client = socket.create_connection(('127.0.0.1', server.port))
client.sendall(b'GET / HTTP/1.0\\r\\nHost: here\\r\\n\\r\\n')
response = b''
while chunk := client.recv(1024):
    response += chunk
_, _, body = response.decode().partition('[')
print('[' + body.partition(']')[0] + ']', flush=True)
os._exit(0)
"""


def system_default(name):
    with open(f'/proc/sys/net/ipv4/tcp_keepalive_{name}') as file:
        return int(file.read())


@pytest.mark.parametrize('concurrency', ['threading', 'eventlet'])
@pytest.mark.parametrize(
    'text, expected',
    [
        ('', (1, None, None)),
        ('tcp_keepalive = false\n', (0, None, None)),
        ('tcp_keepalive_interval = 7\n', (1, 7, None)),
        ('tcp_keepalive_count = 3\n', (1, None, 3)),
    ],
)
def test_connections_have_the_configured_keepalive(
    tmp_path, concurrency, text, expected
):
    file = tmp_path / 'manila.conf'
    file.write_text(
        '[DEFAULT]\nosapi_share_listen = 127.0.0.1\n'
        f'osapi_share_listen_port = 0\n{text}'
    )
    ended = subprocess.run(
        [sys.executable, '-c', SERVE_ONE_CLIENT.format(file=str(file))],
        env=os.environ | {'MANILA_LITE_CONCURRENCY': concurrency},
        text=True,
        capture_output=True,
        timeout=60,
    )
    keepalive, interval, count = expected
    assert json.loads(ended.stdout) == [
        keepalive,
        interval or system_default('intvl'),
        count or system_default('probes'),
    ], ended.stderr


SERVE_BOTH = """
import os
import socket
import threading

from manila_lite.cmd.web import web_server
from manila_lite import conf as options


def answer(environ, start_response):
    start_response('200 OK', [])
    return [environ['REMOTE_ADDR'].encode()]


conf = options.new(args=[], files=[])
conf.set_override('osapi_share_listen_port', 0)
server = web_server(answer, conf)
threading.Thread(target=server.run, daemon=True).start()
for host in {hosts!r}:
    with socket.create_connection((host, server.port)) as client:
        client.sendall(b'GET / HTTP/1.0\\r\\nHost: here\\r\\n\\r\\n')
        response = b''
        while chunk := client.recv(1024):
            response += chunk
    print(response.split()[-1].decode(), flush=True)
os._exit(0)
"""


def has_ipv6():
    try:
        with socket.create_server(('::1', 0), family=socket.AF_INET6):
            return True
    except OSError:
        return False


@pytest.mark.parametrize('concurrency', ['threading', 'eventlet'])
def test_default_address_is_reached_by_both_families(concurrency):
    hosts = ['127.0.0.1', *(['::1'] if has_ipv6() else [])]
    ended = subprocess.run(
        [sys.executable, '-c', SERVE_BOTH.format(hosts=hosts)],
        env=os.environ | {'MANILA_LITE_CONCURRENCY': concurrency},
        text=True,
        capture_output=True,
        timeout=60,
    )
    assert ended.stdout.split() == hosts, ended.stderr
