"""Services killed as by a power cut, and messages that never arrive.

Whatever was accepted has an outcome, nothing stays in flight, quota is
what a recount says and the back ends hold what the rows say.
"""

import collections
import contextlib
import random
import threading

import pytest

from tests.support import broker
from tests.support.installation import SEPARATE
from tests.support.installation import SERVE
from tests.support.load import NO_RESPONSE_ERRORS
from tests.support.processes import free_port
from tests.support.processes import wait_until

ROUNDS = 3
AT_A_TIME = 16
SLOW = {'dummy_driver_default_driver_method_delay': 0.1}
BACKENDS = {'alpha': SLOW, 'beta': SLOW}
OPTIONS = 'default_share_type = default\n'


class Load:
    """Asks for much, and remembers what was accepted."""

    def __init__(self, installation, seed):
        self.installation = installation
        self.user = installation.rest()
        self.rng = random.Random(seed)
        self.sizes = {}  # of shares that are at rest
        self.accepted = {}  # verb and new size, by share
        self.interrupted = 0
        self.told = collections.Counter()  # what was being done and failed

    def ask(self, names):
        """Ask for much, while these services are killed in the midst."""
        wait_at_rest = list(self.sizes)
        self.rng.shuffle(wait_at_rest)
        killed_at = self.rng.randrange(AT_A_TIME)
        killing = threading.Timer(
            self.rng.uniform(0.0, 0.1), self._kill, (names,)
        )
        # Where the API dies as well nobody answers any more.
        with contextlib.suppress(*NO_RESPONSE_ERRORS):
            for number in range(AT_A_TIME):
                if wait_at_rest and self.rng.random() < 0.7:
                    self._change(wait_at_rest.pop())
                else:
                    size = self.rng.randint(1, 4)
                    made = self.user.create(size=size)
                    self.accepted[made['id']] = 'create', size
                if number == killed_at:
                    wait_until(self._is_at_work, 'work is being done')
                    killing.start()
        killing.join()

    def _is_at_work(self):
        """Whether work is in hand, or has all been done unseen."""
        return (
            self.installation.running_work()
            or not self.installation.pending_work()
        )

    def _kill(self, names):
        self.installation.kill(*names)
        self.interrupted += self.installation.running_work()

    def _change(self, share_id):
        size = self.sizes[share_id]
        verb = self.rng.choice(['extend', 'extend', 'shrink', 'delete'])
        if verb == 'delete':
            new_size = None
            # Noted before the answer: it may be done when none comes.
            self.accepted[share_id] = 'delete?', None
            self.user.delete(share_id)
        else:
            verb = 'extend' if size == 1 else verb
            new_size = size + (1 if verb == 'extend' else -1)
            self.user.act(share_id, verb, {'new_size': new_size})
        self.accepted[share_id] = verb, new_size

    def settle(self):
        """Wait until nothing is owed, and look at every outcome."""
        wait_until(
            lambda: self.installation.pending_work() == 0,
            'nothing is owed',
            60,
        )
        assert self.installation.problems() == []
        found = {
            share['id']: share
            for share in self.user.get('/shares/detail')['shares']
        }
        outcomes = [
            self._outcome(found.get(share_id), share_id, *asked)
            for share_id, asked in self.accepted.items()
        ]
        self.accepted.clear()
        self.sizes = {
            share_id: share['size']
            for share_id, share in found.items()
            if share['status'] == 'available'
        }
        return outcomes

    def _outcome(self, share, share_id, verb, new_size):
        if share is None:
            assert verb.startswith('delete'), f'{verb} lost {share_id}'
            return 'gone'
        assert verb != 'delete', share
        if share['status'] == 'available':
            old_size = self.sizes.get(share_id, new_size)
            assert share['size'] in (old_size, new_size), share
        else:
            assert share['status'] in ('error', f'{verb}ing_error'), share
            told = self.user.get(f'/messages?resource_id={share_id}')
            assert told['messages'], share
            self.told.update(one['action_id'] for one in told['messages'])
        return share['status']


def live_through_kills(installation, seed, victims):
    """Rounds of much work, in each of which some services are killed."""
    installation.start()
    load = Load(installation, seed)
    make_default_type(load.user)
    outcomes = []
    for _ in range(ROUNDS):
        names = load.rng.choice(victims)
        load.ask(names)
        installation.start(*names)
        outcomes += load.settle()
    print(
        f'{len(outcomes)} accepted, {load.interrupted} interrupted, '
        f'{outcomes.count("available")} available, '
        f'{outcomes.count("gone")} gone, failed: {dict(load.told)}'
    )
    assert load.interrupted
    for share in load.user.get('/shares')['shares']:
        load.user.act(share['id'], 'force_delete')
    load.settle()
    assert load.user.get('/shares')['shares'] == []


@pytest.mark.parametrize('seed', range(2))
def test_killed_process_comes_back_to_its_work(install, seed):
    live_through_kills(
        install(kind=SERVE, backends=BACKENDS, options=OPTIONS),
        seed,
        [('serve',)],
    )


def test_killed_services_lose_nothing(install, new_database, broker_url):
    """As `test_soak` on MariaDB, here several of them die at one time."""
    live_through_kills(
        install(
            kind=SEPARATE,
            backends=BACKENDS,
            lease=1,
            database_url=new_database('postgresql'),
            options=f'{OPTIONS}transport_url = {broker_url}',
        ),
        0,
        [('share',), ('scheduler', 'share'), SEPARATE],
    )


def test_lost_messages_delay_work_and_no_more(
    install, new_database, broker_url
):
    installation = install(
        kind=SEPARATE,
        database_url=new_database('postgresql'),
        options=f'{OPTIONS}transport_url = {broker_url}',
    ).start()
    user = installation.rest()
    make_default_type(user)
    user.create_available()
    installation.kill('scheduler', 'share')
    made = [user.create()['id'] for _ in range(5)]
    lost = []
    wait_until(
        lambda: (
            lost.append(broker.purge(broker_url, 'manila-scheduler'))
            or sum(lost) == len(made)
        ),
        'all hints are lost',
    )
    # In this order: a scheduler alone would find no back end to place on.
    installation.start('share').start('scheduler')
    for share_id in made:
        assert user.wait_at_rest(share_id)['status'] == 'available'
    assert installation.problems() == []


def test_work_is_done_while_the_broker_is_away(install, new_database):
    installation = install(
        kind=SEPARATE,
        database_url=new_database('postgresql'),
        options=f'{OPTIONS}transport_url = rabbit://guest:guest@127.0.0.1:'
        f'{free_port()}/',
    ).start()
    user = installation.rest()
    make_default_type(user)
    share = user.create_available()
    user.act(share['id'], 'extend', {'new_size': 2})
    assert user.wait_at_rest(share['id'])['size'] == 2
    user.delete(share['id'])
    user.wait_gone(share['id'])
    assert installation.problems() == []
    installation.stop()


def make_default_type(user):
    user.request(
        'POST',
        '/types',
        {
            'share_type': {
                'name': 'default',
                'extra_specs': {'driver_handles_share_servers': 'False'},
            }
        },
    )
