"""An identity service in a process of its own, with one signed-in user.

Run as a program it prints where it is and the token of the user, and ends
with its standard input.
"""

from collections.abc import Iterator
import contextlib
import json
import subprocess
import sys
import typing

from tests.support.keystone_server import Keystone
from tests.support.processes import BINARIES

_PASSWORD = 'secret'


class Identity(typing.NamedTuple):
    """`section` is the configuration of a service that validates tokens."""

    token: str
    section: str


@contextlib.contextmanager
def running() -> Iterator[Identity]:
    """Start the service, yield what its user needs and stop it."""
    with subprocess.Popen(
        [BINARIES / 'python', '-m', 'benchmarks.identity'],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        yield Identity(*json.loads(process.stdout.readline()))
        process.stdin.close()


def _serve() -> None:
    with Keystone() as keystone:
        user = keystone.add_user('ann', _PASSWORD, 'red', ['admin', 'member', 'reader'])
        given = {'name': user.name, 'password': user.password}
        token, _ = keystone.authenticate({'identity': {'password': {'user': given}}})
        print(json.dumps([token, keystone.service_config()]), flush=True)
        sys.stdin.read()


if __name__ == '__main__':
    _serve()
