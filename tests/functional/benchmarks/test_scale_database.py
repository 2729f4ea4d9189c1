"""The benchmark of a large deployment destroys no other tables."""

import pytest
import sqlalchemy as sa

from benchmarks import scale_database
from manila_lite.db import schema
from manila_lite.db.models import types
from manila_lite.db.session import Database
from tests.support import databases, sampling

TYPES = types.ShareType.__table__


@pytest.fixture(params=databases.EACH)
def db(request, tmp_path):
    with databases.temporary_database(request.param, tmp_path) as url:
        db = Database(url)
        yield db
        db.dispose()


def names(db):
    return set(sa.inspect(db.engine).get_table_names())


def count_types(db):
    return db.read(
        lambda session: session.value(sa.select(sa.func.count()).select_from(TYPES))
    )


def insert_type(db):
    db.write(
        lambda session: session.run(
            sa.insert(TYPES),
            id='id',
            name='name',
            is_public=True,
            created_at=session.now,
        )
    )


def create_installation(db):
    schema.sync(db)
    insert_type(db)


def create_foreign_table(db):
    sa.Table('foreign_table', sa.MetaData(), sa.Column('one', sa.Integer)).create(
        db.engine
    )


def measure(db, *, keep=False):
    """Return what was inserted by this run."""
    inserted = []

    def fill():
        insert_type(db)
        inserted.append('type')

    with scale_database.filled(db, fill, keep=keep):
        assert count_types(db) == 1
    return inserted


@sampling.combinations('db', 'keep')
@pytest.mark.parametrize('create', [create_installation, create_foreign_table])
@pytest.mark.parametrize('keep', [True, False])
def test_database_that_is_not_empty_is_refused_and_kept(db, create, keep):
    create(db)
    before = names(db)
    with pytest.raises(scale_database.ForeignTables, match='did not create'):
        measure(db, keep=keep)
    assert names(db) == before
    if 'share_types' in before:
        assert count_types(db) == 1


def test_tables_are_dropped_unless_they_are_kept(db):
    assert measure(db) == ['type']
    assert names(db) == set()
    assert measure(db, keep=True) == ['type']
    assert measure(db, keep=True) == []
    assert measure(db) == []
    assert names(db) == set()


def test_kept_database_that_is_used_otherwise_is_refused(db):
    measure(db, keep=True)
    create_foreign_table(db)
    with pytest.raises(scale_database.ForeignTables, match='foreign_table'):
        measure(db)
    assert count_types(db) == 1


def test_tables_that_cannot_be_filled_are_dropped(db):
    def fail():
        raise RuntimeError('the disk is full')

    with pytest.raises(RuntimeError), scale_database.filled(db, fail, keep=True):
        pass
    assert names(db) == set()


def test_table_that_another_process_adds_meanwhile_remains(db):
    with scale_database.filled(db, lambda: insert_type(db), keep=False):
        create_foreign_table(db)
    assert names(db) == {'foreign_table'}
