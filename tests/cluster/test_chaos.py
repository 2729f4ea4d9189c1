"""Nodes of a small cluster fail at random while clients send requests.

The seed of the run decides about requests and faults. MANILA_LITE_TEST_SEED
repeats them, as does `make chaos ARGS='--small --seed ...'`, for longer.
"""

import pytest

from tests.cluster import chaos
from tests.cluster import cluster
from tests.support import sampling
from tests.support.processes import free_port

SECONDS = 50
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


@pytest.mark.timeout(900)
def test_no_accepted_request_is_lost_while_nodes_fail(small):
    small.create_types()
    found = chaos.Chaos(small, sampling.seed()).round(SECONDS)
    assert not found.problems, (
        f'{sampling.VARIABLE}={sampling.seed()}',
        found,
    )
