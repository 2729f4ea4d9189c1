"""Several processes serve one host: each has its own health."""

from concurrent import futures

import pytest
import sqlalchemy as sa

from manila_lite.db.models import services as models
from manila_lite.db.queries.services import incarnations, services
from tests.support import sampling
from tests.support.service_process import TIMEOUT

SERVICE = models.Service.__table__
INCARNATION = models.ServiceIncarnation.__table__

DOWN_TIME = 60.0
ALPHA = {'host': 'node@alpha', 'binary': 'manila-share'}


@pytest.fixture
def pair(build_node):
    """Two processes of one back end, both up; the second is the newer."""
    nodes = [build_node(backends=['alpha']) for _ in range(2)]
    for node in nodes:
        node.register()
    return nodes


def shown(node):
    """Return what the list of services shows of alpha."""
    (row,) = [
        row for row in node.db.read(services.list_all) if row.host == ALPHA['host']
    ]
    return row


def set_health(node, health):
    node.backend().health = health
    node.backend().beat()


def silence(node, seconds=DOWN_TIME + 1):
    """Make the last heartbeat of a process older."""
    node.db.write(
        lambda session: session.run(
            sa.update(INCARNATION)
            .where(INCARNATION.c.incarnation == node.process.id)
            .values(heartbeat_at=INCARNATION.c.heartbeat_at - seconds)
        )
    )


def processes(node):
    return {
        row.incarnation
        for row in node.rows(
            sa.select(INCARNATION.c.incarnation)
            .join(SERVICE)
            .where(SERVICE.c.host == ALPHA['host'])
        )
    }


def test_newer_of_two_healthy_processes_is_shown(pair):
    old, new = pair
    for node in (new, old):
        node.backend().beat()
        assert shown(node).incarnation == new.process.id
    assert processes(old) == {old.process.id, new.process.id}


def test_heartbeat_of_the_shown_process_reads_no_others(pair):
    older, newer = pair

    def statements(node):
        steps = []
        on_step, node.db.on_step = node.db.on_step, steps.append
        node.backend().beat()
        node.db.on_step = on_step
        return steps.count('statement')

    before = shown(newer).heartbeat_at
    assert (statements(newer), statements(older)) == (3, 4)
    assert shown(newer).heartbeat_at > before
    set_health(newer, 'broken')
    assert shown(newer).incarnation == older.process.id
    assert (statements(newer), statements(older)) == (4, 3)
    set_health(newer, None)
    assert shown(older).incarnation == newer.process.id


def test_process_that_is_unwell_does_not_hide_a_healthy_one(pair):
    old, new = pair
    set_health(new, 'its driver failed')
    assert (shown(old).health, shown(old).incarnation) == (None, old.process.id)
    set_health(old, 'its disk is gone')
    assert shown(old).health == 'its driver failed'
    set_health(new, None)
    assert shown(old).health is None


def test_process_that_is_silent_does_not_hide_one_that_is_unwell(pair):
    old, new = pair
    silence(old)
    set_health(new, 'its driver failed')
    row = shown(new)
    assert (row.health, row.incarnation) == ('its driver failed', new.process.id)
    assert services.is_up(row, DOWN_TIME) is False


def test_late_heartbeat_of_an_ended_process_changes_nothing(pair):
    """Its new process has found that the old one is dead."""
    old, new = pair
    set_health(new, 'its driver failed')
    new.backend().deregister(old.process.id)
    assert shown(new).health == 'its driver failed'
    assert not incarnations.beat(
        old.db, **ALPHA, incarnation=old.process.id, health=None, down_time=DOWN_TIME
    )
    assert shown(new).health == 'its driver failed'
    assert processes(new) == {new.process.id}


def test_process_that_stops_leaves_the_service_to_the_other(pair):
    old, new = pair
    set_health(new, 'its driver failed')
    assert old.backend().stop(TIMEOUT)
    old.backend().beat()
    assert shown(new).health == 'its driver failed'
    assert processes(new) == {new.process.id}


def test_service_without_a_process_is_down_at_once(pair):
    old, new = pair
    before = shown(old)
    assert old.backend().stop(TIMEOUT)
    assert services.is_up(shown(new), DOWN_TIME)
    assert new.backend().stop(TIMEOUT)
    after = shown(old)
    assert not services.is_up(after, DOWN_TIME)
    assert after.health == incarnations.STOPPED
    assert after.heartbeat_at == before.heartbeat_at
    assert processes(old) == set()
    old.backend().register()
    assert services.is_up(shown(old), DOWN_TIME)


