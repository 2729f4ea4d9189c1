"""Two nodes of Galera that both get writes, as while a proxy changes over."""

import contextlib
import pathlib
import tempfile

import pytest
import sqlalchemy as sa

from manila_lite.db import commits, schema
from manila_lite.db.models import engine, shares
from manila_lite.db.session import Database
from manila_lite.db.transitions import insert_row
from manila_lite.states.share_instance import SHARE_INSTANCE
from tests.support import mariadb_server
from tests.support.processes import wait_until
from tests.support.rows import insert_share

INSTANCE = shares.ShareInstance.__table__
JOURNAL = engine.Transition.__table__


@pytest.fixture(scope='module')
def urls():
    """Databases of two nodes of one cluster, with all tables."""
    with contextlib.ExitStack() as stack:
        # Not below the folder of the tests, which only root may enter.
        top = pathlib.Path(
            stack.enter_context(tempfile.TemporaryDirectory(dir='/var/tmp'))
        )
        top.chmod(0o755)
        nodes = []
        for name in ('first', 'second'):
            folder = top / name
            folder.mkdir()
            others = ','.join(node.cluster_address for node in nodes)
            nodes.append(
                stack.enter_context(
                    mariadb_server.run_galera(folder, others, user='mysql')
                )
            )
        db = Database(nodes[0].url)
        schema.sync(db)
        db.dispose()
        yield [node.url for node in nodes]


@pytest.fixture
def pair(urls):
    """A database on each node."""
    found = [Database(url) for url in urls]
    yield found
    for db in found:
        db.dispose()


def create(session, ids):
    """Insert an instance; add its id, and that of the transaction, to `ids`."""
    id = session.new_id()
    insert_row(
        session,
        SHARE_INSTANCE,
        'create',
        id=id,
        share_id=insert_share(session),
        cast_rules_to_readonly=False,
        access_rules_status='active',
        created_at=session.now,
    )
    ids.append((id, session.transaction_id))


def has(db, id):
    return db.read(
        lambda session: session.value(
            sa.select(INSTANCE.c.id).where(INSTANCE.c.id == id)
        )
    )


def test_transaction_ruled_out_on_one_node_cannot_be_committed_on_the_other(pair):
    one, other = pair
    made, answers = [], []

    def on_step(name):
        if name == 'commit' and not answers:
            answers.append(commits.was_committed(other, made[0][1]))

    one.on_step = on_step
    one.write(create, made)
    assert answers == [False]
    (refused, _), (created, transaction) = made
    assert commits.was_committed(other, transaction)
    wait_until(lambda: has(other, created), 'the other node has it')
    assert not has(one, refused)
    assert not has(other, refused)


@pytest.mark.parametrize('asked', [0, 1])
def test_committed_transaction_is_known_at_once_on_each_node(pair, asked):
    """The node that is asked may not have applied it yet."""
    made = []
    for _ in range(20):
        pair[0].write(create, made)
        assert commits.was_committed(pair[asked], made[-1][1])
