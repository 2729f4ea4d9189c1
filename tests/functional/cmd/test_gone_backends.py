"""Work, services and shares of back ends that are gone for good."""

import contextlib

import pytest
import sqlalchemy as sa

from manila_lite import exception
from manila_lite.cmd import gone_backends
from manila_lite.cmd.build.process import Process
from manila_lite.cmd.gone_backends import GoneBackends
from manila_lite.cmd.manage import main
from manila_lite.db.models import engine
from manila_lite.db.queries.services import incarnations, services
from manila_lite.db.session import Database
from manila_lite.quota import recount
from manila_lite.work import cancel, table
from tests.support import cloud_snapshots, command_line
from tests.support.service_process import CTX, MESSAGE, POOL, WORK
from tests.support.unserved import lose

JOURNAL = engine.Transition.__table__

USER = 'root (manila-lite-manage)'
ALPHA = 'node@alpha'


@pytest.fixture
def node(build_node):
    node = build_node(backends=['alpha'])
    node.register()
    node.run()
    return node


@pytest.fixture
def gone(node):
    return GoneBackends(Process(node.conf, node.db), USER)


def work_of(node, resource_id=None):
    """Return the ids of unfinished work, oldest first."""
    return [
        row.id
        for row in node.rows(
            sa.select(WORK.c.id, WORK.c.resource_id).order_by(WORK.c.created_at)
        )
        if resource_id in (None, row.resource_id)
    ]


def create(node, size=2):
    share = node.create(size)
    node.run()
    assert node.status(share) == 'available'
    return share


def allow(node, share):
    """Add an access rule; return the id of its work."""
    before = set(work_of(node))
    node.access.allow(
        CTX,
        node.target(share),
        access_type='ip',
        access_to='10.0.0.1',
        target='10.0.0.1',
    )
    (work_id,) = set(work_of(node)) - before
    return work_id


def allow_and_extend(node, share):
    """Ask for two works that exclude each other; return their ids."""
    sync = allow(node, share)
    node.ask('extend', share, 5, force=True)
    (extend,) = set(work_of(node)) - {sync}
    return sync, extend


def reserved(node):
    return node.value(sa.text('SELECT COALESCE(SUM(reserved), 0) FROM quota_usages'))


# work cancel


def test_cancelled_work_fails_as_declared(node, gone):
    share = create(node)
    node.ask('extend', share, 5, force=True)
    (work_id,) = work_of(node)
    assert reserved(node) > 0
    gone.cancel_work(work_id)
    assert work_of(node) == []
    assert node.status(share) == 'extending_error'
    assert reserved(node) == 0
    assert [action for action, _ in node.messages()] == ['008']


def test_journal_and_log_show_who_cancelled(node, gone):
    share = create(node)
    node.ask('extend', share, 5, force=True)
    gone.cancel_work(*work_of(node))
    made_by = node.rows(
        sa.select(JOURNAL.c.made_by).where(JOURNAL.c.event == 'extend_failed')
    )
    assert [row.made_by for row in made_by] == [gone.ctx.actor]
    log = node.rows(sa.text('SELECT reason FROM recovery_log'))
    assert [row.reason for row in log] == [f'The work was cancelled by {USER}.']


def test_share_that_waits_for_a_pool_can_be_cancelled(node, gone):
    share = node.create(2)
    gone.cancel_work(*work_of(node))
    assert node.status(share) == 'error'
    assert reserved(node) == 0
    assert node.problems() == []


def test_share_on_a_gone_back_end_is_not_created(node, gone):
    share = node.create(2)
    node.scheduler.runners[0].step()
    gone.cancel_work(*work_of(node))
    assert node.status(share) == 'error'
    assert node.messages()
    node.run()
    assert node.driver().inventory() == {}


def test_work_that_is_retried_later_can_be_cancelled(node, gone):
    share = create(node)
    node.ask('shrink', share, 1)
    (work_id,) = work_of(node)
    node.db.write(
        lambda session: session.run(
            sa.update(WORK).values(next_try_at=WORK.c.next_try_at + 3600)
        )
    )
    gone.cancel_work(work_id)
    assert work_of(node) == []


