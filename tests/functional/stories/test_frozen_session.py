"""A session that is frozen with a row stops only what needs that row."""

from concurrent import futures
import contextlib
import functools
import uuid

import pytest

from manila_lite.cmd import connections
from manila_lite.db import write_limit
from tests.functional.stories import suites
from tests.support import databases
from tests.support.conflicts import frozen_session
from tests.support.processes import wait_until

pytestmark = suites.failures

SERVERS = ('mysql', 'postgresql')
"""SQLite locks no rows."""

PASSWORD = 'a long secret'

REQUESTS = 24
"""More than the API has threads."""

LOCK_SHARE = "UPDATE shares SET display_name = 'frozen' WHERE id = '{}'"

ANSWER_TIME = 5.0
"""Seconds; those that wait for the row wait for 10 and more."""

START_TIME = 20.0
"""Seconds; a process that waits for its row needs 30 and more."""


@pytest.fixture
def start(install, new_database):
    def start(kind, **given):
        installed = install(
            # Longer than the row of a service is locked.
            options='default_share_type = default\nservice_down_time = 60\n',
            database_url=new_database(kind),
            **given,
        ).start()
        api = installed.rest()
        api.make_default_type()
        return installed, api

    return start


class Requests:
    """Renames a share in many threads; `client` connects each of them."""

    def __init__(self, pool, client, share_id):
        self.client = client
        self.share_id = share_id
        self.answers = [
            pool.submit(self._rename, f'name {number}') for number in range(REQUESTS)
        ]

    def _rename(self, name):
        api = self.client()
        with contextlib.suppress(AssertionError):
            rename(api, self.share_id, name, timeout=60)
        return api.last

    def refused(self):
        done = [one.result() for one in self.answers if one.done()]
        return [one for one in done if one.status_code != 200]


def rename(api, share_id, name, **options):
    api.request(
        'PUT', f'/shares/{share_id}', {'share': {'display_name': name}}, **options
    )


def reads_are_answered(api, share_id):
    for path in (f'/shares/{share_id}', '/shares/detail'):
        api.get(path, timeout=ANSWER_TIME)
    return True


def test_changes_leave_threads_for_reads():
    assert write_limit.IN_ALL < connections.THREADS


@pytest.mark.parametrize('kind', SERVERS)
@pytest.mark.parametrize('concurrency', ['threading', 'eventlet'])
def test_requests_for_a_locked_row_leave_others_alone(start, kind, concurrency):
    installed, api = start(kind, concurrency=concurrency)
    locked, other = (api.create_available()['id'] for _ in range(2))
    most = write_limit.OF_RESOURCE
    with futures.ThreadPoolExecutor(REQUESTS) as pool:
        with frozen_session(installed.database_url, LOCK_SHARE.format(locked)):
            requests = Requests(pool, installed.rest, locked)
            wait_until(
                lambda: (
                    reads_are_answered(api, locked)
                    and len(requests.refused()) == REQUESTS - most
                ),
                'the others are refused',
            )
            rename(api, other, 'other', timeout=ANSWER_TIME)
            rename(api, locked, 'late', expect=503, timeout=ANSWER_TIME)
            assert databases.count_lock_waits(installed.database_url) == most
            refused = [*requests.refused(), api.last]
        for answer in requests.answers:
            answer.result()
    for answer in refused:
        assert answer.status_code == 503
        assert int(answer.headers['Retry-After']) > 0
        fault = answer.json()['serviceUnavailable']
        assert 'other requests about this resource' in fault['message']
    assert len(requests.refused()) == REQUESTS - most
    assert api.show(locked)['name'].startswith('name')
    rename(api, locked, 'late')


@pytest.fixture
def users(install, new_database, request):
    """An installation with users of three projects, and their clients."""
    installed = install(
        options='default_share_type = default\n',
        auth='http_basic',
        database_url=new_database(request.param),
    ).start()
    for name, role in (('root', 'admin'), ('red', 'member'), ('blue', 'member')):
        installed.manage(
            *('user', 'add', name, '--user-id', name),
            *('--project', name, '--role', role),
            stdin=f'{PASSWORD}\n',
        )
    clients = {
        name: functools.partial(installed.rest, headers={}, auth=(name, PASSWORD))
        for name in ('root', 'red', 'blue')
    }
    clients['root']().make_default_type()
    return installed, clients


@pytest.mark.parametrize('users', SERVERS, indirect=True)
def test_refusals_do_not_show_the_shares_of_other_projects(users):
    installed, clients = users
    red, blue = clients['red'](), clients['blue']()
    locked = red.create_available()['id']
    with (
        futures.ThreadPoolExecutor(REQUESTS) as pool,
        frozen_session(installed.database_url, LOCK_SHARE.format(locked)),
    ):
        requests = Requests(pool, clients['red'], locked)
        wait_until(requests.refused, 'some are refused')
        rename(red, locked, 'late', expect=503, timeout=ANSWER_TIME)
        answers = []
        for share_id in (locked, str(uuid.uuid4())):
            rename(blue, share_id, 'x', expect=404, timeout=ANSWER_TIME)
            answers.append(blue.last.text.replace(share_id, ''))
    assert answers[0] == answers[1]


@pytest.mark.parametrize('kind', SERVERS)
def test_restarted_services_work_while_their_rows_are_locked(start, kind):
    installed, api = start(kind)
    share = api.create_available()['id']
    with frozen_session(
        installed.database_url, 'UPDATE services SET disabled_reason = NULL'
    ):
        installed.kill('serve')
        installed.start()
        assert installed.startup_seconds < START_TIME
        api.act(share, 'extend', {'new_size': 2})
        assert api.wait_at_rest(share, ANSWER_TIME)['size'] == 2
        api.delete(share)
        api.wait_gone(share, ANSWER_TIME)
    wait_until(lambda: is_up(api), 'services are up')
    api.create_available()


def is_up(api):
    found = api.get('/services')['services']
    return {one['state'] for one in found} == {'up'}
