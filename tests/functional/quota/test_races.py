"""Many clients at once: limits hold, books stay right, nobody deadlocks."""

import concurrent.futures
import functools
import json
import random
import threading

import pytest
import sqlalchemy as sa

from manila_lite import exception
from manila_lite.db.models import engine
from manila_lite.db.queries.admin.quotas import USAGE
from manila_lite.quota import charges
from manila_lite.quota import recount
from manila_lite.quota import sets
from manila_lite.quota.charges import Owner
from tests.functional.quota import quota_rows as books
from tests.functional.quota.quota_rows import DEFAULTS
from tests.functional.quota.quota_rows import GOLD
from tests.functional.quota.quota_rows import SILVER

THREADS = 8
WORK = engine.Work.__table__

pytestmark = pytest.mark.usefixtures('types')


@pytest.fixture
def types(db):
    db.write(books.add_types)


def at_once(*calls):
    """Run the calls at the same moment; their answers or errors."""
    start = threading.Barrier(len(calls))

    def run(call):
        start.wait()
        try:
            return call()
        except exception.ManilaLiteError as error:
            return error

    with concurrent.futures.ThreadPoolExecutor(len(calls)) as pool:
        return list(pool.map(run, calls))


def refused(answers):
    return [answer for answer in answers if isinstance(answer, Exception)]


def make_owner(number, project_id='blue'):
    return Owner(project_id, f'user{number % 3}', (GOLD, SILVER)[number % 2])


def test_exactly_the_limit_succeeds(db):
    for _ in range(DEFAULTS['shares'] - 1):
        db.write(books.create_share, make_owner(0), 1)
    answers = at_once(
        *[
            functools.partial(db.write, books.create_share, make_owner(n), 1)
            for n in range(THREADS)
        ]
    )
    errors = refused(answers)
    assert len(errors) == THREADS - 1
    assert {type(error) for error in errors} == {exception.ShareLimitExceeded}
    assert books.usage(db, 'shares') == (DEFAULTS['shares'], 0)
    assert books.differences(db) == []
    assert db.retries == 0


def test_first_use_by_many_creates_the_rows_once(db):
    answers = at_once(
        *[
            functools.partial(db.write, books.create_share, make_owner(n), 2)
            for n in range(THREADS)
        ]
    )
    assert len(refused(answers)) == THREADS - DEFAULTS['shares']
    assert books.usage(db, 'gigabytes') == (2 * DEFAULTS['shares'], 0)
    assert books.differences(db) == []


def test_a_default_changed_at_first_use_is_in_force(db):
    projects = [f'project{n}' for n in range(6)]
    answers = at_once(
        functools.partial(
            db.write, sets.change_class, DEFAULTS, 'default', {'shares': 77}
        ),
        *[
            functools.partial(
                db.write, books.create_share, make_owner(n, name), 1
            )
            for n, name in enumerate(projects)
        ],
    )
    assert refused(answers) == []
    assert {
        books.effective_limit(db, 'shares', name) for name in projects
    } == {77}


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
        db.write(
            charges.charge, owner, {'shares': 1, 'gigabytes': 1}, limits=limits
        )
    # With statistics PostgreSQL reads the rows as they lie, which changes.
    db.write(
        lambda session: session.connection.exec_driver_sql(ANALYZE[db.dialect])
    )

    def client(number):
        rng = random.Random(number)
        for _ in range(60):
            owner = rng.choice(owners)
            deltas = rng.choice(
                [{'shares': 1, 'gigabytes': 2}, {'gigabytes': 1}]
            )
            db.write(charges.charge, owner, deltas, limits=limits)
            db.write(charges.credit, owner, deltas)

    before = db.retries
    assert (
        refused(
            at_once(
                *[
                    functools.partial(client, number)
                    for number in range(THREADS)
                ]
            )
        )
        == []
    )
    assert db.retries == before
    assert books.usage(db, 'gigabytes') == (len(owners), 0)


class Client:
    """Creates, resizes and deletes shares of one project, as it comes."""

    def __init__(self, db, number):
        self.db = db
        self.owner = make_owner(number)
        self.rng = random.Random(number)
        self.shares = {}

    def run(self):
        for _ in range(40):
            self.rng.choice(
                [self.create, self.create, self.extend, self.delete]
            )()

    def create(self):
        size = self.rng.randint(1, 9)
        share_id = self.db.write(books.create_share, self.owner, size)
        self.shares[share_id] = size

    def extend(self):
        """Reserve with a work row, then settle or release without it."""
        if not self.shares:
            return
        share_id = self.rng.choice(list(self.shares))
        self.db.write(self.ask, share_id)
        succeeds = self.rng.random() < 0.5
        self.db.write(self.finish, share_id, succeeds)
        self.shares[share_id] += 3 if succeeds else 0

    def ask(self, session, share_id):
        charges.charge(
            session,
            self.owner,
            {'gigabytes': 3},
            limits=DEFAULTS,
            reserve=True,
        )
        session.run(
            sa.insert(WORK),
            id=share_id,
            kind='extend',
            queue='',
            topic='',
            resource='',
            resource_id=share_id,
            args='{}',
            context='{}',
            charges=json.dumps(session.charges),
            state='queued',
            attempt=0,
            fence=0,
            asked=1,
            next_try_at=0,
            created_at=session.now,
        )

    def finish(self, session, share_id, succeeds):
        session.run(sa.delete(WORK).where(WORK.c.id == share_id))
        if not succeeds:
            charges.release_reservation(session, self.owner, {'gigabytes': 3})
            return
        session.run(
            sa.update(books.SHARE)
            .where(books.SHARE.c.id == share_id)
            .values(size=books.SHARE.c.size + 3)
        )
        charges.commit_reservation(session, self.owner, {'gigabytes': 3})

    def delete(self):
        if self.shares:
            share_id, size = self.shares.popitem()
            self.db.write(self.remove, share_id, size)

    def remove(self, session, share_id, size):
        books.remove_share(session, share_id)
        charges.credit(session, self.owner, {'shares': 1, 'gigabytes': size})


def test_the_books_are_right_at_every_moment_of_a_busy_project(db):
    db.write(
        sets.change,
        DEFAULTS,
        sets.scope_of('blue'),
        {'shares': -1, 'gigabytes': 10**6},
    )
    clients = [Client(db, number) for number in range(THREADS)]
    done = threading.Event()

    def watch():
        found = []
        while not (done.is_set() or found):
            found = books.differences(db)
        return found

    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        watcher = pool.submit(watch)
        answers = at_once(*[client.run for client in clients])
        done.set()
    assert refused(answers) == []
    assert watcher.result() == []
    assert books.differences(db) == []
    assert db.retries == 0
    db.write(
        lambda session: session.run(
            sa.update(USAGE).where(USAGE.c.scope == 'user').values(in_use=0)
        )
    )
    assert db.write(recount.correct, DEFAULTS)
    assert books.differences(db) == []


def test_a_correction_while_charging_keeps_the_books(db):
    db.write(
        sets.change,
        DEFAULTS,
        sets.scope_of('blue'),
        {'shares': -1, 'gigabytes': -1},
    )
    clients = [Client(db, number) for number in range(THREADS - 1)]

    def correct():
        for _ in range(10):
            db.write(recount.correct, DEFAULTS, 'blue')

    assert refused(at_once(correct, *[one.run for one in clients])) == []
    assert books.differences(db) == []
