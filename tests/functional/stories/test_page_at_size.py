"""The page /ui of a large cloud: 100,000 shares, 100 pools, 50 sessions."""

import concurrent.futures
import contextlib
import http.client
import statistics
import time

import pytest
import sqlalchemy as sa

from manila_lite.api.ui import sessions
from manila_lite.db.models import share_groups, share_servers, shares
from tests.functional.stories.conftest import new_installation
from tests.functional.stories.test_page import PAGES, check, sign_in
from tests.support import chromium, databases, mass_rows, sampling

pytestmark = [
    sampling.suite('the page of a large cloud', 0),
    pytest.mark.timeout(900, method='thread'),
]

SIZES = mass_rows.Sizes(
    shares=100_000,
    rules_of_share=1,
    snapshots=20_000,
    journal=100_000,
    messages=10_000,
    services=50,
    pools=100,
    projects=10_000,
    servers=1000,
    migrations=100,
    decisions=1000,
    waiting=200,
)
SESSIONS = 50
LONGEST = 1.0
"""Seconds for the answer of a quiet service, many times what it takes."""


@pytest.fixture(scope='module', params=databases.KINDS)
def service(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp('large')
    with (
        databases.temporary_database(request.param, folder) as url,
        new_installation(folder / 'installation', database_url=url) as one,
    ):
        one.start()
        one.stop()
        mass_rows.insert(one.db, SIZES)
        one.start()
        yield one


@pytest.fixture(scope='module')
def paths(service):
    """The pages, also those of one resource of each kind."""

    def first(session):
        return {
            name: session.value(sa.select(model.__table__.c.id).limit(1))
            for name, model in (
                ('shares', shares.Share),
                ('groups', share_groups.ShareGroup),
                ('servers', share_servers.ShareServer),
            )
        }

    found = service.db.read(first)
    return [*PAGES, *(f'/ui/{kind}/{id}' for kind, id in found.items() if id)]


class Session:
    """A signed-in browser without scripts, on a connection of its own."""

    def __init__(self, service, number=0):
        self._connection = http.client.HTTPConnection(
            '127.0.0.1', service.port, timeout=60
        )
        cookie = sessions.begin(f'user-{number}:project').value
        self._headers = {'Cookie': f'{sessions.COOKIE}={cookie}'}

    def open(self, path):
        """Return the seconds that a page takes."""
        began = time.monotonic()
        self._connection.request('GET', path, headers=self._headers)
        response = self._connection.getresponse()
        text = response.read()
        assert response.status == 200, (path, response.status, text[-500:])
        return time.monotonic() - began

    def close(self):
        self._connection.close()


def test_every_page_is_quick(service, paths):
    with contextlib.closing(Session(service)) as session:
        for path in paths:
            session.open(path)  # what is read once
        found = {
            path: statistics.median(session.open(path) for _ in range(3))
            for path in paths
        }
    print(found)
    assert {path: one for path, one in found.items() if one > LONGEST} == {}


def test_fifty_sessions_are_answered(service, paths):
    """Each asks for every page; none is refused or waits for the others."""

    def open_all(number):
        with contextlib.closing(Session(service, number)) as session:
            return max(session.open(path) for path in paths)

    with concurrent.futures.ThreadPoolExecutor(SESSIONS) as pool:
        longest = max(pool.map(open_all, range(SESSIONS), timeout=600))
    print(longest)
    assert longest < 30


def test_a_browser_shows_every_page(service, paths, tmp_path):
    chromium.require()
    with chromium.started(tmp_path) as browser:
        sign_in(browser, service)
        for path in paths:
            browser.open(f'{service.root}{path}')
            assert check(browser) == [], path
        assert browser.complaints() == []
