"""A cloud whose default share type is replicated between its back ends."""

from collections.abc import Mapping
import typing

import sqlalchemy as sa

from manila_lite.api import versions
from manila_lite.context import RequestContext
from manila_lite.db.models import shares, snapshots, types
from manila_lite.db.queries.replicas import replicas
from manila_lite.db.queries.shares import shares as share_rows
from manila_lite.db.session import Session
from manila_lite.share.manager.driver_view import replica_view
from manila_lite.share.manager.driver_view.share_view import NameTemplates
from tests.support.cloud import TYPE_ID, Cloud
from tests.support.cloud_images import prepared

SECTION = """
replication_domain = domain
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
    """A `Cloud` with one replication type, on three back ends."""

    def __init__(
        self,
        *args: typing.Any,
        style: str = 'readable',
        backends: typing.Sequence[str] = ('alpha', 'beta', 'gamma'),
        **kwargs: typing.Any,
    ):
        self.style = style
        super().__init__(*args, backends=backends, **kwargs)

    def configure(self, *, backend_conf: str = '', extra_conf: str = '') -> None:
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

    # State

    def rows(self, statement: sa.Select) -> typing.Sequence[sa.Row]:
        return self.db.read(lambda session: session.rows(statement))

    def replicas(self, share_id: str) -> typing.Sequence[sa.Row]:
        """Return all replicas of a share, oldest first."""
        return self.rows(
            sa.select(INSTANCE)
            .where(INSTANCE.c.share_id == share_id)
            .order_by(INSTANCE.c.created_at, INSTANCE.c.id)
        )

    def replica(self, replica_id: str) -> typing.Any:
        """Return the row of a replica, or None when it is deleted."""
        return next(
            iter(self.rows(sa.select(INSTANCE).where(INSTANCE.c.id == replica_id))),
            None,
        )

    def states(self, share_id: str) -> dict[str, tuple[str, str]]:
        """Return `status` and `replica_state` by back end name."""
        return {
            backend_of(row): (row.status, row.replica_state)
            for row in self.replicas(share_id)
        }

    def active(self, share_id: str) -> typing.Any:
        """Return the active replica, the oldest if there are several."""
        return next(
            row for row in self.replicas(share_id) if row.replica_state == 'active'
        )

    def passive(self, share_id: str) -> list[str]:
        """Return the ids of all other replicas, oldest first."""
        return [
            row.id for row in self.replicas(share_id) if row.replica_state != 'active'
        ]

    def snapshots_on(self, replica_id: str) -> dict[str, str]:
        """Return the status of the snapshots on a replica, by snapshot id."""
        return {
            row.snapshot_id: row.status
            for row in self.rows(
                sa.select(SNAPSHOT_INSTANCE).where(
                    SNAPSHOT_INSTANCE.c.share_instance_id == replica_id
                )
            )
        }

    # Requests

    @property
    def operations(self) -> typing.Any:
        return self.services.replicas

    def ask(
        self,
        operation: str,
        replica_id: str,
        *args: typing.Any,
        ctx: RequestContext = ADMIN,
        **kwargs: typing.Any,
    ) -> typing.Any:
        """Call an operation with the replica as it is now."""
        return getattr(self.operations, operation)(
            ctx, self.db.read(replicas.get_target, replica_id), *args, **kwargs
        )

    def request_replica(
        self,
        share_id: str,
        on: str | None = None,
        ctx: RequestContext = ADMIN,
        **kwargs: typing.Any,
    ) -> str:
        """Request another replica, on the named back end if given."""
        hints: Mapping[str, str] = {'only_host': f'node@{on}#pool'} if on else {}
        return self.operations.create(
            ctx,
            self.db.read(share_rows.get_target, share_id),
            scheduler_hints=hints,
            **kwargs,
        )

    @prepared
    def replicate(
        self, share_id: str, on: str | None = None, **kwargs: typing.Any
    ) -> str:
        """Create a replica, wait until it is available and return its id."""
        replica_id = self.request_replica(share_id, on, **kwargs)
        self.settle()
        assert self.replica(replica_id).status == 'available'
        return replica_id

    def create_share_on(self, backend: str = 'alpha', **body: object) -> str:
        """Create a share with its active replica on a back end."""
        return self.create_share(
            scheduler_hints={'only_host': f'node@{backend}#pool'}, **body
        )

    def promote_on_backend(self, replica_id: str) -> None:
        """Make a replica active on the back ends only."""
        row = self.replica(replica_id)
        share = self.db.read(replica_view.load_replicated_share, row.share_id)
        replica_list = share.replicas_for_driver(
            NameTemplates(
                self.conf.share_name_template, self.conf.share_snapshot_name_template
            )
        )
        (own,) = (one for one in replica_list if one['id'] == replica_id)
        backend = backend_of(row) or ''
        self.driver(backend).promote_replica(ADMIN, replica_list, own, [])

    @prepared
    def snapshot(self, share_id: str) -> str:
        """Create a snapshot of a share, run all work and return its id."""
        response = self.api.request(
            'POST', '/snapshots', {'snapshot': {'share_id': share_id}}, expect=202
        )
        self.settle()
        return response.json['snapshot']['id']

    @prepared
    def allow(
        self, share_id: str, access_to: str = '10.0.0.1', access_level: str = 'rw'
    ) -> None:
        """Create an access rule and wait until it is applied."""
        self.api.act(
            share_id,
            'allow_access',
            {'access_type': 'ip', 'access_to': access_to, 'access_level': access_level},
            expect=200,
        )
        self.settle()

    def update(self) -> None:
        """Run one replica update pass on every back end."""
        for backend in self.share.backends:
            backend.endpoints.replica_updates.request_pass()
        self.settle()


def backend_of(row: typing.Any) -> str | None:
    """Return the back end name of an instance, or None if not placed."""
    return row.host and row.host.partition('@')[2].partition('#')[0]
