"""A day of a cloud in simulated time: after it nothing is stuck, lost or grown.

Users send requests all day; every periodic task runs at its interval. Messages
are lost and come twice, calls of drivers fail, back ends cannot be reached for
a while, clocks are stepped, services are paused and go on, and the process is
killed at a random place and starts again, soon or after longer than work waits
for a back end. Every hour everything is mended, and all invariants hold. In the
end users delete what they have, and their rows are gone once their time is over.

A usual run simulates an hour.
"""

import collections
import functools
import gc
import heapq
import logging

import sqlalchemy as sa

from manila_lite.db.models import base
from tests.support import cloud_snapshots, databases, sampling, share_transfers
from tests.support.cloud import Cloud, Crash

LOG = logging.getLogger(__name__)

HOUR = 3600.0
KEPT = 2 * HOUR
CONF = f"""
cleanup_interval = 600
message_reap_interval = 600
soft_deleted_share_retention_time = 1800
message_ttl = {KEPT:.0f}
transfer_retention_time = 900
[work]
journal_retention = {KEPT:.0f}
[recovery]
log_retention = {KEPT:.0f}
[retention]
driver_calls = {KEPT:.0f}
server_migrations = {KEPT:.0f}
services = {KEPT:.0f}
"""
SWEEP = 10.0
REQUESTS = 20.0  # seconds between them, on average
FAULTS = 300.0
MOST_SHARES = 12
CONFIGURED = {
    *('availability_zones', 'cluster_tasks', 'pools', 'services', 'storage_disks'),
    *('share_types', 'share_type_extra_specs', 'samples', 'service_incarnations'),
    'quota_usages',
}
"""The tables that have rows in a cloud without users."""

CALLS = (
    'create_share',
    'create_share_from_snapshot',
    'create_snapshot',
    'delete_share',
    'delete_snapshot',
    'ensure_share',
    'extend_share',
    'revert_to_snapshot',
    'shrink_share',
    'update_access',
)


