"""A RabbitMQ for tests, with a virtual host of their own where it can be.

Topics of services are fixed names: two installations on one virtual host
would take each other's hints.
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
import pytest

URL = os.environ.get(
    'MANILA_LITE_TEST_RABBIT', 'rabbit://guest:guest@127.0.0.1:5672/'
)


@contextlib.contextmanager
def virtual_host() -> Iterator[str]:
    """The transport URL of a new virtual host, removed at the end.

    Where the broker cannot be told so from here, its usual one. Skips when
    no broker answers, and fails where CI is set.
    """
    require()
    name = f'manila-lite-test-{uuid.uuid4().hex}'
    parsed = urllib.parse.urlsplit(URL)
    if not _control('add_vhost', name):
        yield URL
        return
    try:
        _control(
            'set_permissions',
            '-p',
            name,
            parsed.username or 'guest',
            '.*',
            '.*',
            '.*',
        )
        yield parsed._replace(path=f'/{name}').geturl()
    finally:
        _control('delete_vhost', name)


def purge(url: str, *queues: str) -> int:
    """How many messages waited in these queues, and are lost now."""
    lost = 0
    with kombu.Connection(url.replace('rabbit:', 'amqp:')) as link:
        for queue in queues:
            # Who asks for a queue that is not there loses the channel.
            with contextlib.suppress(
                kombu.exceptions.OperationalError, link.channel_errors
            ):
                lost += link.channel().queue_purge(queue)
    return lost


def address() -> tuple[str, int]:
    parsed = urllib.parse.urlsplit(URL)
    return parsed.hostname or '127.0.0.1', parsed.port or 5672


def require() -> None:
    """Skip without a broker; fail without one where CI is set."""
    try:
        socket.create_connection(address(), 2).close()
    except OSError as error:
        reason = f'RabbitMQ is needed and does not answer: {error}'
        if os.environ.get('CI'):
            pytest.fail(reason)
        pytest.skip(reason)


def _control(*args: str) -> bool:
    command = shutil.which('rabbitmqctl')
    return (
        command is not None
        and subprocess.run(
            [command, '-q', *args],
            capture_output=True,
            check=False,
            timeout=60,
        ).returncode
        == 0
    )
