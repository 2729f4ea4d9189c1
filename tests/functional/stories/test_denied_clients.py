"""A denied client loses access soon, also if services are killed.

Services use their default intervals and timeouts.
"""

import time

import pytest

from manila_lite.share.drivers.dummy import driver as dummy
from tests.functional.stories import suites
from tests.support.installation import SEPARATE, SERVE
from tests.support.processes import wait_until

pytestmark = suites.clients

SHARES = 4
MAX_DELAY = 10.0
"""Seconds from the restart of the service."""

OPTIONS = """default_share_type = default
report_interval = 10
service_down_time = 60
periodic_interval = 60
"""
SECTIONS = """lease = 30
sweep_interval = 2
workers_per_backend = 2
"""
HANGING_DRIVER = {'dummy': {'dummy_driver_hang_methods': 'update_access'}}
SLOW_DRIVER = {'dummy': {'dummy_driver_driver_methods_delays': 'update_access:1'}}
ALLOWED, DENIED = '10.0.0.1', '10.0.0.2'


def clients(installation):
    """Return the clients that the back end allows, of all shares."""
    inventory = dummy.access_inventory(installation.dummy_state_dir('dummy'))
    return [to for allowed in inventory.values() for _, to, _ in allowed]


def allow(user, share, to):
    return user.act(
        share, 'allow_access', {'access_type': 'ip', 'access_to': to}, expect=200
    )['access']['id']


@pytest.mark.parametrize(
    'kind, victims', [(SERVE, SERVE), (SEPARATE, ('share',))], ids=['serve', 'separate']
)
def test_denied_client_loses_access_soon_after_a_restart(
    install, new_database, broker_url, kind, victims
):
    separate = kind == SEPARATE
    installation = install(
        kind=kind,
        sections=SECTIONS,
        options=OPTIONS + (f'transport_url = {broker_url}' if separate else ''),
        database_url=new_database('postgresql') if separate else None,
    )
    installation.start()
    user = installation.rest()
    user.make_default_type()
    shares = [user.create_available()['id'] for _ in range(SHARES)]
    rules = {
        share: [allow(user, share, to) for to in (ALLOWED, DENIED)] for share in shares
    }
    wait_until(lambda: not installation.pending_work(), 'no work is pending')
    installation.stop()
    installation.configure(HANGING_DRIVER)
    installation.start()
    user = installation.rest()
    for share, (_, denied) in rules.items():
        user.act(share, 'deny_access', {'access_id': denied})
    # Some denials are in the driver, one perhaps in the worker for urgent
    # work, and some are queued.
    wait_until(lambda: installation.running_work() >= 2, 'two are running')
    installation.kill(*victims)
    assert clients(installation).count(DENIED) == SHARES
    installation.configure(SLOW_DRIVER)
    installation.start(*victims)
    restarted_at = time.monotonic()
    wait_until(lambda: DENIED not in clients(installation), 'all are denied')
    assert time.monotonic() - restarted_at < MAX_DELAY
    assert clients(installation) == [ALLOWED] * SHARES
    wait_until(lambda: not installation.pending_work(), 'no work is pending')
    assert installation.problems() == []
