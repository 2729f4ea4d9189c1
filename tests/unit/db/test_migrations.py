"""Migrations, models and newly created databases have the same schema."""

from concurrent import futures
import contextlib
import subprocess
import sys
import threading

from alembic import autogenerate, script
from alembic.runtime import migration
import pytest
import sqlalchemy as sa

from manila_lite.db import engines, models, schema
from manila_lite.db.session import Database
from tests.support import databases, expansion, sampling
from tests.support.processes import wait_until


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
        return (columns, sorted(map(repr, parts)), inspector.get_table_options(table))

    return {table: known(table) for table in inspector.get_table_names()}


def stamp(db, version):
    with db.engine.begin() as connection:
        connection.exec_driver_sql(
            'CREATE TABLE alembic_version (version_num VARCHAR(32))'
        )
        connection.exec_driver_sql(f"INSERT INTO alembic_version VALUES ('{version}')")


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
                'include_object': lambda found, name, *rest: name != 'schema_served',
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
            lambda session: session.value(sa.select(models.quotas.Quota.project_id))
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
                session.rows(sa.text('SELECT version_num FROM alembic_version'))
            )
        )
        == 1
    )


class Interrupted(BaseException):  # which nothing wraps
    pass


@sampling.enumeration
@pytest.mark.parametrize('make_empty', ['mysql', 'postgresql'], indirect=True)
def test_migration_goes_on_after_any_of_its_statements(make_empty):
    """Each of them is committed; the version changes with the last."""
    step = 1 if sampling.tries_every_case() else 12
    first = sampling.seed() % step
    created, interrupted = make_empty(), make_empty()
    schema.sync(created)
    interrupted.write(schema.migrate, schema.FIRST_RELEASED)
    seen = set()

    def interrupt(connection, cursor, statement, *rest):
        if (
            statement.split()[0] in ('ALTER', 'CREATE', 'UPDATE')
            and statement not in seen
        ):
            seen.add(statement)
            if len(seen) % step == first:
                raise Interrupted

    sa.event.listen(interrupted.engine, 'after_cursor_execute', interrupt)
    while schema.version(interrupted) != schema.HEAD:
        with contextlib.suppress(Interrupted):
            schema.sync(interrupted)
    assert catalog(interrupted) == catalog(created)
    assert len(seen) >= 30  # the statements of the second release


@pytest.mark.parametrize('make_empty', ['postgresql'], indirect=True)
def test_tables_can_be_changed_while_they_get_indexes(make_empty):
    """Others wait for no more than a statement that changes a table."""
    empty = make_empty()
    empty.write(schema.migrate, schema.FIRST_RELEASED)
    held = {}

    def look(connection, cursor, statement, *rest):
        with empty.engine.connect() as other:
            held[statement] = other.exec_driver_sql(
                'SELECT COUNT(*) FROM pg_locks JOIN pg_class '
                'ON pg_class.oid = relation '
                "WHERE relkind = 'r' AND relnamespace = "
                'current_schema()::regnamespace AND mode IN '
                "('ShareLock', 'AccessExclusiveLock')"
            ).scalar_one()

    migrating = Database(empty.url)
    sa.event.listen(migrating.engine, 'after_cursor_execute', look)
    schema.sync(migrating)
    migrating.dispose()
    assert set(held.values()) == {0}
    indexes = [one for one in held if one.lstrip().startswith('CREATE INDEX')]
    assert len(indexes) > 5
    assert all(' INDEX CONCURRENTLY ' in one for one in indexes)


@pytest.mark.parametrize('make_empty', ['postgresql'], indirect=True)
def test_index_whose_creation_was_interrupted_is_created_again(make_empty):
    empty = make_empty()
    empty.write(schema.migrate, schema.FIRST_RELEASED)
    with empty.engine.begin() as connection:
        connection.exec_driver_sql(
            'CREATE INDEX ix_messages_resource_id_created_at '
            'ON messages (resource_id, created_at)'
        )
        connection.exec_driver_sql(
            'UPDATE pg_index SET indisvalid = false WHERE indexrelid = '
            "'ix_messages_resource_id_created_at'::regclass"
        )
    schema.sync(empty)
    assert empty.read(
        lambda session: session.value(
            sa.text('SELECT bool_and(indisvalid) FROM pg_index')
        )
    )