class Day:
    """Users, periodic tasks and faults, each at its time.

    Time that passes is not that of the clock, which is stepped.
    """

    def __init__(self, cloud):
        self.cloud, self.rng = cloud, cloud.rng
        self.passed = 0.0
        self.offers = []
        self.accepted = collections.Counter()
        self.faults = collections.Counter()
        self._goes_on_at = 0.0
        self._number = 0
        self._due = []
        self._begin_tasks()
        for interval, run in ((REQUESTS, self.send_request), (FAULTS, self.break_one)):
            self._add(self._soon(interval), run, lambda at=interval: self._soon(at))

    def _soon(self, interval):
        return self.rng.expovariate(1 / interval)

    def _add(self, delay, run, interval):
        self._number += 1
        entry = self.passed + delay, self._number, run, interval
        heapq.heappush(self._due, entry)

    def _begin_tasks(self):
        """Let the tasks of the services be those of the process that runs now."""
        share = self.cloud.share
        self._due = [
            one for one in self._due if not isinstance(one[2], functools.partial)
        ]
        heapq.heapify(self._due)
        for service in (self.cloud.scheduler, share, self.cloud.data):
            for task in service.tasks:
                if service is share and task.name == 'heartbeat':
                    continue  # back ends have theirs together, by real time
                self._add(
                    task.initial_delay,
                    functools.partial(self._run_task, task.run),
                    lambda task=task: task.interval,
                )
        for run in (self.cloud.run_pending, self.cloud.beat):
            self._add(0.0, functools.partial(self._run_task, run), lambda: SWEEP)

    def _run_task(self, run):
        """Run a task unless the services are paused; its errors are logged."""
        if self.passed < self._goes_on_at:
            return
        try:
            run()
        except Exception:  # as of a back end that cannot be reached
            LOG.debug('A task has failed', exc_info=True)

    def run(self, seconds):
        """Let so much time pass."""
        end = self.passed + seconds
        while self._due[0][0] < end:
            at, _, run, interval = heapq.heappop(self._due)
            self._wait_until(at)
            self._add(max(interval(), 1.0), run, interval)
            try:
                run()
            except Crash:
                self.start_again()
        self._wait_until(end)

    def _wait_until(self, passed):
        self.cloud.clock.advance(max(passed - self.passed, 0.0))
        self.passed = max(self.passed, passed)

    def start_again(self):
        """Start after some seconds, or longer than work waits for a back end."""
        self.faults['start'] += 1
        self._wait_until(self.passed + self.rng.choice((1, 5, 20, 90, 1500)))
        self.upgrade()

    # Faults

    @property
    def kinds(self):
        return (
            *(self.kill, self.kill, self.fail_call, self.fail_call, self.fail_call),
            *(self.lose_back_end, self.pause, self.step_clock),
            *(self.lose_messages, self.upgrade),
        )

    def break_one(self):
        fault = self.rng.choice(self.kinds)
        self.faults[fault.__name__] += 1
        fault()

    def kill(self):
        self.cloud.crash_at(self.rng.randrange(200))

    def upgrade(self):
        """End the process at rest and start another one at once."""
        self.find_back_ends()  # a process waits for them with threads
        self.cloud.restart()
        self._begin_tasks()

    def pause(self):
        """Let the services do nothing for a time, and then go on."""
        self._goes_on_at = self.passed + self.rng.choice((5, 50, 500))

    def fail_call(self):
        driver = self.cloud.driver(self.rng.choice(self.cloud.backend_names))
        fail = self.rng.choice(
            (driver.fail_next, driver.half_fail_next, driver.lose_reply_next)
        )
        fail(self.rng.choice(CALLS), self.rng.choice((1, 2, 6)))

    def lose_back_end(self):
        """Let a back end be unreachable for up to a quarter of an hour."""
        lost = self._state(self.rng.choice(self.cloud.backend_names))
        lost.make_unreachable()
        self._add(self.rng.uniform(5, 900), self.find_back_ends, lambda: 25 * HOUR)

    def find_back_ends(self):
        for name in self.cloud.backend_names:
            self._state(name).make_reachable()

    def _state(self, name):
        return self.cloud.driver(name)

    def step_clock(self):
        self.cloud.clock.advance(self.rng.choice((-30, -2, 5, 600)))

    def lose_messages(self):
        self.cloud.loss_rate, self.cloud.duplicate_rate = self.rng.choice(
            ((0.0, 0.0), (0.3, 0.3), (1.0, 0.0))
        )

    def mend(self):
        """End all faults."""
        self.cloud.crash_at(None)
        self._goes_on_at = 0.0
        self.cloud.loss_rate = self.cloud.duplicate_rate = 0.0
        self.find_back_ends()
        for backend in self.cloud.share.backends:
            backend.driver.faults.clear()

    # Requests

    def send_request(self):
        api, rng = self.cloud.api, self.rng
        shares = api.get('/shares/detail?is_soft_deleted=false')['shares']
        verb = rng.choice((*self.SHARE_VERBS, *self.SNAPSHOT_VERBS, *self.OTHER_VERBS))
        if not shares or verb == 'create':
            answer = self._create() if len(shares) < MOST_SHARES else None
        elif verb in self.OTHER_VERBS:
            answer = getattr(self, f'_{verb}')()
        else:
            share = rng.choice(shares)
            answer = getattr(self, f'_{verb}')(share)
        if answer is not None:
            assert answer.status_int < 500, answer.text
            self.accepted[verb] += answer.status_int < 400
        if self.passed >= self._goes_on_at:
            self.cloud.step()

    SHARE_VERBS = (
        *('create', 'create', 'create', 'delete', 'delete', 'soft_delete'),
        *('extend', 'shrink', 'allow', 'allow', 'deny', 'offer'),
    )
    SNAPSHOT_VERBS = ('take', 'take', 'drop', 'clone', 'revert')
    OTHER_VERBS = ('restore', 'accept', 'read')

    def _post(self, path, **body):
        return self.cloud.api.request('POST', path, body)

    def _create(self, **more):
        size = self.rng.randrange(1, 4)
        body = {'share_proto': 'NFS', 'size': size} | more
        return self._post('/shares', share=body)

    def _delete(self, share):
        return self.cloud.api.delete(share['id'], expect=None)

    def _soft_delete(self, share):
        return self.cloud.api.act(share['id'], 'soft_delete', expect=None)

    def _restore(self):
        found = self.cloud.api.get('/shares?is_soft_deleted=true')['shares']
        if not found:
            return None
        return self.cloud.api.act(found[0]['id'], 'restore', expect=None)

    def _resize(self, share, action, by):
        size = max(share['size'] + by, 1)
        return self.cloud.api.act(share['id'], action, {'new_size': size}, None)

    def _extend(self, share):
        return self._resize(share, 'extend', 1)

    def _shrink(self, share):
        return self._resize(share, 'shrink', -1)

    def _allow(self, share):
        rule = {
            'access_type': 'ip',
            'access_to': f'10.0.0.{self.rng.randrange(1, 9)}',
            'access_level': self.rng.choice(('rw', 'ro')),
        }
        return self.cloud.api.act(share['id'], 'allow_access', rule, None)

    def _deny(self, share):
        path = f'/share-access-rules?share_id={share["id"]}'
        rules = self.cloud.api.get(path)['access_list']
        if not rules:
            return None
        rule = {'access_id': self.rng.choice(rules)['id']}
        return self.cloud.api.act(share['id'], 'deny_access', rule, None)

    def _offer(self, share):
        answer = share_transfers.request_offer(self.cloud.api, share['id'])
        if answer.status_int == 202:
            self.offers.append(answer.json['transfer'])
        return answer

    def _accept(self):
        if not self.offers:
            return None
        return share_transfers.accept(self.cloud.api, self.offers.pop(), None)

    def _read(self):
        return self.cloud.api.request('GET', '/shares/detail?limit=5')

    def _snapshot_of(self, share):
        path = f'/snapshots/detail?share_id={share["id"]}'
        found = self.cloud.api.get(path)['snapshots']
        return self.rng.choice(found) if found else None

    def _take(self, share):
        return self._post('/snapshots', snapshot={'share_id': share['id']})

    def _drop(self, share):
        if (snapshot := self._snapshot_of(share)) is None:
            return None
        return self.cloud.api.request('DELETE', f'/snapshots/{snapshot["id"]}')

    def _clone(self, share):
        if (snapshot := self._snapshot_of(share)) is None:
            return None
        return self._create(size=share['size'], snapshot_id=snapshot['id'])

    def _revert(self, share):
        if (snapshot := self._snapshot_of(share)) is None:
            return None
        return cloud_snapshots.revert(self.cloud, share['id'], snapshot['id'], None)

    # The end

    def check(self):
        """Mend everything; then all is idle and as it should be."""
        self.mend()
        self.cloud.settle()
        self.cloud.check_invariants()

    def delete_all(self):
        """Delete what users have, and wait until its time is over."""
        api = self.cloud.api
        self._due = [one for one in self._due if isinstance(one[2], functools.partial)]
        for transfer in api.get('/share-transfers')['transfers']:
            share_transfers.withdraw(api, transfer, None)
        for resource in ('snapshots', 'shares'):
            for one in api.get(f'/{resource}?is_soft_deleted=false')[resource]:
                action = {'force_delete': None}
                api.request('POST', f'/{resource}/{one["id"]}/action', action)
            self.cloud.settle()
        self.run(2 * KEPT)
        self.check()