@pytest.mark.parametrize('lease, refused', [(60.0, True), (-1.0, False)])
def test_work_of_a_living_process_cannot_be_cancelled(node, gone, lease, refused):
    share = create(node)
    node.ask('extend', share, 5, force=True)
    (work_id,) = work_of(node)
    node.db.write(table.claim, work_id, [ALPHA], 'another', lease)
    with (
        pytest.raises(cancel.WorkIsRunning, match='another')
        if refused
        else contextlib.nullcontext()
    ):
        gone.cancel_work(work_id)
    assert work_of(node) == ([work_id] if refused else [])
    assert node.status(share) == ('extending' if refused else 'extending_error')


def test_process_that_was_cancelled_meanwhile_cannot_finish(node, gone):
    """It was only paused."""
    share = create(node)
    node.ask('extend', share, 5, force=True)
    (work_id,) = work_of(node)
    held = node.db.write(table.claim, work_id, [ALPHA], 'another', -1.0)
    gone.cancel_work(work_id)
    with pytest.raises(exception.ClaimLost):
        node.db.write(table.finish, held)
    assert node.status(share) == 'extending_error'


def test_work_on_a_resource_in_use_cannot_be_cancelled(node, gone):
    share = create(node)
    sync, extend = allow_and_extend(node, share)
    node.db.write(table.claim, sync, [ALPHA], 'another', 60.0)
    with pytest.raises(cancel.WorkIsBlocked, match=extend):
        gone.cancel_work(extend)
    assert work_of(node) == [sync, extend]


def test_missing_work_is_reported(gone):
    with pytest.raises(cancel.WorkNotFound):
        gone.cancel_work('00000000-0000-0000-0000-000000000000')


def test_cancelled_access_rules_are_in_error_without_further_work(node, gone):
    share = create(node)
    allow(node, share)
    gone.cancel_work(*work_of(node))
    states = node.rows(sa.text('SELECT state FROM share_instance_access_map'))
    assert [row.state for row in states] == ['error']
    assert work_of(node) == []


def test_denial_that_is_cancelled_is_shown_as_failed(node, gone):
    """The client may still have access."""
    share = create(node)
    rule = node.access.allow(
        CTX,
        node.target(share),
        access_type='ip',
        access_to='10.0.0.1',
        target='10.0.0.1',
    )
    node.run()
    node.access.deny(CTX, node.target(share), rule.id)
    gone.cancel_work(*work_of(node))
    states = node.rows(sa.text('SELECT state FROM share_instance_access_map'))
    assert [row.state for row in states] == ['error']
    assert [action for action, _ in node.messages()] == ['003']


def test_delete_that_is_cancelled_fails(node, gone):
    share = create(node)
    node.operations.delete(CTX, node.target(share))
    gone.cancel_work(*work_of(node))
    assert node.status(share) == 'error_deleting'
    assert work_of(node) == []


def test_force_delete_that_is_cancelled_removes_the_rows(node, gone):
    share = create(node)
    node.operations.force_delete(CTX, node.target(share))
    gone.cancel_work(*work_of(node))
    with pytest.raises(exception.NotFound):
        node.target(share)
    assert node.value(sa.text('SELECT COALESCE(SUM(in_use), 0) FROM quota_usages')) == 0


# service remove


def test_service_that_is_up_is_not_removed(node, gone):
    with pytest.raises(gone_backends.ServiceIsUp):
        gone.remove_service(ALPHA, 'manila-share', cancel_work=True)
    assert len(node.db.read(services.list_all)) == 2


def end_process(node, incarnation):
    """Record that a process of the service has ended in order."""
    node.db.write(
        incarnations.deregister,
        host=ALPHA,
        binary='manila-share',
        incarnation=incarnation,
        down_time=node.conf.service_down_time,
    )


@pytest.mark.facts('LP1881112', 'LP1990839.2')
def test_stopped_service_is_removed_without_a_wait(node, gone):
    end_process(node, node.process.id)
    gone.remove_service(ALPHA, 'manila-share')
    assert [row.host for row in node.db.read(services.list_all)] == ['node']


def test_service_with_another_process_is_not_removed(node, gone):
    node.db.write(
        incarnations.register,
        host=ALPHA,
        binary='manila-share',
        incarnation='another',
        topic='manila-share',
        zone='nova',
        enabled=True,
        down_time=node.conf.service_down_time,
    )
    end_process(node, node.process.id)
    with pytest.raises(gone_backends.ServiceIsUp):
        gone.remove_service(ALPHA, 'manila-share')
    end_process(node, 'another')
    gone.remove_service(ALPHA, 'manila-share')


