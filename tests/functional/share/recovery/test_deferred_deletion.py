"""Deferred deletion is retried and repeated."""

import concurrent.futures

import pytest
import sqlalchemy as sa

from manila_lite import exception
from manila_lite.states.share_instance import InstanceStatus
from tests.functional.share.recovery.rescues import instance_id, rescue
from tests.support.service_process import CTX, WORK

on_sqlite = pytest.mark.parametrize('database_url', ['sqlite'], indirect=True)


@pytest.fixture
def deferring(build_node):
    node = build_node(backends=['alpha'], default='is_deferred_deletion_enabled = true')
    node.register()
    node.run()
    return node


def used(node):
    return node.db.read(
        lambda session: dict(
            session.rows(
                sa.text(
                    'SELECT resource, in_use FROM quota_usages '
                    "WHERE scope = 'project' "
                    "AND resource IN ('shares', 'gigabytes')"
                )
            )
        )
    )


def test_deferred_deletion_frees_quota_at_once(deferring):
    share = deferring.create(3)
    deferring.run()
    deferring.ask('delete', share)
    assert deferring.status(share) == InstanceStatus.DEFERRED_DELETING
    assert used(deferring) == {'shares': 0, 'gigabytes': 0}
    deferring.run()
    assert deferring.rows(sa.text('SELECT id FROM shares')) == []
    assert used(deferring) == {'shares': 0, 'gigabytes': 0}
    assert deferring.problems() == []


def test_deferred_deletion_is_retried_until_it_succeeds(build_node, deferring):
    node = deferring
    second = build_node(backends=['alpha'])
    shares = [node.create(3) for _ in range(2)]
    node.run()
    node.driver().fail_next('delete_share', None)
    for share in shares:
        node.ask('delete', share)
    node.run()
    assert {node.status(share) for share in shares} == {
        InstanceStatus.ERROR_DEFERRED_DELETING
    }
    assert node.problems() == []
    retries = [one.backend().deferred_deletion.retry for one in (node, second)]
    assert [retry() for retry in retries] == [2, 0]
    node.run()
    assert {node.status(share) for share in shares} == {
        InstanceStatus.ERROR_DEFERRED_DELETING
    }
    node.driver().faults.clear()
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda retry: retry(), retries))
    node.run()
    assert node.rows(sa.text('SELECT id FROM shares')) == []
    assert used(node) == {'shares': 0, 'gigabytes': 0}
    assert node.problems() == []


def test_failed_deletions_are_retried_in_batches(deferring):
    node = deferring
    shares = [node.create() for _ in range(5)]
    node.run()
    node.driver().fail_next('delete_share', None)
    for share in shares:
        node.ask('delete', share)
    node.run()
    steps = []
    node.db.on_step = steps.append
    backend = node.backend()
    backend.deferred_deletion.batch = 2
    assert backend.deferred_deletion.retry() == 5
    assert steps.count('committed') == 3
    del steps[:]
    assert backend.deferred_deletion.retry() == 0
    assert 'commit' not in steps


@on_sqlite
@pytest.mark.facts('optimize-deferred-deletion')
def test_back_ends_retry_their_own_deletions_only(build_node):
    node = build_node(
        backends=['al_ha', 'alpha'], default='is_deferred_deletion_enabled = true'
    )
    node.register()
    shares = [node.create(1) for _ in range(6)]
    node.run()
    for name in ('al_ha', 'alpha'):
        node.driver(name).fail_next('delete_share', None)
    for share in shares:
        node.ask('delete', share)
    node.run()
    own = [share for share in shares if '@al_ha#' in node.target(share).host]
    assert 0 < len(own) < len(shares)
    for name in ('al_ha', 'alpha'):
        node.driver(name).faults.clear()
    assert node.backend('al_ha').deferred_deletion.retry() == len(own)
    node.run()
    left = node.rows(sa.text('SELECT host, status FROM share_instances'))
    assert {row.host for row in left} == {'node@alpha#pool'}
    assert {row.status for row in left} == {InstanceStatus.ERROR_DEFERRED_DELETING}
    assert node.problems() == []


def test_deferred_deletion_without_work_is_repeated(deferring):
    node = deferring
    share = node.create(3)
    node.run()
    node.ask('delete', share)
    node.db.write(lambda session: session.run(sa.delete(WORK)))
    assert rescue(node) == 1
    assert node.rows(sa.text('SELECT id FROM shares')) == []
    assert used(node) == {'shares': 0, 'gigabytes': 0}
    assert node.problems() == []


@on_sqlite
@pytest.mark.parametrize(
    'verb, args',
    [
        ('delete', ()),
        ('force_delete', ()),
        ('extend', (9,)),
        ('shrink', (1,)),
        ('soft_delete', ()),
    ],
)
def test_deferred_deletion_refuses_further_requests(deferring, verb, args):
    share = deferring.create(3)
    deferring.run()
    deferring.driver().fail_next('delete_share')
    deferring.ask('delete', share)
    deferring.run()
    with pytest.raises((exception.Conflict, exception.Forbidden)):
        deferring.ask(verb, share, *args)
    with pytest.raises(exception.Conflict):
        deferring.operations.reset_status(
            CTX, instance_id(deferring, share), 'available'
        )
    assert deferring.problems() == []
