"""A back end is removed from the configuration."""

import pytest

from tests.functional.stories import suites
from tests.support.installation import SEPARATE, SERVE
from tests.support.processes import wait_until

pytestmark = suites.failures

SMALL = {'dummy_driver_capacity_gb': 1, 'max_over_subscription_ratio': 1}


def wait_until_up(user, count):
    """Wait until so many back ends are up and can be chosen."""

    def are_up():
        found = user.get('/services?binary=manila-share')['services']
        return [row['state'] for row in found] == ['up'] * count

    wait_until(are_up, f'{count} back ends are up')


@pytest.mark.parametrize('kind, killed', [(SERVE, False), (SEPARATE, True)])
def test_removed_back_end_gets_no_share(
    install, new_database, broker_url, kind, killed
):
    """Its last heartbeat is recent: services are down only after a minute."""
    separate = kind == SEPARATE
    installation = install(
        kind=kind,
        database_url=new_database('mysql') if separate else None,
        options='service_down_time = 60\ndefault_share_type = default\n'
        'scheduler_default_weighers = CapacityWeigher\n'
        + (f'transport_url = {broker_url}\n' if separate else ''),
        backends={'gold': {'dummy_driver_capacity_gb': 9000}, 'iron': {}},
    ).start()
    user = installation.rest()
    user.make_default_type()
    wait_until_up(user, 2)
    gold = installation.service_host('gold')
    share = user.wait_at_rest(user.create()['id'])
    assert share['host'].startswith(gold)
    name = 'share' if separate else 'serve'
    if killed:
        installation.kill(name)
    else:
        installation.running.pop(name).stop()
    installation.configure({'iron': {}})
    installation.start(name)
    shares = [user.create()['id'] for _ in range(3)]
    assert {user.wait_at_rest(id)['host'].partition('#')[0] for id in shares} == {
        installation.service_host('iron')
    }
    states = {
        row['host']: row['state']
        for row in user.get('/services?binary=manila-share')['services']
    }
    assert states == {gold: 'down', installation.service_host('iron'): 'up'}


def test_work_of_a_removed_back_end_ends(install):
    installation = install(
        options='default_share_type = default',
        sections='unserved_timeout = 2',
        backends={
            'gold': {'dummy_driver_driver_methods_delays': 'create_share:600'},
            'iron': SMALL,
        },
    ).start()
    user = installation.rest()
    user.make_default_type()
    wait_until_up(user, 2)
    shares = [user.create(size=2)['id'] for _ in range(6)]
    wait_until(lambda: all(user.show(id)['host'] for id in shares), 'all are placed')
    wait_until(lambda: installation.running_work() == 4, 'all workers are busy')
    installation.kill('serve')
    installation.configure({'iron': SMALL})
    installation.start()
    ends = [user.wait_at_rest(id, timeout=60)['status'] for id in shares]
    assert ends == ['error'] * 6
    reasons = user.get('/messages')['messages']
    assert {row['resource_id'] for row in reasons} == set(shares)
