"""What the health check of the API finds out, and what it costs."""

from concurrent import futures
import contextlib
import sqlite3

import pytest

from manila_lite.cmd.build import health
from manila_lite.db import schema
from manila_lite.db.session import Database
from tests.support.clock import ManualClock
from tests.support.installation import SEPARATE
from tests.support.processes import wait_until


@pytest.fixture
def clock():
    return ManualClock()


@pytest.fixture
def db(tmp_path):
    db = Database(f'sqlite:///{tmp_path}/db')
    schema.sync(db)
    yield db
    db.dispose()


def test_frequent_questions_cost_few_writes(db, clock):
    check = health.DatabaseCheck(db, clock)
    steps = []
    db.on_step = steps.append
    for _ in range(10):
        assert check() is None
    assert steps.count('committed') == 1
    clock.now += health.WRITE_INTERVAL
    assert check() is None
    assert steps.count('committed') == 2


def test_only_one_question_waits_for_a_write_that_hangs(db, clock, tmp_path):
    check = health.DatabaseCheck(db, clock)
    with (
        futures.ThreadPoolExecutor(1) as pool,
        contextlib.closing(
            sqlite3.connect(tmp_path / 'db', isolation_level=None)
        ) as other,
    ):
        other.execute('BEGIN IMMEDIATE')
        waiting = pool.submit(check)
        wait_until(lambda: check.is_writing, 'the write begins')
        clock.now += health.PATIENCE + 1
        assert check() == 'does not end a write'
        assert not waiting.done()
        other.execute('ROLLBACK')
        assert waiting.result(60) is None
    assert check() is None


# Other services


@pytest.fixture
def services(install, broker_url):
    """Separate services, one of whose checks is required by its name."""

    def start(required=''):
        return install(
            kind=SEPARATE,
            options='default_share_type = default\n'
            f'transport_url = {broker_url}\n'
            f'healthcheck_required = {required}\n',
            backends={'one': {}, 'two': {}},
        ).start()

    return start


def state_of(installation, expect=200):
    health = installation.rest(url=installation.root)
    return health.get('/healthcheck', Accept='text/plain', expect=expect)


def test_api_knows_whether_others_live(services):
    installation = services()
    wait_until(lambda: state_of(installation) == 'OK', 'all is well')
    installation.running['scheduler'].stop()
    assert state_of(installation).splitlines() == [
        'OK',
        'scheduler: none is up, see "service list"',
    ]
    installation.running['share'].stop()
    assert 'backends: 2 of 2 are not up' in state_of(installation)
    listed = installation.manage('service', 'list')
    assert listed.count('It was stopped.') == 3
    user = installation.rest()
    user.make_default_type()
    share = user.create()
    installation.start('scheduler', 'share')
    wait_until(lambda: state_of(installation) == 'OK', 'all is well')
    assert user.wait_at_rest(share['id'])['status'] == 'available'


def test_load_balancer_may_be_kept_away_without_a_scheduler(services):
    installation = services('scheduler,bus')
    installation.running['scheduler'].stop()
    assert state_of(installation, expect=503) == (
        'scheduler: none is up, see "service list"'
    )
