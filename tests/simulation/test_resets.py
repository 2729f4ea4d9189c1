"""Every reset of every resource, at every step of every operation.

An operation runs; after each commit and around each driver call an
administrator resets one status. Whatever is accepted, when all is done
nothing is in flight, no invariant is broken, and a share that was not to be
deleted has its data: if it is available, clients find it.
"""

from collections.abc import Callable
import contextlib
import functools
import random
import typing

from oslo_db import exception as db_exc
import pytest
import sqlalchemy as sa

from manila_lite.api import versions
from manila_lite.api.router import ACTION
from manila_lite.api.routes import ROUTES
from manila_lite.db import models
from manila_lite.db.models import (
    engine,
    networks,
    share_groups as group_models,
    share_servers,
    shares,
    snapshots as snapshot_models,
)
from manila_lite.states import share_server, snapshot_instance
from manila_lite.states.share_backup import SHARE_BACKUP
from manila_lite.states.share_group import SHARE_GROUP, SHARE_GROUP_SNAPSHOT
from manila_lite.states.share_instance import SHARE_INSTANCE
from manila_lite.states.share_network import SHARE_NETWORK
from manila_lite.states.share_replica import SHARE_REPLICA
from manila_lite.states.share_task import SHARE_TASK, WAITING
from tests.simulation import crash_images, pausing
from tests.support import (
    cloud_snapshots as snapshots,
    host_assisted,
    invariants,
    sampling,
    share_backups,
    share_groups,
    share_migrations as migrations,
)
from tests.support.replicated import ReplicatedCloud
from tests.support.rewind import rewindable
from tests.support.server_migrations import ServerMigrationCloud

SHARE = shares.Share.__table__
INSTANCE = shares.ShareInstance.__table__
SERVER = share_servers.ShareServer.__table__
WORK = engine.Work.__table__
_STATES = [
    (models.metadata.tables[machine.table], machine.column)
    for machine in invariants.MACHINES.values()
]
MOST_POINTS = 3
EXISTING = ('available', 'active')
PRECIOUS = 'precious'
SERVER_TASKS = (
    None,
    'migration_starting',
    'migration_driver_in_progress',
    'migration_driver_phase1_done',
    'migration_completing',
    'migration_cancel_in_progress',
    'migration_success',
    'migration_cancelled',
    'migration_error',
)


class Resets(typing.NamedTuple):
    """A reset of the route table, and what it can be asked for.

    `ids` selects the resources, `field` names the value in the body.
    """

    path: str
    action: str
    ids: sa.Select
    values: tuple[str | None, ...]
    field: str = 'status'


def _all(model: typing.Any) -> sa.Select:
    return sa.select(model.__table__.c.id).order_by(model.__table__.c.id)


def _sorted(values: typing.Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(values))


RESETS = {
    'ShareActionsController.reset_status': Resets(
        '/shares', 'reset_status', _all(shares.Share), _sorted(SHARE_INSTANCE.resets)
    ),
    'ShareActionsController.reset_task_state': Resets(
        '/shares',
        'reset_task_state',
        _all(shares.Share),
        (None, *_sorted(SHARE_TASK.resets - {'none'})),
        'task_state',
    ),
    'ShareInstanceActionsController.reset_status': Resets(
        '/share_instances',
        'reset_status',
        _all(shares.ShareInstance),
        _sorted(SHARE_INSTANCE.resets),
    ),
    'ShareReplicaActionsController.reset_status': Resets(
        '/share-replicas',
        'reset_status',
        _all(shares.ShareInstance).where(INSTANCE.c.replica_state.is_not(None)),
        _sorted(SHARE_INSTANCE.resets),
    ),
    'ShareReplicaActionsController.reset_replica_state': Resets(
        '/share-replicas',
        'reset_replica_state',
        _all(shares.ShareInstance).where(INSTANCE.c.replica_state.is_not(None)),
        _sorted(SHARE_REPLICA.resets),
        'replica_state',
    ),
    'SnapshotActionsController.reset_status': Resets(
        '/snapshots',
        'reset_status',
        _all(snapshot_models.Snapshot),
        _sorted(snapshot_instance.SNAPSHOT_RESETS),
    ),
    'SnapshotInstanceActionsController.reset_status': Resets(
        '/snapshot-instances',
        'reset_status',
        _all(snapshot_models.SnapshotInstance),
        _sorted(snapshot_instance.INSTANCE_RESETS),
    ),
    'ShareServerActionsController.reset_status': Resets(
        '/share-servers',
        'reset_status',
        _all(share_servers.ShareServer),
        _sorted(share_server.SHARE_SERVER.resets),
    ),
    'ShareServerActionsController.reset_task_state': Resets(
        '/share-servers',
        'reset_task_state',
        _all(share_servers.ShareServer),
        SERVER_TASKS,
        'task_state',
    ),
    'ShareNetworkActionsController.reset_status': Resets(
        '/share-networks',
        'reset_status',
        _all(networks.ShareNetwork),
        _sorted(SHARE_NETWORK.resets),
    ),
    'ShareGroupActionsController.reset_status': Resets(
        '/share-groups',
        'reset_status',
        _all(group_models.ShareGroup),
        _sorted(SHARE_GROUP.resets),
    ),
    'ShareGroupSnapshotActionsController.reset_status': Resets(
        '/share-group-snapshots',
        'reset_status',
        _all(group_models.ShareGroupSnapshot),
        _sorted(SHARE_GROUP_SNAPSHOT.resets),
    ),
    'ShareBackupActionsController.reset_status': Resets(
        '/share-backups',
        'reset_status',
        _all(shares.ShareBackup),
        _sorted(SHARE_BACKUP.resets),
    ),
}


