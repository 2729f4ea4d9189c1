"""A process that dies at any place of the life of a share server.

As in `test_crashes`: of the first share on a network, which makes the
server, of another that is put on it, of a server that cannot be made, of
its end by request, with its last share and because it is idle, and of
servers that are taken over and let go. Addresses are as many as a recount
says, and no server is on a back end that nobody knows.
"""

import datetime

import pytest

from tests.simulation import crash_images as death
from tests.support.dhss import ServersCloud

WITH_LAST = 'delete_share_server_with_last_share = true'


def first(cloud, found):
    cloud.api.create(share_network_id=found['empty'], size=2)
    cloud.settle()


def two_firsts(cloud, found):
    for _ in range(2):
        cloud.api.create(share_network_id=found['empty'])
    cloud.settle()


def next_one(cloud, found):
    cloud.api.create(share_network_id=found['used'])
    cloud.settle()


def first_that_fails(cloud, found):
    cloud.driver().half_fail_next('_setup_server')
    cloud.api.create(share_network_id=found['empty'])
    cloud.settle()


def delete_share(cloud, found):
    cloud.api.delete(found['share'])
    cloud.settle()


def delete(cloud, found):
    cloud.api.request('DELETE', f'/share-servers/{found["idle"]}')
    cloud.settle()


def idle(cloud, found):
    cloud.clock.advance(601)
    cloud.share.backends[0].share_servers.clean_up(
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


def manage_nothing(cloud, found):
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
        first,
        two_firsts,
        next_one,
        first_that_fails,
        delete,
        idle,
        manage,
        manage_nothing,
        unmanage,
    )
}
CASES = {
    **{name: (verb, '') for name, verb in VERBS.items()},
    'delete with last share': (delete_share, WITH_LAST),
}


@pytest.fixture(scope='module')
def prepared(tmp_path_factory):
    """A server with a share, an idle one, and one of somebody else."""
    cloud = ServersCloud(
        tmp_path_factory.mktemp('servers'), seed=10_000, backends=['alpha']
    )
    found = {'empty': cloud.add_network(), 'used': cloud.add_network()}
    found['share'] = cloud.share_on(found['used'])
    other = cloud.share_on(cloud.add_network())
    found['idle'] = cloud.server_of(other)
    cloud.api.delete(other)
    cloud.settle()
    cloud.driver().place_server('theirs', ['10.10.0.77'])
    cloud.db.dispose()
    return cloud.folder, death.look(cloud), found


def begin(prepared, seed, remains=None, more=''):
    folder, whole, _ = prepared
    cloud = death.begin(
        remains or whole,
        folder,
        seed,
        death.MortalWithServers,
        backends=['alpha'],
        more=more,
    )
    cloud.restart()
    return cloud


@pytest.mark.parametrize('name', CASES)
def test_a_crash_anywhere_breaks_no_invariant(prepared, name):
    verb, more = CASES[name]
    cloud = begin(prepared, 1, more=more)
    places = death.remains_of(cloud, lambda: verb(cloud, prepared[2]))
    cloud.check_invariants()
    cloud.db.dispose()
    left = list(
        {remains.files: (place, remains) for place, remains in places}.values()
    )
    assert len(left) > 3
    for number, (place, remains) in enumerate(left):
        cloud = begin(prepared, 100 + number, remains, more)
        cloud.settle()
        try:
            cloud.check_invariants()
        except AssertionError as error:
            pytest.fail(f'{name} at {number} ({place}): {error}')
        finally:
            cloud.db.dispose()
    print(f'{name}: {len(places)} places, {len(left)} of them differ')


@pytest.mark.parametrize('seed', range(10))
def test_two_crashes_and_bad_messages_break_no_invariant(prepared, seed):
    cloud = begin(prepared, seed)
    verb = VERBS[cloud.chance.choice(sorted(VERBS))]
    cloud.lose, cloud.double = 0.3, 0.3
    places = death.remains_of(cloud, lambda: verb(cloud, prepared[2]))
    remains = cloud.chance.choice(places)[1]
    cloud.db.dispose()
    cloud = begin(prepared, 1000 + seed, remains)
    again = death.remains_of(cloud, cloud.settle)
    remains = cloud.chance.choice(again)[1]
    cloud.db.dispose()
    cloud = begin(prepared, 2000 + seed, remains)
    cloud.settle()
    cloud.check_invariants()
    cloud.db.dispose()


@pytest.mark.parametrize('seed', range(12))
def test_whatever_happens_at_once_keeps_the_books(prepared, seed):
    cloud = begin(prepared, seed, more=WITH_LAST if seed % 2 else '')
    found = prepared[2]
    cloud.lose, cloud.double = 0.3, 0.3
    rival = cloud.rival()
    acts = [
        lambda: cloud.api.create(share_network_id=found['empty']),
        lambda: cloud.api.create(share_network_id=found['empty']),
        lambda: cloud.api.create(share_network_id=found['used']),
        lambda: cloud.api.delete(found['share']),
        lambda: cloud.api.request('DELETE', f'/share-servers/{found["idle"]}'),
        lambda: cloud.share.backends[0].share_servers.clean_up(
            datetime.timedelta(0)
        ),
        lambda: cloud.driver().fail_next('_setup_server'),
        lambda: cloud.driver().fail_next('_teardown_server'),
    ]
    cloud.chance.shuffle(acts)

    def others():
        for _ in range(cloud.chance.randrange(6)):
            cloud.chance.choice(rival).step()

    for act in acts:
        cloud.pause_at(
            cloud.chance.choice(
                [
                    'committed',
                    'before setup_server',
                    'after setup_server',
                    'after choose_share_server_compatible_with_share',
                    'before teardown_server',
                    'before create_share',
                ]
            ),
            others,
        )
        act()
        for _ in range(cloud.chance.randrange(4)):
            cloud.step()
    cloud.forget_pauses()
    cloud.settle()
    cloud.check_invariants()
    cloud.db.dispose()
