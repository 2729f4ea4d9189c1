"""Concurrent clients: limits hold, usage stays right, without deadlocks."""

import concurrent.futures
import functools
import random
import threading

import pytest
import sqlalchemy as sa
from sqlalchemy import event

from manila_lite import exception
from manila_lite.db.models import engine
from manila_lite.db.queries.quotas import quotas
from manila_lite.db.queries.quotas.quotas import USAGE
from manila_lite.db.session import Database
from manila_lite.quota import charges, recount, sets
from manila_lite.quota.charges import Owner
from tests.functional.quota import quota_rows
from tests.functional.quota.quota_rows import DEFAULTS, GOLD, SILVER
from tests.support import sampling
from tests.support.concurrent_calls import at_once
from tests.support.rows import SHARE, delete_share

THREADS = 8
WORK = engine.Work.__table__

pytestmark = [sampling.dialects, pytest.mark.usefixtures('types')]


def attempt(*calls):
    """Run the calls concurrently; return their results or errors."""

    def result_or_error(call):
        try:
            return call()
        except exception.ManilaLiteError as error:
            return error

    return at_once(*[functools.partial(result_or_error, one) for one in calls])


def errors_of(results):
    return [result for result in results if isinstance(result, Exception)]


def make_owner(number, project_id='blue'):
    return Owner(project_id, f'user{number % 3}', (GOLD, SILVER)[number % 2])


def test_exactly_the_limit_succeeds(db):
    for _ in range(DEFAULTS['shares'] - 1):
        db.write(quota_rows.create_share, make_owner(0), 1)
    results = attempt(
        *[
            functools.partial(db.write, quota_rows.create_share, make_owner(n), 1)
            for n in range(THREADS)
        ]
    )
    errors = errors_of(results)
    assert len(errors) == THREADS - 1
    assert {type(error) for error in errors} == {exception.ShareLimitExceeded}
    assert quota_rows.usage(db, 'shares') == (DEFAULTS['shares'], 0)
    assert quota_rows.differences(db) == []
    assert db.retries == 0


def test_concurrent_first_use_creates_the_rows_once(db):
    results = attempt(
        *[
            functools.partial(db.write, quota_rows.create_share, make_owner(n), 2)
            for n in range(THREADS)
        ]
    )
    assert len(errors_of(results)) == THREADS - DEFAULTS['shares']
    assert quota_rows.usage(db, 'gigabytes') == (2 * DEFAULTS['shares'], 0)
    assert quota_rows.differences(db) == []


@pytest.mark.parametrize('database_url', ['mysql', 'postgresql'], indirect=True)
def test_rows_that_appear_despite_the_lock_are_used(db):
    """Other Galera nodes do not see the locks of rows."""
    owner, deltas = make_owner(0), {'shares': 1}
    other = Database(db.url)
    missing = dict.fromkeys(owner.keys(deltas), 5)

    def insert_first(connection, cursor, statement, *more):
        is_plain_insert = statement.startswith(
            'INSERT INTO quota_usages'
        ) and statement.endswith(')')
        if missing and is_plain_insert:
            other.write(quotas.insert_usages, dict(missing))
            missing.clear()

    event.listen(db.engine, 'before_cursor_execute', insert_first)
    db.write(charges.charge, owner, deltas, limits=DEFAULTS)
    event.remove(db.engine, 'before_cursor_execute', insert_first)
    other.dispose()
    assert missing == {}
    assert quota_rows.usage(db, 'shares') == (1, 0)


def test_default_changed_during_first_use_is_effective(db):
    projects = [f'project{n}' for n in range(6)]
    results = attempt(
        functools.partial(
            db.write, sets.change_class, DEFAULTS, 'default', {'shares': 77}
        ),
        *[
            functools.partial(db.write, quota_rows.create_share, make_owner(n, name), 1)
            for n, name in enumerate(projects)
        ],
    )
    assert errors_of(results) == []
    assert {quota_rows.effective_limit(db, 'shares', name) for name in projects} == {77}


ANALYZE = {
    'sqlite': 'ANALYZE',
    'mysql': 'ANALYZE TABLE quota_usages',
    'postgresql': 'ANALYZE quota_usages',
}


