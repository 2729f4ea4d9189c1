"""Migrations of share servers, and the rows that move with a server."""

from collections.abc import Collection, Mapping
import typing

import orjson
import sqlalchemy as sa

from manila_lite.db.queries.columns import columns
from manila_lite.db.rows import (
    LatestMigrationRow,
    MigratingSnapshotRow,
    MigrationRow,
    NetworkSubnetRow,
    ServerShareRow,
)
from manila_lite.db.session import Session
from manila_lite.db.tables import (
    GROUP,
    INSTANCE,
    NETWORK,
    OF_SUBNET,
    SERVER,
    SERVER_MIGRATION as MIGRATION,
    SHARE,
    SNAPSHOT,
    SNAPSHOT_INSTANCE,
    SNAPSHOT_METADATA as TAG,
    SUBNET,
    ZONE,
)
from manila_lite.host import Host
from manila_lite.states.share_replica import PASSIVE, READABLE

_COPY = INSTANCE.alias('copy')
_HAS_COPIES = (
    sa.exists()
    .where(_COPY.c.share_id == INSTANCE.c.share_id, _COPY.c.id != INSTANCE.c.id)
    .correlate(INSTANCE)
)
_HAS_GROUPS = (
    sa.exists().where(GROUP.c.share_server_id == SERVER.c.id).correlate(SERVER)
)
# A server without shares has one row, with null in the columns of shares.
_WITH_SHARES = (
    sa.select(
        *columns(
            ServerShareRow,
            SERVER,
            SHARE,
            INSTANCE,
            instance_id=INSTANCE.c.id,
            instance_status=INSTANCE.c.status,
            instance_host=INSTANCE.c.host,
            has_copies=_HAS_COPIES,
            has_share_groups=_HAS_GROUPS,
        )
    )
    .select_from(
        SERVER.outerjoin(INSTANCE, INSTANCE.c.share_server_id == SERVER.c.id).outerjoin(
            SHARE, SHARE.c.id == INSTANCE.c.share_id
        )
    )
    .where(SERVER.c.id == sa.bindparam('server_id'))
    .order_by(INSTANCE.c.id)
)
_SNAPSHOTS = (
    sa.select(
        SNAPSHOT_INSTANCE,
        SNAPSHOT.c.project_id,
        SNAPSHOT.c.share_id,
        SNAPSHOT.c.size,
        SNAPSHOT.c.share_size,
        SHARE.c.mount_snapshot_support,
    )
    .select_from(
        SNAPSHOT_INSTANCE.join(SNAPSHOT)
        .join(INSTANCE, INSTANCE.c.id == SNAPSHOT_INSTANCE.c.share_instance_id)
        .join(SHARE, SHARE.c.id == SNAPSHOT.c.share_id)
    )
    .where(INSTANCE.c.share_server_id == sa.bindparam('server_id'))
    .order_by(SNAPSHOT_INSTANCE.c.id)
)
_TAGS = (
    sa.select(SNAPSHOT_INSTANCE.c.id, TAG.c.key, TAG.c.value)
    .select_from(
        SNAPSHOT_INSTANCE.join(
            INSTANCE, INSTANCE.c.id == SNAPSHOT_INSTANCE.c.share_instance_id
        ).join(TAG, TAG.c.share_snapshot_id == SNAPSHOT_INSTANCE.c.snapshot_id)
    )
    .where(INSTANCE.c.share_server_id == sa.bindparam('server_id'))
)
_NETWORKS = (
    sa.select(
        *columns(
            NetworkSubnetRow,
            NETWORK,
            SUBNET,
            subnet_id=SUBNET.c.id,
            zone=ZONE.c.name,
            is_used=sa.exists().where(
                OF_SUBNET.c.share_network_subnet_id == SUBNET.c.id,
                OF_SUBNET.c.share_server_id == sa.bindparam('server_id'),
            ),
        )
    )
    .select_from(
        NETWORK.outerjoin(SUBNET, SUBNET.c.share_network_id == NETWORK.c.id).outerjoin(
            ZONE, ZONE.c.id == SUBNET.c.availability_zone_id
        )
    )
    .where(NETWORK.c.id.in_(sa.bindparam('ids', expanding=True)))
    .order_by(NETWORK.c.id, SUBNET.c.id)
)
_INSERT = sa.insert(MIGRATION)
_ONE = sa.select(MIGRATION).where(MIGRATION.c.id == sa.bindparam('migration_id'))
_OPEN = sa.select(MIGRATION).where(MIGRATION.c.open_for == sa.bindparam('of_source'))
_LATEST = (
    sa.select(MIGRATION, SERVER.c.task_state)
    .select_from(
        MIGRATION.outerjoin(SERVER, SERVER.c.id == MIGRATION.c.source_server_id)
    )
    .where(MIGRATION.c.source_server_id == sa.bindparam('of_source'))
    .order_by(MIGRATION.c.created_at.desc(), MIGRATION.c.id.desc())
    .limit(1)
)
_IS_OPEN = (
    MIGRATION.c.id == sa.bindparam('migration_id'),
    MIGRATION.c.open_for.is_not(None),
)
_CLOSE = (
    sa.update(MIGRATION)
    .where(*_IS_OPEN)
    .values(
        open_for=None,
        outcome=sa.bindparam('new_outcome'),
        error=sa.bindparam('new_error'),
        ended_at=sa.bindparam('now'),
        updated_at=sa.bindparam('now'),
    )
)
_RECORD_PROGRESS = (
    sa.update(MIGRATION)
    .where(*_IS_OPEN)
    .values(
        progress=sa.bindparam('new_progress'),
        progress_details=sa.func.coalesce(
            sa.bindparam('new_details', type_=sa.Text()), MIGRATION.c.progress_details
        ),
        heard_at=sa.bindparam('now'),
    )
)
_IS_READABLE_COPY = INSTANCE.c.replica_state.in_(sorted(PASSIVE)) & sa.exists(
    sa.select(SHARE.c.id).where(
        SHARE.c.id == INSTANCE.c.share_id, SHARE.c.replication_type == READABLE
    )
).correlate(INSTANCE)
_SET_READONLY = (
    sa.update(INSTANCE)
    .where(INSTANCE.c.share_server_id == sa.bindparam('of_server'))
    .values(
        cast_rules_to_readonly=sa.case(
            (_IS_READABLE_COPY, sa.true()),
            else_=sa.bindparam('cast', type_=sa.Boolean()),
        )
    )
)
_MAX_ERROR_LENGTH = 1000


