"""How often a request and its work wait for the disk, on SQLite.

A response and a driver call must come after the sync of the rows they
depend on. What lies between would be repeated after a power failure.
"""

import pytest
import sqlalchemy as sa

from manila_lite.db import engines

FULL = 2  # the value of PRAGMA synchronous


@pytest.fixture
def cloud(build_cloud):
    cloud = build_cloud()
    cloud.create_share()  # the first one inserts rows of quota usage
    sa.event.listen(
        cloud.db.engine, 'commit', lambda connection: note(cloud, connection)
    )
    return cloud


def note(cloud, connection):
    if connection.info.get(engines.WRITE):
        driver = connection.connection.dbapi_connection
        (mode,) = driver.execute('PRAGMA synchronous').fetchone()
        cloud.crash_points.append('waits' if mode == FULL else 'goes on')


def happened(cloud, call, *args):
    """Return the result of the call, and the order of syncs and calls."""
    cloud.crash_points.clear()
    answer = call(*args)
    return answer, [
        point
        for point in cloud.crash_points
        if point in ('waits', 'goes on') or point.startswith('before ')
    ]


def test_create_syncs_before_the_response_and_before_the_driver_call(cloud):
    share, accepted = happened(cloud, cloud.api.create)
    assert accepted == ['waits']
    _, worked = happened(cloud, cloud.run_pending)
    assert worked == [
        'goes on',  # the scheduler's
        'waits',
        'before create_share',
        'goes on',
        'goes on',  # the record of the driver call
    ]
    assert cloud.api.show(share['id'])['status'] == 'available'


def test_delete_syncs_before_the_response_and_before_the_driver_call(cloud):
    share = cloud.create_share()
    _, accepted = happened(cloud, cloud.api.delete, share)
    assert accepted == ['waits']
    _, worked = happened(cloud, cloud.run_pending)
    assert worked == [
        'waits',
        'before get_share_status',
        'waits',  # it is recorded that the removal has begun
        'before delete_share',
        'goes on',
        'goes on',  # the records of the driver calls
    ]