def test_the_table_has_every_reset_of_the_api():
    assert {
        f'{route.controller.__name__}.{name}'
        for route in ROUTES
        if route.handler == ACTION
        for name in dir(route.controller)
        if name.startswith('reset_')
    } == RESETS.keys()


# Operations


def extend(cloud, share):
    cloud.api.act(share, 'extend', {'new_size': 3}, expect=None)


def shrink(cloud, share):
    cloud.api.act(share, 'shrink', {'new_size': 1}, expect=None)


def allow(cloud, share):
    migrations.allow(cloud, share, '10.2.2.2', expect=None)


def take_snapshot(cloud, share):
    snapshots.create(cloud, share, expect=None)


def delete(cloud, share):
    cloud.api.request('DELETE', f'/shares/{share}', expect=None)


def migrate(cloud, share):
    migrations.start(cloud, share, writable=False, expect=None)
    cloud.settle()
    migrations.complete(cloud, share, expect=None)


def cancel_migration(cloud, share):
    migrations.start(cloud, share, writable=False, expect=None)
    cloud.settle()
    migrations.cancel(cloud, share, expect=None)


def migrate_by_copying(cloud, share):
    host_assisted.start(cloud, share, expect=None)
    cloud.settle()
    migrations.complete(cloud, share, expect=None)


def cancel_copying(cloud, share):
    host_assisted.start(cloud, share, expect=None)
    cloud.settle()
    migrations.cancel(cloud, share, expect=None)


def back_up(cloud, share):
    share_backups.request(cloud.api, share, expect=None)


def prepare_share(cloud):
    share = host_assisted_share(cloud, size=2)
    migrations.allow(cloud, share)
    return share


def host_assisted_share(cloud, **body):
    share = migrations.create_on_alpha(cloud, **body)
    write(cloud, share)
    return share


def write(cloud, share):
    """Let clients write to a share, in both ways that a dummy has."""
    instance = migrations.instance_of(cloud, share)
    driver = next(
        cloud.driver(name)
        for name in cloud.backend_names
        if instance in cloud.driver(name).inventory()
    )
    driver.write(instance, PRECIOUS)
    folder = driver.backend.state.content(instance)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / PRECIOUS).write_text(PRECIOUS)


def prepare_snapshot(cloud):
    snapshots.enable_snapshot_features(cloud)
    share = host_assisted_share(cloud, size=2)
    return share, snapshots.create_available(cloud, share)


def delete_snapshot(cloud, found):
    snapshots.delete(cloud, found[1], expect=None)


def revert(cloud, found):
    snapshots.revert(cloud, *found, expect=None)


def clone(cloud, found):
    cloud.api.request(
        'POST',
        '/shares',
        {'share': {'share_proto': 'NFS', 'size': 2, 'snapshot_id': found[1]}},
        expect=None,
    )


def migrate_with_snapshots(cloud, found):
    migrations.start(cloud, found[0], preserve_snapshots=True, expect=None)
    cloud.settle()
    migrations.complete(cloud, found[0], expect=None)


def prepare_backup(cloud):
    share = host_assisted_share(cloud)
    return share, share_backups.create(cloud, share)


def restore_backup(cloud, found):
    share_backups.restore(cloud.api, found[1], expect=None)


def delete_backup(cloud, found):
    share_backups.delete(cloud.api, found[1], expect=None)


def prepare_group(cloud):
    group = share_groups.create(cloud)
    share = cloud.create_share(share_group_id=group)
    write(cloud, share)
    return group, share, share_groups.take_snapshot(cloud, group)


