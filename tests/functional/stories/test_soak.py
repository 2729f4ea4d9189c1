"""Hundreds of requests a minute, while services die and the broker fails.

Separate services on MariaDB and RabbitMQ. A random one is killed every
second or two and started again at once; then the broker is cut off again
and again, and what waits in its queues is lost. Half a minute after the
last of it nothing is in flight, everything that was accepted has an
outcome, quota is what a recount says and the back ends are what the rows
say.

MANILA_LITE_TEST_SOAK_SECONDS is how long services are killed.
"""

import os
import random
import threading
import time

import pytest

from tests.functional.stories.test_kill import make_default_type
from tests.support import broker
from tests.support.installation import SEPARATE
from tests.support.load import Load
from tests.support.processes import wait_until
from tests.support.relay import Relay

SECONDS = float(os.environ.get('MANILA_LITE_TEST_SOAK_SECONDS', '12'))
REST = 30.0
"""Seconds after which nothing may be in flight any more."""

SLOW = {'dummy_driver_default_driver_method_delay': 0.1}
BACKENDS = {'alpha': SLOW, 'beta': SLOW}
OPTIONS = 'default_share_type = default\nreport_interval = 1\n'
SECTIONS = '[quota]\nshares = -1\nsnapshots = -1\n[recovery]\ninterval = 5\n'
SPECS = {'snapshot_support': 'True', 'revert_to_snapshot_support': 'True'}


class Site:
    """The installation, its broker behind a cable, and who harms them."""

    def __init__(self, installation, relay, url, seed):
        self.installation = installation
        self.relay = relay
        self.url = url
        self.rng = random.Random(seed)
        self.load = Load(installation.rest, seed)
        self.harms = []
        self._pause = threading.Event()

    def harm(self, seconds, *ways):
        """Do harm for so long, while much is asked for."""
        began = time.monotonic()
        self.load.start()
        try:
            while time.monotonic() < began + seconds:
                self._pause.wait(self.rng.uniform(1, 2))
                self.rng.choice(ways)()
        finally:
            self.load.stop()
        self.relay.mend()
        self.installation.wait_until_ready()

    def kill(self):
        """A random one, unless it has not come up again yet.

        Least often who is asked, or there would be little to be lost.
        """
        (name,) = self.rng.choices(SEPARATE, (1, 2, 2))
        if name in self.installation.ready():
            self.installation.kill_and_restart(name)
            self.harms.append(f'{name} killed')

    def cut(self):
        self.relay.cut()
        self._pause.wait(self.rng.uniform(0.5, 2))
        self.relay.mend()
        self.harms.append('broker cut off')

    def purge(self):
        host = self.installation.host
        lost = broker.purge(
            self.url,
            'manila-scheduler',
            *(f'manila-share.{host}@{name}' for name in BACKENDS),
        )
        self.harms.append(f'{lost} messages lost')

    def check(self):
        """All is at rest in time, and as it should be."""
        began = time.monotonic()
        wait_until(
            lambda: (
                not (
                    self.installation.pending_work()
                    or self.installation.in_flight()
                )
            ),
            'nothing is in flight',
            REST,
        )
        took = time.monotonic() - began
        load = self.load
        print(
            f'{sum(load.requested.values())} asked, '
            f'{sum(load.accepted.values())} accepted '
            f'({dict(load.accepted)}), {load.unanswered} unanswered; '
            f'{len(self.harms)} harms; at rest after {took:.1f} s'
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
        make_default_type(user)
        share_type = user.get('/types/default')['share_type']['id']
        user.request(
            'POST', f'/types/{share_type}/extra_specs', {'extra_specs': SPECS}
        )
        yield Site(
            installation,
            relay,
            broker_url,
            seed=os.environ.get('MANILA_LITE_TEST_SEED', '1'),
        )


def test_nothing_that_was_accepted_is_lost(site):
    site.harm(SECONDS, site.kill)
    site.check()
    site.harm(SECONDS / 2, site.cut, site.purge)
    site.check()
