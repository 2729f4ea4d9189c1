"""Migrations, models and newly created databases have the same schema."""

from concurrent import futures
import contextlib
import subprocess
import sys
import threading

from alembic import autogenerate
from alembic import script
from alembic.runtime import migration
import pytest
import sqlalchemy as sa

from manila_lite.db import models
from manila_lite.db import schema
from manila_lite.db.session import Database
from tests.support import databases


@pytest.fixture(params=databases.KINDS)
def make_empty(request, tmp_path):
    """`make_empty()`: create another empty database of the same kind."""
    with contextlib.ExitStack() as stack:

        def make():
            url = stack.enter_context(
                databases.temporary_database(request.param, tmp_path)
            )
            db = Database(url)
            stack.callback(db.dispose)
            return db

        yield make


@pytest.fixture
def empty(make_empty):
    return make_empty()


@pytest.fixture(scope='module', params=databases.KINDS)
def migrated(request, tmp_path_factory):
    """A database that the migrations made; tests only look at it."""
    folder = tmp_path_factory.mktemp('migrated')
    with databases.temporary_database(request.param, folder) as url:
        db = Database(url)
        db.write(schema.migrate, 'head')
        yield db
        db.dispose()


def tables(db):
    return set(sa.inspect(db.engine).get_table_names())


def catalog(db):
    """Return everything the database knows about its tables."""
    inspector = sa.inspect(db.engine)

    def known(table):
        columns = [
            (
                column['name'],
                column['type'].compile(db.engine.dialect),
                column['nullable'],
                column['default'],
                column.get('autoincrement'),
            )
            for column in inspector.get_columns(table)
        ]
        parts = [
            inspector.get_pk_constraint(table),
            *inspector.get_unique_constraints(table),
            *inspector.get_foreign_keys(table),
            *inspector.get_indexes(table),
            *inspector.get_check_constraints(table),
        ]
        return (
            columns,
            sorted(map(repr, parts)),
            inspector.get_table_options(table),
        )

    return {table: known(table) for table in inspector.get_table_names()}


def stamp(db, version):
    with db.engine.begin() as connection:
        connection.exec_driver_sql(
            'CREATE TABLE alembic_version (version_num VARCHAR(32))'
        )
        connection.exec_driver_sql(
            f"INSERT INTO alembic_version VALUES ('{version}')"
        )


def test_head_is_the_newest_migration():
    directory = script.ScriptDirectory.from_config(schema.configuration())
    assert directory.get_heads() == [schema.HEAD]


def test_migrated_schema_equals_the_models(migrated):
    with migrated.engine.connect() as connection:
        context = migration.MigrationContext.configure(
            connection,
            opts={
                'compare_type': True,
                'compare_server_default': True,
                # Not a model: it is read before the schema is known.
                'include_object': lambda found, name, *rest: (
                    name != 'schema_served'
                ),
            },
        )
        assert autogenerate.compare_metadata(context, models.metadata) == []


def test_created_schema_equals_the_migrated_one(migrated, tmp_path):
    with databases.temporary_database(migrated.dialect, tmp_path) as url:
        created = Database(url)
        schema.sync(created)
        assert catalog(created) == catalog(migrated)
        assert schema.version(created) == schema.version(migrated)
        created.dispose()


def test_downgrade_to_base_leaves_nothing(empty):
    empty.write(schema.migrate, 'head')
    assert tables(empty) == {
        *models.metadata.tables,
        'alembic_version',
        'schema_served',
    }
    empty.write(schema.migrate, 'base')
    assert tables(empty) == {'alembic_version'}
    assert schema.version(empty) is None


def test_downgraded_database_can_be_used_again(empty):
    schema.sync(empty)
    empty.write(schema.migrate, 'base')
    schema.sync(empty)
    schema.check(empty)


def test_second_sync_keeps_existing_rows(empty):
    schema.sync(empty)
    empty.write(
        lambda session: session.run(
            sa.insert(models.quotas.Quota.__table__),
            project_id='p',
            resource='shares',
            hard_limit=1,
        )
    )
    schema.sync(empty)
    assert (
        empty.read(
            lambda session: session.value(
                sa.select(models.quotas.Quota.project_id)
            )
        )
        == 'p'
    )


