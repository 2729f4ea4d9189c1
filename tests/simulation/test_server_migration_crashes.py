"""A crash at any point of a server migration leaves nothing stuck.

A process is restarted once on every distinct disk image of a verb.
Everything comes to rest: after the first phase the source serves again, and
in the second phase nothing is deleted. Some crash again during recovery.
"""

import pytest

from manila_lite.states.share_server import ServerStatus
from manila_lite.states.share_server import TaskState
from tests.simulation import crash_images
from tests.simulation import crashing
from tests.simulation import pausing
from tests.support import sampling
from tests.support.server_migrations import ServerMigrationCloud
from tests.support.snapshot_access import enable_snapshot_mounts

SEEDS = sampling.seeds(70, 7)


class CrashableMigrationCloud(
    crash_images.CrashableCloud, ServerMigrationCloud
):
    """A cloud for server migrations with crash points."""


def start(cloud, server):
    cloud.start(server)
    cloud.settle()


def start_read_only(cloud, server):
    cloud.start(server, writable=False)
    cloud.settle()


def start_nondisruptive(cloud, server):
    cloud.start(server, nondisruptive=True)
    cloud.settle()


def complete(cloud, server):
    cloud.complete(server)
    cloud.settle()


def cancel(cloud, server):
    cloud.cancel(server)
    cloud.settle()


def fail(cloud, server):
    cloud.driver('beta').half_fail_next('share_server_migration_continue')
    cloud.start(server, writable=False)
    cloud.settle()


# Each with the options of the migration started before, if any.
VERBS = {
    'start': (start, None),
    'start_read_only': (start_read_only, None),
    'start_nondisruptive': (start_nondisruptive, None),
    'fail': (fail, None),
    'complete': (complete, {'writable': False}),
    'complete_nondisruptive': (complete, {'nondisruptive': True}),
    'cancel': (cancel, {'writable': False}),
}


@pytest.fixture(scope='module')
def clouds(tmp_path_factory):
    """By options of a started migration: a cloud, its server, an image."""
    made = {}
    for options in (None, {'writable': False}, {'nondisruptive': True}):
        cloud = CrashableMigrationCloud(tmp_path_factory.mktemp('moving'))
        enable_snapshot_mounts(cloud)
        share = cloud.create_share_on_alpha(cloud.add_network(), size=2)
        cloud.allow(share)
        cloud.snapshot(share)
        server = cloud.server_of(share)
        if options is not None:
            cloud.start_to_phase1(server, **options)
        cloud.db.dispose()
        made[str(options)] = cloud, server, crash_images.capture(cloud)
    yield made
    for cloud, _, _ in made.values():
        cloud.db.dispose()


def check(cloud):
    """Assert that everything is at rest, at the source or destination."""
    for server in cloud.servers():
        # The next move is up to an administrator.
        if server.task_state == TaskState.PHASE1_DONE:
            assert server.status == ServerStatus.SERVER_MIGRATING
            cloud.cancel(server.id)
    cloud.settle()
    cloud.check_invariants()
    assert cloud.has_no_incoming_servers()
    assert {row.status for row in cloud.servers()} == {'active'}
    assert {row.open_for for row in cloud.migrations()} <= {None}
    (share,) = cloud.api.get('/shares/detail')['shares']
    assert share['status'] == 'available'
    (snapshot,) = cloud.api.get('/snapshots/detail')['snapshots']
    assert snapshot['status'] == 'available'
    row = cloud.instance(share['id'])
    assert not row.cast_rules_to_readonly


@sampling.enumeration
@pytest.mark.parametrize('name', VERBS)
def test_crash_anywhere_ends_at_rest(clouds, name):
    verb, options = VERBS[name]
    cloud, server, initial = clouds[str(options)]
    crash_images.restart_on(initial, cloud)
    points = crash_images.images_at_crash_points(
        cloud, lambda: verb(cloud, server)
    )
    check(cloud)

    def recover(number, image):
        crash_images.restart_on(image, cloud)
        cloud.settle()
        check(cloud)

    crashing.recover_from_each(points, recover, name, least=11)


@sampling.enumeration
def test_two_crashes_and_bad_messages_end_at_rest(clouds):
    crashed = 0
    for seed in SEEDS:
        name = list(VERBS)[seed % len(VERBS)]
        verb, options = VERBS[name]
        cloud, server, initial = clouds[str(options)]
        crash_images.restart_on(initial, cloud, seed)
        cloud.loss_rate, cloud.duplicate_rate = 0.3, 0.3
        crashed += crashing.crash_at_point(
            cloud, cloud.rng.randrange(140), verb, cloud, server
        )
        cloud.restart()
        crashed += crashing.crash_at_point(
            cloud, cloud.rng.randrange(60), cloud.settle
        )
        cloud.restart()
        cloud.settle()
        try:
            check(cloud)
        except AssertionError as error:
            pytest.fail(f'{name}, seed {seed}: {error}')
    assert crashed > len(SEEDS)


@sampling.combinations('fencing', 'name')
@pausing.FENCING
@pytest.mark.parametrize('name', VERBS)
def test_a_pause_in_any_driver_call_ends_at_rest(
    clouds, name, fencing, shared_database
):
    verb, options = VERBS[name]
    cloud, server, initial = clouds[str(options)]

    def start():
        crash_images.restart_on(initial, cloud, backend_conf=fencing)
        return cloud, lambda: verb(cloud, server), lambda: check(cloud)

    pausing.pause_everywhere(start, name, shared_database)
