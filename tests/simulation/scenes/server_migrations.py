"""Migrations of share servers, each of both phases.

After the first phase the source serves again, and in the second phase nothing
is deleted.
"""

import functools

from manila_lite.states.share_server import ServerStatus, TaskState
from tests.simulation import crash_images
from tests.simulation.crashing import Scene
from tests.support.server_migrations import ServerMigrationCloud
from tests.support.snapshot_access import enable_snapshot_mounts


class CrashableMigrationCloud(crash_images.CrashableCloud, ServerMigrationCloud):
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


def prepare(cloud):
    """Create a server whose share has a rule and a snapshot."""
    enable_snapshot_mounts(cloud)
    share = cloud.create_share_on_alpha(cloud.add_network(), size=2)
    cloud.allow(share)
    cloud.snapshot(share)
    return cloud.server_of(share)


def prepare_phase1(cloud, **options):
    server = prepare(cloud)
    cloud.start_to_phase1(server, **options)
    return server


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


def scene(name, prepare, *verbs, **more):
    return Scene(
        name=name,
        prepare=prepare,
        verbs=Scene.named(*verbs),
        check=check,
        kind=CrashableMigrationCloud,
        points=140,
        least=11,
        **more,
    )


SCENES = [
    scene(
        'servers',
        prepare,
        start,
        start_read_only,
        start_nondisruptive,
        fail,
        seeds=(40, 1),
    ),
    scene(
        'servers that were copied',
        functools.partial(prepare_phase1, writable=False),
        complete,
        cancel,
        seeds=(20, 1),
    ),
    scene(
        'servers that moved without disruption',
        functools.partial(prepare_phase1, nondisruptive=True),
        complete,
        seeds=(10, 1),
    ),
]
