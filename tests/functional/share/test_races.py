"""Concurrent requests in threads keep usage consistent, on each database."""

import concurrent.futures
import random

import pytest
import sqlalchemy as sa
from sqlalchemy import event

from manila_lite import exception, metrics
from manila_lite.context import RequestContext
from manila_lite.db.models import types
from manila_lite.db.queries.shares import shares as share_rows
from manila_lite.db.queries.types import types as share_types
from manila_lite.quota import sets
from manila_lite.quota.charges import Owner
from manila_lite.quota.limits import PER_SHARE
from manila_lite.share.operations.shares.share_request import ShareRequest
from tests.support import rows, sampling
from tests.support.databases import count_lock_waits
from tests.support.processes import wait_until
from tests.support.service_process import CTX, TYPE_ID

pytestmark = sampling.dialects


CLIENTS = 6
REQUESTS = 14
RESETS = ('creating', 'deleting', 'error', 'error_deleting', 'migrating')


class Client:
    """Makes random requests about shares used by other clients, too."""

    def __init__(self, node, known, seed):
        self.node = node
        self.known = known
        self.rng = random.Random(seed)
        self.answers = []

    def run(self):
        for _ in range(REQUESTS):
            verb = self.rng.choice(
                (
                    'create',
                    'extend',
                    'force_extend',
                    'shrink',
                    'delete',
                    'force_delete',
                    'soft_delete',
                    'restore',
                    'reset',
                )
            )
            try:
                getattr(self, verb)()
            except (
                exception.Conflict,
                exception.Forbidden,
                exception.NotFound,
                exception.Invalid,
            ) as error:
                verb = type(error).__name__
            self.answers.append(verb)

    def ask(self, verb, *args, **facts):
        self.node.ask(verb, self.rng.choice(self.known), *args, **facts)

    def create(self):
        self.known.append(self.node.create(self.rng.randint(1, 5)))

    def extend(self):
        self.ask('extend', self.rng.randint(2, 9))

    def force_extend(self):
        self.ask('extend', self.rng.randint(2, 9), force=True)

    def shrink(self):
        self.ask('shrink', self.rng.randint(1, 5))

    def delete(self):
        self.ask('delete')

    def force_delete(self):
        self.ask('force_delete')

    def soft_delete(self):
        self.ask('soft_delete')

    def restore(self):
        self.ask('restore')

    def reset(self):
        share = self.node.target(self.rng.choice(self.known))
        self.node.operations.reset_status(
            CTX, share.instance_id, self.rng.choice(RESETS)
        )


@sampling.enumeration
@pytest.mark.parametrize('seed', sampling.seeds(12, 1))
def test_concurrent_clients_keep_usage_consistent(build_node, seed):
    node = build_node(capacity=60, delay=0.02).start()
    known = [node.create(3) for _ in range(4)]
    node.quiet()
    clients = [Client(node, known, f'{seed} {number}') for number in range(CLIENTS)]
    with concurrent.futures.ThreadPoolExecutor(CLIENTS) as pool:
        for done in [pool.submit(client.run) for client in clients]:
            done.result()
    node.settle()
    assert node.problems() == []
    assert len({answer for client in clients for answer in client.answers}) > 5


