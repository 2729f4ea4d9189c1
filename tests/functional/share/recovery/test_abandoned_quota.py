"""Reservations of abandoned work."""

import pytest
import sqlalchemy as sa

from manila_lite import exception
from tests.functional.share.recovery.rescues import (
    EXTEND,
    GOOD,
    UNKNOWN,
    instance_id,
    rescue,
    says,
)
from tests.support.service_process import CTX, WORK


@pytest.fixture
def abandoned(node, share):
    """An extension by 4 GiB whose worker died before the driver call."""
    node.ask('extend', share, 7)
    node.scheduler.runners[0].step()
    node.db.write(
        lambda session: session.run(
            sa.update(WORK).values(
                state='running', attempt=1, fence=1, owner='dead', lease_until=0.0
            )
        )
    )
    return share


def test_extension_that_did_not_happen_releases_quota(node, abandoned):
    node.run()
    assert node.outcome(abandoned) == ('available', 3)
    assert node.messages() == [(EXTEND, UNKNOWN)]  # it was accepted
    assert node.problems() == []


def test_extension_that_happened_commits_quota(node, abandoned):
    says(node, GOOD | {'size': 7})
    node.run()
    assert node.outcome(abandoned) == ('available', 7)
    assert node.messages() == []
    assert [
        problem for problem in node.problems() if 'should be 7' not in problem
    ] == []


@pytest.mark.parametrize(
    'error',
    [
        exception.ShareBackendException(msg='broken'),
        RuntimeError('odd'),
        NotImplementedError,
    ],
)
def test_extension_with_unknown_outcome_releases_quota(node, abandoned, error):
    says(node, error)
    node.run()
    assert node.status(abandoned) == 'extending_error'
    assert len(node.messages()) == 1
    assert node.problems() == []


@pytest.mark.parametrize(
    'status',
    ['creating', 'deleting', 'migrating', 'error', 'available', 'error_deleting'],
)
def test_reset_status_of_abandoned_work_releases_its_reservations(
    node, abandoned, status
):
    node.operations.reset_status(CTX, instance_id(node, abandoned), status)
    node.run()
    rescue(node)
    assert node.problems() == []


@pytest.mark.parametrize('verb', ['force_delete', 'reset_and_delete'])
def test_deletion_follows_abandoned_work(node, abandoned, verb):
    if verb == 'force_delete':
        node.ask('force_delete', abandoned)
    else:
        node.operations.reset_status(CTX, instance_id(node, abandoned), 'error')
        node.ask('delete', abandoned)
    node.run()
    assert node.rows(sa.text('SELECT id FROM shares')) == []
    assert [call.method for call in node.driver().calls].count('delete_share') == 1
    assert node.problems() == []


def test_force_delete_stays_forced_after_a_rescue(node, abandoned):
    node.ask('force_delete', abandoned)
    node.driver().fail_next('delete_share', None)
    node.run()
    assert node.rows(sa.text('SELECT id FROM shares')) == []
