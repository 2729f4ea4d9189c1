"""Services killed as by a power failure, and messages that never arrive.

Every accepted request has an outcome, nothing stays in flight, quota equals
a recount and the back ends have what the rows say.
"""

import collections
import contextlib
import random
import threading

import pytest

from tests.functional.stories import suites
from tests.support import broker
from tests.support.installation import SEPARATE, SERVE
from tests.support.load import NO_RESPONSE_ERRORS
from tests.support.processes import free_port, wait_until

pytestmark = suites.failures

ROUNDS = 3
REQUESTS_PER_ROUND = 16
SLOW = {'dummy_driver_default_driver_method_delay': 0.1}
BACKENDS = {'alpha': SLOW, 'beta': SLOW}
OPTIONS = 'default_share_type = default\n'


class KillLoad:
    """Sends many requests and records what was accepted."""

    def __init__(self, installation, seed):
        self.installation = installation
        self.user = installation.rest()
        self.rng = random.Random(seed)
        self.sizes = {}  # of shares at rest
        self.accepted = {}  # verb and new size, by share
        self.interrupted = 0
        self.failures = collections.Counter()  # failed actions, by action id

    def send_requests(self, names):
        """Send many requests, and kill these services meanwhile."""
        share_ids = list(self.sizes)
        self.rng.shuffle(share_ids)
        killed_at = self.rng.randrange(REQUESTS_PER_ROUND)
        killing = threading.Timer(self.rng.uniform(0.0, 0.1), self._kill, (names,))
        # If the API is killed as well, requests get no response.
        with contextlib.suppress(*NO_RESPONSE_ERRORS):
            for number in range(REQUESTS_PER_ROUND):
                if share_ids and self.rng.random() < 0.7:
                    self._change(share_ids.pop())
                else:
                    size = self.rng.randint(1, 4)
                    made = self.user.create(size=size)
                    self.accepted[made['id']] = 'create', size
                if number == killed_at:
                    wait_until(self._has_started, 'work is running')
                    killing.start()
        killing.join()

    def _has_started(self):
        """Whether work is running, or all of it is done already."""
        return self.installation.running_work() or not self.installation.pending_work()

    def _kill(self, names):
        self.installation.kill(*names)
        self.interrupted += self.installation.running_work()

    def _change(self, share_id):
        size = self.sizes[share_id]
        verb = self.rng.choice(['extend', 'extend', 'shrink', 'delete'])
        if verb == 'delete':
            new_size = None
            # Recorded before the response: it may be done without one.
            self.accepted[share_id] = 'delete?', None
            self.user.delete(share_id)
        else:
            verb = 'extend' if size == 1 else verb
            new_size = size + (1 if verb == 'extend' else -1)
            self.user.act(share_id, verb, {'new_size': new_size})
        self.accepted[share_id] = verb, new_size

    def wait_for_outcomes(self):
        """Wait until no work is pending; return every outcome."""
        wait_until(
            lambda: self.installation.pending_work() == 0, 'no work is pending', 60
        )
        assert self.installation.problems() == []
        found = {
            share['id']: share for share in self.user.get('/shares/detail')['shares']
        }
        outcomes = [
            self._outcome(found.get(share_id), share_id, *request)
            for share_id, request in self.accepted.items()
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
            messages = self.user.get(f'/messages?resource_id={share_id}')
            assert messages['messages'], share
            self.failures.update(one['action_id'] for one in messages['messages'])
        return share['status']


def run_rounds(installation, seed, victims):
    """Run rounds of requests; in each some services are killed."""
    installation.start()
    load = KillLoad(installation, seed)
    load.user.make_default_type()
    outcomes = []
    for _ in range(ROUNDS):
        names = load.rng.choice(victims)
        load.send_requests(names)
        installation.start(*names)
        outcomes += load.wait_for_outcomes()
    print(
        f'{len(outcomes)} accepted, {load.interrupted} interrupted, '
        f'{outcomes.count("available")} available, '
        f'{outcomes.count("gone")} gone, failed: {dict(load.failures)}'
    )
    assert load.interrupted
    for share in load.user.get('/shares')['shares']:
        load.user.act(share['id'], 'force_delete')
    load.wait_for_outcomes()
    assert load.user.get('/shares')['shares'] == []


@pytest.mark.parametrize('seed', range(2))
def test_killed_process_resumes_its_work(install, seed):
    run_rounds(
        install(kind=SERVE, backends=BACKENDS, options=OPTIONS), seed, [('serve',)]
    )


def test_killed_services_lose_nothing(install, new_database, broker_url):
    """As `test_soak` on MariaDB; here several are killed at once."""
    run_rounds(
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


def test_lost_messages_delay_work_and_no_more(install, new_database, broker_url):
    installation = install(
        kind=SEPARATE,
        database_url=new_database('postgresql'),
        options=f'{OPTIONS}transport_url = {broker_url}',
    ).start()
    user = installation.rest()
    user.make_default_type()
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
    # In this order: a scheduler alone would find no back end.
    installation.start('share').start('scheduler')
    for share_id in made:
        assert user.wait_at_rest(share_id)['status'] == 'available'
    assert installation.problems() == []


def test_work_is_done_without_a_broker(install, new_database):
    installation = install(
        kind=SEPARATE,
        database_url=new_database('postgresql'),
        options=f'{OPTIONS}transport_url = rabbit://guest:guest@127.0.0.1:'
        f'{free_port()}/',
    ).start()
    user = installation.rest()
    user.make_default_type()
    share = user.create_available()
    user.act(share['id'], 'extend', {'new_size': 2})
    assert user.wait_at_rest(share['id'])['size'] == 2
    user.delete(share['id'])
    user.wait_gone(share['id'])
    assert installation.problems() == []
    installation.stop()
