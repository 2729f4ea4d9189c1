"""Databases of every kind, and rows to test with."""

import pytest

from manila_lite.db.transitions import insert_row
from manila_lite.states.share_instance import SHARE_INSTANCE
from tests.support.rows import insert_share


@pytest.fixture
def add_share(db):
    """`add_share(id, **columns)`: insert a share without instances."""

    return lambda id, **values: db.write(insert_share, id=id, **values)


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