def test_service_with_work_is_removed_only_with_its_work(node, gone):
    share = create(node)
    node.ask('extend', share, 5, force=True)
    lose(node.db, ALPHA)
    with pytest.raises(gone_backends.ServiceHasWork):
        gone.remove_service(ALPHA, 'manila-share')
    assert gone.remove_service(ALPHA, 'manila-share', cancel_work=True) == 1
    assert node.status(share) == 'extending_error'
    assert work_of(node) == []
    assert [row.host for row in node.db.read(services.list_all)] == ['node']
    assert node.rows(sa.select(POOL)) == []


@pytest.mark.parametrize('begun', [0, 1])
def test_abandoned_work_ends_before_what_it_blocks(node, gone, begun):
    share = create(node)
    works = allow_and_extend(node, share)
    node.db.write(table.claim, works[begun], [ALPHA], 'dead', -1.0)
    lose(node.db, ALPHA)
    assert gone.remove_service(ALPHA, 'manila-share', cancel_work=True) == 2
    assert work_of(node) == []
    assert node.status(share) == 'extending_error'


def test_work_that_ends_meanwhile_does_not_keep_a_service(node, gone):
    share = create(node)
    works = set(allow_and_extend(node, share))
    lose(node.db, ALPHA)

    def end_the_other(name):
        if name == 'committed':
            node.db.on_step = lambda name: None
            gone.cancel_work(*works & set(work_of(node)))

    node.db.on_step = end_the_other
    assert gone.remove_service(ALPHA, 'manila-share', cancel_work=True) == 1
    assert work_of(node) == []


def test_removed_service_may_come_back(node, gone):
    lose(node.db, ALPHA)
    gone.remove_service(ALPHA, 'manila-share')
    node.backend().beat()
    node.backend().report()
    assert {row.host for row in node.db.read(services.list_all)} == {'node', ALPHA}
    share = create(node)
    assert node.target(share).host == f'{ALPHA}#pool'


def test_missing_service_is_reported(gone):
    with pytest.raises(exception.ServiceNotFound):
        gone.remove_service('elsewhere@alpha', 'manila-share')


# share delete-without-driver


def test_share_is_deleted_without_its_driver(node, gone):
    share = create(node)
    node.ask('extend', share, 5, force=True)
    lose(node.db, ALPHA)
    calls = len(node.driver().calls)
    gone.delete_share(share)
    with pytest.raises(exception.NotFound):
        node.target(share)
    assert work_of(node) == []
    assert len(node.driver().calls) == calls
    assert reserved(node) == 0
    told = node.rows(
        sa.select(MESSAGE.c.resource_id, MESSAGE.c.message_level).where(
            MESSAGE.c.action_id == '007'
        )
    )
    assert [tuple(row) for row in told] == [(share, 'INFO')]
    events = node.rows(sa.select(JOURNAL.c.made_by).where(JOURNAL.c.event == 'deleted'))
    assert [row.made_by for row in events] == [gone.ctx.actor]


def test_share_of_a_removed_service_is_deleted_without_its_driver(node, gone):
    share = create(node)
    lose(node.db, ALPHA)
    gone.remove_service(ALPHA, 'manila-share')
    gone.delete_share(share)
    with pytest.raises(exception.NotFound):
        node.target(share)


def test_share_with_unfinished_rules_is_deleted_without_its_driver(node, gone):
    share = create(node)
    allow(node, share)
    lose(node.db, ALPHA)
    gone.delete_share(share)
    assert work_of(node) == []
    assert [action for action, _ in node.messages()] == ['007']


@pytest.mark.parametrize('begun', [0, 1])
def test_share_whose_work_was_begun_is_deleted_without_its_driver(node, gone, begun):
    share = create(node)
    works = allow_and_extend(node, share)
    node.db.write(table.claim, works[begun], [ALPHA], 'dead', -1.0)
    lose(node.db, ALPHA)
    gone.delete_share(share)
    assert work_of(node) == []
    with pytest.raises(exception.NotFound):
        node.target(share)


def test_share_of_a_living_service_is_left_to_its_driver(node, gone):
    share = create(node)
    with pytest.raises(gone_backends.ServiceIsUp, match='Force-delete'):
        gone.delete_share(share)
    assert node.status(share) == 'available'


