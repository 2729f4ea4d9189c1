"""A process stopped while it holds the lock of a share stops no other."""

import contextlib
import signal
import subprocess
import sys
import threading

import pytest

from tests.functional.stories import suites
from tests.support import databases
from tests.support.processes import wait_until

pytestmark = suites.failures

REQUESTS = 25
"""More than the API has threads."""

HOLDER = """
import sys
import sqlalchemy as sa
from manila_lite import conf as options
from manila_lite.coordination import Coordinator
conf, lock, database = sys.argv[1:]
with Coordinator(options.new(files=[conf]), 'stopped').lock(lock):
    if database:
        connection = sa.create_engine(database).connect()
        connection.execute(
            sa.text('UPDATE share_instances SET updated_at = NULL')
        )
    print('held', flush=True)
    sys.stdin.read()
"""


@contextlib.contextmanager
def stopped_holder(conf, lock, database=''):
    """A process that was stopped while it held the lock.

    With a database it has also locked rows there.
    """
    holder = subprocess.Popen(
        [sys.executable, '-W', 'ignore', '-c', HOLDER, conf, lock, database],
        text=True,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    try:
        assert holder.stdout.readline() == 'held\n'
        holder.send_signal(signal.SIGSTOP)
        yield
    finally:
        holder.kill()
        holder.communicate()


class Requests:
    """Requests about one share, each in a thread of its own."""

    def __init__(self, installed, share_id):
        self.answered = self.refused = 0
        self._guard = threading.Lock()
        self.threads = [
            threading.Thread(target=self._allow, args=[installed, share_id, number])
            for number in range(REQUESTS)
        ]
        for thread in self.threads:
            thread.start()

    def _allow(self, installed, share_id, number):
        rule = {'access_type': 'ip', 'access_to': f'10.0.0.{number + 1}'}
        api = installed.rest()
        path = f'/shares/{share_id}/action'
        with contextlib.suppress(AssertionError):
            api.request('POST', path, {'allow_access': rule}, timeout=120)
        with self._guard:
            if api.last.status_code == 503 and 'Retry-After' in (api.last.headers):
                self.refused += 1
            else:
                assert api.last.status_code == 200
                self.answered += 1


@pytest.fixture
def share(install, request):
    return with_share(install, request.param)


def with_share(install, timeout, database_url=None):
    """Return an installation, its administrator, a share and its lock."""
    installed = install(
        options='default_share_type = default\n',
        sections=f'[coordination]\nlock_timeout = {timeout}\n',
        database_url=database_url,
    ).start()
    api = installed.rest()
    api.make_default_type()
    share = api.create_available()
    (instance,) = api.get('/share_instances')['share_instances']
    return installed, api, share['id'], f'access-{instance["id"]}'


@pytest.mark.parametrize('share', [50], indirect=True)
def test_requests_about_one_share_leave_threads_for_others(share):
    installed, api, share_id, lock = share
    with stopped_holder(installed.conf, lock):
        requests = Requests(installed, share_id)
        # Those that find too many others waiting are answered at once.
        wait_until(lambda: requests.answered >= 10, 'some are answered')
        api.get('/shares/detail')
        assert requests.answered < REQUESTS
    for thread in requests.threads:
        thread.join(60)
    assert requests.answered == REQUESTS


@pytest.mark.parametrize('kind', databases.KINDS)
def test_requests_about_locked_rows_leave_threads_for_others(
    new_database, install, kind
):
    database_url = new_database(kind)
    installed, api, share_id, lock = with_share(install, 50, database_url)
    with stopped_holder(installed.conf, lock, installed.database_url):
        requests = Requests(installed, share_id)
        wait_until(lambda: requests.refused >= 5, 'some are refused')
        api.get('/shares/detail')
        assert requests.answered == 0
    for thread in requests.threads:
        thread.join(60)
    assert requests.answered + requests.refused == REQUESTS
    assert requests.answered >= 10


@pytest.mark.parametrize('share', [2], indirect=True)
def test_requests_continue_without_a_lock_that_is_not_released(share):
    installed, api, share_id, lock = share
    path = f'/share-access-rules?share_id={share_id}'
    with stopped_holder(installed.conf, lock):
        requests = Requests(installed, share_id)
        for thread in requests.threads:
            thread.join(60)
        assert requests.answered == REQUESTS
        wait_until(
            lambda: (
                {rule['state'] for rule in api.get(path)['access_list']} == {'active'}
            ),
            'all rules are active',
        )
