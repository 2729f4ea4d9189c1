"""A share server whose shares have replicas migrates with them."""

import pytest

from tests.support.replicated import ReplicatedCloud
from tests.support.server_migrations import ServerMigrationCloud

MOVES = 'dummy_driver_share_replicas_migration = true\n'


class Replicas(ServerMigrationCloud, ReplicatedCloud):
    """Three back ends with share servers and replicas."""


@pytest.fixture
def make(build_cloud):
    """Return a function that creates a share on alpha, a replica on beta."""

    def make(backend_conf=MOVES, **options):
        cloud = build_cloud(kind=Replicas, backend_conf=backend_conf, **options)
        network = cloud.add_network()
        share = cloud.create_share_on('alpha', share_network_id=network)
        replica = cloud.replicate(share, 'beta', share_network_id=network)
        return cloud, share, replica

    return make


def server_on(cloud, backend):
    (found,) = (row.id for row in cloud.servers() if row.host == f'node@{backend}')
    return found


def migrate(cloud, source, destination):
    server = server_on(cloud, source)
    cloud.start_to_phase1(server, host=f'node@{destination}')
    cloud.complete(server)
    cloud.settle()
    cloud.check_invariants()


@pytest.mark.parametrize('style', ['readable', 'dr', 'writable'])
def test_active_replica_migrates_and_stays_a_replica(make, style):
    cloud, share, replica = make(style=style)
    active = cloud.active(share).id
    cloud.driver('alpha').write(active, 'before')
    migrate(cloud, 'alpha', 'gamma')
    assert cloud.replica(active).host == 'node@gamma#pool'
    assert cloud.driver('gamma').read(active) == 'before'
    cloud.driver('gamma').write(active, 'after')
    cloud.ask('resync', replica)
    cloud.settle()
    assert set(cloud.states(share)) == {'beta', 'gamma'}
    assert cloud.driver('beta').read(replica) == 'after'
    if style != 'writable':
        cloud.ask('promote', replica)
        cloud.settle()
        assert cloud.active(share).id == replica
    cloud.check_invariants()


def test_passive_replica_migrates_and_can_be_promoted(make):
    cloud, share, replica = make()
    cloud.driver('alpha').write(cloud.active(share).id, 'content')
    migrate(cloud, 'beta', 'gamma')
    cloud.ask('resync', replica)
    cloud.settle()
    cloud.ask('promote', replica)
    cloud.settle()
    assert cloud.active(share).id == replica
    assert cloud.driver('gamma').read(replica) == 'content'
    cloud.check_invariants()


@pytest.mark.facts('LP2104357')
def test_passive_replica_shows_the_migration_of_its_server(make):
    cloud, share, replica = make()
    active = cloud.active(share).id
    cloud.start_to_phase1(server_on(cloud, 'beta'), host='node@gamma')
    assert cloud.replica(replica).status == 'server_migrating'
    assert cloud.replica(active).status == 'available'
    cloud.complete(server_on(cloud, 'beta'))
    cloud.settle()
    assert cloud.replica(replica).status == 'available'


def test_servers_of_replicas_stay_unless_the_option_is_set(make):
    cloud, share, replica = make(backend_conf='')
    answer = cloud.start(server_on(cloud, 'alpha'), 'node@gamma', expect=409)
    assert 'has shares with replicas' in answer.text


def test_replicas_do_not_leave_their_replication_domain(make):
    cloud, share, replica = make()
    cloud.driver('gamma').backend.domain = None
    answer = cloud.start(server_on(cloud, 'alpha'), 'node@gamma')
    cloud.settle()
    assert cloud.servers()[0].task_state == 'server_migration_error', answer
