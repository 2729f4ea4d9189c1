"""RabbitMQ for tests, with a virtual host of their own if possible.

The topics of services are fixed names: two installations on one virtual
host would consume each other's hints.
"""

from collections.abc import Iterator
import contextlib
import os
import shutil
import socket
import subprocess
import urllib.parse
import uuid

import kombu

from tests.support import requirements

URL = os.environ.get('MANILA_LITE_TEST_RABBIT', 'rabbit://guest:guest@127.0.0.1:5672/')


@contextlib.contextmanager
def virtual_host() -> Iterator[str]:
    """Create a virtual host, yield its transport URL and remove it.

    Yields the URL of the default one if `rabbitmqctl` does not work here.
    Skips when no broker answers; fails if CI is set.
    """
    require()
    name = f'manila-lite-test-{uuid.uuid4().hex}'
    parsed = urllib.parse.urlsplit(URL)
    if not _control('add_vhost', name):
        yield URL
        return
    try:
        _control(
            'set_permissions', '-p', name, parsed.username or 'guest', '.*', '.*', '.*'
        )
        yield parsed._replace(path=f'/{name}').geturl()
    finally:
        _control('delete_vhost', name)


@contextlib.contextmanager
def account(host: str, permitted: str) -> Iterator[str]:
    """Create an account on a virtual host; yield its URL and remove it.

    `permitted` is the expression for all three permissions.
    """
    parsed = urllib.parse.urlsplit(host)
    name = f'manila-lite-test-{uuid.uuid4().hex}'
    if not _control('add_user', name, 'secret'):
        requirements.missing('rabbitmqctl does not work here')
    try:
        where = urllib.parse.unquote(parsed.path.removeprefix('/')) or '/'
        _control('set_permissions', '-p', where, name, *(permitted,) * 3)
        near = f'{parsed.hostname}:{parsed.port}'
        yield parsed._replace(netloc=f'{name}:secret@{near}').geturl()
    finally:
        _control('delete_user', name)


def purge(url: str, *queues: str) -> int:
    """Purge these queues; return the number of messages lost."""
    lost = 0
    with kombu.Connection(url.replace('rabbit:', 'amqp:')) as link:
        for queue in queues:
            # Purging a queue that does not exist closes the channel.
            with contextlib.suppress(
                kombu.exceptions.OperationalError, link.channel_errors
            ):
                lost += link.channel().queue_purge(queue)
    return lost


def address() -> tuple[str, int]:
    parsed = urllib.parse.urlsplit(URL)
    return parsed.hostname or '127.0.0.1', parsed.port or 5672


def require() -> None:
    """Skip without a broker; fail instead if CI is set."""
    try:
        socket.create_connection(address(), 2).close()
    except OSError as error:
        requirements.missing(f'RabbitMQ does not answer: {error}')


def _control(*args: str) -> bool:
    command = shutil.which('rabbitmqctl')
    return (
        command is not None
        and subprocess.run(
            [command, '-q', *args], capture_output=True, check=False, timeout=60
        ).returncode
        == 0
    )
