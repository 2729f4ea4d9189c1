"""Processes of two releases on one database, during a rolling upgrade."""

import pytest
import sqlalchemy as sa

from manila_lite import exception, release
from manila_lite.context import RequestContext
from manila_lite.db import schema
from manila_lite.db.models import engine, services
from manila_lite.db.queries.services import releases
from manila_lite.db.queries.services.releases import Release
from manila_lite.rpc.share import ConnectionsRpc, ReconciliationRpc
from manila_lite.share.operations.recovery import Recovery
from tests.support.direct_transport import DirectTransport
from tests.support.service_process import TIMEOUT

WORK = engine.Work.__table__
INCARNATION = services.ServiceIncarnation.__table__
DOWN_TIME = 60.0
HERE = release.NUMBER
CTX = RequestContext(project_id='project')


def of(number):
    return Release(number, f'0.{number}', schema.HEAD)


@pytest.fixture
def pair(build_node):
    """Processes of the previous release and of this one, on one back end."""
    nodes = [
        build_node(backends=['alpha'], release=of(number))
        for number in (HERE - 1, HERE)
    ]
    for node in nodes:
        node.nodes = [node]
        node.register()
        node.run()
    return nodes


def need(node, number):
    """Make all work need a release."""
    node.db.write(
        lambda session: session.run(sa.update(WORK).values(needs_release=number))
    )


def work_rows(node):
    return node.rows(sa.select(WORK))


def stop(node):
    assert node.backend().stop(TIMEOUT)
    assert node.scheduler.stop(TIMEOUT)


def silence(node):
    """Let the last heartbeats of a process be long ago."""
    node.db.write(
        lambda session: session.run(
            sa.update(INCARNATION)
            .where(INCARNATION.c.incarnation == node.process.id)
            .values(heartbeat_at=INCARNATION.c.heartbeat_at - DOWN_TIME - 1)
        )
    )


def test_both_carry_out_what_both_know(pair):
    shares = []
    for requesting, working in (pair, pair[::-1]):
        share_id = requesting.create(1)
        working.run()
        shares.append(share_id)
        assert working.outcome(share_id) == ('available', 1)
        requesting.ask('extend', share_id, 2)
        working.run()
        assert working.outcome(share_id) == ('available', 2)
    for node, share_id in zip(pair, shares, strict=True):
        node.ask('delete', share_id)
        pair[0].run()
    assert work_rows(pair[0]) == []


def test_newer_work_waits_for_a_process_that_knows_it(pair):
    old, new = pair
    share_id = new.create(1)
    need(new, HERE)
    [before] = work_rows(new)
    for runner in old.runners:
        runner.wake(before.id)
    old.run()
    assert work_rows(new) == [before]
    assert old.status(share_id) == 'creating'
    new.run()
    assert new.status(share_id) == 'available'
    assert work_rows(new) == []


def test_newer_work_is_not_rescued_by_an_older_process(pair):
    old, new = pair
    share_id = new.create(1)
    need(new, HERE)
    [queued] = work_rows(new)
    runner = new.scheduler.runners[0]
    assert new.db.write(runner.executor.claim, queued.id, False)  # and the process dies
    new.db.write(lambda session: session.run(sa.update(WORK).values(lease_until=0.0)))
    [before] = work_rows(new)
    for one in old.runners:
        one.wake(queued.id, abandoned=True)
    old.run()
    old.backend().endpoints.reconciliation.run_pass()
    old.run()
    assert work_rows(new) == [before]
    new.run()
    assert new.status(share_id) == 'available'


def test_waiting_work_is_listed_until_a_process_knows_it(pair):
    old, new = pair
    old.create(1)
    need(old, HERE)
    [row] = work_rows(old)
    stop(new)
    [found] = old.db.read(releases.list_waiting, DOWN_TIME)
    assert (found.kind, found.queue, found.needs_release, found.number) == (
        row.kind,
        row.queue,
        HERE,
        1,
    )
    new.scheduler.register()
    assert old.db.read(releases.list_waiting, DOWN_TIME) == []


