"""Shares that back ends refuse and that are placed elsewhere.

The first back end refuses, or both do, or the request is withdrawn meanwhile;
with and without share servers.
"""

import itertools

from manila_lite import exception
from tests.simulation import crash_images
from tests.simulation.crashing import Scene

MOST_STEPS = 100
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
    """Withdraw the request when the share has its second place.

    Each runner takes its step in turn: in another order it might be created.
    """
    first = _emptier(cloud)
    refuse(cloud, first)
    share_id = create(cloud, network)
    for runner in itertools.islice(itertools.cycle(cloud.runners), MOST_STEPS):
        runner.step()
        host = cloud.api.show(share_id)['host']
        if host and f'@{first}#' not in host:
            break
    cloud.api.act(share_id, 'force_delete')
    cloud.settle()


VERBS = Scene.named(place_on_the_second, place_nowhere, force_delete_at_once)


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


SCENES = [
    Scene(name='refused shares', prepare=prepare, verbs=VERBS, seeds=(100, 1)),
    Scene(
        name='refused shares on servers',
        prepare=prepare_network,
        verbs=VERBS,
        kind=crash_images.CrashableShareServersCloud,
        seeds=(100, 1),
    ),
]