@pytest.mark.parametrize('make_empty', ['mysql'], indirect=True)
def test_migration_waits_for_locked_rows_of_other_tables(
    make_empty, monkeypatch, caplog
):
    """MariaDB gives up a change of a table to which such a row refers."""
    monkeypatch.setattr(engines, 'LOCK_TIMEOUT', 1.0)
    empty = make_empty()
    empty.write(schema.migrate, schema.FIRST_RELEASED)
    waiting = Database(empty.url, retry_limit=0.0)
    with futures.ThreadPoolExecutor(1) as threads:
        with empty.engine.begin() as connection:
            connection.exec_driver_sql('UPDATE share_instance_access_map SET id = id')
            ended = threads.submit(schema.sync, waiting)
            wait_until(
                lambda: 'waits for other transactions' in caplog.text, 'it waits'
            )
        ended.result(60)
    assert schema.version(empty) == schema.HEAD
    waiting.dispose()


_WAITS_FOR_TABLE = {
    'mysql': 'SELECT COUNT(*) FROM information_schema.processlist '
    "WHERE db = DATABASE() AND state LIKE 'Waiting for table metadata%'",
    'postgresql': 'SELECT COUNT(*) FROM pg_stat_activity '
    "WHERE datname = current_database() AND wait_event_type = 'Lock'",
}


@pytest.mark.parametrize('make_empty', ['mysql', 'postgresql'], indirect=True)
def test_tables_can_be_used_while_a_migration_waits_for_them(make_empty):
    empty = make_empty()
    empty.write(schema.migrate, schema.FIRST_RELEASED)
    migrating = Database(empty.url)

    def ask(statement):
        return empty.read(lambda session: session.value(sa.text(statement)))

    with futures.ThreadPoolExecutor(2) as threads:
        with empty.engine.begin() as connection:
            connection.exec_driver_sql('SELECT id FROM work')
            ended = threads.submit(schema.sync, migrating)
            wait_until(lambda: ask(_WAITS_FOR_TABLE[empty.dialect]), 'it waits')
            answer = threads.submit(ask, 'SELECT COUNT(*) FROM work')
            assert answer.result(15) == 0
            assert not ended.done()
        ended.result(60)
    assert schema.version(empty) == schema.HEAD
    migrating.dispose()


def test_database_without_schema_is_refused(empty):
    assert schema.version(empty) is None
    with pytest.raises(schema.SchemaMismatch, match='db sync'):
        schema.check(empty)


# 0030 was between two releases, and in neither.
@pytest.mark.parametrize('revision', ['ffff', '0030'])
def test_schema_of_no_release_is_refused(empty, revision):
    stamp(empty, revision)
    with pytest.raises(schema.SchemaMismatch, match=f'{revision}.*needs'):
        schema.check(empty)
    with pytest.raises(schema.SchemaMismatch, match=revision):
        schema.sync(empty)
    assert tables(empty) == {'alembic_version'}


def test_version_is_that_of_the_database_beside_one_of_the_same_kind(make_empty):
    first, second = (databases.share_statements(make_empty()) for _ in range(2))
    schema.sync(second)
    assert (schema.version(first), schema.version(second)) == (None, schema.HEAD)


# Rolling upgrades


def make_newer(db, version, oldest):
    """Pretend that a newer release has migrated the database."""
    schema.sync(db)
    with db.engine.begin() as connection:
        connection.exec_driver_sql(
            f"UPDATE alembic_version SET version_num = '{version}'"
        )
        connection.exec_driver_sql(f"UPDATE schema_served SET oldest = '{oldest}'")


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


def test_the_last_release_is_served():
    assert schema.OLDEST_SERVED <= schema.LAST_RELEASED <= schema.HEAD


