"""Reconciliation: what is done about each stuck status, and its log."""

import contextlib

import pytest
import sqlalchemy as sa

from manila_lite import exception
from tests.functional.share.recovery.rescues import (
    CREATE,
    DELETE,
    EXTEND,
    GOOD,
    REVERT,
    SHRINK,
    UNKNOWN,
    UPDATE,
    decisions,
    instance_id,
    move,
    rescue,
    says,
)
from tests.support import cloud_snapshots
from tests.support.cloud import Crash

on_sqlite = pytest.mark.parametrize('database_url', ['sqlite'], indirect=True)


# Ask

BAD = [
    {'status': 'error'},
    {'status': 'creating'},
    GOOD | {'share_proto': 'CIFS'},
    NotImplementedError,
    exception.ShareResourceNotFound(share_id='x'),
    exception.ShareBackendException(msg='broken'),
    RuntimeError('odd'),
    {},
    None,
    'available',
    {'status': None},
]


@on_sqlite
@pytest.mark.parametrize('answer', BAD + [GOOD | {'size': 4}], ids=str)
def test_creation_fails_if_the_back_end_reports_something_else(node, share, answer):
    move(node, share, 'reset_creating')
    says(node, answer)
    assert rescue(node) == 1
    assert node.outcome(share) == ('error', 3)
    assert node.messages() == [(CREATE, UNKNOWN)]
    assert rescue(node) == 0
    assert node.problems() == []


@pytest.mark.parametrize(
    'answer',
    [
        GOOD,
        {'status': 'available'},
        {'status': 'available', 'size': 3, 'export_locations': None},
    ],
    ids=str,
)
def test_creation_converges_if_the_back_end_has_the_share(node, share, answer):
    move(node, share, 'reset_creating')
    says(node, answer)
    assert rescue(node) == 1
    assert node.outcome(share) == ('available', 3)
    paths = [
        row.path
        for row in node.rows(
            sa.text('SELECT path FROM share_instance_export_locations')
        )
    ]
    assert paths == (answer.get('export_locations') or [])
    assert node.messages() == []
    assert node.problems() == []


@on_sqlite
@pytest.mark.parametrize(
    'event, action, status',
    [('extend', EXTEND, 'extending_error'), ('shrink', SHRINK, 'shrinking_error')],
)
@pytest.mark.parametrize(
    'answer',
    BAD + [{'status': 'available'}, {'status': 'available', 'size': None}],
    ids=str,
)
def test_resize_fails_if_the_back_end_cannot_report(
    node, share, event, action, status, answer
):
    move(node, share, event)
    says(node, answer)
    assert rescue(node) == 1
    assert node.outcome(share) == (status, 3)
    assert node.messages() == [(action, UNKNOWN)]
    assert node.problems() == []


@pytest.mark.parametrize('event', ['extend', 'shrink'])
@pytest.mark.parametrize('size', [2, 3, 7])
def test_lost_resize_takes_the_size_of_the_back_end(node, share, event, size):
    move(node, share, event)
    says(node, GOOD | {'size': size})
    assert rescue(node) == 1
    assert node.outcome(share) == ('available', size)
    assert node.messages() == []
    assert [problem for problem in node.problems() if 'should be' not in problem] == []


# Repeat and give up


@pytest.mark.parametrize('event', ['reset_deleting', 'force_delete'])
def test_lost_deletion_is_repeated(node, share, event):
    move(node, share, event)
    assert rescue(node) == 1
    assert node.rows(sa.text('SELECT id FROM shares')) == []
    assert node.driver().inventory() == {}
    assert node.problems() == []


@on_sqlite
def test_repeated_deletion_may_fail_visibly(node, share):
    move(node, share, 'reset_deleting')
    node.driver().fail_next('delete_share')
    assert rescue(node) == 1
    assert node.status(share) == 'error_deleting'
    assert node.messages() == [(DELETE, UNKNOWN)]
    assert node.problems() == []


@pytest.mark.parametrize('status', ['migrating', 'migrating_to', 'server_migrating'])
def test_status_that_cannot_be_finished_is_given_up(node, share, status):
    move(node, share, f'reset_{status}')
    assert rescue(node) == 1
    assert node.status(share) == 'error'
    assert node.messages() == [(UPDATE, UNKNOWN)]
    assert node.problems() == []


@pytest.mark.facts('LP2102673')
@on_sqlite
@pytest.mark.parametrize('event', ['ensure', 'snapshot'])
def test_operation_without_data_change_is_undone(node, share, event):
    move(node, share, event)
    assert rescue(node) == 1
    assert node.status(share) == 'available'
    assert node.messages() == []


@on_sqlite
@pytest.mark.parametrize(
    'event, status, action',
    [('revert', 'error', REVERT), ('unmanage', 'unmanage_error', UPDATE)],
)
def test_operation_with_unknown_outcome_is_given_up(node, share, event, status, action):
    move(node, share, event)
    assert rescue(node) == 1
    assert node.status(share) == status
    assert node.messages() == [(action, UNKNOWN)]


