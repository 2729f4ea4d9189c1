"""What the log says about operations, and how loud."""

import logging

import pytest

from manila_lite import exception
from manila_lite.work import operation_log
from manila_lite.work.table import Accepted

USERS = Accepted(
    kind='provisioning.extend_share_instance',
    resource='share_instance',
    resource_id='instance-1',
    share_id='share-1',
    request_id='req-1',
    project_id='red',
    user_id='alice',
)
IDS = '(share share-1, share_instance instance-1, project red, request req-1)'


@pytest.fixture(autouse=True)
def everything_is_logged(caplog):
    caplog.set_level(logging.DEBUG, operation_log.LOG.name)


def test_operation_of_a_user_is_logged_at_info(caplog):
    operation_log.accepted(USERS)
    operation_log.finished(USERS)
    assert [record.getMessage() for record in caplog.records] == [
        f'Accepted {USERS.kind} {IDS}',
        f'Finished {USERS.kind} {IDS}',
    ]
    assert {record.levelname for record in caplog.records} == {'INFO'}


def test_what_the_service_does_by_itself_is_logged_at_debug(caplog):
    own = USERS._replace(user_id=None, project_id=None)
    operation_log.accepted(own)
    operation_log.finished(own)
    assert [record.levelname for record in caplog.records] == ['DEBUG'] * 2


@pytest.mark.parametrize(
    'error',
    [
        exception.NoValidHost(reason='none\nfits'),
        exception.ShareRefused(reason='too large'),
        exception.StorageUnavailable(reason='not mounted'),
        exception.InvalidInput(reason='nonsense'),
    ],
)
def test_refusal_is_one_line_without_traceback(caplog, error):
    operation_log.failed(USERS, error)
    (record,) = caplog.records
    assert record.levelname == 'WARNING'
    assert record.exc_info is None
    assert '\n' not in record.getMessage()
    assert record.getMessage().startswith(f'Refused {USERS.kind} {IDS}: ')


def test_unexpected_failure_has_its_traceback(caplog):
    operation_log.failed(USERS, RuntimeError('broken'))
    (record,) = caplog.records
    assert record.levelname == 'ERROR'
    assert record.exc_info
    assert record.getMessage() == f'Failed {USERS.kind} {IDS}: broken'
