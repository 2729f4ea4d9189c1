"""The cache of compiled statements, and what SQLAlchemy makes of it."""

import pytest
import sqlalchemy as sa

from manila_lite.db import engines
from manila_lite.db.engines import StatementCache
from manila_lite.db.session import Database

TABLE = sa.table('things', sa.column('id'), sa.column('size'))
STATEMENT = sa.select(TABLE.c.id).where(TABLE.c.size == sa.bindparam('size'))


class Part(tuple):
    """A part of a key that counts how often it is hashed."""

    hashed = 0

    def __hash__(self):
        type(self).hashed += 1
        return super().__hash__()


@pytest.fixture
def cache():
    return StatementCache(size=4, known=3)


@pytest.fixture
def engine():
    engine = sa.create_engine('sqlite://')
    with engine.begin() as connection:
        connection.exec_driver_sql('CREATE TABLE things (id, size)')
        connection.exec_driver_sql('INSERT INTO things VALUES (1, 10), (2, 20)')
    cache = StatementCache()
    yield engine.execution_options(compiled_cache=cache), cache
    engine.dispose()


def key(part, *more):
    return ('dialect', part, *more)


def test_statement_that_was_not_compiled_is_not_found(cache):
    assert cache.get(key(('a',))) is None


def test_equal_keys_find_the_same_statement(cache):
    cache[key(('a', 1))] = 'compiled'
    for _ in range(3):
        assert cache.get(key(('a', int('1')))) == 'compiled'


def test_key_used_again_is_not_hashed_again(cache):
    part = Part(['a'])
    cache[key(part, ('x',))] = 'compiled'
    for _ in range(2):
        cache.get(key(part, ('x',)))
    Part.hashed = 0
    assert cache.get(key(part, ('x',))) == 'compiled'
    assert Part.hashed == 0


def test_same_statement_with_other_parameters_is_another_one(cache):
    part = ('a',)
    cache[key(part, ('x',))] = 'with x'
    for _ in range(3):
        assert cache.get(key(part, ('x',))) == 'with x'
        assert cache.get(key(part, ('y',))) is None


def test_statement_at_the_address_of_another_is_not_mistaken_for_it(cache, monkeypatch):
    monkeypatch.setattr(engines, 'id', lambda value: 1, raising=False)
    cache[key(('a',))] = 'a'
    cache[key(('b',))] = 'b'
    for _ in range(3):
        assert cache.get(key(('a',))) == 'a'
        assert cache.get(key(('b',))) == 'b'


def test_memory_for_statements_is_limited(cache):
    parts = [(number,) for number in range(100)]
    for part in parts:
        cache[key(part)] = part
        for _ in range(3):
            assert cache.get(key(part)) == part
    assert len(cache) <= 6
    assert len(cache._known) <= 3
    assert len(cache._seen) <= 3


def test_constant_statement_is_compiled_once(engine):
    connected, cache = engine
    with connected.connect() as connection:
        for _ in range(3):
            assert connection.scalar(STATEMENT, {'size': 20}) == 2
            assert connection.scalar(STATEMENT, {'size': 10}) == 1
    assert len(cache) == 1


def test_statement_built_again_has_its_own_values(engine):
    connected, cache = engine
    with connected.connect() as connection:
        for size, id in ((10, 1), (20, 2), (10, 1), (20, 2)):
            built = sa.select(TABLE.c.id).where(TABLE.c.size == size)
            assert connection.scalar(built) == id
    assert len(cache) == 1


def test_cleared_cache_is_empty(cache):
    part = ('a',)
    cache[key(part)] = 'compiled'
    for _ in range(3):
        cache.get(key(part))
    cache.clear()
    assert cache.get(key(part)) is None


@pytest.mark.parametrize(
    'url',
    [
        'sqlite:///{folder}/empty.db',
        'mysql+pymysql://nobody@127.0.0.1:1/',
        'postgresql+psycopg2://nobody@127.0.0.1:1/',
    ],
)
def test_steps_of_statements_have_no_listeners(tmp_path, url):
    """SQLAlchemy would look for them at each step, a tenth of its time."""
    db = Database(url.format(folder=tmp_path))
    for engine in (db.engine, db._read_engine):
        assert '_has_events' not in vars(engine)
