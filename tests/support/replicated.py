"""A cloud whose default share type is replicated between its back ends."""

from collections.abc import Mapping
import typing

import sqlalchemy as sa

from manila_lite.api import versions
from manila_lite.context import RequestContext
from manila_lite.db.models import shares
from manila_lite.db.models import snapshots
from manila_lite.db.models import types
from manila_lite.db.queries.replicas import replicas
from manila_lite.db.queries.shares import shares as share_rows
from manila_lite.db.session import Session
from tests.support.cloud import TYPE_ID
from tests.support.cloud import Cloud

SECTION = """
replication_domain = mirrors
dummy_driver_replication_type = {style}
"""

ADMIN = RequestContext(
    project_id='project',
    user_id='user',
    roles=['admin', 'member', 'reader'],
    is_admin=True,
)
MEMBER = RequestContext(
    project_id='project', user_id='user', roles=['member', 'reader']
)

INSTANCE = shares.ShareInstance.__table__
SNAPSHOT_INSTANCE = snapshots.SnapshotInstance.__table__
SPECS = {
    'replication_type': '{style}',
    'create_share_from_snapshot_support': 'True',
    'revert_to_snapshot_support': 'True',
}
_SPEC = types.ShareTypeExtraSpec.__table__
_EXPERIMENTAL = {versions.EXPERIMENTAL_HEADER: 'true'}


class ReplicatedCloud(Cloud):
    """A `Cloud` of one style of replication, on three back ends."""

    def __init__(
        self,
        *args: typing.Any,
        style: str = 'readable',
        backends: typing.Sequence[str] = ('alpha', 'beta', 'gamma'),
        **kwargs: typing.Any,
    ):
        self.style = style
        super().__init__(*args, backends=backends, **kwargs)

    def configure(
        self, *, backend_conf: str = '', extra_conf: str = ''
    ) -> None:
        super().configure(
            backend_conf=SECTION.format(style=self.style) + backend_conf,
            extra_conf=extra_conf,
        )

    def _fill(self, session: Session) -> None:
        super()._fill(session)
        session.run_many(
            sa.insert(_SPEC),
            [
                {
                    'share_type_id': TYPE_ID,
                    'spec_key': key,
                    'spec_value': value.format(style=self.style),
                }
                for key, value in SPECS.items()
            ],
        )

    # What there is

    def rows(self, statement: sa.Select) -> typing.Sequence[sa.Row]:
        return self.db.read(lambda session: session.rows(statement))

    def replicas(self, share_id: str) -> typing.Sequence[sa.Row]:
        """All replicas of a share, the oldest first."""
        return self.rows(
            sa.select(INSTANCE)
            .where(INSTANCE.c.share_id == share_id)
            .order_by(INSTANCE.c.created_at, INSTANCE.c.id)
        )

    def replica(self, replica_id: str) -> typing.Any:
        """The row of a replica, or None when it is gone."""
        return next(
            iter(
                self.rows(
                    sa.select(INSTANCE).where(INSTANCE.c.id == replica_id)
                )
            ),
            None,
        )

    def states(self, share_id: str) -> dict[str, tuple[str, str]]:
        """`status` and `replica_state` by the name of the back end."""
        return {
            backend_of(row): (row.status, row.replica_state)
            for row in self.replicas(share_id)
        }

    def active(self, share_id: str) -> typing.Any:
        """The active replica; of several the oldest."""
        return next(
            row
            for row in self.replicas(share_id)
            if row.replica_state == 'active'
        )

    def snapshots_on(self, replica_id: str) -> dict[str, str]:
        """The status of snapshots on a replica, by snapshot."""
        return {
            row.snapshot_id: row.status
            for row in self.rows(
                sa.select(SNAPSHOT_INSTANCE).where(
                    SNAPSHOT_INSTANCE.c.share_instance_id == replica_id
                )
            )
        }

    # What is asked

    @property
    def operations(self) -> typing.Any:
        return self.services.replicas

    def ask(
        self,
        verb: str,
        replica_id: str,
        *args: typing.Any,
        ctx: RequestContext = ADMIN,
        **facts: typing.Any,
    ) -> typing.Any:
        """Ask an operation about a replica as it is now."""
        return getattr(self.operations, verb)(
            ctx, self.db.read(replicas.get_target, replica_id), *args, **facts
        )

    def request_replica(
        self,
        share_id: str,
        on: str | None = None,
        ctx: RequestContext = ADMIN,
        **facts: typing.Any,
    ) -> str:
        """Ask for one more replica, on a back end of this name if told."""
        hints: Mapping[str, str] = (
            {'only_host': f'node@{on}#pool'} if on else {}
        )
        return self.operations.create(
            ctx,
            self.db.read(share_rows.get_target, share_id),
            scheduler_hints=hints,
            **facts,
        )

    def replicate(
        self, share_id: str, on: str | None = None, **facts: typing.Any
    ) -> str:
        """One more replica of a share, which is available; its id."""
        replica_id = self.request_replica(share_id, on, **facts)
        self.settle()
        assert self.replica(replica_id).status == 'available'
        return replica_id

    def create_share_on(self, backend: str = 'alpha', **body: object) -> str:
        """A share whose active replica is there."""
        return self.create_share(
            scheduler_hints={'only_host': f'node@{backend}#pool'}, **body
        )

    def snapshot(self, share_id: str) -> str:
        """A snapshot of a share, with all that follows from it."""
        made = self.api.request(
            'POST',
            '/snapshots',
            {'snapshot': {'share_id': share_id}},
            expect=202,
        )
        self.settle()
        return made.json['snapshot']['id']

    def allow(
        self,
        share_id: str,
        access_to: str = '10.0.0.1',
        access_level: str = 'rw',
    ) -> None:
        """A rule that is in force."""
        self.api.act(
            share_id,
            'allow_access',
            {
                'access_type': 'ip',
                'access_to': access_to,
                'access_level': access_level,
            },
            expect=200,
        )
        self.settle()

    def update(self) -> None:
        """Have every back end look how its replicas follow."""
        for backend in self.share.backends:
            backend.replica_updates.request_pass()
        self.settle()


def backend_of(row: typing.Any) -> str | None:
    """The name of the back end that an instance is on, if on any."""
    return row.host and row.host.partition('@')[2].partition('#')[0]
