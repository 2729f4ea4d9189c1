"""Requests, heartbeats and leases go on while a driver blocks its thread."""

import fcntl
import pathlib
import time

import pytest

from manila_lite.work import table
from tests.functional.stories import suites
from tests.support import blocking_driver
from tests.support.processes import wait_until

pytestmark = suites.failures

ROOT = pathlib.Path(__file__).parents[3]
LEASE = 1.0
DOWN_TIME = 5.0
"""Seconds, as in the configuration of an installation."""


@pytest.fixture(params=['threading', 'eventlet'])
def installation(request, install, monkeypatch):
    """One process with the driver, and a share type."""
    monkeypatch.setenv('PYTHONPATH', str(ROOT))
    installation = install(
        concurrency=request.param,
        forked=False,
        options='default_share_type = default\n',
        backends={'dummy': {'share_driver': blocking_driver.NAME}},
        lease=LEASE,
    ).start()
    installation.rest().make_default_type()
    return installation


def test_driver_that_blocks_its_thread_stops_nothing_else(installation):
    user = installation.rest()
    state = installation.dummy_state_dir('dummy')
    with blocking_driver.lock_file(state).open('w') as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        share = user.create()
        request_id = user.last.headers['x-openstack-request-id']
        wait_until(installation.running_work, 'the driver is called')
        deadline = time.monotonic() + DOWN_TIME + 1
        slowest = 0.0
        while time.monotonic() < deadline:
            began = time.monotonic()
            assert user.show(share['id'])['status'] == 'creating'
            slowest = max(slowest, time.monotonic() - began)
            time.sleep(0.1)
        (service,) = user.get('/services?binary=manila-share')['services']
        (work,) = installation.db.read(table.list_work)
    assert slowest < LEASE
    assert service['state'] == 'up'
    assert work.attempt == 1
    assert user.wait_at_rest(share['id'])['status'] == 'available'
    assert installation.problems() == []
    (waiting,) = [
        line
        for _, text in installation.logs()
        for line in text.splitlines()
        if 'Waiting for the lock to create' in line
    ]
    assert request_id in waiting
