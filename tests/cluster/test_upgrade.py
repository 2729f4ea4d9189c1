"""A small cluster of the previous release is upgraded under load.

It takes a minute and a half, so that only `make exhaust` does it, as does
`python -m tests.cluster upgrade --small`, which tells the steps.
"""

import pytest

from tests.cluster import cluster, upgrade
from tests.support import sampling
from tests.support.processes import free_port


@pytest.fixture
def old(tmp_path):
    """A running cluster of the previous release."""
    cluster.require()
    running = cluster.Cluster(
        tmp_path / 'cluster',
        upgrade.SIZE,
        port=free_port(),
        timing=upgrade.TIMING,
        release=upgrade.install(tmp_path / 'old'),
    )
    try:
        yield running.start()
    finally:
        running.close()


@sampling.suite('upgrade under load', 0)
@pytest.mark.timeout(1200)
def test_no_request_fails_while_nodes_are_upgraded_and_go_back(old):
    old.create_types()
    run = upgrade.Upgrade(old, sampling.seed())
    problems = run.run()
    assert not problems, (f'{sampling.VARIABLE}={sampling.seed()}', problems, run.text)
