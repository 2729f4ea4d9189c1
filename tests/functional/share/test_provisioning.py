"""Outcomes of provisioning when the back end succeeds, fails or refuses."""

import pytest
import sqlalchemy as sa

from manila_lite import exception
from tests.support.service_process import CTX, SHARE

pytestmark = pytest.mark.parametrize('database_url', ['sqlite'], indirect=True)


def exports(node):
    return [
        row.path
        for row in node.rows(
            sa.text('SELECT path FROM share_instance_export_locations ORDER BY path')
        )
    ]


def failing(node, method, error):
    """Let the driver raise this once."""
    node.driver().fail_next(method, error=error)


# Creation


def with_detail(detail_data):
    error = RuntimeError('half of it is there')
    error.detail_data = detail_data
    return error


def test_created_share_has_the_reported_exports(node, share):
    assert node.outcome(share) == ('available', 3)
    assert len(exports(node)) == 2
    assert node.messages() == []


@pytest.mark.parametrize(
    'detail_data, paths',
    [
        (None, []),
        ('text', []),
        ({}, []),
        ({'export_locations': None}, []),
        ({'export_locations': ['1.2.3.4:/a']}, ['1.2.3.4:/a']),
        (
            {'export_locations': [{'path': '1.2.3.4:/b', 'is_admin_only': True}]},
            ['1.2.3.4:/b'],
        ),
        ({'export_locations': [{'paths': 'what is this'}]}, []),
        ({'export_locations': 7}, []),
    ],
    ids=str,
)
def test_failed_creation_shows_exports_reported_in_the_error(node, detail_data, paths):
    failing(node, 'create_share', with_detail(detail_data))
    share = node.create(3)
    node.run()
    assert node.outcome(share) == ('error', 3)
    assert exports(node) == paths
    assert node.messages() == [('002', '001')]
    assert node.owed() == []
    assert node.problems() == []


# Resize

BROKEN = exception.ShareBackendException(msg='broken')
FULL = exception.ShareShrinkingPossibleDataLoss(share_id='x')


@pytest.mark.parametrize(
    'verb, size, error, status, message',
    [
        ('extend', 5, BROKEN, 'extending_error', ('008', '015')),
        ('extend', 5, NotImplementedError(), 'extending_error', ('008', '015')),
        ('shrink', 1, BROKEN, 'shrinking_error', ('009', '019')),
        ('shrink', 1, FULL, 'available', ('009', '018')),
        ('shrink', 1, NotImplementedError(), 'available', ('009', '019')),
    ],
)
def test_failed_resize_notifies_the_user_and_releases_quota(
    node, share, verb, size, error, status, message
):
    failing(node, f'{verb}_share', error)
    node.ask(verb, share, size)
    node.run()
    assert node.outcome(share) == (status, 3)
    assert node.messages() == [message]
    assert node.problems() == []


@pytest.mark.parametrize('verb, size', [('extend', 5), ('shrink', 1)])
def test_resize_changes_usage(node, share, verb, size):
    node.ask(verb, share, size)
    node.run()
    assert node.outcome(share) == ('available', size)
    assert node.messages() == []
    assert node.problems() == []


# Deletion


def test_share_missing_on_the_back_end_is_deleted(node, share):
    failing(node, 'delete_share', exception.ShareResourceNotFound(share_id='x'))
    node.ask('delete', share)
    node.run()
    assert node.rows(sa.select(SHARE)) == []
    assert node.messages() == []


def test_failed_deletion_notifies_the_user_and_keeps_usage(node, share):
    failing(node, 'delete_share', BROKEN)
    node.ask('delete', share)
    node.run()
    assert node.outcome(share) == ('error_deleting', 3)
    assert node.messages() == [('007', '001')]
    assert node.problems() == []


def test_force_delete_ignores_driver_errors(node, share):
    failing(node, 'delete_share', BROKEN)
    node.ask('force_delete', share)
    node.run()
    assert node.rows(sa.select(SHARE)) == []
    assert node.messages() == []
    assert node.owed() == []


def test_force_delete_overtaken_by_reset_status_ends(node, share):
    """It fails, and the share is no longer in deleting."""

    def delete_share(*args, **kwargs):
        node.operations.reset_status(CTX, node.target(share).instance_id, 'error')
        raise BROKEN

    node.driver().delete_share = delete_share
    node.ask('force_delete', share)
    node.run()
    assert node.outcome(share) == ('error', 3)
    assert node.owed() == []
    assert node.problems() == []


# Stale work


@pytest.mark.parametrize(
    'verb, args, facts',
    [
        ('extend', [5], {}),
        ('extend', [5], {'force': True}),
        ('shrink', [1], {}),
        ('delete', [], {}),
        ('force_delete', [], {}),
    ],
)
@pytest.mark.parametrize('step', [0, 1])
def test_work_overtaken_by_reset_status_is_dropped(
    node, share, verb, args, facts, step
):
    before = len(node.driver().calls)
    node.ask(verb, share, *args, **facts)
    for _ in range(step):
        node.scheduler.runners[0].step()
    node.operations.reset_status(CTX, node.target(share).instance_id, 'error')
    node.run()
    assert node.outcome(share) == ('error', 3)
    assert node.driver().calls[before:] == []
    assert node.messages() == []
    assert node.owed() == []
    assert node.problems() == []
