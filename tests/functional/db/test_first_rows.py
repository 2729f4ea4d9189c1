"""Concurrent first starts of one service."""

from concurrent import futures

from manila_lite.db.queries.services import incarnations, pools, services
from manila_lite.db.session import Database
from tests.support import sampling

pytestmark = sampling.dialects


COUNT = 8


def start(db, number):
    db.write(
        incarnations.register,
        host='node@alpha',
        binary='manila-share',
        topic='manila-share',
        zone='nova',
        incarnation=str(number),
        down_time=60.0,
        enabled=True,
    )
    db.write(
        pools.save_report,
        'node@alpha',
        [
            pools.PoolReport(
                host='node@alpha#pool', capabilities={}, total_gb=10.0, free_gb=10.0
            )
        ],
        {},
    )


def test_concurrent_registrations_of_one_service_succeed(database_url):
    dbs = [Database(database_url) for _ in range(COUNT)]
    try:
        with futures.ThreadPoolExecutor(COUNT) as threads:
            for done in [
                threads.submit(start, db, number) for number, db in enumerate(dbs)
            ]:
                done.result()
        assert len(dbs[0].read(services.list_all)) == 1
        assert len(dbs[0].read(services.list_zones)) == 1
        assert len(dbs[0].read(pools.list_all)) == 1
    finally:
        for db in dbs:
            db.dispose()