def test_recovery_says_which_release_work_waits_for(pair):
    old, new = pair
    share_id = new.create(1)
    need(new, HERE)
    [row] = work_rows(new)
    recovery = Recovery(new.db, new.process.client(ReconciliationRpc))
    [found] = recovery.in_flight(limit=10)
    assert (found.resource_id, found.next_step) == (
        new.target(share_id).instance_id,
        f'{row.kind} is run on {row.queue} by a process of release {HERE}',
    )
    assert recovery.in_flight(limit=10, candidates=True) == []


def test_new_calls_wait_for_all_processes_of_the_back_end(pair):
    old, new = pair
    transport = new.process.transport = DirectTransport()
    transport.serve('manila-share', 'node@alpha', new.backend().call_endpoints)
    share_id = new.create(1)
    new.run()
    instance = new.target(share_id).instance_id
    calls = new.process.client(ConnectionsRpc).on('node@alpha')
    with pytest.raises(exception.NewerReleaseNeeded, match='node@alpha'):
        calls.get_connection(CTX, instance_id=instance)
    stop(old)
    assert 'directory' in calls.get_connection(CTX, instance_id=instance)


@pytest.mark.parametrize('end', [stop, silence])
def test_processes_that_have_ended_do_not_count(pair, end):
    old, new = pair
    end(old)
    found = new.db.read(releases.list_live, DOWN_TIME)
    assert {row.release_number for row in found} == {HERE}
    new.db.read(releases.check, of(HERE + 1), DOWN_TIME)


def test_neighbours_may_run_together(pair):
    for number in (HERE - 1, HERE):
        pair[0].db.read(releases.check, of(number), DOWN_TIME)


@pytest.mark.parametrize('number', [HERE - 2, HERE + 1])
def test_releases_further_apart_are_refused_by_name(pair, number):
    with pytest.raises(releases.ReleasesTooFarApart) as refused:
        pair[0].db.read(releases.check, of(number), DOWN_TIME)
    other = HERE if number < HERE else HERE - 1
    for text in (
        f'This is release {number}',
        f'manila-share on node@alpha ran as release {other}',
        f'manila-scheduler on node ran as release {other}',
    ):
        assert text in str(refused.value)


def test_processes_that_record_no_release_are_of_the_first(pair):
    """Those of the first release have no such column."""
    old, new = pair
    old.db.write(
        lambda session: session.run(
            sa.update(INCARNATION)
            .where(INCARNATION.c.incarnation == old.process.id)
            .values(release_number=None, version=None, schema_version=None)
        )
    )
    found = {
        row.incarnation: row.release_number
        for row in old.db.read(releases.list_live, DOWN_TIME)
    }
    assert found[old.process.id] == release.FIRST
    service = new.value(sa.select(services.Service.id).limit(1))
    assert new.db.read(releases.numbers_by_service)[service] == [release.FIRST, HERE]


def record_schema(node, version):
    node.db.write(
        lambda session: session.run(
            sa.update(INCARNATION)
            .where(INCARNATION.c.incarnation == node.process.id)
            .values(schema_version=version)
        )
    )


@pytest.mark.parametrize('known', [None, '0026', '9997'])
def test_schema_is_not_contracted_beside_processes_that_need_it(pair, known):
    old, new = pair
    record_schema(old, known)
    record_schema(new, '9998')
    with pytest.raises(releases.ContractionTooEarly) as refused:
        old.db.read(releases.check_contraction, DOWN_TIME, oldest_served='9998')
    assert f'node@alpha ran as release {HERE - 1}' in str(refused.value)
    assert f'release {HERE} ' not in str(refused.value)
    stop(old)
    new.db.read(releases.check_contraction, DOWN_TIME, oldest_served='9998')