def list_server_with_shares(
    session: Session, server_id: str
) -> typing.Sequence[ServerShareRow]:
    """Return a server as one row for each share instance on it.

    A server without shares has one row; a server that is gone has none.
    """
    return session.rows(_WITH_SHARES, server_id=server_id)


def list_snapshot_instances(
    session: Session, server_id: str
) -> typing.Sequence[MigratingSnapshotRow]:
    """Return the snapshot instances of the shares on a server."""
    return session.rows(_SNAPSHOTS, server_id=server_id)


def get_snapshot_metadata(
    session: Session, server_id: str
) -> dict[str, dict[str, str]]:
    """Return the metadata of snapshots on a server, by instance id."""
    found: dict[str, dict[str, str]] = {}
    for row in session.rows(_TAGS, server_id=server_id):
        found.setdefault(row.id, {})[row.key] = row.value
    return found


def list_networks_with_subnets(
    session: Session, ids: Collection[str | None], server_id: str
) -> typing.Sequence[NetworkSubnetRow]:
    """Return networks as one row for each subnet, with its zone name.

    `is_used` says whether the server has addresses in the subnet.
    """
    return session.rows(
        _NETWORKS, ids=sorted(id for id in ids if id), server_id=server_id
    )


def insert(session: Session, *, reserved: Mapping[str, int], **values: object) -> str:
    """Insert a migration; return its id.

    `reserved` is what was allocated for it on pools, in GiB.
    """
    id = session.new_id()
    session.run(
        _INSERT,
        **{
            'phase': 1,
            'can_cancel': False,
            'tells_progress': False,
            'made_destination': False,
            'is_set_up': False,
            'casts_rules': False,
            'created_at': session.now,
            'id': id,
            'open_for': values['source_server_id'],
            'reserved': orjson.dumps(dict(reserved)).decode(),
            **values,
        },
    )
    return id