def rows_of(cloud):
    """Return the number of rows of the tables that have any."""

    def count(session):
        sizes = {
            table.name: session.value(sa.select(sa.func.count()).select_from(table))
            for table in base.Base.metadata.sorted_tables
        }
        return {name: size for name, size in sizes.items() if size}

    return cloud.db.read(count)


def number_of_objects():
    databases.forget_statements()
    gc.collect()
    return len(gc.get_objects())


@sampling.enumeration
def test_nothing_is_stuck_or_grows_in_a_day_of_faults(tmp_path, caplog):
    caplog.set_level(logging.CRITICAL)  # pytest would keep all records
    hours = 24 if sampling.tries_every_case() else 1
    cloud = Cloud(tmp_path, seed=sampling.seed(), extra_conf=CONF, capacity=100)
    cloud.journal_is_whole = False  # the retention ends within the day
    cloud_snapshots.enable_snapshot_features(cloud)
    day = Day(cloud)
    objects = []
    for _ in range(hours):
        day.run(HOUR)
        day.check()
        objects.append(number_of_objects())
    if hours > 1:
        assert all(day.accepted.values()), day.accepted
        assert all(day.faults[fault.__name__] for fault in day.kinds), day.faults
        warm = objects[hours // 4]
        assert objects[-1] < 1.03 * warm, objects
    day.delete_all()
    found = rows_of(cloud)
    assert found.pop('transitions') == 1  # events continue from it
    assert found.keys() <= CONFIGURED, found
    starts = 1 + day.faults['start'] + day.faults['upgrade']
    assert found['service_incarnations'] <= found['services'] * starts
    for resource in ('shares', 'gigabytes', 'snapshots', 'snapshot_gigabytes'):
        assert cloud.usage(resource) == (0, 0), resource
