"""The replicas of the sample cloud, inserted without back ends."""

import datetime
import typing

import sqlalchemy as sa

from manila_lite.db.models import engine, shares
from manila_lite.db.session import Session
from tests.support.api_client import ApiClient
from tests.support.cloud import Cloud

_SHARE = shares.Share.__table__
_INSTANCE = shares.ShareInstance.__table__
_EXPORT = shares.ExportLocation.__table__
_WORK = engine.Work.__table__

_MICROSECOND = datetime.timedelta(microseconds=1)

HOSTS = ('node@alpha#pool', 'node@beta#pool')


def make_replicable(
    cloud: Cloud, share_id: str, replication_type: str = 'readable'
) -> str:
    """Make a share replicable; return the id of its active replica."""

    def change(session: Session) -> str:
        session.run(
            sa.update(_SHARE)
            .where(_SHARE.c.id == share_id)
            .values(replication_type=replication_type)
        )
        session.run(
            sa.update(_INSTANCE)
            .where(_INSTANCE.c.share_id == share_id)
            .values(
                replica_state='active',
                sole_active_of=(None if replication_type == 'writable' else share_id),
            )
        )
        return session.value(
            sa.select(_INSTANCE.c.id).where(_INSTANCE.c.share_id == share_id)
        )

    return cloud.db.write(change)


def insert_replica(cloud: Cloud, share_id: str, **columns: object) -> str:
    """Insert a replica of a share, in sync by default; return its id."""
    (id,) = insert_replicas(cloud, share_id, 1, **columns)
    return id


def insert_replicas(
    cloud: Cloud, share_id: str, number: int, **columns: object
) -> list[str]:
    """Insert several replicas; return their ids, oldest first."""

    def copy(session: Session) -> list[str]:
        one = session.first(
            sa.select(_INSTANCE).where(
                _INSTANCE.c.share_id == share_id, _INSTANCE.c.replica_state == 'active'
            )
        )
        (host,) = set(HOSTS) - {one.host}
        rows = [
            _stored(one)
            | {
                'id': session.new_id(),
                'replica_state': 'in_sync',
                'sole_active_of': None,
                'host': host,
                'cast_rules_to_readonly': True,
                'created_at': session.now + position * _MICROSECOND,
                **columns,
            }
            for position in range(number)
        ]
        session.run_many(sa.insert(_INSTANCE), rows)
        return [row['id'] for row in rows]

    return cloud.db.write(copy)


def _stored(row: typing.Any) -> dict[str, typing.Any]:
    """Return the columns that the database does not compute."""
    return {
        column.name: row._mapping[column.name]
        for column in _INSTANCE.columns
        if column.computed is None
    }


def insert_export(cloud: Cloud, replica_id: str, path: str, **columns: object) -> str:
    """Insert an export location of a replica; return its id."""

    def insert(session: Session) -> str:
        id = session.new_id()
        session.run(
            sa.insert(_EXPORT),
            **{
                'id': id,
                'path': path,
                'share_instance_id': replica_id,
                'is_admin_only': False,
                'created_at': session.now,
                **columns,
            },
        )
        return id

    return cloud.db.write(insert)


class SampleReplicas:
    """Inserts replicas for requests.

    Requests read `replicated_share` and may change
    `spare_replicated_share`. `oversized_replicated_share`, which has a
    snapshot, is larger than the quota allows.
    """

    cloud: Cloud
    admin: ApiClient
    replicated_share: str
    spare_replicated_share: str
    oversized_replicated_share: str

    def make_replicas(self) -> None:
        make_replicable(self.cloud, self.replicated_share)
        self.replica = insert_replica(self.cloud, self.replicated_share)
        self.replica_export = insert_export(
            self.cloud, self.replica, '10.0.0.2:/replica'
        )
        self.active_replica = make_replicable(self.cloud, self.spare_replicated_share)
        self._spare_replica = insert_replica(self.cloud, self.spare_replicated_share)
        make_replicable(self.cloud, self.oversized_replicated_share)
        self.oversized_replica = insert_replica(
            self.cloud, self.oversized_replicated_share
        )

    def idle_replica(self, **columns: object) -> str:
        """Return the replica that requests may change, with no work pending.

        Besides it, its share has only the active replica.
        """

        def reset(session: Session) -> None:
            kept = (self.active_replica, self._spare_replica)
            session.run(
                sa.delete(_INSTANCE).where(
                    _INSTANCE.c.share_id == self.spare_replicated_share,
                    _INSTANCE.c.id.not_in(kept),
                )
            )
            session.run(sa.delete(_WORK).where(_WORK.c.resource_id.in_(kept)))
            for id, state in (
                (
                    self._spare_replica,
                    {'replica_state': 'in_sync', 'sole_active_of': None, **columns},
                ),
                (
                    self.active_replica,
                    {
                        'replica_state': 'active',
                        'sole_active_of': self.spare_replicated_share,
                    },
                ),
            ):
                values: dict[str, typing.Any] = {'status': 'available', **state}
                session.run(
                    sa.update(_INSTANCE).where(_INSTANCE.c.id == id).values(**values)
                )

        self.cloud.db.write(reset)
        return self._spare_replica
