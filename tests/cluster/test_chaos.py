"""Nodes of a small cluster fail at random while clients send requests.

The seed of the run decides about requests and faults. MANILA_LITE_TEST_SEED
repeats them, as does `make chaos ARGS='--small --seed ...'`, for longer.
"""

import pytest

from tests.cluster import chaos, cluster
from tests.support import sampling
from tests.support.processes import free_port

pytestmark = sampling.suite('clusters of nodes', 1)

SECONDS = 45
AT_REST_WITHIN = 60.0
"""Seconds, so that all of it takes at most three minutes.

On a machine that does nothing else, the start takes less than 20, the last
fault less than 20 more than its share of the round, and the checks 10.
"""

TIMING = chaos.TIMING._replace(lease=5, service_down_time=10)
"""A busy machine may stop any process for a few seconds."""


@pytest.fixture
def small(tmp_path):
    cluster.require()
    running = cluster.Cluster(
        tmp_path / 'cluster',
        cluster.SMALL,
        port=free_port(),
        timing=TIMING,
        has_clocks=True,
    )
    try:
        yield running.start()
    finally:
        running.close()


# Other tests run beside it.
@pytest.mark.timeout(600)
def test_no_accepted_request_is_lost_while_nodes_fail(small):
    small.create_types()
    rounds = chaos.Chaos(small, sampling.seed(), at_rest_within=AT_REST_WITHIN)
    found = rounds.round(SECONDS)
    assert not found.problems, (f'{sampling.VARIABLE}={sampling.seed()}', found)
