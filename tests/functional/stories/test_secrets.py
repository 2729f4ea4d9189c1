"""Secrets in what drivers say are neither kept, nor shown, nor logged."""

import json

import pytest
import sqlalchemy as sa

from manila_lite.db.models.base import Base
from tests.support import leaky_driver
from tests.support.leaky_driver import SECRETS
from tests.support.processes import wait_until
from tests.support.rescues import force_status

DRIVER = {
    'share_driver': 'tests.support.leaky_driver.LeakyDriver',
    leaky_driver.OPTION: SECRETS['option'],
}
OPTIONS = 'default_share_type = default\ndebug = true\n'
SECTIONS = '[recovery]\ninterval = 1\n[work]\nretry_delay = 60\n'


@pytest.fixture(params=['plain', 'json'])
def installation(install, request):
    installation = install(
        options=OPTIONS + f'use_json = {request.param == "json"}\n',
        sections=SECTIONS,
        backends={'leaky': DRIVER},
    )
    installation.start().rest().make_default_type()
    return installation


def rows_with(db, *texts):
    """Return the rows that contain one of the texts, from all tables."""
    return [
        (table.name, dict(row))
        for table in Base.metadata.sorted_tables
        for row in db.read(
            lambda session, table=table: [
                row._mapping for row in session.rows(sa.select(table))
            ]
        )
        if any(text in str(row) for text in texts)
    ]


def logged_secrets(installation):
    return {
        (name, kind)
        for name, text in installation.logs()
        for kind, secret in SECRETS.items()
        if secret in text
    }


def answers(user, share_id):
    """Return what the API tells about everything that has happened."""
    return json.dumps(
        [
            user.get(path)
            for path in (
                f'/shares/{share_id}',
                '/messages',
                '/services',
                '/scheduler-stats/pools/detail',
                '/recovery/in-flight',
                '/recovery/log',
            )
        ]
    )


def test_secrets_of_failing_calls_are_masked_everywhere(installation):
    user = installation.rest()
    good = user.create_available()
    failed = user.wait_at_rest(user.create()['id'])
    assert failed['status'] == 'error'
    user.act(
        good['id'],
        'allow_access',
        {'access_type': 'ip', 'access_to': '10.0.0.1'},
        expect=200,
    )
    wait_until(
        lambda: 'update_access as ***' in dict(installation.logs())['1-serve'],
        'update_access failed',
    )
    user.act(good['id'], 'extend', {'new_size': 2})
    wait_until(
        lambda: rows_with(installation.db, 'extend_share as ***'),
        'the error is kept with the work',
    )
    assert not rows_with(installation.db, *SECRETS.values())
    assert not logged_secrets(installation)
    shown = answers(user, good['id'])
    assert 'reached by stats as ***' in shown
    assert not {kind for kind, text in SECRETS.items() if text in shown}


def test_secrets_of_failing_queries_are_masked_in_the_recovery_log(installation):
    user = installation.rest()
    share = user.create_available()
    instance_id = user.get(f'/shares/{share["id"]}/instances')['share_instances'][0][
        'id'
    ]
    force_status(installation.db, 'share_instance', instance_id, 'extending')
    wait_until(
        lambda: rows_with(installation.db, 'get_share_status as ***'),
        'the failed query is recorded',
    )
    assert not rows_with(installation.db, *SECRETS.values())
    assert not logged_secrets(installation)


def test_secrets_of_a_driver_that_does_not_start_are_masked(install):
    installation = install(
        options='default_share_type = default\n',
        backends={'leaky': DRIVER | {'leaky_setup_fails': 'true'}},
    )
    installation.start(wait=False)
    wait_until(
        lambda: rows_with(installation.db, 'do_setup as ***'),
        'the service is reported as unhealthy',
    )
    assert not rows_with(installation.db, *SECRETS.values())
    assert 'do_setup as ***' in dict(installation.logs())['1-serve']
    assert not logged_secrets(installation)