def snapshot_group(cloud, found):
    share_groups.request_snapshot(cloud.api, found[0], expect=None)


def delete_group_snapshot(cloud, found):
    share_groups.delete_snapshot(cloud.api, found[2], expect=None)


def prepare_empty_group(cloud):
    return share_groups.create(cloud)


def delete_group(cloud, group):
    share_groups.delete(cloud.api, group, expect=None)


def prepare_replicas(cloud):
    share = cloud.create_share_on('alpha', size=2)
    driver = cloud.driver('alpha')
    driver.write(migrations.instance_of(cloud, share), PRECIOUS)
    return share, cloud.replicate(share, 'beta')


def add_replica(cloud, found):
    cloud.request_replica(found[0], 'gamma')


def act_on_replica(cloud, found, action):
    cloud.api.request(
        'POST',
        f'/share-replicas/{found[1]}/action',
        {action: None},
        expect=None,
        version='2.99',
    )


def promote(cloud, found):
    act_on_replica(cloud, found, 'promote')


def resync(cloud, found):
    act_on_replica(cloud, found, 'resync')


def delete_replica(cloud, found):
    cloud.api.request(
        'DELETE', f'/share-replicas/{found[1]}', expect=None, version='2.99'
    )


def snapshot_replicas(cloud, found):
    snapshots.create(cloud, found[0], expect=None)


def extend_replicas(cloud, found):
    extend(cloud, found[0])


def prepare_server(cloud):
    network = cloud.add_network()
    share = cloud.create_share_on_alpha(network)
    write(cloud, share)
    migrations.allow(cloud, share)
    return share, cloud.server_of(share), network


def migrate_server(cloud, found):
    cloud.start(found[1], expect=None)
    cloud.settle()
    cloud.complete(found[1], expect=None)


def cancel_server_migration(cloud, found):
    cloud.start(found[1], expect=None)
    cloud.settle()
    cloud.cancel(found[1], expect=None)


def create_next_share(cloud, found):
    cloud.api.create(share_network_id=found[2])


def prepare_idle_server(cloud):
    found = prepare_server(cloud)
    delete(cloud, found[0])
    return found


def delete_server(cloud, found):
    cloud.api.request(
        'DELETE', f'/share-servers/{found[1]}', expect=None, version='2.99'
    )


class CrashableReplicatedCloud(crash_images.CrashableCloud, ReplicatedCloud):
    pass


class CrashableServerMigrationCloud(crash_images.CrashableCloud, ServerMigrationCloud):
    pass


class Scene(typing.NamedTuple):
    """What operations start from, on a cloud of this kind."""

    prepare: Callable
    operations: tuple[Callable, ...]
    kind: type = crash_images.CrashableCloud


SCENES = (
    Scene(
        prepare_share,
        (
            extend,
            shrink,
            allow,
            take_snapshot,
            delete,
            back_up,
            migrate,
            cancel_migration,
            migrate_by_copying,
            cancel_copying,
        ),
    ),
    Scene(prepare_snapshot, (delete_snapshot, revert, clone, migrate_with_snapshots)),
    Scene(prepare_backup, (restore_backup, delete_backup)),
    Scene(prepare_group, (snapshot_group, delete_group_snapshot)),
    Scene(prepare_empty_group, (delete_group,)),
    Scene(
        prepare_replicas,
        (
            add_replica,
            promote,
            resync,
            delete_replica,
            snapshot_replicas,
            extend_replicas,
        ),
        CrashableReplicatedCloud,
    ),
    Scene(
        prepare_server,
        (migrate_server, cancel_server_migration, create_next_share),
        CrashableServerMigrationCloud,
    ),
    Scene(prepare_idle_server, (delete_server,), CrashableServerMigrationCloud),
)
EXTRA_CONF = migrations.SHORT_POLL_INTERVAL


def parts():
    """Yield the scenes; with one operation each where every case is tried.

    All operations of one together would take longer than a test may.
    """
    for scene in SCENES:
        if sampling.tries_every_case():
            for operation in scene.operations:
                yield scene._replace(operations=(operation,))
        else:
            yield scene


def name_of(scene):
    operations = scene.operations if len(scene.operations) == 1 else ()
    return '-'.join(
        [scene.prepare.__name__.removeprefix('prepare_')]
        + [operation.__name__ for operation in operations]
    )


@pytest.fixture(scope='module', params=parts(), ids=name_of)
def scene(request, tmp_path_factory):
    found = request.param
    with rewindable(
        tmp_path_factory.mktemp('resets'), found.prepare, kind=found.kind
    ) as begin:
        yield found, functools.partial(begin, extra_conf=EXTRA_CONF)