# The recovery log


def test_every_decision_is_logged(node, share):
    move(node, share, 'reset_creating')
    says(node, GOOD | {'size': 4})
    rescue(node)
    (written,) = decisions(node)
    assert (
        written.resource,
        written.resource_id,
        written.status_before,
        written.action,
        written.status_after,
        written.reason,
    ) == (
        'share_instance',
        instance_id(node, share),
        'creating',
        'given up',
        'error',
        'the back end reports a size of 4 GiB',
    )
    assert written.made_by.startswith('manila-share@node@alpha:')
    assert written.host == 'node@alpha#pool'
    assert 0 <= written.duration < 60


def test_rows_left_alone_are_not_logged(node, share):
    node.ask('extend', share, 5)
    rescue(node)
    assert decisions(node) == []


def test_logged_decision_contains_its_evidence(node, share):
    move(node, share, 'extend')
    rescue(node)
    (written,) = decisions(node)
    assert (written.action, written.status_after) == ('converged', 'available')
    assert written.evidence.startswith('get_share_status: (3, ')


def test_repeated_deletion_is_logged_as_such(node, share):
    move(node, share, 'reset_deleting')
    rescue(node)
    (written,) = decisions(node)
    assert (written.action, written.evidence) == (
        'repeated',
        'provisioning.delete_share_instance',
    )


def test_a_share_that_is_set_to_available_has_the_size_of_its_storage(build_cloud):
    cloud = build_cloud()
    share = cloud.create_share(size=1)

    def reset(status):
        cloud.api.act(share, 'reset_status', {'status': status})

    cloud.pause_at('after extend_share', lambda: reset('error'))
    cloud.api.act(share, 'extend', {'new_size': 3})
    cloud.settle()
    assert cloud.api.show(share)['size'] == 1
    reset('available')
    cloud.settle()
    assert cloud.api.show(share)['size'] == 3
    assert cloud.usage('gigabytes') == (3, 0)
    cloud.check_invariants()


# The work itself, whose process was killed


def crash():
    raise Crash


def kill_at(cloud, point):
    """Let work kill its process at a point, and another take it over."""
    cloud.pause_at(point, crash)
    with pytest.raises(Crash):
        cloud.settle()
    cloud.restart()
    cloud.clock.advance(60)


@on_sqlite
@pytest.mark.parametrize('is_clone', [False, True])
def test_creation_is_repeated_if_the_back_end_has_nothing(
    build_cloud, database_url, is_clone
):
    cloud = build_cloud(backends=['alpha'])
    body, method = {}, 'create_share'
    if is_clone:
        cloud_snapshots.enable_snapshot_features(cloud)
        source = cloud.create_share()
        body['snapshot_id'] = cloud_snapshots.create_available(cloud, source)
        method = 'create_share_from_snapshot'
    share = cloud.api.create(**body)['id']
    kill_at(cloud, f'before {method}')
    cloud.settle()
    assert cloud.api.show(share)['status'] == 'available'
    assert cloud.api.get('/messages')['messages'] == []
    cloud.check_invariants()


@on_sqlite
def test_creation_that_kills_every_process_is_given_up(build_cloud, database_url):
    cloud = build_cloud(backends=['alpha'])
    share = cloud.api.create()['id']
    killed = 0
    while cloud.api.show(share)['status'] == 'creating':
        cloud.pause_at('before create_share', crash)
        with contextlib.suppress(Crash):
            cloud.settle()
        killed += not cloud.pending_pauses
        cloud.restart()
        cloud.clock.advance(60)
        assert killed < 10
    cloud.clear_pauses()
    assert cloud.api.show(share)['status'] == 'error'
    assert killed > 1
    assert len(cloud.api.get('/messages')['messages']) == 1
    cloud.check_invariants()


@on_sqlite
def test_creation_is_not_repeated_if_the_back_end_cannot_say_what_it_has(
    build_cloud, database_url
):
    cloud = build_cloud(backends=['alpha'])
    share = cloud.api.create()['id']
    kill_at(cloud, 'before create_share')
    cloud.driver().fail_next('get_share_status')
    cloud.settle()
    assert cloud.api.show(share)['status'] == 'error'


@on_sqlite
def test_snapshot_that_was_not_taken_is_not_taken_later(build_cloud, database_url):
    """It would not have the content of when it was requested."""
    cloud = build_cloud(backends=['alpha'])
    cloud_snapshots.enable_snapshot_features(cloud)
    snapshot = cloud_snapshots.create(cloud, cloud.create_share())
    kill_at(cloud, 'before create_snapshot')
    cloud.settle()
    assert cloud_snapshots.show(cloud, snapshot)['status'] == 'error'
