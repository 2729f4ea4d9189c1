"""Upserts."""

import pytest
import sqlalchemy as sa

from manila_lite.db.dialects import build_upsert
from manila_lite.db.session import Database
from tests.support import sampling

pytestmark = sampling.dialects


TABLE = sa.Table(
    'counters',
    sa.MetaData(),
    sa.Column('name', sa.String(20), primary_key=True),
    sa.Column('times', sa.Integer),
    sa.Column('changes', sa.Integer),
)


@pytest.fixture
def db(database_url):
    db = Database(database_url)
    TABLE.create(db.engine)
    yield db
    db.dispose()


def count(db, name):
    statement = build_upsert(
        db.dialect,
        TABLE,
        values={'name': name, 'times': 1, 'changes': 0},
        changes={'times': TABLE.c.times + 1},
        keys=('name',),
    )
    db.write(lambda session: session.run(statement))


def test_a_row_is_inserted_once_and_then_changed(db):
    for name in ('one', 'two', 'two'):
        count(db, name)
    found = db.read(
        lambda session: session.rows(sa.select(TABLE).order_by(TABLE.c.name))
    )
    assert found == [('one', 1, 0), ('two', 2, 0)]
