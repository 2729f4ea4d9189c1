"""Guards of share servers under concurrency, on every database."""

import pytest
import sqlalchemy as sa

from manila_lite import exception
from manila_lite.db.models import engine, share_servers as models, shares
from manila_lite.db.queries.servers import idle_servers, server_load, share_servers
from manila_lite.db.queries.servers.server_load import ServerLimits
from manila_lite.db.session import Database
from manila_lite.db.transitions import fire, insert_row
from manila_lite.states.share_server import SHARE_SERVER
from tests.support import sampling
from tests.support.concurrent_calls import each
from tests.support.rows import SHARE_FLAGS

pytestmark = sampling.dialects


WORK = engine.Work.__table__
SERVER = models.ShareServer.__table__
INSTANCE = shares.ShareInstance.__table__
SHARE = shares.Share.__table__
THREADS = 16
SUPPORT = (
    'security_service_update_support',
    'network_allocation_update_support',
    'share_replicas_migration_support',
)


def add_instances(session, count):
    session.run_many(
        sa.insert(SHARE),
        [
            {
                'id': f'share-{number}',
                'project_id': 'p',
                'size': 2,
                'share_proto': 'NFS',
                'created_at': session.now,
                **SHARE_FLAGS,
            }
            for number in range(count)
        ],
    )
    session.run_many(
        sa.insert(INSTANCE),
        [
            {
                'id': f'i-{number}',
                'share_id': f'share-{number}',
                'host': 'node@alpha#pool',
                'status': 'creating',
                'access_rules_status': 'active',
                'cast_rules_to_readonly': False,
                'created_at': session.now,
            }
            for number in range(count)
        ],
    )


def make_server(session, id='server', build_key=None):
    insert_row(
        session,
        SHARE_SERVER,
        'create',
        id=id,
        host='node@alpha',
        is_auto_deletable=True,
        build_key=build_key,
        created_at=session.now,
        **dict.fromkeys(SUPPORT, False),
    )


def active_server(session):
    make_server(session)
    fire(session, SHARE_SERVER, 'server', 'created')


@pytest.fixture
def db(database_url):
    db = Database(database_url)
    db.write(add_instances, THREADS)
    yield db
    db.dispose()


def on_server(db):
    return db.read(server_load.get_load, 'server')


@pytest.mark.parametrize(
    'limits, most',
    [
        (ServerLimits(shares=5), 5),
        (ServerLimits(gigabytes=7), 3),
        (ServerLimits(), THREADS),
    ],
)
def test_server_limit_holds_under_concurrency(db, limits, most):
    db.write(active_server)
    put = each(
        lambda number: db.write(share_servers.bind, f'i-{number}', 'server', 2, limits),
        THREADS,
    )
    assert sum(put) == most
    assert on_server(db) == (most, 2 * most)


class NoRoom(Exception):
    pass


def test_server_limit_holds_for_concurrent_extensions(db):
    """32 GiB are on the server, and each of 16 shares is to grow by 3."""

    def occupy(session):
        active_server(session)
        session.run(
            sa.update(INSTANCE).values(share_server_id='server', status='extending')
        )
        session.run_many(
            sa.insert(WORK),
            [
                {
                    'id': f'w-{number}',
                    'kind': 'extend',
                    'queue': 'node@alpha',
                    'topic': 'share',
                    'resource': 'share_instance',
                    'resource_id': f'i-{number}',
                    'args': '{"growth": 3}',
                    'context': '{}',
                    'state': 'queued',
                    'attempt': 0,
                    'fence': 0,
                    'asked': 1,
                    'next_try_at': 0,
                    'created_at': session.now,
                }
                for number in range(THREADS)
            ],
        )

    def claim(session, number):
        session.run(
            sa.update(WORK).where(WORK.c.id == f'w-{number}').values(state='running')
        )
        if not server_load.can_grow(
            session, 'server', f'i-{number}', 3, ServerLimits(gigabytes=42)
        ):
            raise NoRoom

    def extend(number):
        try:
            db.write(claim, number)
        except NoRoom:
            return False
        return True

    db.write(occupy)
    assert sum(each(extend, THREADS)) == 3


@pytest.mark.facts('LP2024658')
def test_details_that_are_set_again_replace_the_former(db):
    db.write(active_server)
    for values in ({'ip': '1', 'name': 'a'}, {'ip': 2}, {'ip': '2'}):
        db.write(share_servers.merge_details, 'server', values)
    assert db.read(share_servers.get_backend_details, ['server']) == {
        'server': {'ip': '2', 'name': 'a'}
    }
    rows = db.read(
        lambda session: session.rows(
            sa.text('SELECT * FROM share_server_backend_details')
        )
    )
    assert len(rows) == 2


def test_one_of_many_concurrent_builds_creates_the_server(db):
    def found(session, number):
        if share_servers.is_being_built(session, 'key'):
            return False
        share_servers.insert_unique(
            session, lambda: make_server(session, f'server-{number}', 'key')
        )
        return share_servers.attach(session, f'i-{number}', f'server-{number}')

    won = each(lambda number: db.write(found, number), THREADS)
    assert sum(won) == 1
    assert len(db.read(lambda session: session.rows(sa.select(SERVER.c.id)))) == 1


def test_server_being_deleted_gets_no_share(db):
    db.write(active_server)

    def remove(session):
        share_servers.lock(session, 'server')
        if share_servers.is_used(session, 'server'):
            raise exception.ShareServerInUse(share_server_id='server')
        fire(session, SHARE_SERVER, 'server', 'delete')

    def act(number):
        if number % 4:
            return db.write(share_servers.bind, f'i-{number}', 'server', 2)
        try:
            db.write(remove)
        except (exception.ShareServerInUse, exception.InvalidStatus):
            return None
        return 'deleting'

    done = each(act, THREADS)
    status = db.read(share_servers.find, 'server').status
    assert (status == 'deleting') == ('deleting' in done)
    assert on_server(db)[0] == (0 if status == 'deleting' else done.count(True))


def test_last_share_to_leave_marks_the_server_idle(db):
    db.write(active_server)
    for number in range(THREADS):
        assert db.write(share_servers.bind, f'i-{number}', 'server', 2)

    def leave(session, number):
        session.run(sa.delete(INSTANCE).where(INSTANCE.c.id == f'i-{number}'))
        return idle_servers.mark(session, 'server')

    left = each(lambda number: db.write(leave, number), THREADS)
    assert left.count(True) == 1
    assert db.read(share_servers.find, 'server').idle_since is not None
