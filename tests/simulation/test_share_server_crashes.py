"""Crashes at every point in the life of a share server.

As in `test_crashes`: creating the first share on a network, which creates
the server; placing another share on it; a server that cannot be created;
deleting it by request, with its last share and when idle; managing and
unmanaging. Address counts equal a recount, and no back end has an unknown
server.
"""

import datetime
import functools

import pytest

from tests.simulation import crash_images
from tests.simulation import crashing
from tests.simulation import pausing
from tests.support import sampling
from tests.support.dhss import ShareServersCloud

WITH_LAST = 'delete_share_server_with_last_share = true'


def create_first(cloud, found):
    cloud.api.create(share_network_id=found['empty'], size=2)
    cloud.settle()


def create_two_first(cloud, found):
    for _ in range(2):
        cloud.api.create(share_network_id=found['empty'])
    cloud.settle()


def create_next(cloud, found):
    cloud.api.create(share_network_id=found['used'])
    cloud.settle()


def fail_to_create_first(cloud, found):
    cloud.driver().half_fail_next('_setup_server')
    cloud.api.create(share_network_id=found['empty'])
    cloud.settle()


def delete_share(cloud, found):
    cloud.api.delete(found['share'])
    cloud.settle()


def delete(cloud, found):
    cloud.api.request('DELETE', f'/share-servers/{found["idle"]}')
    cloud.settle()


def delete_idle(cloud, found):
    cloud.clock.advance(601)
    cloud.share.backends[0].endpoints.share_servers.delete_idle(
        datetime.timedelta(minutes=10)
    )
    cloud.settle()


def manage(cloud, found):
    cloud.api.request(
        'POST',
        '/share-servers/manage',
        {
            'share_server': {
                'host': 'node@alpha',
                'share_network_id': found['empty'],
                'identifier': 'theirs',
            }
        },
        expect=202,
    )
    cloud.settle()


def fail_to_manage(cloud, found):
    cloud.api.request(
        'POST',
        '/share-servers/manage',
        {
            'share_server': {
                'host': 'node@alpha',
                'share_network_id': found['empty'],
                'identifier': 'nowhere',
            }
        },
        expect=202,
    )
    cloud.settle()


def unmanage(cloud, found):
    cloud.api.request(
        'POST',
        f'/share-servers/{found["idle"]}/action',
        {'unmanage': {'force': False}},
        expect=202,
    )
    cloud.settle()


VERBS = {
    verb.__name__: verb
    for verb in (
        create_first,
        create_two_first,
        create_next,
        fail_to_create_first,
        delete,
        delete_idle,
        manage,
        fail_to_manage,
        unmanage,
    )
}
CASES = {
    **{name: (verb, '') for name, verb in VERBS.items()},
    'delete with last share': (delete_share, WITH_LAST),
}


@pytest.fixture(scope='module')
def prepared(tmp_path_factory):
    """A server with a share, an idle server, and an unmanaged one."""
    cloud = ShareServersCloud(
        tmp_path_factory.mktemp('servers'), seed=10_000, backends=['alpha']
    )
    found = {'empty': cloud.add_network(), 'used': cloud.add_network()}
    found['share'] = cloud.create_share_on_network(found['used'])
    other = cloud.create_share_on_network(cloud.add_network())
    found['idle'] = cloud.server_of(other)
    cloud.api.delete(other)
    cloud.settle()
    cloud.driver().add_unmanaged_server('theirs', ['10.10.0.77'])
    cloud.db.dispose()
    return cloud.folder, crash_images.capture(cloud), found


def begin(prepared, seed, image=None, extra_conf='', backend_conf=''):
    folder, initial, _ = prepared
    return crash_images.start_on(
        image or initial,
        folder,
        seed,
        crash_images.CrashableShareServersCloud,
        backends=['alpha'],
        extra_conf=extra_conf,
        backend_conf=backend_conf,
    )


def check(cloud):
    cloud.settle()
    cloud.check_invariants()
    cloud.db.dispose()


@sampling.enumeration
@pytest.mark.parametrize('name', CASES)
def test_a_crash_anywhere_breaks_no_invariant(prepared, name):
    verb, extra_conf = CASES[name]
    cloud = begin(prepared, 1, extra_conf=extra_conf)
    points = crash_images.images_at_crash_points(
        cloud, lambda: verb(cloud, prepared[2])
    )
    cloud.check_invariants()
    cloud.db.dispose()
    crashing.recover_from_each(
        points,
        lambda number, image: check(
            begin(prepared, 100 + number, image, extra_conf)
        ),
        name,
        least=4,
    )


@sampling.enumeration
@pytest.mark.parametrize('seed', sampling.seeds(60, 5))
def test_two_crashes_and_bad_messages_break_no_invariant(prepared, seed):
    start = functools.partial(begin, prepared)
    verbs = {
        name: functools.partial(verb, found=prepared[2])
        for name, verb in VERBS.items()
    }
    image = crashing.image_of_two_crashes(start, verbs, seed)
    check(start(2000 + seed, image))


@sampling.enumeration
@pytest.mark.parametrize('seed', sampling.seeds(80, 6))
def test_concurrent_requests_break_no_invariant(prepared, seed):
    cloud = begin(prepared, seed, extra_conf=WITH_LAST if seed % 2 else '')
    found = prepared[2]
    cloud.loss_rate, cloud.duplicate_rate = 0.3, 0.3
    competing_runners = cloud.competing_runners()
    actions = [
        lambda: cloud.api.create(share_network_id=found['empty']),
        lambda: cloud.api.create(share_network_id=found['empty']),
        lambda: cloud.api.create(share_network_id=found['used']),
        lambda: cloud.api.delete(found['share']),
        lambda: cloud.api.request('DELETE', f'/share-servers/{found["idle"]}'),
        lambda: cloud.share.backends[0].endpoints.share_servers.delete_idle(
            datetime.timedelta(0)
        ),
        lambda: cloud.driver().fail_next('_setup_server'),
        lambda: cloud.driver().fail_next('_teardown_server'),
    ]
    cloud.rng.shuffle(actions)

    def run_competitors():
        for _ in range(cloud.rng.randrange(6)):
            cloud.rng.choice(competing_runners).step()

    for action in actions:
        cloud.pause_at(
            cloud.rng.choice(
                [
                    'committed',
                    'before setup_server',
                    'after setup_server',
                    'after choose_share_server_compatible_with_share',
                    'before teardown_server',
                    'before create_share',
                ]
            ),
            run_competitors,
        )
        action()
        for _ in range(cloud.rng.randrange(4)):
            cloud.step()
    cloud.clear_pauses()
    check(cloud)


@sampling.combinations('fencing', 'name')
@pausing.FENCING
@pytest.mark.parametrize(
    'name', [name for name in CASES if name != 'fail_to_manage']
)
def test_a_pause_in_any_driver_call_breaks_no_invariant(
    prepared, name, fencing, shared_database
):
    verb, extra_conf = CASES[name]

    def start():
        cloud = begin(prepared, 1, None, extra_conf, fencing)
        return cloud, lambda: verb(cloud, prepared[2]), cloud.check_invariants

    pausing.pause_everywhere(start, name, shared_database)
