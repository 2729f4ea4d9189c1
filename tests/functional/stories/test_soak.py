"""Hundreds of requests a minute, while services and the broker fail.

Separate services on MariaDB and RabbitMQ. A random one is killed every
second or two and restarted at once; then the broker is disconnected
repeatedly, and the messages in its queues are lost. Half a minute after the
last fault nothing is in flight, every accepted request has an outcome, quota
equals a recount and the back ends have what the rows say.

MANILA_LITE_TEST_SOAK_SECONDS sets how long services are killed.
"""

import os
import random
import threading
import time

import pytest

from tests.functional.stories import suites
from tests.support import broker, sampling
from tests.support.installation import SEPARATE
from tests.support.load import Load
from tests.support.processes import wait_until
from tests.support.relay import Relay

pytestmark = suites.failures

SECONDS = float(os.environ.get('MANILA_LITE_TEST_SOAK_SECONDS', '12'))
AT_REST_WITHIN = 30.0
"""Seconds until nothing may be in flight any more."""

SLOW = {'dummy_driver_default_driver_method_delay': 0.1}
BACKENDS = {'alpha': SLOW, 'beta': SLOW}
OPTIONS = 'default_share_type = default\nreport_interval = 1\n'
SECTIONS = '[quota]\nshares = -1\nsnapshots = -1\n[recovery]\ninterval = 5\n'
SPECS = {'snapshot_support': 'True', 'revert_to_snapshot_support': 'True'}


class Site:
    """An installation with its broker behind a proxy, and faults for both."""

    def __init__(self, installation, relay, url, seed):
        self.installation = installation
        self.relay = relay
        self.url = url
        self.rng = random.Random(seed)
        self.load = Load(installation.rest, seed)
        self.faults = []
        self._pause = threading.Event()

    def inject_faults(self, seconds, *actions):
        """Inject faults for some seconds, under load."""
        began = time.monotonic()
        self.load.start()
        try:
            while time.monotonic() < began + seconds:
                self._pause.wait(self.rng.uniform(1, 2))
                self.rng.choice(actions)()
        finally:
            self.load.stop()
        self.relay.mend()
        self.installation.wait_until_ready()

    def kill(self):
        """Kill and restart a random service, unless it is still starting.

        The API least often: requests it does not accept cannot be lost.
        """
        (name,) = self.rng.choices(SEPARATE, (1, 2, 2))
        if name in self.installation.ready():
            self.installation.kill_and_restart(name)
            self.faults.append(f'{name} killed')

    def cut(self):
        self.relay.cut()
        self._pause.wait(self.rng.uniform(0.5, 2))
        self.relay.mend()
        self.faults.append('broker disconnected')

    def purge(self):
        host = self.installation.host
        lost = broker.purge(
            self.url,
            'manila-scheduler',
            *(f'manila-share.{host}@{name}' for name in BACKENDS),
        )
        self.faults.append(f'{lost} messages lost')

    def check(self):
        """Assert that everything is at rest in time, and correct."""
        began = time.monotonic()
        wait_until(
            lambda: (
                not (self.installation.pending_work() or self.installation.in_flight())
            ),
            'nothing is in flight',
            AT_REST_WITHIN,
        )
        took = time.monotonic() - began
        load = self.load
        print(
            f'{sum(load.requested.values())} requested, '
            f'{sum(load.accepted.values())} accepted '
            f'({dict(load.accepted)}), {load.unanswered} unanswered; '
            f'{len(self.faults)} faults; at rest after {took:.1f} s'
        )
        assert self.installation.in_flight() == []
        assert self.installation.problems() == []
        assert load.check(self.installation.rest()) == []


@pytest.fixture
def site(install, new_database, broker_url):
    with Relay(*broker.address()) as relay:
        url = broker_url.rpartition('@')[0] + '@127.0.0.1:{}/{}'.format(
            relay.port, broker_url.rpartition('/')[2]
        )
        installation = install(
            kind=SEPARATE,
            backends=BACKENDS,
            lease=2,
            database_url=new_database('mysql'),
            sections=SECTIONS,
            options=f'{OPTIONS}transport_url = {url}',
        ).start()
        user = installation.rest()
        user.make_default_type()
        share_type = user.get('/types/default')['share_type']['id']
        user.request('POST', f'/types/{share_type}/extra_specs', {'extra_specs': SPECS})
        yield Site(installation, relay, broker_url, seed=sampling.seed())


def test_no_accepted_request_is_lost(site):
    site.inject_faults(SECONDS, site.kill)
    site.check()
    site.inject_faults(SECONDS / 2, site.cut, site.purge)
    site.check()
