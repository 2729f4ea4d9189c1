"""Users are told about shares, in published words."""

import pytest
import sqlalchemy as sa

from manila_lite import exception
from manila_lite.db.models import services
from manila_lite.messages import Action
from manila_lite.messages import Detail
from manila_lite.rpc.contract import Failure
from manila_lite.states.share_instance import SHARE_INSTANCE
from manila_lite.work.notify import detail_of
from manila_lite.work.notify import notify_user
from tests.unit.work.builders import claim
from tests.unit.work.builders import put

MESSAGE = services.Message.__table__
DECLARED = Failure(
    SHARE_INSTANCE, 'extend_failed', Action.EXTEND, Detail.DRIVER_FAILED_EXTEND
)


def told(db, instance_id, **context):
    job = claim(
        db,
        put(
            db,
            resource='share_instance',
            resource_id=instance_id,
            context=context,
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


def test_who_asked_is_told_about_the_share(db, add_instance):
    add_instance('i')
    assert told(db, 'i', project_id='p', request_id='r') == [
        ('p', 'SHARE', 'share-of-i', 'ERROR', 'r', 60)
    ]


def test_the_owner_is_told_of_what_nobodys_project_asked(db, add_instance):
    add_instance('i')
    assert told(db, 'i')[0][0] == 'owner'


def test_what_is_gone_goes_by_the_id_it_had(db):
    assert told(db, 'gone', project_id='p')[0][2] == 'gone'


def test_when_there_is_nobody_nobody_is_told(db):
    assert told(db, 'gone') == []


@pytest.mark.parametrize(
    'error, declared, detail',
    [
        (ValueError(), DECLARED, Detail.DRIVER_FAILED_EXTEND),
        (
            ValueError(),
            Failure(SHARE_INSTANCE, 'extend_failed'),
            Detail.UNKNOWN_ERROR,
        ),
        (
            exception.NoValidHost(reason='full'),
            DECLARED,
            Detail.DRIVER_FAILED_EXTEND,
        ),
        (
            exception.NoValidHost(
                reason='full', message_detail=Detail.FILTER_CAPACITY
            ),
            DECLARED,
            Detail.FILTER_CAPACITY,
        ),
    ],
)
def test_an_error_knows_best_what_to_tell(error, declared, detail):
    assert detail_of(error, declared) is detail
