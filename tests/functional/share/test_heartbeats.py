"""The back ends of a process write their heartbeats together."""

import pytest
import sqlalchemy as sa

from manila_lite.db.models import services as models
from manila_lite.db.queries.services import services
from manila_lite.share.manager.heartbeats import SHARED_FOR, Heartbeats
from tests.support import sampling

pytestmark = sampling.dialects

SERVICE = models.Service.__table__
INCARNATION = models.ServiceIncarnation.__table__

BACKENDS = ['alpha', 'beta', 'gamma']
INTERVAL = 10.0
LONG = 1000.0


class Beating:
    """The heartbeats of a process, whose time the test decides."""

    def __init__(self, node):
        self.node, self.now = node, 0.0
        self.heartbeats = Heartbeats(
            node.db, node.share.backends, INTERVAL, clock=lambda: self.now
        )

    def beat(self, name):
        """Beat for one back end; return the number of statements."""
        steps = []
        on_step, self.node.db.on_step = self.node.db.on_step, steps.append
        self.heartbeats.beat(self.node.backend(name))
        self.node.db.on_step = on_step
        return steps.count('statement')


@pytest.fixture
def node(build_node):
    node = build_node(backends=BACKENDS)
    node.register()
    return node


@pytest.fixture
def beating(node):
    return Beating(node)


def make_old(node):
    """Let all heartbeats be those of long ago."""
    for table in (SERVICE, INCARNATION):
        node.db.write(
            lambda session, table=table: session.run(
                sa.update(table).values(heartbeat_at=table.c.heartbeat_at - LONG)
            )
        )


def recent(node):
    """Return the back ends with a heartbeat: of their process, and shown."""
    found = {}
    for row in node.db.read(services.list_all):
        if '@' in row.host:
            found[row.host.partition('@')[2]] = row.now - row.heartbeat_at < LONG
    own = {
        row.host.partition('@')[2]
        for row in node.rows(
            sa.select(SERVICE.c.host, INCARNATION.c.heartbeat_at)
            .join(INCARNATION)
            .where(
                sa.func.abs(SERVICE.c.heartbeat_at - INCARNATION.c.heartbeat_at)
                < LONG / 2
            )
        )
    }
    return {name for name, is_recent in found.items() if is_recent and name in own}


def test_first_to_be_due_writes_those_of_all(node, beating):
    make_old(node)
    assert recent(node) == set()
    assert beating.beat('beta') == 3
    assert recent(node) == set(BACKENDS)
    assert [beating.beat(name) for name in BACKENDS] == [0, 0, 0]


def test_they_are_written_again_in_time(node, beating):
    beating.beat('beta')
    beating.now = SHARED_FOR * INTERVAL - 0.1
    assert beating.beat('alpha') == 0
    beating.now = SHARED_FOR * INTERVAL
    make_old(node)
    assert beating.beat('alpha') == 3
    assert recent(node) == set(BACKENDS)


def test_one_that_is_not_well_writes_its_own(node, beating):
    beating.beat('beta')
    node.backend('alpha').health = 'its disk is gone'
    assert beating.beat('alpha') == 4
    assert health(node, 'alpha') == 'its disk is gone'
    beating.now = INTERVAL
    make_old(node)
    assert beating.beat('beta') == 3
    assert recent(node) == {'beta', 'gamma'}
    assert health(node, 'alpha') == 'its disk is gone'
    node.backend('alpha').health = None
    beating.beat('alpha')
    assert health(node, 'alpha') is None


def test_problem_that_ends_is_shown_by_the_next_heartbeat(node, beating):
    beating.beat('beta')
    node.backend('alpha').health = 'slow'
    beating.beat('alpha')
    node.backend('alpha').health = None
    beating.beat('alpha')
    assert health(node, 'alpha') is None


def test_heartbeat_that_is_being_written_is_left_alone(node, beating):
    """It may say what the process knows since."""
    make_old(node)
    with node.backend('alpha')._beating:
        assert beating.beat('beta') == 3
    assert recent(node) == {'beta', 'gamma'}


def test_process_that_is_not_registered_registers(node, beating):
    node.db.write(lambda session: session.run(sa.delete(INCARNATION)))
    for name in BACKENDS:
        beating.beat(name)
    assert recent(node) == set(BACKENDS)


def test_newer_process_stays_shown(node, beating, build_node):
    newer = build_node(backends=BACKENDS)
    newer.register()
    assert [beating.beat(name) for name in BACKENDS] == [1 + 4] * 3
    assert Beating(newer).beat('alpha') == 3
    shown = {
        row.incarnation
        for row in node.db.read(services.list_all)
        if row.host.partition('@')[2] in BACKENDS
    }
    assert shown == {newer.process.id}


def health(node, name):
    return node.db.read(services.get, f'node@{name}', 'manila-share').health
