"""A share replicated to `beta`, whose driver a test can stub."""

from collections.abc import Callable, Iterator
import contextlib
import pathlib
import shutil

import sqlalchemy as sa

from manila_lite.db.models import engine, services
from manila_lite.db.transitions import fire
from manila_lite.states.share_instance import SHARE_INSTANCE
from manila_lite.states.share_replica import SHARE_REPLICA
from tests.support.replicated import ReplicatedCloud

MESSAGE = services.Message.__table__
JOURNAL = engine.Transition.__table__


class ReplicaUpdateCloud(ReplicatedCloud):
    """A share on `alpha` with a replica on `beta`; drivers can be stubbed."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, backends=('alpha', 'beta'), **kwargs)
        self.share_id = self.create_share_on('alpha')
        self.replica_id = self.replicate(self.share_id, 'beta')

    def endpoint(self, name='beta'):
        return next(
            backend.endpoints.replica_updates
            for backend in self.share.backends
            if backend.host == f'node@{name}'
        )

    def run(self, name):
        """Run all pending work of one back end."""
        (runner,) = (one for one in self.runners if f'node@{name}' in one.queues)
        while runner.step():
            pass

    def stub_driver(self, name='beta', **methods):
        """Stub methods of a driver with results, exceptions or functions."""
        return StubbedDriver(self.endpoint(name), methods)

    def show(self, replica_id=None):
        row = self.replica(replica_id or self.replica_id)
        return row and (row.status, row.replica_state)

    def force_status(self, status, state, replica_id=None):
        """Reset a replica to a status and state."""

        def write(session):
            for machine, value in ((SHARE_INSTANCE, status), (SHARE_REPLICA, state)):
                fire(
                    session,
                    machine,
                    replica_id or self.replica_id,
                    machine.reset_event(value),
                )

        self.db.write(write)
        assert self.show(replica_id) == (status, state)

    def create_pending_snapshot(self):
        """Create a snapshot that is still creating on the replica."""
        snapshot_id = self.snapshot(self.share_id)
        assert self.copy_status(snapshot_id) == 'creating'
        return snapshot_id

    def copy_status(self, snapshot_id):
        """Return the status of the snapshot on the replica."""
        return self.snapshots_on(self.replica_id).get(snapshot_id)

    def displayed_status(self, snapshot_id):
        """Return the status that users see; None for a deleted snapshot."""
        answer = self.api.request('GET', f'/snapshots/{snapshot_id}')
        return answer.json['snapshot']['status'] if answer.status_int == 200 else None

    def delete(self, snapshot_id):
        self.api.request('DELETE', f'/snapshots/{snapshot_id}', expect=202)
        self.settle()

    def messages(self):
        return [
            (row.resource_type, row.resource_id, row.action_id)
            for row in self.rows(sa.select(MESSAGE))
        ]

    def journal_rows(self):
        return self.rows(sa.select(JOURNAL).order_by(JOURNAL.c.id))

    def resync(self):
        answer = self.ask('resync', self.replica_id)
        self.settle()
        return answer


class StubbedDriver:
    """The driver of a back end, with some methods replaced."""

    def __init__(self, endpoint, methods):
        self._driver = endpoint.driver
        self.asked = []
        for name, answer in methods.items():
            setattr(self, name, self._method(name, answer))
        endpoint.driver = self

    def _method(self, name, answer):
        def method(*args, **kwargs):
            self.asked.append((name, args))
            reply = answer(*args) if callable(answer) else answer
            if isinstance(reply, Exception):
                raise reply
            return reply

        return method

    def __getattr__(self, name):
        return getattr(self._driver, name)

    @property
    def names(self):
        return [name for name, _ in self.asked]


@contextlib.contextmanager
def rewindable_cloud(
    folder: pathlib.Path,
) -> Iterator[Callable[[], ReplicaUpdateCloud]]:
    """Yield a function that resets a cloud to its initial state."""
    live, saved = folder / 'now', folder / 'then'
    live.mkdir()
    cloud = ReplicaUpdateCloud(live)
    cloud.db.dispose()
    shutil.copytree(live, saved)

    def begin() -> ReplicaUpdateCloud:
        cloud.db.dispose()
        shutil.rmtree(live)
        shutil.copytree(saved, live)
        cloud.configure()
        cloud.restart()
        return cloud

    try:
        yield begin
    finally:
        cloud.db.dispose()
