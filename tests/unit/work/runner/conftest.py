"""A runner that the test steps, and work for it."""

import pytest
import sqlalchemy as sa

from manila_lite.db.models import services
from manila_lite.db.transitions import fire
from manila_lite.quota import charges
from manila_lite.rpc import contract
from manila_lite.states.share_instance import SHARE_INSTANCE
from manila_lite.work import table
from manila_lite.work.job import Settings
from manila_lite.work.runner import Runner
from tests.unit.work.runner.painting import (
    CTX,
    OWNER,
    Clock,
    Painter,
    PaintingRpc,
    Steady,
)

MESSAGE = services.Message.__table__


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def db(new_database, clock):
    return new_database(clock=clock)


@pytest.fixture
def painter():
    return Painter()


@pytest.fixture
def new_runner(db, painter):
    def make(**settings):
        made = Runner(
            db,
            queues=['blue'],
            handlers=contract.endpoint_handlers(painter),
            owner='me',
            rescue=painter.rescue,
            rng=Steady(),
            settings=Settings(**{'retry_delay': 1.0, **settings}),
        )
        db.deliver = lambda hints: [made.wake(hint.work_id) for hint in hints]
        return made

    return make


@pytest.fixture
def runner(new_runner):
    return new_runner()


@pytest.fixture
def ask(db, add_instance):
    """`ask(method, event)`: submit work together with a transition."""

    def submit(session, method, instance_id, event):
        fire(session, SHARE_INSTANCE, instance_id, event)
        charges.charge(
            session, OWNER, {'gigabytes': 3}, limits={'gigabytes': -1}, reserve=True
        )
        return table.submit_durable(
            session,
            CTX,
            PaintingRpc.methods[method],
            'blue',
            {'instance_id': instance_id},
        )

    def ask(method='widen', event='extend', instance_id='i'):
        add_instance(instance_id, 'created')
        return db.write(submit, method, instance_id, event)

    return ask


@pytest.fixture
def messages(db):
    """`messages()`: the user messages that were written."""
    return lambda: db.read(
        lambda session: [
            tuple(one)
            for one in session.rows(
                sa.select(
                    MESSAGE.c.project_id,
                    MESSAGE.c.action_id,
                    MESSAGE.c.detail_id,
                    MESSAGE.c.resource_id,
                    MESSAGE.c.request_id,
                )
            )
        ]
    )
