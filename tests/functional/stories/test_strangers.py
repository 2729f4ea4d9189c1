"""Sign-in by name and password while strangers try to get in."""

from collections.abc import Iterator
import contextlib
import itertools
import threading
import time

import pytest
import requests

from tests.support.processes import wait_until

STRANGERS = 24
PASSWORD = 'a long secret'
LIMIT = 5.0
"""Seconds within which a user is served while strangers are refused.

Strangers keep all processors busy; on a loaded machine it may take 2 s.
"""

_names = (f'stranger-{number}' for number in itertools.count())


@pytest.fixture(params=['threading', 'eventlet'])
def installation(install, request):
    """An installation with two users, whose hashes have the usual cost."""
    installation = install(auth='http_basic', concurrency=request.param)
    for name in ('alice', 'bob'):
        installation.manage(
            'user',
            'add',
            name,
            '--user-id',
            name,
            '--project',
            'red',
            '--role',
            'member',
            stdin=f'{PASSWORD}\n',
        )
    return installation.start()


class Strangers:
    """Threads that try to sign in, each again as soon as it is refused."""

    def __init__(self, url: str):
        self._url = url
        self.answers: list[requests.Response] = []
        self._stop = threading.Event()

    @contextlib.contextmanager
    def running(self) -> Iterator['Strangers']:
        threads = [
            threading.Thread(target=self._try, daemon=True) for _ in range(STRANGERS)
        ]
        for thread in threads:
            thread.start()
        try:
            yield self
        finally:
            self._stop.set()
            for thread in threads:
                thread.join(60)

    def _try(self) -> None:
        with requests.Session() as session:
            while not self._stop.is_set():
                self.answers.append(
                    session.get(f'{self._url}/shares', auth=(next(_names), 'guess'))
                )


def seconds_to_get(installation, name):
    """Return the time until the user has a list of shares."""
    client = installation.rest(auth=(name, PASSWORD), headers={})
    began = time.monotonic()
    client.get('/shares', timeout=120)
    return time.monotonic() - began


def test_users_are_served_while_strangers_are_refused(installation):
    seconds_to_get(installation, 'alice')
    with Strangers(installation.url).running() as strangers:
        wait_until(lambda: strangers.answers, 'a stranger is answered')
        waits = [seconds_to_get(installation, 'alice') for _ in range(5)]
        wait_until(
            lambda: len(strangers.answers) > STRANGERS, 'strangers have tried again'
        )
    print('seconds', waits)
    assert max(waits) < LIMIT
    codes = {answer.status_code for answer in strangers.answers}
    print(len(strangers.answers), codes)
    assert codes <= {401, 503}
    assert all(
        int(answer.headers['Retry-After']) >= 1
        for answer in strangers.answers
        if answer.status_code == 503
    )