def test_concurrent_syncs_succeed(empty):
    others = [Database(empty.url) for _ in range(4)]
    ready = threading.Barrier(len(others))

    def sync(db):
        ready.wait(timeout=30)
        schema.sync(db)
        return schema.version(db)

    with futures.ThreadPoolExecutor(len(others)) as threads:
        assert list(threads.map(sync, others)) == [schema.HEAD] * 4
    for db in others:
        db.dispose()
    assert (
        empty.read(
            lambda session: len(
                session.rows(
                    sa.text('SELECT version_num FROM alembic_version')
                )
            )
        )
        == 1
    )


def test_database_without_schema_is_refused(empty):
    assert schema.version(empty) is None
    with pytest.raises(schema.SchemaMismatch, match='db sync'):
        schema.check(empty)


def test_schema_of_another_release_is_refused(empty):
    stamp(empty, 'ffff')
    with pytest.raises(schema.SchemaMismatch, match='ffff.*needs'):
        schema.check(empty)
    with pytest.raises(schema.SchemaMismatch, match='ffff'):
        schema.sync(empty)
    assert tables(empty) == {'alembic_version'}


# Rolling upgrades


def make_newer(db, version, oldest):
    """Pretend that a newer release has migrated the database."""
    schema.sync(db)
    with db.engine.begin() as connection:
        connection.exec_driver_sql(
            f"UPDATE alembic_version SET version_num = '{version}'"
        )
        connection.exec_driver_sql(
            f"UPDATE schema_served SET oldest = '{oldest}'"
        )


def test_newer_schema_that_serves_this_release_is_used(empty):
    make_newer(empty, '9999', schema.HEAD)
    schema.check(empty)
    schema.sync(empty)
    assert schema.version(empty) == '9999'


def test_newer_schema_that_does_not_serve_this_release_is_refused(empty):
    make_newer(empty, '9999', '9998')
    with pytest.raises(schema.SchemaMismatch, match='9999.*needs'):
        schema.check(empty)
    with pytest.raises(schema.SchemaMismatch, match='9999'):
        schema.sync(empty)


def test_migrations_since_the_oldest_served_only_expand(empty):
    """Rows as the oldest release writes them fit into every table."""
    empty.write(schema.migrate, schema.OLDEST_SERVED)
    inspector = sa.inspect(empty.engine)
    before = {
        table: {column['name']: column for column in columns}
        for (_, table), columns in inspector.get_multi_columns().items()
    }
    unique_before = unique_keys(inspector)
    empty.write(schema.migrate, 'head')
    inspector = sa.inspect(empty.engine)
    after = {
        table: {column['name']: column for column in columns}
        for (_, table), columns in inspector.get_multi_columns().items()
    }
    assert before.keys() <= after.keys()
    for table, columns in before.items():
        assert columns.keys() <= after[table].keys()
        for name, column in after[table].items():
            if name in columns:
                assert column['nullable'] >= columns[name]['nullable']
            else:
                assert (
                    column['nullable']
                    or column['default'] is not None
                    or column.get('computed')
                ), f'{table}.{name}'
    for table, keys in unique_keys(inspector).items():
        for key in keys - unique_before.get(table, set()):
            # Old rows have nothing in a new column; NULLs are not equal.
            assert table not in before or key - before[table].keys()


def unique_keys(inspector):
    """Return the sets of columns with a unique key, by table."""
    return {
        table: {
            frozenset(one['column_names'])
            for one in (
                *inspector.get_unique_constraints(table),
                *inspector.get_indexes(table),
            )
            if one.get('unique', True)
        }
        for table in inspector.get_table_names()
    }


def test_tables_of_unknown_origin_are_refused_and_kept(empty):
    with empty.engine.begin() as connection:
        connection.exec_driver_sql('CREATE TABLE shares (id INTEGER)')
    with pytest.raises(schema.SchemaMismatch, match='shares'):
        schema.sync(empty)
    assert tables(empty) == {'shares'}


@pytest.mark.parametrize('version', [None, schema.HEAD])
def test_alembic_is_not_imported_without_migrations(tmp_path, version):
    db = Database(f'sqlite:///{tmp_path}/db')
    if version:
        schema.sync(db)
    db.dispose()
    subprocess.run(
        [
            sys.executable,
            '-c',
            f"""
import sys
from manila_lite.db import schema
from manila_lite.db.session import Database
schema.sync(Database({db.url!r}))
assert 'alembic' not in sys.modules""",
        ],
        check=True,
        timeout=60,
    )