def test_migrations_since_the_oldest_served_only_expand(empty):
    """A process of any schema since then goes on with that of HEAD."""
    directory = script.ScriptDirectory.from_config(schema.configuration())
    steps = directory.iterate_revisions(schema.HEAD, schema.OLDEST_SERVED)
    empty.write(schema.migrate, schema.OLDEST_SERVED)
    before = expansion.tables(empty.engine)
    found = {}
    for step in reversed(list(steps)):
        empty.write(schema.migrate, step.revision)
        after = expansion.tables(empty.engine)
        found[step.revision] = expansion.problems(before, after)
        before = after
    assert schema.LAST_RELEASED in found or (
        schema.LAST_RELEASED == schema.OLDEST_SERVED
    )
    assert {step: what for step, what in found.items() if what} == {}


def reflected(db, *parts, table='things'):
    """Create a table of these parts, and return what is known about it."""
    metadata = sa.MetaData()
    sa.Table('kinds', metadata, sa.Column('id', sa.String(16), primary_key=True))
    sa.Table(table, metadata, *parts)
    with db.engine.begin() as connection:
        metadata.create_all(connection)
    found = expansion.tables(db.engine)
    with db.engine.begin() as connection:
        metadata.drop_all(connection)
    return found


def changed(**columns):
    """Return the parts of the table with other columns; None drops one."""
    old = {
        'id': sa.Column('id', sa.Integer, primary_key=True, autoincrement=False),
        'name': sa.Column('name', sa.String(64)),
        'size': sa.Column('size', sa.BigInteger, nullable=False),
        'state': sa.Column(
            'state', sa.String(16), nullable=False, server_default='new'
        ),
        'kind': sa.Column('kind', sa.String(16)),
    }
    return [one for one in (old | columns).values() if one is not None]


@pytest.mark.parametrize(
    'parts, problem',
    [
        (lambda: changed(name=None), 'name is dropped'),
        (lambda: changed(name=sa.Column('title', sa.String(64))), 'name is dropped'),
        (
            lambda: changed(more=sa.Column('more', sa.Integer, nullable=False)),
            'more is new and needs a value',
        ),
        (
            lambda: changed(name=sa.Column('name', sa.String(64), nullable=False)),
            'name must not be null',
        ),
        (
            lambda: changed(state=sa.Column('state', sa.String(16), nullable=False)),
            'state needs a value',
        ),
        (lambda: changed(name=sa.Column('name', sa.String(63))), 'name is '),
        (
            lambda: changed(size=sa.Column('size', sa.Integer, nullable=False)),
            'size is ',
        ),
        (
            lambda: changed(size=sa.Column('size', sa.String(64), nullable=False)),
            'size is ',
        ),
        (
            lambda: [*changed(), sa.UniqueConstraint('name', name='one_name')],
            'name must be unique',
        ),
        (
            lambda: [*changed(), sa.Index('one_name', 'name', 'kind', unique=True)],
            'kind, name must be unique',
        ),
        (
            lambda: [*changed(), sa.ForeignKeyConstraint(['kind'], ['kinds.id'])],
            'kind must refer to a row',
        ),
        (
            lambda: [*changed(), sa.CheckConstraint('size > 0', name='positive')],
            'is checked',
        ),
    ],
)
def test_what_an_older_process_does_not_survive_is_found(empty, parts, problem):
    before = reflected(empty, *changed())
    found = expansion.problems(before, reflected(empty, *parts()))
    assert found
    assert any(problem in one for one in found), found


def test_a_table_that_is_dropped_is_found(empty):
    before = reflected(empty, *changed())
    after = reflected(empty, *changed(), table='others')
    assert expansion.problems(before, after) == ['things is dropped']


def test_what_an_older_process_survives_is_not_reported(empty):
    before = reflected(empty, *changed())
    after = reflected(
        empty,
        *changed(
            name=sa.Column('name', sa.String(65)),
            kind=sa.Column('kind', sa.Text),
            more=sa.Column('more', sa.String(16)),
            flag=sa.Column(
                'flag', sa.Boolean, nullable=False, server_default=sa.false()
            ),
        ),
        sa.Index('by_size', 'size'),
        sa.UniqueConstraint('name', 'more', name='one_name'),
        sa.ForeignKeyConstraint(['more'], ['kinds.id']),
    )
    assert expansion.problems(before, after) == []


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
