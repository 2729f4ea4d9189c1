"""How often a request and its work wait for the disk, on SQLite.

An answer and a call of the driver must be behind what they rest on. What
lies between the two would be done again after a power cut.
"""

import pytest
import sqlalchemy as sa

from manila_lite.db import engines
from tests.support.cloud import Cloud

FULL = 2  # as PRAGMA synchronous says it


@pytest.fixture
def cloud(tmp_path):
    cloud = Cloud(tmp_path)
    cloud.create_share()  # the first one makes rows of quota usage
    sa.event.listen(
        cloud.db.engine, 'commit', lambda connection: note(cloud, connection)
    )
    yield cloud
    cloud.db.dispose()


def note(cloud, connection):
    if connection.get_execution_options().get(engines.WRITE):
        driver = connection.connection.dbapi_connection
        (mode,) = driver.execute('PRAGMA synchronous').fetchone()
        cloud.crash_points.append('waits' if mode == FULL else 'goes on')


def happened(cloud, call, *args):
    """What the call answers, and in which order disk and driver came."""
    cloud.crash_points.clear()
    answer = call(*args)
    return answer, [
        point
        for point in cloud.crash_points
        if point in ('waits', 'goes on') or point.startswith('before ')
    ]


def step_all(cloud):
    while cloud.step():
        pass


def test_create_waits_before_the_answer_and_before_the_driver(cloud):
    share, accepted = happened(cloud, cloud.api.create)
    assert accepted == ['waits']
    _, worked = happened(cloud, step_all, cloud)
    assert worked == [
        'goes on',
        'goes on',  # the scheduler's
        'waits',
        'before create_share',
        'goes on',
    ]
    assert cloud.api.show(share['id'])['status'] == 'available'


def test_delete_waits_before_the_answer_and_before_the_driver(cloud):
    share = cloud.create_share()
    _, accepted = happened(cloud, cloud.api.delete, share)
    assert accepted == ['waits']
    _, worked = happened(cloud, step_all, cloud)
    assert worked == ['waits', 'before delete_share', 'goes on']
