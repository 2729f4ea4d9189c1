"""What the health check of the API finds out, and what it costs."""

from concurrent import futures
import contextlib
import re
import sqlite3

import kombu
import pytest
import requests
import sqlalchemy as sa

from manila_lite import conf
from manila_lite.cmd.build import health
from manila_lite.cmd.build.process import Process
from manila_lite.db import schema
from manila_lite.db.session import Database
from tests.support import broker, requirements
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


def test_frequent_questions_about_others_cost_few_reads(db):
    process = Process(conf.new(), db)
    found = health.checks_of_others(process)
    read = []
    sa.event.listen(
        db.engine, 'before_cursor_execute', lambda *args: read.append(args[2])
    )
    for _ in range(10):
        for check in found.values():
            assert check() == 'none is enabled, see "service list"'
    reads = [text for text in read if 'FROM services' in text]
    assert len(reads) < 10


def test_unknown_is_not_reported_as_down(tmp_path):
    missing = Database(f'sqlite:///{tmp_path}/no-folder/db')
    for check in health.checks_of_others(Process(conf.new(), missing)).values():
        assert check() == 'the database does not answer'


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


def answer_of(installation):
    answer = requests.get(
        f'{installation.root}/healthcheck', headers={'Accept': 'text/plain'}, timeout=30
    )
    return answer.status_code, answer.text


def state_of(installation):
    code, text = answer_of(installation)
    assert code == 200, text
    return text


def test_api_knows_whether_others_live(services):
    installation = services()
    wait_until(lambda: state_of(installation) == 'OK', 'all is well')
    installation.running['scheduler'].stop()
    wait_until(
        lambda: (
            state_of(installation).splitlines()
            == ['OK', 'scheduler: none is up, see "service list"']
        ),
        'the scheduler is missed',
    )
    installation.running['share'].stop()
    wait_until(
        lambda: 'backends: 2 of 2 are not up' in state_of(installation),
        'the back ends are missed',
    )
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
    wait_until(lambda: state_of(installation) == 'OK', 'all is well')
    installation.running['scheduler'].stop()
    missed = (503, 'scheduler: none is up, see "service list"')
    wait_until(lambda: answer_of(installation) == missed, 'it is missed')


@pytest.fixture
def refusing_broker():
    """The URL of a virtual host with queues that are declared otherwise."""
    with broker.virtual_host() as url:
        if url == broker.URL:
            requirements.missing('rabbitmqctl cannot make a virtual host')
        with kombu.Connection(url.replace('rabbit:', 'amqp:')) as link:
            for topic in ('manila-scheduler', 'manila-share'):
                link.default_channel.queue_declare(
                    topic, durable=True, auto_delete=False
                )
        yield url


def test_services_work_while_the_broker_refuses_their_queues(install, refusing_broker):
    """As after a change of the kind of queues in the configuration."""
    installation = install(
        kind=SEPARATE,
        options=f'default_share_type = default\ntransport_url = {refusing_broker}\n',
        backends={'one': {}},
    ).start()
    user = installation.rest()
    user.make_default_type()
    share = user.create()
    assert user.wait_at_rest(share['id'])['status'] == 'available'
    # Written with the heartbeat, after the broker has refused.
    for host in ('manila-scheduler', 'manila-share'):
        wait_until(
            lambda host=host: re.search(
                f'^{host} .* up .* declared otherwise; only the sweep finds work',
                installation.manage('service', 'list'),
                re.MULTILINE,
            ),
            f'{host} is up, and the list says what it lacks',
        )
    wait_until(
        lambda: 'services lack it, see "service list"' in state_of(installation),
        'the API says so',
    )