def test_overlapping_owners_never_deadlock(db):
    owners = [Owner('blue', f'user{n % 6}', f'type{n % 4}') for n in range(24)]
    random.Random(1).shuffle(owners)
    limits = dict.fromkeys(DEFAULTS, -1)
    for owner in owners:
        db.write(charges.charge, owner, {'shares': 1, 'gigabytes': 1}, limits=limits)
    # With statistics PostgreSQL reads rows in physical order, which changes.
    db.write(lambda session: session.connection.exec_driver_sql(ANALYZE[db.dialect]))

    def client(number):
        rng = random.Random(number)
        for _ in range(60):
            owner = rng.choice(owners)
            deltas = rng.choice([{'shares': 1, 'gigabytes': 2}, {'gigabytes': 1}])
            db.write(charges.charge, owner, deltas, limits=limits)
            db.write(charges.credit, owner, deltas)

    before = db.retries
    assert (
        errors_of(
            attempt(*[functools.partial(client, number) for number in range(THREADS)])
        )
        == []
    )
    assert db.retries == before
    assert quota_rows.usage(db, 'gigabytes') == (len(owners), 0)


class Client:
    """Creates, extends and deletes shares of one project at random."""

    def __init__(self, db, number):
        self.db = db
        self.owner = make_owner(number)
        self.rng = random.Random(number)
        self.shares = {}

    def run(self):
        for _ in range(40):
            self.rng.choice([self.create, self.create, self.extend, self.delete])()

    def create(self):
        size = self.rng.randint(1, 9)
        share_id = self.db.write(quota_rows.create_share, self.owner, size)
        self.shares[share_id] = size

    def extend(self):
        """Reserve with a work row; then delete it and commit or release."""
        if not self.shares:
            return
        share_id = self.rng.choice(list(self.shares))
        self.db.write(self.ask, share_id)
        succeeds = self.rng.random() < 0.5
        self.db.write(self.finish, share_id, succeeds)
        self.shares[share_id] += 3 if succeeds else 0

    def ask(self, session, share_id):
        charges.charge(
            session, self.owner, {'gigabytes': 3}, limits=DEFAULTS, reserve=True
        )
        quota_rows.add_work(session, session.charges, share_id)

    def finish(self, session, share_id, succeeds):
        session.run(sa.delete(WORK).where(WORK.c.id == share_id))
        if not succeeds:
            charges.release_reservation(session, self.owner, {'gigabytes': 3})
            return
        session.run(
            sa.update(SHARE).where(SHARE.c.id == share_id).values(size=SHARE.c.size + 3)
        )
        charges.commit_reservation(session, self.owner, {'gigabytes': 3})

    def delete(self):
        if self.shares:
            share_id, size = self.shares.popitem()
            self.db.write(self.remove, share_id, size)

    def remove(self, session, share_id, size):
        delete_share(session, share_id)
        charges.credit(session, self.owner, {'shares': 1, 'gigabytes': size})


def test_usage_is_right_at_any_time_in_a_busy_project(db):
    db.write(
        sets.change, DEFAULTS, sets.scope_of('blue'), {'shares': -1, 'gigabytes': 10**6}
    )
    clients = [Client(db, number) for number in range(THREADS)]
    done = threading.Event()

    def watch():
        found = []
        while not (done.is_set() or found):
            found = quota_rows.differences(db)
        return found

    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        watcher = pool.submit(watch)
        results = attempt(*[client.run for client in clients])
        done.set()
    assert errors_of(results) == []
    assert watcher.result() == []
    assert quota_rows.differences(db) == []
    assert db.retries == 0
    db.write(
        lambda session: session.run(
            sa.update(USAGE).where(USAGE.c.scope == 'user').values(in_use=0)
        )
    )
    assert db.write(recount.correct, DEFAULTS)
    assert quota_rows.differences(db) == []


def test_usage_is_right_after_corrections_during_charges(db):
    db.write(
        sets.change, DEFAULTS, sets.scope_of('blue'), {'shares': -1, 'gigabytes': -1}
    )
    clients = [Client(db, number) for number in range(THREADS - 1)]

    def correct():
        for _ in range(10):
            db.write(recount.correct, DEFAULTS, 'blue')

    assert errors_of(attempt(correct, *[one.run for one in clients])) == []
    assert quota_rows.differences(db) == []
