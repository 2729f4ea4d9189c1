"""Databases of every kind, and rows to test with."""

import pytest

from manila_lite.db.models import shares
from manila_lite.db.session import Database
from manila_lite.db.transitions import insert_row
from manila_lite.states.share_instance import SHARE_INSTANCE
from tests.support.databases import share_statements
from tests.support.rows import SHARE_FLAGS

SHARE = shares.Share.__table__


@pytest.fixture
def new_database(database_url):
    """`new_database(**options)`: another Database on the same database."""
    created = []

    def create(**options):
        created.append(share_statements(Database(database_url, **options)))
        return created[-1]

    yield create
    for db in created:
        db.dispose()


@pytest.fixture
def db(new_database):
    return new_database()


@pytest.fixture
def add_share(db):
    """`add_share(id, size=1)`: insert a share without instances."""

    def insert(session, id, size=1):
        session.run(
            SHARE.insert(),
            id=id,
            project_id='p',
            size=size,
            share_proto='NFS',
            created_at=session.now,
            **SHARE_FLAGS,
        )

    return lambda *args, **values: db.write(insert, *args, **values)


@pytest.fixture
def add_instance(db, add_share):
    """`add_instance(id)`: insert a share instance in creating."""

    def add(id, by=None):
        add_share(f'share-of-{id}')
        db.write(
            insert_row,
            SHARE_INSTANCE,
            'create',
            by=by,
            id=id,
            share_id=f'share-of-{id}',
            cast_rules_to_readonly=False,
            access_rules_status='active',
            created_at=db.utcnow(),
        )

    return add
