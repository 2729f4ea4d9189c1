"""Databases, and share instances that work refers to."""

import pytest
import sqlalchemy as sa

from manila_lite.db.models import shares
from manila_lite.db.transitions import fire, insert_row
from manila_lite.states.share_instance import SHARE_INSTANCE
from tests.support.rows import insert_share

INSTANCE = shares.ShareInstance.__table__


@pytest.fixture
def add_instance(db):
    """`add_instance(id, *events)`: an instance after these events."""

    def insert(session, id, events):
        insert_share(session, id=f'share-of-{id}', project_id='owner')
        insert_row(
            session,
            SHARE_INSTANCE,
            'create',
            id=id,
            share_id=f'share-of-{id}',
            cast_rules_to_readonly=False,
            created_at=session.now,
        )
        for event in events:
            fire(session, SHARE_INSTANCE, id, event)

    def add(id, *events):
        db.write(insert, id, events)
        return id

    return add


@pytest.fixture
def status_of(db):
    """`status_of(instance_id)`"""

    def read(session, id):
        return session.value(sa.select(INSTANCE.c.status).where(INSTANCE.c.id == id))

    return lambda id: db.read(read, id)
