"""Every status in flight has a tested rescue, also if the rescue crashes.

Each status is reached by moves of the state table alone, without work, and
is at rest after a recovery pass; also if the pass, or the rescue that it
requests, crashes at any point and is taken over. A new status fails here
until `tests.support.rescues` lists where its rescue ends.

A usual run tries one crash point for each status.
"""

import importlib
import pathlib
import re

import pytest

from manila_lite.db.queries.recovery import recovery
from manila_lite.rpc.share import RESCUES
from manila_lite.states.machine import Resume
from tests.simulation import crash_images
from tests.support import (
    cloud_snapshots,
    rescues,
    sampling,
    share_backups,
    share_groups,
    share_migrations,
)
from tests.support.cloud import BACKENDS, Cloud
from tests.support.dhss import ShareServersCloud
from tests.support.rescues import CASES, SERVER_CASES, force_status, only_id, status_of
from tests.unit.states.test_states import MACHINES

pytestmark = sampling.suite('statuses that are rescued', 20)


EXTENSIONS = pathlib.Path(__file__).resolve().parents[2] / 'doc/source/_ext'
ENDS = (
    rescues.EXPECTED_ENDS
    | rescues.EXPECTED_SERVER_ENDS
    | rescues.EXPECTED_NETWORK_ENDS
    | rescues.EXPECTED_TRANSFER_ENDS
    | rescues.EXPECTED_GROUP_ENDS
    | rescues.EXPECTED_BACKUP_ENDS
    | rescues.EXPECTED_MIGRATION_ENDS
)
WITHOUT_SNAPSHOT = ('deleting', 'deferred_deleting')


@pytest.fixture(scope='module')
def prepared(tmp_path_factory):
    """A share, a snapshot, and a rule of each; and an image before them."""
    cloud = Cloud(tmp_path_factory.mktemp('outside'), backends=['alpha'])
    cloud_snapshots.enable_snapshot_features(cloud)
    share = cloud.create_share(size=2)
    without_snapshot = crash_images.capture(cloud)
    snapshot = cloud_snapshots.create_available(cloud, share)
    rule = {'access_type': 'ip', 'access_to': '10.0.0.1'}
    cloud.api.act(share, 'allow_access', rule | {'access_level': 'rw'}, None)
    cloud_snapshots.act(cloud, snapshot, 'allow_access', rule)
    cloud.settle()
    cloud.db.dispose()
    return cloud.folder, without_snapshot, crash_images.capture(cloud)


@pytest.fixture(scope='module')
def with_server(tmp_path_factory):
    """A share server without shares."""
    cloud = ShareServersCloud(tmp_path_factory.mktemp('servers'), backends=['alpha'])
    cloud.api.delete(cloud.create_share_on_network(cloud.add_network()))
    cloud.settle()
    cloud.db.dispose()
    return cloud.folder, crash_images.capture(cloud)


def start(prepared, resource, status, seed=1000):
    folder, without_snapshot, initial = prepared
    # A share with snapshots is never accepted for deletion.
    is_without_snapshot = resource == 'share_instance' and status in WITHOUT_SNAPSHOT
    return begin(without_snapshot if is_without_snapshot else initial, folder, seed)


def begin(image, folder, seed, kind=crash_images.CrashableCloud, backends=('alpha',)):
    return crash_images.start_on(image, folder, seed, kind, backends=backends)


def run_passes(cloud):
    """Run recovery passes alone, until there is nothing more to do."""
    reconciliation = cloud.share.backends[0].endpoints.reconciliation
    for _ in range(9):
        if not (
            reconciliation.run_pass()
            or cloud.step()
            or cloud.has_pending_work()
            or cloud.scheduler.orphan_sweep.run_pass()
        ):
            return
        cloud.run_pending()
        cloud.clock.advance(8)
    raise AssertionError('recovery passes never end')


@sampling.enumeration
@pytest.mark.parametrize('resource, status', CASES)
def test_status_without_work_is_rescued(prepared, resource, status):
    cloud = start(prepared, resource, status)
    check_rescued(cloud, resource, status)


@sampling.enumeration
@pytest.mark.parametrize('resource, status', SERVER_CASES)
def test_status_of_servers_without_work_is_rescued(with_server, resource, status):
    folder, initial = with_server
    cloud = begin(initial, folder, 1000, crash_images.CrashableShareServersCloud)
    check_rescued(cloud, resource, status)


@sampling.enumeration
def test_status_without_host_is_rescued(with_server):
    folder, initial = with_server
    for resource, ends in rescues.EXPECTED_NETWORK_ENDS.items():
        for status in ends:
            check_rescued(
                begin(initial, folder, 1000, crash_images.CrashableShareServersCloud),
                resource,
                status,
                by='manila-scheduler@node:',
            )


@sampling.enumeration
def test_accepted_transfer_without_work_is_rescued(prepared):
    folder, without_snapshot, _ = prepared
    cloud = begin(without_snapshot, folder, 1000)
    (share,) = cloud.api.get('/shares')['shares']
    cloud.api.request(
        'POST', '/share-transfers', {'transfer': {'share_id': share['id']}}, expect=202
    )
    for resource, ends in rescues.EXPECTED_TRANSFER_ENDS.items():
        for status in ends:
            check_rescued(cloud, resource, status)
    assert cloud.api.show(share['id'])['status'] == 'awaiting_transfer'