@pytest.fixture
def deferring(build_cloud):
    cloud = build_cloud('is_deferred_deletion_enabled = true', backends=['alpha'])
    cloud_snapshots.enable_snapshot_features(cloud)
    return cloud


def deletion_fails(cloud, path):
    """Delete something that its back end fails to delete, and defers."""
    for method in ('delete_share', 'delete_snapshot'):
        cloud.driver().faults.fail_next(method, None)
    cloud.api.request('DELETE', path, expect=202)
    cloud.settle()


def delete_without_driver(cloud, share):
    """Delete a share of a back end that is lost; the driver is not called."""
    calls = len(cloud.driver().calls)
    lose(cloud.db, ALPHA)
    GoneBackends(Process(cloud.conf, cloud.db), USER).delete_share(share)
    cloud.api.get(f'/shares/{share}', expect=404)
    assert cloud.db.read(lambda session: session.rows(sa.select(WORK.c.kind))) == []
    for resource in ('shares', 'gigabytes', 'snapshots', 'snapshot_gigabytes'):
        assert cloud.usage(resource) == (0, 0)
    assert cloud.db.read(recount.differences) == []
    assert len(cloud.driver().calls) == calls


@pytest.mark.parametrize('is_retried', [True, False])
def test_share_in_deferred_deletion_is_deleted_without_its_driver(
    deferring, is_retried
):
    share = deferring.create_share(size=3)
    deletion_fails(deferring, f'/shares/{share}')
    if is_retried:
        assert deferring.share.backends[0].deferred_deletion.retry() == 1
    written = len(deferring.api.get('/messages')['messages'])
    delete_without_driver(deferring, share)
    # Its project has been told before that it is gone.
    told = deferring.api.get('/messages')['messages']
    assert [one for one in told if one['message_level'] == 'INFO'] == []
    assert len(told) == written + is_retried


@pytest.mark.parametrize('is_deleted', [True, False])
@pytest.mark.parametrize('is_retried', [True, False])
def test_snapshots_in_deferred_deletion_go_with_their_share(
    deferring, is_deleted, is_retried
):
    share = deferring.create_share(size=3)
    snapshot = cloud_snapshots.create_available(deferring, share)
    deletion_fails(deferring, f'/snapshots/{snapshot}')
    if is_deleted:
        deletion_fails(deferring, f'/shares/{share}')
    if is_retried:
        assert deferring.share.backends[0].deferred_deletion.retry() > 0
    delete_without_driver(deferring, share)
    cloud_snapshots.check_gone(deferring, snapshot)


# The commands


@pytest.fixture
def state(tmp_path):
    command_line.run(main, ('db', 'sync', '--state-dir', str(tmp_path)), '')
    return str(tmp_path)


def run(state, *args):
    return command_line.run(main, (*args, '--state-dir', state), '')


def test_commands_are_there(state):
    db = Database(f'sqlite:///{state}/manila_lite.sqlite')
    db.write(
        incarnations.register,
        host='gone@b',
        binary='manila-share',
        topic='t',
        zone='nova',
        incarnation='i',
        enabled=True,
        down_time=60.0,
    )
    work_id = db.write(
        table.submit,
        {},
        kind='ensuring.ensure_shares',
        topic='manila-share',
        queue='gone@b',
        resource='service',
        resource_id='1',
        args={'service_id': 1},
    )
    ended = run(state, 'service', 'remove', 'gone@b')
    assert (ended.code, 'alive' in ended.err) == (1, True)
    lose(db, 'gone@b')
    ended = run(state, 'service', 'remove', 'gone@b')
    assert (ended.code, '--cancel-work' in ended.err) == (1, True)
    ended = run(state, 'work', 'cancel', work_id)
    assert (ended.code, ended.out) == (0, f'Cancelled work {work_id}.\n')
    ended = run(state, 'work', 'cancel', work_id)
    assert ended.code == 1
    ended = run(state, 'service', 'remove', 'gone@b', '--cancel-work')
    assert (ended.code, ended.out) == (
        0,
        'Removed manila-share on gone@b; cancelled work: 0.\n',
    )
    ended = run(state, 'share', 'delete-without-driver', 'missing')
    assert (ended.code, 'missing' in ended.err) == (1, True)
    db.dispose()
