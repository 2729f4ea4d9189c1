"""Crashes at every point while refused shares are placed elsewhere.

As in `test_crashes`: a share that the first back end refuses, one that both
refuse, and one whose request is withdrawn meanwhile; with and without share
servers.
"""

import pytest

from manila_lite import exception
from tests.simulation import crash_images
from tests.simulation import crashing
from tests.simulation import pausing
from tests.support import sampling
from tests.support.rewind import rewindable

REFUSED = exception.ShareRefused(reason='no space left')


def refuse(cloud, *names):
    for name in names:
        cloud.driver(name).fail_next('create_share', error=REFUSED)


def create(cloud, network):
    facts = {} if network is None else {'share_network_id': network}
    return cloud.api.create(size=3, **facts)['id']


def place_on_the_second(cloud, network):
    """The share of `prepare` makes the first choice known."""
    refuse(cloud, _emptier(cloud))
    create(cloud, network)
    cloud.settle()


def place_nowhere(cloud, network):
    refuse(cloud, *cloud.backend_names)
    create(cloud, network)
    cloud.settle()


def force_delete_at_once(cloud, network):
    refuse(cloud, _emptier(cloud))
    share_id = create(cloud, network)
    for _ in range(3):
        cloud.step()
    cloud.api.act(share_id, 'force_delete')
    cloud.settle()


VERBS = [place_on_the_second, place_nowhere, force_delete_at_once]


def _emptier(cloud):
    (share,) = cloud.api.get('/shares/detail')['shares']
    taken, _, _ = share['host'].removeprefix('node@').partition('#')
    (other,) = set(cloud.backend_names) - {taken}
    return other


def prepare(cloud):
    """Create a share of 2 GiB; return None, as there is no network."""
    cloud.create_share(size=2)


def prepare_network(cloud):
    """Create a share of 2 GiB; return another network, without servers."""
    cloud.create_share_on_network(cloud.add_network(), size=2)
    return cloud.add_network()


@pytest.fixture(
    scope='module',
    params=[
        (crash_images.CrashableCloud, prepare),
        (crash_images.CrashableShareServersCloud, prepare_network),
    ],
    ids=['plain', 'share_servers'],
)
def begin(request, tmp_path_factory):
    kind, prepare = request.param
    with rewindable(
        tmp_path_factory.mktemp('refused'), prepare, kind=kind
    ) as begin:
        yield begin


@sampling.enumeration
@pytest.mark.parametrize('verb', VERBS, ids=lambda verb: verb.__name__)
def test_a_crash_anywhere_breaks_no_invariant(begin, verb):
    crashing.crash_everywhere(begin, verb, verb.__name__)


@sampling.enumeration
def test_two_crashes_and_bad_messages_break_no_invariant(begin):
    crashing.crash_twice(
        begin, sampling.seeds(100, 4), {verb.__name__: verb for verb in VERBS}
    )


@sampling.combinations('fencing', 'verb')
@pausing.FENCING
@pytest.mark.parametrize('verb', VERBS, ids=lambda verb: verb.__name__)
def test_a_pause_in_any_driver_call_breaks_no_invariant(
    begin, verb, fencing, shared_database
):
    pausing.pause_verb(begin, verb, verb.__name__, fencing, shared_database)