def find(session: Session, migration_id: str) -> MigrationRow | None:
    """Return a migration, or None when its row was pruned."""
    return session.first(_ONE, migration_id=migration_id)


def find_open(session: Session, source_id: str) -> MigrationRow | None:
    """Return the open migration of a source server, or None."""
    return session.first(_OPEN, of_source=source_id)


def find_latest(session: Session, source_id: str) -> LatestMigrationRow | None:
    """Return the newest migration of a source server, or None.

    `task_state` is that of the server, null if the server is gone.
    """
    return session.first(_LATEST, of_source=source_id)


def update(session: Session, migration_id: str, **values: object) -> None:
    """Change columns of a migration."""
    session.run(
        sa.update(MIGRATION)
        .where(MIGRATION.c.id == migration_id)
        .values(updated_at=session.now, **values)
    )


def record_progress(
    session: Session,
    migration_id: str,
    progress: int | None,
    details: str | None = None,
) -> None:
    """Record a reply of the driver, with the progress it reports.

    Without `details` those of the last reply remain.
    """
    session.run(
        _RECORD_PROGRESS,
        migration_id=migration_id,
        new_progress=progress,
        new_details=details,
        now=session.now,
    )


def close(
    session: Session, migration: MigrationRow, outcome: str, error: str | None = None
) -> dict[str, int]:
    """Record the end of a migration; repeating it changes nothing.

    Return the GiB by pool that were reserved for it until now; the caller
    releases them.
    """
    was_open = session.run(
        _CLOSE,
        migration_id=migration.id,
        new_outcome=outcome,
        new_error=error and error[:_MAX_ERROR_LENGTH],
        now=session.now,
    )
    return get_reserved(migration) if was_open else {}


def get_reserved(migration: MigrationRow) -> dict[str, int]:
    """Return the GiB by pool that an open migration has reserved.

    Empty for one that an earlier release has accepted.
    """
    reserved: dict[str, int] = orjson.loads(migration.reserved or '{}')
    return reserved


def set_rules_readonly(session: Session, server_id: str, cast: bool) -> None:
    """Set whether rules of all shares on a server are cast to read-only.

    Those of readable passive replicas always are.
    """
    session.run(_SET_READONLY, of_server=server_id, cast=cast)


def sum_shares(rows: typing.Iterable[ServerShareRow]) -> list[Mapping[str, object]]:
    """Sum up the shares of `list_server_with_shares`.

    Each result has share_type_id, share_proto, has_qos_type, the name of
    the pool that the shares are on, total size in GiB and count.
    """
    found: dict[tuple[object, ...], dict[str, typing.Any]] = {}
    for row in rows:
        has_qos_type = row.qos_type_id is not None
        pool = Host.parse(row.instance_host).pool
        total = found.setdefault(
            (row.share_type_id, row.share_proto, has_qos_type, pool),
            {
                'share_type_id': row.share_type_id,
                'share_proto': row.share_proto,
                'has_qos_type': has_qos_type,
                'pool': pool,
                'size': 0,
                'count': 0,
            },
        )
        total['size'] += row.size
        total['count'] += 1
    return list(found.values())


def list_migrations(session: Session, *, most: int) -> typing.Sequence[MigrationRow]:
    """Return migrations in progress, then those that ended last."""
    running = session.rows(
        sa.select(MIGRATION)
        .where(MIGRATION.c.open_for.is_not(None))
        .order_by(MIGRATION.c.open_for)
        .limit(most)
    )
    ended = session.rows(
        sa.select(MIGRATION)
        .where(MIGRATION.c.ended_at.is_not(None))
        .order_by(MIGRATION.c.ended_at.desc())
        .limit(most)
    )
    return [*running, *ended]
