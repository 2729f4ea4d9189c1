"""Whoever was denied stays out: killed services take nobody's side.

With the times that services have unless they are told others.
"""

import time

import pytest

from manila_lite.share.drivers.dummy import driver as dummy
from tests.support.installation import SEPARATE
from tests.support.installation import SERVE
from tests.support.processes import wait_until

SHARES = 4
AT_MOST = 10.0
"""Seconds after the service is back."""

OPTIONS = """default_share_type = default
report_interval = 10
service_down_time = 60
periodic_interval = 60
"""
WORK = """lease = 30
sweep_interval = 2
workers_per_backend = 2
"""
HANGING = {'dummy': {'dummy_driver_hang_methods': 'update_access'}}
SLOW = {'dummy': {'dummy_driver_driver_methods_delays': 'update_access:1'}}
KEPT, DENIED = '10.0.0.1', '10.0.0.2'


def clients(installation):
    """Who is let in by the back end, whichever share it is."""
    found = dummy.access_inventory(installation.dummy_state_dir('dummy'))
    return [to for let_in in found.values() for _, to, _ in let_in]


def allow(user, share, to):
    return user.act(
        share,
        'allow_access',
        {'access_type': 'ip', 'access_to': to},
        expect=200,
    )['access']['id']


@pytest.mark.parametrize(
    'kind, victims',
    [(SERVE, SERVE), (SEPARATE, ('share',))],
    ids=['serve', 'separate'],
)
def test_denied_client_is_out_soon_after_the_service_is_back(
    install, new_database, broker_url, kind, victims
):
    separate = kind == SEPARATE
    installation = install(
        kind=kind,
        sections=WORK,
        options=OPTIONS
        + (f'transport_url = {broker_url}' if separate else ''),
        database_url=new_database('postgresql') if separate else None,
    )
    installation.start()
    user = installation.rest()
    user.request(
        'POST',
        '/types',
        {
            'share_type': {
                'name': 'default',
                'extra_specs': {'driver_handles_share_servers': 'False'},
            }
        },
    )
    shares = [user.create_available()['id'] for _ in range(SHARES)]
    rules = {
        share: [allow(user, share, to) for to in (KEPT, DENIED)]
        for share in shares
    }
    wait_until(lambda: not installation.pending_work(), 'nothing is owed')
    installation.stop()
    installation.configure(HANGING)
    installation.start()
    user = installation.rest()
    for share, (_, denied) in rules.items():
        user.act(share, 'deny_access', {'access_id': denied})
    # Some are with the driver, and some wait for their turn.
    wait_until(lambda: installation.running_work() == 2, 'two are in hand')
    installation.kill(*victims)
    assert clients(installation).count(DENIED) == SHARES
    installation.configure(SLOW)
    installation.start(*victims)
    back = time.monotonic()
    wait_until(lambda: DENIED not in clients(installation), 'all are out')
    assert time.monotonic() - back < AT_MOST
    assert clients(installation) == [KEPT] * SHARES
    wait_until(lambda: not installation.pending_work(), 'nothing is owed')
    assert installation.problems() == []
