"""The connection is lost while the server is busy with a commit."""

from concurrent import futures
import contextlib
import threading

import pytest
import sqlalchemy as sa

from tests.support import mariadb_server, postgresql_server
from tests.support.processes import wait_until
from tests.support.relay import before_database


class Administrator:
    """An administrator who stops the commits of a server for a while."""

    count_stopped: str
    count_waiting: str

    def __init__(self, url):
        self.engine = sa.create_engine(
            url, isolation_level='AUTOCOMMIT', poolclass=sa.pool.NullPool
        )
        self._connection = self.engine.connect()

    def close(self):
        self._connection.close()

    def ask(self, *statements):
        for statement in statements:
            result = self._connection.exec_driver_sql(statement)
        return result.scalar() if result.returns_rows else None

    def count_waits(self):
        return self.ask(self.count_waiting)

    def wait_until_stopped(self, count=1):
        wait_until(lambda: self.ask(self.count_stopped) == count, 'a commit stops')


class OfPostgreSql(Administrator):
    """Commits wait for a synchronous standby that does not exist."""

    count_stopped = "SELECT COUNT(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep'"
    count_waiting = (
        'SELECT COUNT(*) FROM pg_stat_activity '
        "WHERE wait_event_type = 'Lock' AND query LIKE 'INSERT%%'"
    )

    def stop(self):
        """Return once the server, which reads it later, obeys it."""
        self.ask(
            "ALTER SYSTEM SET synchronous_standby_names = 'missing'",
            'SELECT pg_reload_conf()',
        )
        self._has_ended = threading.Event()
        self._committing = threading.Thread(target=self._commit)
        self._committing.start()
        self.wait_until_stopped()

    def go_on(self):
        self._has_ended.set()
        self.ask(
            'ALTER SYSTEM RESET synchronous_standby_names', 'SELECT pg_reload_conf()'
        )
        self._committing.join()

    def _commit(self):
        with self.engine.connect() as connection:
            while not self._has_ended.is_set():
                connection.exec_driver_sql(
                    "SELECT pg_logical_emit_message(true, 'a', 'commit')"
                )


class OfMariaDb(Administrator):
    """Commits wait for a backup that has locked all tables."""

    count_stopped = (
        'SELECT 1 + COUNT(*) FROM information_schema.processlist '
        "WHERE info = 'COMMIT' AND state LIKE 'Waiting for%%'"
    )
    count_waiting = (
        'SELECT COUNT(*) FROM information_schema.processlist '
        "WHERE info LIKE 'INSERT%%' AND state LIKE 'Waiting for%%'"
    )

    def stop(self):
        self.ask('FLUSH TABLES WITH READ LOCK')

    def go_on(self):
        self.ask('UNLOCK TABLES')


@pytest.fixture(params=['mysql', 'postgresql'])
def administrator(request, tmp_path_factory):
    with contextlib.ExitStack() as stack:
        if request.param == 'postgresql':
            server = stack.enter_context(postgresql_server.run('--auth=trust'))
            yield stack.enter_context(contextlib.closing(OfPostgreSql(server.url)))
        else:
            server = stack.enter_context(
                mariadb_server.run(tmp_path_factory.mktemp('server'))
            )
            server.execute(
                f"GRANT RELOAD, PROCESS ON *.* TO {mariadb_server.USER}@'127.0.0.1'"
            )
            yield stack.enter_context(contextlib.closing(OfMariaDb(server.url)))


def test_one_post_creates_one_share(administrator, build_cloud):
    with (
        before_database(str(administrator.engine.url)) as (relay, url),
        futures.ThreadPoolExecutor(1) as threads,
    ):
        cloud = build_cloud(url=url)
        first = cloud.create_share()  # the next request commits once
        cloud.pause_at('commit', administrator.stop)
        created = threads.submit(cloud.api.create)
        administrator.wait_until_stopped(2)
        relay.cut()
        relay.mend()
        wait_until(
            lambda: created.done() or administrator.count_waits(),
            'the outcome is asked for',
        )
        administrator.go_on()
        share = created.result(60)
        found = cloud.api.get('/shares')['shares']
        assert {one['id'] for one in found} == {first, share['id']}
        assert len(found) == 2
        cloud.settle()
        cloud.check_invariants()
