"""A crash at any point leaves nothing stuck and loses nothing.

Every verb is run once. At every crash point (before a statement, before and
after a commit, before, in and after a driver call) the disk is captured. A
new process starts on every distinct image; it becomes idle and every
invariant holds. Accepted requests are done or have visibly failed.
"""

import pytest
import sqlalchemy as sa

from manila_lite.db.models import services
from tests.simulation import crash_images
from tests.simulation import crashing
from tests.simulation import pausing
from tests.support import sampling
from tests.support.cloud import Crash
from tests.support.rewind import rewindable


def create(cloud, share_id):
    cloud.api.create(name='new', size=3, metadata={'key': 'value'})
    cloud.settle()


def delete(cloud, share_id):
    cloud.api.delete(share_id)
    cloud.settle()


def extend(cloud, share_id):
    cloud.api.act(share_id, 'extend', {'new_size': 5})
    cloud.settle()


def force_extend(cloud, share_id):
    cloud.api.act(share_id, 'extend', {'new_size': 5, 'force': True})
    cloud.settle()


def shrink(cloud, share_id):
    cloud.api.act(share_id, 'shrink', {'new_size': 1})
    cloud.settle()


def force_delete(cloud, share_id):
    cloud.api.act(share_id, 'force_delete')
    cloud.settle()


def ensure(cloud, share_id):
    for backend in cloud.share.backends:
        # One share takes two pages.
        backend.endpoints.ensuring.page = 1
    host, _, _ = cloud.api.show(share_id)['host'].partition('#')
    cloud.api.ensure(host)
    cloud.settle()


def start(cloud, share_id):
    """Set up the back ends again, with a changed configuration."""
    service = services.Service.__table__
    cloud.db.write(
        lambda session: session.run(
            sa.update(service).values(backend_info='before')
        )
    )
    for backend in cloud.share.backends:
        backend.set_up()
    cloud.settle()


VERBS = [
    create,
    delete,
    extend,
    force_extend,
    shrink,
    force_delete,
    ensure,
    start,
]


def prepare(cloud):
    """Create a share of 2 GiB."""
    return cloud.create_share(size=2)


@pytest.fixture(scope='module')
def begin(tmp_path_factory):
    with rewindable(
        tmp_path_factory.mktemp('shares'),
        prepare,
        kind=crash_images.CrashableCloud,
    ) as begin:
        yield begin


@sampling.enumeration
@pytest.mark.parametrize('verb', VERBS, ids=lambda verb: verb.__name__)
def test_a_crash_anywhere_breaks_no_invariant(begin, verb):
    crashing.crash_everywhere(begin, verb, verb.__name__)


@sampling.enumeration
@pytest.mark.parametrize('seed', sampling.seeds(400, 12))
def test_two_crashes_and_bad_messages_break_no_invariant(begin, seed):
    cloud, share_id = begin(seed)
    verb = cloud.rng.choice(VERBS)
    cloud.loss_rate, cloud.duplicate_rate = 0.3, 0.3
    crashed = crashing.crash_at_point(
        cloud, cloud.rng.randrange(60), verb, cloud, share_id
    )
    cloud.restart()
    cloud.crash_at(cloud.rng.randrange(80))
    try:
        cloud.settle()
    except Crash:
        crashed = True
    cloud.restart()
    cloud.settle()
    cloud.check_invariants()
    assert crashed or cloud.crash_points


@sampling.combinations('fencing', 'verb')
@pausing.FENCING
@pytest.mark.parametrize('verb', VERBS, ids=lambda verb: verb.__name__)
def test_a_pause_in_any_driver_call_breaks_no_invariant(
    begin, verb, fencing, shared_database
):
    pausing.pause_verb(begin, verb, verb.__name__, fencing, shared_database)
