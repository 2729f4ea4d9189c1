"""Replicas on `beta`, and a driver there that says what a test wants."""

from collections.abc import Callable, Iterator
import contextlib
import pathlib
import shutil

import sqlalchemy as sa

from manila_lite.db.models import engine
from manila_lite.db.models import services
from manila_lite.db.transitions import fire
from manila_lite.states.share_instance import SHARE_INSTANCE
from manila_lite.states.share_replica import SHARE_REPLICA
from tests.support.replicated import ReplicatedCloud

MESSAGE = services.Message.__table__
JOURNAL = engine.Transition.__table__


class ReplicaUpdateCloud(ReplicatedCloud):
    """Replicas on `beta`, whose driver says what a test has it say."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, backends=('alpha', 'beta'), **kwargs)
        self.share_id = self.create_share_on('alpha')
        self.replica_id = self.replicate(self.share_id, 'beta')

    def endpoint(self, name='beta'):
        return next(
            backend.replica_updates
            for backend in self.share.backends
            if backend.host == f'node@{name}'
        )

    def run(self, name):
        """Have one back end do all that it is owed."""
        (runner,) = (
            one for one in self.runners if f'node@{name}' in one.queues
        )
        while runner.step():
            pass

    def stub_driver(self, name='beta', **methods):
        """Have the driver of a back end answer so from now on."""
        return StubbedDriver(self.endpoint(name), methods)

    def show(self, replica_id=None):
        row = self.replica(replica_id or self.replica_id)
        return row and (row.status, row.replica_state)

    def force_status(self, status, state, replica_id=None):
        """Have a replica be so, by decree."""

        def write(session):
            for machine, word in (
                (SHARE_INSTANCE, status),
                (SHARE_REPLICA, state),
            ):
                fire(
                    session,
                    machine,
                    replica_id or self.replica_id,
                    machine.reset_event(word),
                )

        self.db.write(write)
        assert self.show(replica_id) == (status, state)

    def create_pending_snapshot(self):
        """A snapshot that is on its way to the replica."""
        snapshot_id = self.snapshot(self.share_id)
        assert self.copy_status(snapshot_id) == 'creating'
        return snapshot_id

    def copy_status(self, snapshot_id):
        """The status of the snapshot on the replica."""
        return self.snapshots_on(self.replica_id).get(snapshot_id)

    def displayed_status(self, snapshot_id):
        """What users see of a snapshot; None when it is gone."""
        answer = self.api.request('GET', f'/snapshots/{snapshot_id}')
        return (
            answer.json['snapshot']['status']
            if answer.status_int == 200
            else None
        )

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
    """The driver of a back end, but for what a test has it answer."""

    def __init__(self, endpoint, methods):
        self._driver = endpoint.driver
        self.asked = []
        for name, answer in methods.items():
            setattr(self, name, self._method(name, answer))
        endpoint.driver = self

    def _method(self, name, answer):
        def method(*args, **kwargs):
            self.asked.append((name, args))
            said = answer(*args) if callable(answer) else answer
            if isinstance(said, Exception):
                raise said
            return said

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
    """Gives what takes a cloud back to its beginning, again and again."""
    now, then = folder / 'now', folder / 'then'
    now.mkdir()
    cloud = ReplicaUpdateCloud(now)
    cloud.db.dispose()
    shutil.copytree(now, then)

    def begin() -> ReplicaUpdateCloud:
        cloud.db.dispose()
        shutil.rmtree(now)
        shutil.copytree(then, now)
        cloud.configure()
        cloud.restart()
        return cloud

    try:
        yield begin
    finally:
        cloud.db.dispose()