def test_concurrent_hints_about_a_share_are_all_recorded(build_node):
    node = build_node(capacity=60).start()
    first = node.created()
    hints = {'same_host': first}
    with concurrent.futures.ThreadPoolExecutor(CLIENTS) as pool:
        created = [
            pool.submit(node.create, scheduler_hints=hints) for _ in range(CLIENTS)
        ]
        ids = {one.result() for one in created}
        assert affinity(node, first) == ids
        node.quiet()
        gone = sorted(ids)[: CLIENTS // 2]
        list(pool.map(lambda share: node.ask('delete', share), gone))
        node.quiet()
    assert affinity(node, first) == ids - set(gone)


def affinity(node, share_id):
    metadata = node.db.read(share_rows.METADATA.get, share_id)
    return set(metadata['__affinity_same_host'].split(','))


def test_one_of_concurrent_shares_gets_a_mount_point_name(build_node):
    node = build_node(capacity=60).start()
    node.db.write(insert_extra_specs)

    def create(number):
        ctx = RequestContext(project_id=f'project {number}', user_id='user')
        wanted = ShareRequest('NFS', 1, mount_point_name=f'{number % 2}')
        try:
            return node.operations.create(ctx, wanted)
        except exception.InvalidInput:
            return None

    with concurrent.futures.ThreadPoolExecutor(2 * CLIENTS) as pool:
        created = [one for one in pool.map(create, range(40)) if one]
    node.quiet()
    assert len(created) == 2
    used = node.rows(sa.text('SELECT mount_point_name FROM share_instances'))
    assert {row.mount_point_name for row in used} == {'same-0', 'same-1'}
    assert node.problems() == []


def insert_extra_specs(session):
    """Let shares have mount points that do not depend on the project."""
    session.run_many(
        sa.insert(types.ShareTypeExtraSpec.__table__),
        [
            {'share_type_id': TYPE_ID, 'spec_key': key, 'spec_value': value}
            for key, value in (
                ('mount_point_name_support', 'True'),
                ('provisioning:mount_point_prefix', 'same-'),
            )
        ],
    )


@pytest.fixture
def deadlocks():
    """The SQL statements that met a deadlock during the test."""
    found = []

    def record(context):
        if 'deadlock' in str(context.original_exception).lower():
            found.append(context.statement)

    sa.event.listen(sa.Engine, 'handle_error', record)
    yield found
    sa.event.remove(sa.Engine, 'handle_error', record)


def test_concurrent_operations_never_deadlock(build_node, deadlocks):
    """Rows are locked in one order: no deadlock, not even a retried one.

    MariaDB has one of its own: it checks the unique key of running work by
    shared locks, also on keys of work that has ended. Claims are retried.
    """
    node = build_node(backends=['alpha'], work='workers_per_backend = 8').start()
    shares = [node.create(5) for _ in range(36)]
    node.quiet()

    def ask(number):
        for share in shares[number::CLIENTS]:
            verb, args, facts = random.Random(share).choice(
                [
                    ('shrink', [2], {}),
                    ('extend', [9], {}),
                    ('extend', [9], {'force': True}),
                    ('delete', [], {}),
                ]
            )
            node.ask(verb, share, *args, **facts)

    with concurrent.futures.ThreadPoolExecutor(CLIENTS) as pool:
        for done in [pool.submit(ask, number) for number in range(CLIENTS)]:
            done.result()
    node.quiet()
    own = [one for one in deadlocks if 'running_key=' in one]
    assert node.db.retries == (len(own) if node.db.dialect == 'mysql' else 0)
    assert node.problems() == []


def lost_deadlocks():
    return metrics.DATABASE_DEADLOCKS.family().samples.get((), 0)


@pytest.mark.parametrize('database_url', ['mysql', 'postgresql'], indirect=True)
def test_deletion_of_a_type_takes_rows_in_the_order_of_a_creation(
    build_node, database_url
):
    """It begins when the creation has the type and is to change the usage."""
    node = build_node()
    node.create()
    node.db.write(rows.insert_type, 'another')
    owner = Owner(CTX.project_id, CTX.user_id, 'another')
    node.db.write(
        sets.create_usages,
        node.operations.limits,
        owner.keys({'shares': 1, 'gigabytes': 1, PER_SHARE: 1}),
    )
    deadlocks = lost_deadlocks()
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        deletions = []

        def delete_meanwhile(connection, cursor, statement, *others):
            if 'UPDATE quota_usages' in statement and not deletions:
                deletions.append(
                    pool.submit(node.db.write, share_types.delete, 'another')
                )
                wait_until(lambda: count_lock_waits(database_url), 'the deletion waits')

        event.listen(node.db.engine, 'before_cursor_execute', delete_meanwhile)
        assert node.create(share_type='another')
        with pytest.raises(exception.ShareTypeInUse):
            deletions[0].result()
    assert lost_deadlocks() == deadlocks