class Reset(typing.NamedTuple):
    """One reset, at a point of an operation."""

    point: str
    times: int
    name: str
    id: str
    value: str | None


def unmade(session):
    """Return the ids of what no back end has been asked to create yet.

    That it is available nevertheless is the word of the administrator. It
    is refused for share servers, which the work of others builds.
    """
    begun = sa.select(WORK.c.resource_id).where(WORK.c.attempt > 0)
    found = set()
    for table in {machine_table for machine_table, _ in _STATES} - {SERVER}:
        if 'status' in table.c:
            rows = session.rows(
                sa.select(table).where(
                    table.c.status == 'creating', table.c.id.not_in(begun)
                )
            )
            for row in rows:
                parents = ('share_id', 'snapshot_id')
                found |= {row.id, *(getattr(row, x, None) for x in parents)}
    return found


def removes_one_copy(cloud, name, value):
    """Whether a reset lets a snapshot be removed from one replica only."""
    return (
        isinstance(cloud, ReplicatedCloud)
        and name.startswith('SnapshotInstance')
        and value == 'deleting'
    )


def possible_resets(cloud):
    """Return controller, id and value of every reset of what there is."""
    found = []
    skipped = cloud.db.read(unmade)
    for name, resets in RESETS.items():
        rows = cloud.db.read(lambda session, of=resets.ids: session.rows(of))
        found += [
            (name, row.id, value)
            for row in rows
            for value in resets.values
            if not (row.id in skipped and value in EXISTING)
            and not removes_one_copy(cloud, name, value)
        ]
    return found


def state_of(session):
    """Return what decides on the effect of a reset."""
    return [
        tuple(row)
        for statement in (
            *(
                sa.select(machine_table.c.id, machine_table.c[column])
                for machine_table, column in _STATES
            ),
            sa.select(WORK.c.id, WORK.c.kind, WORK.c.state),
        )
        for row in sorted(session.rows(statement))
    ]


def cases_of(begin, operation):
    """Return every reset at every point where something has changed."""
    cloud, prepared = begin()
    cases, counts, seen = [], {}, []

    def at_point(name):
        counts[name] = counts.get(name, 0) + 1
        if name != 'committed' and not pausing.is_call_with_effects(name):
            return
        state = cloud.db.read(state_of)
        if name == 'committed' and state in seen[-1:]:
            return
        seen.append(state)
        cases.extend(Reset(name, counts[name], *one) for one in possible_resets(cloud))

    cloud.on_crash_point = at_point
    operation(cloud, prepared)
    finish(cloud)
    cloud.on_crash_point = None
    check(cloud)
    assert cases
    return cases


def finish(cloud):
    """Let all work end, and administrators end what waits for them."""
    cloud.settle()
    for row in cloud.db.read(lambda session: session.rows(sa.select(SHARE))):
        if row.task_state in WAITING:
            migrations.cancel(cloud, row.id, expect=None)
    for row in cloud.db.read(lambda session: session.rows(sa.select(SERVER))):
        if row.task_state == share_server.TaskState.PHASE1_DONE:
            cloud.cancel(row.id, expect=None)
    cloud.settle()
    if isinstance(cloud, ReplicatedCloud):
        heal(cloud)


def heal(cloud):
    """Let replicas that are in error, or lag behind, follow again."""
    for _ in range(2):
        for row in cloud.rows(sa.select(INSTANCE)):
            if row.status == 'error' and row.host:
                cloud.ask('reset_status', row.id, 'available')
        cloud.update()


def contents(cloud):
    """Return the ids of all share instances with data, by back end."""
    found = {}
    for name in cloud.backend_names:
        driver = cloud.driver(name)
        for id in driver.inventory():
            folder = driver.backend.state.content(id)
            found[id] = driver.read(id) == PRECIOUS or (folder / PRECIOUS).exists()
    return found


def check(cloud, kept=()):
    """Check all invariants, and that these shares still have their data.

    Unless they are gone altogether, as an administrator may have asked.
    """
    cloud.check_invariants()
    there = contents(cloud)
    of_share: dict[str, list[typing.Any]] = {}
    for row in instances(cloud):
        of_share.setdefault(row.share_id, []).append(row)
    for share_id in of_share.keys() & kept:
        rows = of_share[share_id]
        assert any(there.get(row.id) for row in rows), (
            f'the data of {share_id} is lost: {rows}'
        )


def instances(cloud):
    return cloud.db.read(lambda session: session.rows(sa.select(INSTANCE)))