@sampling.enumeration
@pytest.mark.parametrize('status', rescues.EXPECTED_GROUP_ENDS['share_group'])
def test_share_group_without_work_is_rescued(prepared, status):
    folder, without_snapshot, _ = prepared
    cloud = begin(without_snapshot, folder, 1000)
    share_groups.create(cloud)
    check_rescued(cloud, 'share_group', status)


@sampling.enumeration
@pytest.mark.parametrize('status', rescues.EXPECTED_GROUP_ENDS['share_group_snapshot'])
def test_share_group_snapshot_without_work_is_rescued(prepared, status):
    folder, without_snapshot, _ = prepared
    cloud = begin(without_snapshot, folder, 1000)
    group = share_groups.create(cloud)
    cloud.create_share(share_group_id=group)
    share_groups.take_snapshot(cloud, group)
    check_rescued(cloud, 'share_group_snapshot', status)


@sampling.enumeration
@pytest.mark.parametrize(
    'made_by', [{}, share_backups.BY_DRIVER], ids=['data_service', 'driver']
)
@pytest.mark.parametrize('status', rescues.EXPECTED_BACKUP_ENDS['share_backup'])
def test_share_backup_without_work_is_rescued(prepared, status, made_by):
    folder, without_snapshot, _ = prepared
    cloud = begin(without_snapshot, folder, 1000)
    share_backups.create(cloud, **made_by)
    check_rescued(cloud, 'share_backup', status)


@pytest.fixture(scope='module')
def with_migration(tmp_path_factory):
    """A share whose migration to another back end has its copy there."""
    cloud = Cloud(tmp_path_factory.mktemp('migrations'))
    share_migrations.start(cloud, share_migrations.create_on_alpha(cloud))
    cloud.settle()
    cloud.db.dispose()
    return cloud.folder, crash_images.capture(cloud)


@sampling.enumeration
@pytest.mark.parametrize('status', rescues.EXPECTED_MIGRATION_ENDS['share_task'])
def test_share_migration_without_work_is_rescued(with_migration, status):
    folder, image = with_migration
    cloud = begin(image, folder, 1000, backends=BACKENDS)
    check_rescued(cloud, 'share_task', status)


def check_rescued(cloud, resource, status, by='manila-share@node@alpha:'):
    """Assert that a pass rescues the only row, also if it crashes."""
    id = only_id(cloud.db, resource)
    is_move = force_status(cloud.db, resource, id, status)
    points = crash_images.images_at_crash_points(cloud, lambda: run_passes(cloud))

    def check(where='at once'):
        assert status_of(cloud.db, resource, id) == (ENDS[resource][status]), where
        decisions = cloud.db.read(recovery.list_log, limit=10)
        assert decisions, where
        assert decisions[-1].made_by.startswith(by)
        # A requested deletion would have released the quota before.
        if is_move and status != 'deferred_deleting':
            cloud.check_invariants()
        cloud.db.dispose()

    check()
    distinct = crash_images.distinct_images(points)
    assert len(distinct) > 1
    for number, point, image in crash_images.to_try(distinct, 1):
        cloud = begin(
            image, cloud.folder, 2000 + number, type(cloud), cloud.backend_names
        )
        run_passes(cloud)
        check(f'after a crash {point}')


@pytest.mark.parametrize('machine', MACHINES.values(), ids=MACHINES)
def test_every_status_in_flight_has_a_tested_rescue(prepared, machine):
    assert machine.in_flight.keys() == ENDS.get(machine.resource, {}).keys()
    if not machine.in_flight:
        return
    assert recovery.KINDS[machine.resource].machine is machine
    if machine.resource in rescues.EXPECTED_NETWORK_ENDS:
        return  # a scheduler rescues it
    assert machine.resource in RESCUES
    cloud = begin(prepared[2], prepared[0], 1000)
    for backend in cloud.share.backends:
        assert machine.resource in backend.endpoints.reconciliation.resources
    cloud.db.dispose()


@pytest.mark.parametrize('machine', MACHINES.values(), ids=MACHINES)
def test_every_rescue_ends_in_a_status_of_its_table(machine):
    for status, end in ENDS.get(machine.resource, {}).items():
        rescue = machine.in_flight[status]
        if not isinstance(rescue, Resume):  # its work decides itself
            assert end in machine.rescue_targets(status)


@pytest.fixture(scope='module')
def documented():
    """Return the first two cells of every row of the generated table."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(EXTENSIONS)
        from_code = importlib.import_module('from_code')
    rows = re.findall(
        r'^ *\* - (.+)\n *- (.+)$', '\n'.join(from_code.recovery()), re.MULTILINE
    )
    assert len(rows) > 1
    return rows


@pytest.mark.parametrize('machine', MACHINES.values(), ids=MACHINES)
def test_every_status_in_flight_has_its_line_in_the_documentation(machine, documented):
    resource = machine.resource.replace('_', ' ')
    assert {(resource, f'``{status}``') for status in machine.in_flight} <= set(
        documented
    )
