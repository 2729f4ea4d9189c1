"""A process is frozen while its transaction has a row that others need."""

import contextlib
import threading

from oslo_db import exception as db_exc
import pytest
import sqlalchemy as sa

from manila_lite.db import engines
from manila_lite.db.models import services
from manila_lite.db.queries.admin import services as service_rows
from manila_lite.share.manager.backend import wait_until_up
from tests.support.processes import wait_until
from tests.support.service_process import TIMEOUT

SERVICE = services.Service.__table__
DOWN_TIME = 60.0

on_servers = pytest.mark.parametrize(
    'database_url', ['mysql', 'postgresql'], indirect=True
)
"""SQLite has no server that could end a transaction."""


@pytest.fixture
def node(build_node, monkeypatch):
    """A node whose sessions have short limits."""
    monkeypatch.setattr(engines, 'LOCK_TIMEOUT', 1)
    monkeypatch.setattr(engines, 'IDLE_TIMEOUT', 2)
    node = build_node(backends=['alpha'])
    node.register()
    return node


@contextlib.contextmanager
def frozen_with(node, statement):
    """Freeze a thread within a transaction; yield the list of its errors."""
    has_row, awake, errors = threading.Event(), threading.Event(), []

    def freeze(session):
        session.run(statement)
        has_row.set()
        assert awake.wait(TIMEOUT)
        session.run(statement)

    def run():
        try:
            node.db.write(freeze)
        except db_exc.DBError as error:
            errors.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    assert has_row.wait(TIMEOUT)
    try:
        yield errors
    finally:
        awake.set()
        thread.join(TIMEOUT)
        assert not thread.is_alive()


@on_servers
def test_frozen_transaction_is_ended_and_writes_nothing(node):
    change = sa.update(SERVICE).values(disabled_reason='frozen')
    with frozen_with(node, change) as errors:
        node.db.write(
            service_rows.set_disabled,
            'node@alpha',
            'manila-share',
            True,
            'awake',
        )
    assert isinstance(errors[0], db_exc.DBConnectionError)
    rows = node.rows(sa.select(SERVICE.c.disabled_reason, SERVICE.c.binary))
    assert {row.disabled_reason for row in rows} == {None, 'awake'}


def test_standby_starts_while_its_row_is_taken(node, build_node):
    node.db.write(lambda session: session.run(sa.delete(SERVICE)))
    node.backend().register()
    standby = build_node(backends=['alpha'])
    standby.db.retry_limit = 0.5
    backend = standby.backend()
    with frozen_with(node, sa.update(SERVICE).values(health='frozen')):
        backend.start()
    assert wait_until_up([backend], TIMEOUT)
    wait_until(
        lambda: (
            standby.process.id
            in {row.incarnation for row in standby.rows(sa.select(SERVICE))}
        ),
        'it is registered',
    )
    assert backend.stop(TIMEOUT)
