"""A page that is open in 50 browsers, beside 100,000 shares.

Each browser asks for it again every 15 seconds, as its script does. The
share of a core is that of the service, without what it uses when idle.
"""

import contextlib
import http.client
import tempfile
import time

from benchmarks import scrape, service
from benchmarks.verdict import Verdict
from manila_lite.api.ui import sessions
from manila_lite.db.session import Database
from tests.support import mass_rows

BROWSERS = 50
REFRESH = 15.0
"""Seconds, as in the templates of the page."""
REFRESHES = 2
PAGES = ('/ui/', '/ui/shares', '/ui/in-flight', '/ui/services')


def run(verdict: Verdict) -> None:
    with tempfile.TemporaryDirectory() as folder:
        _fill(folder)
        running = service.Service(folder)
        try:
            for path in PAGES:
                _measure(verdict, running, path)
        finally:
            running.stop()


def _fill(folder: str) -> None:
    """Let the service create its database, and add the rows."""
    service.Service(folder).stop()
    db = Database(f'sqlite:///{folder}/state/manila_lite.sqlite')
    mass_rows.insert(db, scrape.SIZES)
    db.write(scrape.start_work)
    db.dispose()


def _measure(verdict: Verdict, running: service.Service, path: str) -> None:
    """Let 50 browsers ask, each on a connection of its own."""
    with contextlib.ExitStack() as stack:
        browsers = [
            stack.enter_context(contextlib.closing(Browser(running.port)))
            for _ in range(BROWSERS)
        ]
        for browser in browsers:
            browser.open(path)
        began, idle = time.monotonic(), running.cpu_of_threads()
        time.sleep(2)
        idle = (running.cpu_of_threads() - idle) / (time.monotonic() - began)
        began, used = time.monotonic(), running.cpu_of_threads()
        for _ in range(REFRESHES):
            for browser in browsers:
                browser.open(path)
        seconds = time.monotonic() - began
        used = running.cpu_of_threads() - used - idle * seconds
    verdict.record(
        f'{path} open in {BROWSERS} browsers',
        used / REFRESHES / REFRESH * 100,
        '% of a core',
        at_most=5,
        ms_each=round(used / REFRESHES / BROWSERS * 1000, 1),
    )


class Browser:
    """A browser with a session of its own."""

    def __init__(self, port: int):
        self._connection = http.client.HTTPConnection('127.0.0.1', port)
        session = sessions.begin('admin:admin')
        self._headers = {'Cookie': f'{sessions.COOKIE}={session.value}'}

    def open(self, path: str) -> None:
        self._connection.request('GET', path, headers=self._headers)
        response = self._connection.getresponse()
        text = response.read()
        if response.status != 200:
            raise RuntimeError(f'{path}: {response.status} {text!r}')

    def close(self) -> None:
        self._connection.close()