def reset(cloud, case):
    resets = RESETS[case.name]
    return cloud.api.request(
        'POST',
        f'{resets.path}/{case.id}/action',
        {resets.action: {resets.field: case.value}},
        version='2.99',
        expect=None,
        **{versions.EXPERIMENTAL_HEADER: 'true'},
    ).status_int


def try_reset(begin, operation, case, *more):
    """Run an operation; at the point, do the reset and call `more`."""
    cloud, prepared = begin()
    there = contents(cloud)
    kept = {row.share_id for row in instances(cloud) if there.get(row.id)}
    codes = []
    together = [lambda: codes.append(reset(cloud, case))]
    together += [one(cloud) for one in more]
    random.Random(f'{case}').shuffle(together)

    def meanwhile():
        # An error in the call of a driver would be taken for one of its own.
        for one in together:
            with contextlib.suppress(db_exc.DBConnectionError):
                one()

    cloud.pause_at(case.point, meanwhile, case.times)
    with contextlib.suppress(db_exc.DBConnectionError):
        operation(cloud, prepared)
    with contextlib.suppress(db_exc.DBConnectionError):
        finish(cloud)
    cloud.clear_pauses()  # where the connection was not lost so far
    finish(cloud)
    assert codes, 'the reset was not made'
    assert codes[0] in (202, 400, 403, 404, *([503] if more else ())), codes
    check(cloud, () if operation is delete else kept)


CALLS = {
    delete: 'delete_share',
    delete_snapshot: 'delete_snapshot',
    delete_group: 'delete_share_group',
    delete_server: 'teardown_server',
    delete_replica: 'delete_replica',
    add_replica: 'create_replica',
    clone: 'create_share_from_snapshot',
    take_snapshot: 'create_snapshot',
    create_next_share: 'create_share',
}
"""The driver call that creates or removes something."""


def test_nothing_becomes_available_while_it_is_created_or_removed(scene):
    found, begin = scene
    for operation in CALLS.keys() & set(found.operations):
        cloud, prepared = begin()
        codes = []

        def reset_all(cloud=cloud, codes=codes):
            changing = cloud.db.read(list_changing)
            for one in possible_resets(cloud):
                case = Reset('', 0, *one)
                if case.id in changing and case.value in EXISTING:
                    codes.append(reset(cloud, case))

        cloud.pause_at(f'before {CALLS[operation]}', reset_all)
        operation(cloud, prepared)
        finish(cloud)
        assert codes, operation
        assert set(codes) == {400}
        check(cloud)


def list_changing(session):
    """Return the ids of what is being created or removed."""
    return {
        row.id
        for table in {one for one, _ in _STATES}
        if 'status' in table.c
        for row in session.rows(
            sa.select(table.c.id).where(table.c.status.in_(['creating', 'deleting']))
        )
    }


def failures(begin, operation, cases, *more):
    """Yield what is wrong after each case, with its name."""
    for case in cases:
        try:
            try_reset(begin, operation, case, *more)
        except AssertionError as error:
            yield f'{operation.__name__}, {case}: {str(error)[:300]}'


def of_each_reset(cases):
    """Return each reset at a few of its points: they are many."""
    points: dict[typing.Any, list[Reset]] = {}
    for case in cases:
        points.setdefault(case[2:], []).append(case)
    rng = random.Random(sampling.seed())
    return [
        case
        for some in points.values()
        for case in rng.sample(some, min(len(some), MOST_POINTS))
    ]


@sampling.enumeration
def test_no_reset_loses_data_or_leaves_anything_in_flight(scene):
    found, begin = scene
    for operation in sampling.sample(found.operations, 2):
        cases = of_each_reset(cases_of(begin, operation))
        failed = [*failures(begin, operation, sampling.sample(cases, 2))]
        assert not failed, '\n'.join([f'{len(failed)} failed', *failed])


def take_over(cloud):
    return pausing.Another(cloud).take_over


def lose_database(cloud):
    """Let the connection be lost before a commit soon after this."""

    def fail():
        raise db_exc.DBConnectionError('lost')

    times = cloud.rng.randrange(1, 8)
    return lambda: cloud.pause_at('commit', fail, times)


@sampling.enumeration
def test_a_reset_with_a_pause_and_a_database_error_loses_nothing(scene):
    """The worker is paused in its call until another has taken over."""
    found, begin = scene
    for operation in sampling.sample(found.operations, 1):
        cases = of_each_reset(
            case for case in cases_of(begin, operation) if ' ' in case.point
        )
        failed = [
            *failures(
                begin, operation, sampling.sample(cases, 2), take_over, lose_database
            )
        ]
        assert not failed, '\n'.join([f'{len(failed)} failed', *failed])