def test_process_that_is_alone_ends_all_others(pair):
    old, new = pair
    new.db.write(incarnations.deregister_all)
    new.backend().health = 'its driver failed'
    new.backend().beat()
    assert shown(new).health == 'its driver failed'
    assert processes(new) == {new.process.id}


def test_rows_of_processes_that_died_long_ago_are_deleted(pair):
    old, new = pair
    silence(old, incarnations.FORGOTTEN_AFTER + 1)
    new.backend().register()
    assert processes(new) == {new.process.id}


@sampling.dialects
def test_simultaneous_heartbeats_show_the_last_word_of_each(pair):
    """The second transaction to commit has seen the first."""
    old, new = pair
    for _ in range(10):
        set_health(old, 'its disk is gone')
        set_health(new, 'its driver failed')
        old.backend().health = None
        new.backend().health = 'its driver failed again'
        with futures.ThreadPoolExecutor(2) as pool:
            for done in [pool.submit(node.backend().beat) for node in (old, new)]:
                done.result()
        assert shown(old).health is None
        assert shown(old).incarnation == old.process.id


def test_process_is_starting_until_its_first_report(build_node):
    def starting():
        return node.db.read(incarnations.list_starting, 'manila-share', DOWN_TIME)

    node = build_node(backends=['alpha', 'beta'])
    alpha, beta = node.share.backends
    alpha.register()
    beta.register()
    assert starting() == ['node@alpha', 'node@beta']
    node.db.write(services.set_disabled, 'node@beta', 'manila-share', True, None)
    assert starting() == ['node@alpha']
    alpha.set_up()
    assert starting() == []
    set_health(node, 'its disk is gone')
    assert starting() == []


def test_host_with_a_process_that_is_up_is_not_starting(build_node):
    up, starting = (build_node(backends=['alpha']) for _ in range(2))
    up.register()
    starting.backend().register()
    assert not up.db.read(incarnations.list_starting, 'manila-share', DOWN_TIME)
    silence(up)
    starting.backend().beat()
    assert list(up.db.read(incarnations.list_starting, 'manila-share', DOWN_TIME)) == [
        'node@alpha'
    ]
    silence(starting)
    assert not up.db.read(incarnations.list_starting, 'manila-share', DOWN_TIME)


# Back ends that are removed from the configuration


@pytest.fixture
def former(build_node):
    """A process that stops, and one without one of its two back ends."""
    node = build_node(backends=['alpha', 'beta'])
    node.register()
    return node, build_node(backends=['beta'])


def states(node):
    return {
        row.host: services.is_up(row, DOWN_TIME)
        for row in node.db.read(services.list_all)
        if row.binary == 'manila-share'
    }


def test_removed_back_end_is_down_at_once_and_gets_no_share(former):
    old, new = former
    for backend in old.share.backends:
        assert backend.stop(TIMEOUT)
    new.share.mark_others_down(new.process)
    new.register()
    assert states(new) == {'node@alpha': False, 'node@beta': True}
    assert shown(new).health == incarnations.REMOVED
    share = new.create(1, scheduler_hints={'only_host': 'node@alpha#pool'})
    for _ in range(10):
        new.run()
    assert new.target(share).host is None


def test_back_end_of_another_process_or_node_is_not_removed(former):
    old, new = former
    new.share.mark_others_down(new.process)
    assert states(new) == {'node@alpha': True, 'node@beta': True}
    for backend in old.share.backends:
        assert backend.stop(TIMEOUT)
    new.db.write(
        incarnations.mark_unserved_down,
        node='nod',
        binary='manila-share',
        served=set(),
        down_time=DOWN_TIME,
    )
    assert shown(new).health == incarnations.STOPPED


def test_back_end_of_a_killed_process_is_removed(former):
    old, new = former
    new.share.take_over_from_dead(new.process, old.process.id)
    new.share.mark_others_down(new.process)
    assert states(new)['node@alpha'] is False
    assert processes(new) == set()


def test_removed_back_end_that_is_configured_again_is_up(former, build_node):
    old, new = former
    for backend in old.share.backends:
        assert backend.stop(TIMEOUT)
    new.share.mark_others_down(new.process)
    assert (
        new.db.write(
            incarnations.mark_unserved_down,
            node='node',
            binary='manila-share',
            served={'node@beta'},
            down_time=DOWN_TIME,
        )
        == []
    )
    again = build_node(backends=['alpha', 'beta'])
    again.register()
    assert shown(again).health is None
    assert states(again)['node@alpha'] is True
