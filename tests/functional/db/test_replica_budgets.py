"""The exact number of SQL statements that updates of replicas cost.

Counted as in `test_sql_budgets`. The requirement is at most two for a
hundred unchanged replicas, apart from the driver calls.
"""

import pytest

from manila_lite.db.models import share_servers
from tests.functional.db.test_sql_budgets import cost
from tests.support import bulk_replicas
from tests.support.cloud import TYPE_ID
from tests.support.replicated import ReplicatedCloud

THOUSAND = 1000
MOST = 2 * THOUSAND // 100

SERVER = share_servers.ShareServer.__table__


class Healthy:
    """A driver whose replicas are all in sync."""

    def __init__(self, driver):
        self._driver = driver
        self.asked = set()

    def __getattr__(self, name):
        return getattr(self._driver, name)

    def update_replica_state(
        self, context, replica_list, replica, rules, pairs, share_server=None
    ):
        assert len(replica_list) == 2
        assert len(rules) == len(pairs) == 1
        self.asked.add(replica['id'])
        return 'in_sync'


@pytest.fixture
def cloud(build_cloud):
    cloud = build_cloud(kind=ReplicatedCloud, backends=('alpha', 'beta'))
    cloud.settle()
    cloud.updates = cloud.share.backends[1].endpoints.replica_updates
    cloud.updates.driver = Healthy(cloud.updates.driver)
    # A slow machine would add statements now and then.
    cloud.updates.lock_seconds = cloud.updates.yield_after = 600.0
    cloud.waiting = []
    cloud.db.deliver = cloud.waiting.extend
    return cloud


def fill(cloud, number, **kwargs):
    return set(
        cloud.db.write(
            bulk_replicas.insert_replicated_shares,
            number,
            type_id=TYPE_ID,
            active_on='node@alpha#pool',
            passive_on='node@beta#pool',
            **kwargs,
        )
    )


def carry_out(cloud):
    (runner,) = (one for one in cloud.runners if 'node@beta' in one.queues)
    while cloud.waiting:
        runner.wake(cloud.waiting.pop(0).work_id)
        assert runner.step()


def test_pass_over_a_thousand_healthy_replicas(cloud):
    ids = fill(cloud, THOUSAND)
    wanted, statements = cost(cloud, cloud.updates.request_pass)
    before = cloud.replicas(cloud.replica(min(ids)).share_id)
    _, carried_out = cost(cloud, carry_out, cloud)
    assert cloud.updates.driver.asked == ids
    assert (wanted, statements, carried_out) == (True, 4, 15)
    assert statements + carried_out <= MOST
    assert cloud.replicas(cloud.replica(min(ids)).share_id) == before


def test_pass_over_a_thousand_replicas_on_share_servers(cloud):
    ids = fill(cloud, THOUSAND, share_server_id='server')
    assert cloud.updates.request_pass()
    _, statements = cost(cloud, carry_out, cloud)
    assert cloud.updates.driver.asked == ids
    assert statements <= MOST


def test_request_for_a_pass_with_nothing_to_do(cloud):
    assert cost(cloud, cloud.updates.request_pass) == (False, 3)


def test_resync_that_changes_nothing(cloud):
    replica_id = fill(cloud, 1).pop()
    _, accepted = cost(cloud, cloud.ask, 'resync', replica_id)
    _, carried_out = cost(cloud, carry_out, cloud)
    assert (accepted, carried_out) == (3, 10)
