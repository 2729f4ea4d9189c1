"""No status in flight is without a rescue that was tried, and died in.

Each is brought about by moves of the state table alone, with nobody to
work on it, and is at rest after a pass; also when the pass, or the rescue
it asks for, dies at any place and is left to others. A status that is new
fails here until `tests.support.rescues` says where its rescue ends.

Of the places of death so many are tried for each status; all of them where
MANILA_LITE_TEST_ALL_CRASHES is set.
"""

import importlib
import os
import pathlib
import random
import re

import pytest

from manila_lite.db.queries.admin import recovery
from manila_lite.rpc.share import RESCUES
from manila_lite.states.machine import Resume
from tests.simulation import crash_images as death
from tests.support import cloud_snapshots as album
from tests.support import rescues
from tests.support.cloud import Cloud
from tests.support.dhss import ShareServersCloud
from tests.support.rescues import CASES
from tests.support.rescues import SERVER_CASES
from tests.support.rescues import force_status
from tests.support.rescues import only_id
from tests.support.rescues import status_of
from tests.unit.states.test_tables import MACHINES

DEATHS = None if os.environ.get('MANILA_LITE_TEST_ALL_CRASHES') else 2
EXTENSIONS = pathlib.Path(__file__).resolve().parents[2] / 'doc/source/_ext'
ENDS = (
    rescues.EXPECTED_ENDS
    | rescues.EXPECTED_SERVER_ENDS
    | rescues.EXPECTED_NETWORK_ENDS
)
BARE = ('deleting', 'deferred_deleting')


@pytest.fixture(scope='module')
def prepared(tmp_path_factory):
    """A share, a snapshot, and a rule of each; also just a share."""
    cloud = Cloud(tmp_path_factory.mktemp('outside'), backends=['alpha'])
    album.enable_snapshot_features(cloud)
    share = cloud.create_share(size=2)
    bare = death.capture(cloud)
    snapshot = album.create_available(cloud, share)
    rule = {'access_type': 'ip', 'access_to': '10.0.0.1'}
    cloud.api.act(share, 'allow_access', rule | {'access_level': 'rw'}, None)
    album.act(cloud, snapshot, 'allow_access', rule)
    cloud.settle()
    cloud.db.dispose()
    return cloud.folder, bare, death.capture(cloud)


@pytest.fixture(scope='module')
def with_server(tmp_path_factory):
    """A share server that nothing is on."""
    cloud = ShareServersCloud(
        tmp_path_factory.mktemp('servers'), backends=['alpha']
    )
    cloud.api.delete(cloud.create_share_on_network(cloud.add_network()))
    cloud.settle()
    cloud.db.dispose()
    return cloud.folder, death.capture(cloud)


def start(prepared, resource, status, seed=1000):
    folder, bare, whole = prepared
    # Who has snapshots is never accepted for deletion.
    is_bare = resource == 'share_instance' and status in BARE
    return begin(bare if is_bare else whole, folder, seed)


def begin(image, folder, seed, kind=death.CrashableCloud):
    cloud = death.boot(image, folder, seed, kind, backends=['alpha'])
    cloud.restart()
    return cloud


def passes(cloud):
    """Passes of recovery alone, until there is nothing more to do."""
    reconciliation = cloud.share.backends[0].reconciliation
    for _ in range(9):
        if not (
            reconciliation.run_pass()
            or cloud.step()
            or cloud.has_pending_work()
            or cloud.scheduler.orphan_sweep.run_pass()
        ):
            return
        while cloud.step():
            pass
        cloud.clock.advance(8)
    raise AssertionError('passes find something again and again')


@pytest.mark.parametrize('resource, status', CASES)
def test_what_nobody_works_on_comes_to_rest(prepared, resource, status):
    cloud = start(prepared, resource, status)
    rescued(cloud, resource, status)


@pytest.mark.parametrize('resource, status', SERVER_CASES)
def test_what_nobody_works_on_comes_to_rest_on_servers(
    with_server, resource, status
):
    folder, whole = with_server
    cloud = begin(whole, folder, 1000, death.CrashableShareServersCloud)
    rescued(cloud, resource, status)


def test_what_has_no_host_comes_to_rest(with_server):
    folder, whole = with_server
    for resource, ends in rescues.EXPECTED_NETWORK_ENDS.items():
        for status in ends:
            rescued(
                begin(whole, folder, 1000, death.CrashableShareServersCloud),
                resource,
                status,
                by='manila-scheduler@node:',
            )


def rescued(cloud, resource, status, by='manila-share@node@alpha:'):
    """See that a pass brings the only one to rest, also a broken one."""
    id = only_id(cloud.db, resource)
    is_move = force_status(cloud.db, resource, id, status)
    places = death.images_at_crash_points(cloud, lambda: passes(cloud))

    def check(where='at once'):
        assert status_of(cloud.db, resource, id) == (ENDS[resource][status]), (
            where
        )
        decided = cloud.db.read(recovery.list_log, limit=10)
        assert decided, where
        assert decided[-1].made_by.startswith(by)
        # Its quota would be gone first, with a deletion that was asked for.
        if is_move and status != 'deferred_deleting':
            cloud.check_invariants()
        cloud.db.dispose()

    check()
    left = list(
        {image.files: (place, image) for place, image in places}.values()
    )
    assert len(left) > 1
    rng = random.Random(f'{resource} {status}')
    for number, (place, image) in enumerate(
        left if DEATHS is None else rng.sample(left, DEATHS)
    ):
        cloud = begin(image, cloud.folder, 2000 + number, type(cloud))
        passes(cloud)
        check(f'after a death {place}')


@pytest.mark.parametrize('machine', MACHINES.values(), ids=MACHINES)
def test_every_status_in_flight_has_a_rescue_that_was_tried(prepared, machine):
    assert machine.in_flight.keys() == ENDS.get(machine.resource, {}).keys()
    if not machine.in_flight or machine.resource in (
        rescues.EXPECTED_NETWORK_ENDS
    ):
        return
    assert machine.resource in RESCUES
    assert recovery.KINDS[machine.resource].machine is machine
    cloud = begin(prepared[2], prepared[0], 1000)
    for backend in cloud.share.backends:
        assert machine.resource in backend.reconciliation.resources
    cloud.db.dispose()


@pytest.mark.parametrize('machine', MACHINES.values(), ids=MACHINES)
def test_every_rescue_ends_where_its_table_leads(machine):
    for status, end in ENDS.get(machine.resource, {}).items():
        rescue = machine.in_flight[status]
        if not isinstance(rescue, Resume):  # whose work finds out itself
            assert end in machine.rescue_targets(status)


@pytest.fixture(scope='module')
def documented():
    """The first two cells of every row of the generated table."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(EXTENSIONS)
        from_code = importlib.import_module('from_code')
    rows = re.findall(
        r'^ *\* - (.+)\n *- (.+)$',
        '\n'.join(from_code.recovery()),
        re.MULTILINE,
    )
    assert len(rows) > 1
    return rows


@pytest.mark.parametrize('machine', MACHINES.values(), ids=MACHINES)
def test_every_status_in_flight_has_its_line_in_the_documentation(
    machine, documented
):
    resource = machine.resource.replace('_', ' ')
    assert {
        (resource, f'``{status}``') for status in machine.in_flight
    } <= set(documented)
