"""Requests about networks and their share servers at the same time."""

import datetime

import pytest

from tests.simulation.scenes import networks, share_servers
from tests.support import sampling


@sampling.enumeration
@pytest.mark.parametrize('stage', [networks.SCENE], ids=['networks'], indirect=True)
@pytest.mark.parametrize('seed', sampling.seeds(80, 2))
def test_concurrent_changes_are_done_in_some_order(stage, seed):
    """Of two changes of one network one is made and the other refused."""
    cloud, found = stage.begin(seed=seed)
    cloud.loss_rate, cloud.duplicate_rate = 0.3, 0.3
    competing_runners = cloud.competing_runners()
    codes = []
    actions = [
        lambda: codes.append(
            networks.network_action(
                cloud, found, 'update_security_service', networks.replacement(found)
            ).status_int
        ),
        lambda: codes.append(
            networks.network_action(
                cloud,
                found,
                'update_security_service',
                networks.replacement(found, 'other'),
            ).status_int
        ),
        lambda: codes.append(
            cloud.api.request(
                'POST',
                f'/share-networks/{found["used"]}/subnets',
                {'share-network-subnet': networks.SUBNET},
            ).status_int
        ),
        lambda: cloud.api.create(share_network_id=found['used'], expect=None),
        lambda: cloud.api.delete(found['share'], expect=None),
        lambda: cloud.api.request('DELETE', f'/share-networks/{found["idle"]}'),
        lambda: cloud.api.create(share_network_id=found['idle'], expect=None),
    ]
    cloud.rng.shuffle(actions)

    def run_competitors():
        for _ in range(cloud.rng.randrange(6)):
            cloud.rng.choice(competing_runners).step()

    for action in actions:
        cloud.pause_at(
            cloud.rng.choice(
                [
                    'committed',
                    'before update_share_server_security_service',
                    'before update_share_server_network_allocations',
                    'before create_share',
                ]
            ),
            run_competitors,
        )
        action()
        for _ in range(cloud.rng.randrange(4)):
            cloud.step()
    cloud.clear_pauses()
    assert sum(code < 300 for code in codes) <= 1
    assert all(code < 500 for code in codes)
    cloud.settle()
    stage.scene.check(cloud)


@sampling.enumeration
@pytest.mark.parametrize('stage', [share_servers.SCENE], ids=['servers'], indirect=True)
@pytest.mark.parametrize('seed', sampling.seeds(80, 2))
def test_concurrent_requests_break_no_invariant(stage, seed):
    cloud, found = stage.begin('delete_share' if seed % 2 else '', seed=seed)
    cloud.loss_rate, cloud.duplicate_rate = 0.3, 0.3
    competing_runners = cloud.competing_runners()
    actions = [
        lambda: cloud.api.create(share_network_id=found['empty']),
        lambda: cloud.api.create(share_network_id=found['empty']),
        lambda: cloud.api.create(share_network_id=found['used']),
        lambda: cloud.api.delete(found['share']),
        lambda: cloud.api.request('DELETE', f'/share-servers/{found["idle"]}'),
        lambda: cloud.share.backends[0].endpoints.share_servers.delete_idle(
            datetime.timedelta(0)
        ),
        lambda: cloud.driver().fail_next('_setup_server'),
        lambda: cloud.driver().fail_next('_teardown_server'),
    ]
    cloud.rng.shuffle(actions)

    def run_competitors():
        for _ in range(cloud.rng.randrange(6)):
            cloud.rng.choice(competing_runners).step()

    for action in actions:
        cloud.pause_at(
            cloud.rng.choice(
                [
                    'committed',
                    'before setup_server',
                    'after setup_server',
                    'after choose_share_server_compatible_with_share',
                    'before teardown_server',
                    'before create_share',
                ]
            ),
            run_competitors,
        )
        action()
        for _ in range(cloud.rng.randrange(4)):
            cloud.step()
    cloud.clear_pauses()
    cloud.settle()
    cloud.check_invariants()
