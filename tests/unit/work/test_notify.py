"""User messages about work name the share, by published codes."""

import pytest
import sqlalchemy as sa

from manila_lite import exception
from manila_lite.db.models import services
from manila_lite.messages import Action, Detail
from manila_lite.rpc.contract import Failure
from manila_lite.states.share_instance import SHARE_INSTANCE
from manila_lite.work.notify import detail_of, notify_user
from tests.unit.work.builders import claim, submit_work

MESSAGE = services.Message.__table__
DECLARED = Failure(
    SHARE_INSTANCE, 'extend_failed', Action.EXTEND, Detail.DRIVER_FAILED_EXTEND
)


def notified(db, instance_id, **context):
    job = claim(
        db,
        submit_work(
            db, resource='share_instance', resource_id=instance_id, context=context
        ),
    )
    db.write(notify_user, job, Action.EXTEND, Detail.FILTER_CAPACITY, 60)
    return db.read(
        lambda session: [
            (
                row.project_id,
                row.resource_type,
                row.resource_id,
                row.message_level,
                row.request_id,
                (row.expires_at - row.created_at).total_seconds(),
            )
            for row in session.rows(sa.select(MESSAGE))
        ]
    )


def test_the_requesting_project_is_notified_about_the_share(db, add_instance):
    add_instance('i')
    assert notified(db, 'i', project_id='p', request_id='r') == [
        ('p', 'SHARE', 'share-of-i', 'ERROR', 'r', 60)
    ]


def test_the_owner_is_notified_when_the_request_has_no_project(db, add_instance):
    add_instance('i')
    assert notified(db, 'i')[0][0] == 'owner'


def test_a_deleted_instance_is_named_by_its_own_id(db):
    assert notified(db, 'gone', project_id='p')[0][2] == 'gone'


def test_without_any_project_no_message_is_written(db):
    assert notified(db, 'gone') == []


@pytest.mark.parametrize(
    'error, declared, detail',
    [
        (ValueError(), DECLARED, Detail.DRIVER_FAILED_EXTEND),
        (ValueError(), Failure(SHARE_INSTANCE, 'extend_failed'), Detail.UNKNOWN_ERROR),
        (exception.NoValidHost(reason='full'), DECLARED, Detail.DRIVER_FAILED_EXTEND),
        (
            exception.NoValidHost(reason='full', message_detail=Detail.FILTER_CAPACITY),
            DECLARED,
            Detail.FILTER_CAPACITY,
        ),
    ],
)
def test_the_detail_of_the_error_comes_before_the_declared_one(error, declared, detail):
    assert detail_of(error, declared) is detail
