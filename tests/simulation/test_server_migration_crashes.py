"""A process that dies at any place of a migration leaves nothing stuck.

What every place of a verb leaves on the disk is kept, and each of these
is started on once. All comes to rest: the source serves again after the
first phase, and in the second nothing is deleted. A second death, while
that is made good, is tried MANILA_LITE_TEST_SEEDS times.
"""

import os
import shutil

import pytest

from tests.simulation import crash_images as death
from tests.simulation import crashing
from tests.support.server_migrations import ServerMigrationCloud

SEEDS = int(os.environ.get('MANILA_LITE_TEST_SEEDS', 14))


class Mortal(death.CrashableCloud, ServerMigrationCloud):
    """One that says so when it comes to a place where it may die."""


def start(cloud, server):
    cloud.start(server)
    cloud.settle()


def start_read_only(cloud, server):
    cloud.start(server, writable=False)
    cloud.settle()


def start_undisrupted(cloud, server):
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


# Each with how its migration was begun before, if it was.
VERBS = {
    'start': (start, None),
    'start_read_only': (start_read_only, None),
    'start_undisrupted': (start_undisrupted, None),
    'fail': (fail, None),
    'complete': (complete, {'writable': False}),
    'complete_undisrupted': (complete, {'nondisruptive': True}),
    'cancel': (cancel, {'writable': False}),
}


@pytest.fixture(scope='module')
def clouds(tmp_path_factory):
    """By how a migration was begun: a cloud, its server, what is stored."""
    made = {}
    for options in (None, {'writable': False}, {'nondisruptive': True}):
        cloud = Mortal(tmp_path_factory.mktemp('moving'))
        cloud.support()
        share = cloud.create_share_on_alpha(cloud.add_network(), size=2)
        cloud.allow(share)
        cloud.snapshot(share)
        server = cloud.server_of(share)
        if options is not None:
            cloud.start_to_phase1(server, **options)
        cloud.db.dispose()
        made[str(options)] = cloud, server, death.capture(cloud)
    yield made
    for cloud, _, _ in made.values():
        cloud.db.dispose()


def begin(cloud, image, seed=0):
    """Start a process anew on what was left."""
    cloud.db.dispose()
    shutil.rmtree(cloud.folder)
    for name, content in image.files:
        path = cloud.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    cloud.rng.seed(seed)
    cloud.clock.now = image.now
    cloud.loss_rate = cloud.duplicate_rate = 0.0
    cloud.restart()


def deaths(cloud, run):
    """What deaths leave, once for all places that leave the same."""
    found = {}
    for place, image in death.images_at_crash_points(cloud, run):
        found.setdefault(image.files, (place, image))
    return list(found.values())


def check(cloud, where):
    """Everything is at rest, where it was or where it was to go."""
    try:
        for server in cloud.servers():
            # An administrator owes the next move there.
            if server.task_state == 'server_migrating_phase1_done':
                assert server.status == 'server_migrating'
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
    except AssertionError as error:
        pytest.fail(f'{where}: {error}')


@pytest.mark.parametrize('name', VERBS)
def test_a_death_anywhere_ends_at_rest(clouds, name):
    verb, options = VERBS[name]
    cloud, server, stored = clouds[str(options)]
    begin(cloud, stored)
    found = deaths(cloud, lambda: verb(cloud, server))
    check(cloud, f'{name} without a death')
    assert len(found) > 10
    for place, image in found:
        begin(cloud, image)
        cloud.settle()
        check(cloud, f'{name} {place}')
    print(f'{name}: {len(found)} remains')


def test_two_deaths_and_bad_messages_end_at_rest(clouds):
    died = 0
    for seed in range(SEEDS):
        name = list(VERBS)[seed % len(VERBS)]
        verb, options = VERBS[name]
        cloud, server, stored = clouds[str(options)]
        begin(cloud, stored, seed)
        cloud.loss_rate, cloud.duplicate_rate = 0.3, 0.3
        died += crashing.crash_at_point(
            cloud, cloud.rng.randrange(140), verb, cloud, server
        )
        cloud.restart()
        died += crashing.crash_at_point(
            cloud, cloud.rng.randrange(60), cloud.settle
        )
        cloud.restart()
        cloud.settle()
        check(cloud, f'{name}, seed {seed}')
    assert died > SEEDS
