"""The rows of a large deployment, inserted by the database itself.

Every database generates them from a sequence of numbers, so that a million
shares take minutes.
"""

from collections.abc import Callable, Iterator, Mapping
import dataclasses
import datetime
import json
import time
import typing

import sqlalchemy as sa

from manila_lite.db.dialects import db_now
from manila_lite.db.models import (
    access,
    engine,
    migrations as server_migrations,
    networks,
    quotas,
    services,
    share_groups,
    share_servers,
    shares,
    snapshots,
    types,
)
from manila_lite.db.session import Database, Session
from tests.support.rows import MIGRATION_FLAGS, SHARE_FLAGS, insert_type

CHUNK = 50_000
"""The number of rows inserted by one statement."""

ANALYZED = (
    'shares',
    'share_instances',
    'share_access_map',
    'share_instance_access_map',
    'share_snapshots',
    'share_snapshot_instances',
    'share_snapshot_access_map',
    'share_snapshot_instance_access_map',
    'share_servers',
    'services',
    'pools',
    'share_networks',
    'share_server_migrations',
    'share_groups',
    'share_group_snapshots',
    'share_group_snapshot_members',
    'share_backups',
    'transitions',
    'messages',
    'recovery_log',
    'work',
)
TYPE = 'type'
ZONE = 'zone'
CAPABILITIES = json.dumps(
    {
        'share_backend_name': 'backend',
        'driver_handles_share_servers': False,
        'storage_protocol': 'NFS_CIFS',
        'snapshot_support': True,
        'create_share_from_snapshot_support': True,
    }
)


@dataclasses.dataclass(frozen=True)
class Sizes:
    """How many rows of each kind there are; pools are spread evenly."""

    shares: int = 1_000_000
    rules_of_share: int = 5
    snapshots: int = 200_000
    journal: int = 1_000_000
    messages: int = 100_000
    services: int = 200
    pools: int = 1000
    projects: int = 1000
    networks: int = 1000
    groups: int = 1000
    servers: int = 10_000
    migrations: int = 10_000
    decisions: int = 100_000
    waiting: int = 1000

    @property
    def pools_of_service(self) -> int:
        return self.pools // self.services

    def service_host(self, number: int) -> str:
        return f'node-{1000 + number}@backend'

    def service_of(self, pool: int) -> str:
        return self.service_host(pool // self.pools_of_service)


Values = Mapping[str, object]


def insert(
    db: Database, sizes: Sizes, note: Callable[[str], object] = lambda text: None
) -> None:
    """Insert the rows into an empty schema, and analyze the tables."""
    db.write(_insert_small_tables, sizes)
    for table, count, values in _tables(sizes, db.utcnow()):
        began = time.monotonic()
        for first in range(0, count, CHUNK):
            db.write(_insert_chunk, table, first, min(first + CHUNK, count), values)
        note(f'{table.name}: {count} in {time.monotonic() - began:.1f} s')
    analyze(db)


def analyze(db: Database) -> None:
    """Give the planner the statistics of the tables.

    Not on SQLite, where operators do not run ANALYZE.
    """
    for name in ANALYZED:
        if db.dialect == 'mysql':
            db.write(lambda s, n=name: s.rows(sa.text(f'ANALYZE TABLE {n}')))
        elif db.dialect == 'postgresql':
            db.write(lambda s, n=name: s.run(sa.text(f'ANALYZE {n}')))


def _insert_small_tables(session: Session, sizes: Sizes) -> None:
    insert_type(session, TYPE)
    session.run(
        sa.insert(types.ShareGroupType.__table__),
        id=TYPE,
        name=TYPE,
        is_public=True,
        created_at=session.now,
    )
    session.run(
        sa.insert(types.ShareTypeExtraSpec.__table__),
        share_type_id=TYPE,
        spec_key='driver_handles_share_servers',
        spec_value='False',
    )
    session.run(
        sa.insert(services.AvailabilityZone.__table__),
        id=ZONE,
        name=ZONE,
        created_at=session.now,
    )
    session.run_many(
        sa.insert(services.Service.__table__).values(heartbeat_at=db_now()),
        [
            {
                'host': sizes.service_host(number),
                'binary': 'manila-share',
                'topic': 'manila-share',
                'availability_zone_id': ZONE,
                'incarnation': 'seeded',
                'disabled': False,
                'ensuring': False,
                'created_at': session.now,
            }
            for number in range(sizes.services)
        ],
    )
    session.run_many(
        sa.insert(services.Pool.__table__).values(reported_at=db_now()),
        [
            {
                'host': f'{sizes.service_of(number)}#pool-{1000 + number}',
                'service_host': sizes.service_of(number),
                'capabilities': CAPABILITIES,
                'total_gb': 1_000_000.0,
                'free_gb': 500_000.0 + number,
                'allocated_gb': sizes.shares // sizes.pools,
                'pending_gb': 0,
            }
            for number in range(sizes.pools)
        ],
    )
    session.run_many(
        sa.insert(quotas.QuotaUsage.__table__),
        [
            {
                'project_id': f'project-{1000 + number}',
                'scope': 'project',
                'scope_id': '',
                'resource': resource,
                'in_use': sizes.shares // sizes.projects,
                'reserved': 0,
                'hard_limit': -1,
            }
            for number in range(sizes.projects)
            for resource in ('shares', 'gigabytes')
        ],
    )


class _Numbers:
    """The numbers from `first` until before `end`, as rows of a query."""

    def __init__(self, dialect: str, first: int, end: int):
        self.dialect = dialect
        if dialect == 'postgresql':
            series: typing.Any = (
                sa.func.generate_series(first, end - 1)
                .table_valued('n')
                .render_derived()
            )
            self.source: typing.Any = series
            self.n = sa.cast(series.c.n, sa.BigInteger)
        elif dialect == 'mysql':
            table = sa.table(f'seq_{first}_to_{end - 1}', sa.column('seq'))
            self.source, self.n = table, table.c.seq
        else:
            series = sa.select(sa.literal(first).label('n')).cte(
                'numbers', recursive=True
            )
            series = series.union_all(
                sa.select(series.c.n + 1).where(series.c.n < end - 1)
            )
            self.source, self.n = series, series.c.n

    def id(self, kind: int, number: typing.Any) -> sa.ColumnElement[str]:
        """Return an id of the usual length."""
        return self.text(f'{kind:08}-0000-4000-8000-', 10**11, number)

    def text(self, prefix: str, base: int, number: typing.Any) -> sa.ColumnElement[str]:
        """Return a prefix followed by `base + number`."""
        return sa.literal(prefix, sa.String()).concat(
            sa.cast(number + base, sa.String(20))
        )

    def over(self, number: typing.Any, divisor: int) -> typing.Any:
        """Return the whole quotient."""
        return sa.cast(sa.func.floor(number / divisor), sa.BigInteger)


def _insert_chunk(
    session: Session,
    table: sa.Table,
    first: int,
    end: int,
    values: Callable[[_Numbers], Values],
) -> None:
    numbers = _Numbers(session.dialect, first, end)
    columns = values(numbers)
    session.run(
        sa.insert(table).from_select(
            list(columns),
            sa.select(
                *(
                    value
                    if isinstance(value, sa.ColumnElement)
                    else sa.literal(value, table.c[name].type)
                    for name, value in columns.items()
                )
            ).select_from(numbers.source),
        )
    )


def _tables(
    sizes: Sizes, now: datetime.datetime
) -> Iterator[tuple[sa.Table, int, Callable[[_Numbers], Values]]]:
    """Yield tables with the number of their rows and what is in them."""

    def host(numbers: _Numbers, number: typing.Any) -> typing.Any:
        pool = number % sizes.pools
        return (
            numbers.text('node-', 1000, numbers.over(pool, sizes.pools_of_service))
            .concat('@backend#')
            .concat(numbers.text('pool-', 1000, pool))
        )

    def at(numbers: _Numbers, number: typing.Any) -> typing.Any:
        """Return distinct times before now."""
        since = now - datetime.timedelta(days=40)
        if numbers.dialect == 'postgresql':
            return sa.literal(since, sa.DateTime()) + sa.func.make_interval(
                0, 0, 0, 0, 0, 0, sa.cast(number, sa.Double)
            )
        if numbers.dialect == 'mysql':
            return sa.func.timestampadd(
                sa.text('SECOND'), number, sa.literal(since, sa.DateTime())
            )
        return sa.func.strftime(
            '%Y-%m-%d %H:%M:%S.000000',
            since.isoformat(sep=' ', timespec='seconds'),
            sa.cast(number, sa.String()).concat(' seconds'),
        )

    rules = sizes.rules_of_share
    yield (
        shares.Share.__table__,
        sizes.shares,
        lambda s: {
            'id': s.id(1, s.n),
            'user_id': 'user',
            'project_id': s.text('project-', 1000, s.n % sizes.projects),
            'size': 1,
            'share_proto': 'NFS',
            'display_name': s.text('share-', 10**9, s.n),
            'created_at': at(s, s.n),
            **SHARE_FLAGS,
        },
    )
    yield (
        shares.ShareInstance.__table__,
        sizes.shares,
        lambda s: {
            'id': s.id(2, s.n),
            'share_id': s.id(1, s.n),
            'host': host(s, s.n),
            'status': 'available',
            'share_type_id': TYPE,
            'availability_zone_id': ZONE,
            'access_rules_status': 'active',
            'cast_rules_to_readonly': False,
            'created_at': at(s, s.n),
        },
    )
    yield (
        access.AccessRule.__table__,
        sizes.shares * rules,
        lambda s: {
            'id': s.id(3, s.n),
            'share_id': s.id(1, s.over(s.n, rules)),
            'access_type': 'ip',
            'access_to': s.text('10.0.0.', 0, s.n % rules),
            'target': s.text('10.0.0.', 0, s.n % rules),
            'access_level': 'rw',
            'created_at': at(s, s.over(s.n, rules)),
        },
    )
    yield (
        access.InstanceAccessRule.__table__,
        sizes.shares * rules,
        lambda s: {
            'id': s.id(4, s.n),
            'share_instance_id': s.id(2, s.over(s.n, rules)),
            'access_id': s.id(3, s.n),
            'state': 'active',
            'created_at': at(s, s.over(s.n, rules)),
        },
    )
    yield (
        snapshots.Snapshot.__table__,
        sizes.snapshots,
        lambda s: {
            'id': s.id(5, s.n),
            'project_id': s.text('project-', 1000, s.n % sizes.projects),
            'share_id': s.id(1, s.n % sizes.shares),
            'size': 1,
            'share_size': 1,
            'share_proto': 'NFS',
            'created_at': at(s, s.n),
        },
    )
    yield (
        snapshots.SnapshotInstance.__table__,
        sizes.snapshots,
        lambda s: {
            'id': s.id(6, s.n),
            'snapshot_id': s.id(5, s.n),
            'share_instance_id': s.id(2, s.n % sizes.shares),
            'status': 'available',
            'created_at': at(s, s.n),
        },
    )
    yield (
        snapshots.SnapshotAccessRule.__table__,
        sizes.snapshots,
        lambda s: {
            'id': s.id(7, s.n),
            'share_snapshot_id': s.id(5, s.n),
            'access_type': 'ip',
            'access_to': '10.0.0.1',
            'target': '10.0.0.1',
            'created_at': at(s, s.n),
        },
    )
    yield (
        snapshots.SnapshotInstanceAccessRule.__table__,
        sizes.snapshots,
        lambda s: {
            'id': s.id(8, s.n),
            'share_snapshot_instance_id': s.id(6, s.n),
            'access_id': s.id(7, s.n),
            'state': 'active',
            'created_at': at(s, s.n),
        },
    )
    yield (
        networks.ShareNetwork.__table__,
        sizes.networks,
        lambda s: {
            'id': s.id(10, s.n),
            'project_id': s.text('project-', 1000, s.n % sizes.projects),
            'user_id': 'user',
            'status': 'active',
            'created_at': at(s, s.n),
        },
    )
    yield (
        shares.ShareBackup.__table__,
        sizes.groups,
        lambda s: {
            'id': s.id(99, s.n),
            'share_id': s.id(1, s.n % sizes.shares),
            'project_id': s.text('project-', 1000, s.n % sizes.projects),
            'user_id': 'user',
            'status': 'available',
            'size': 1,
            'host': host(s, s.n),
            'topic': 'manila-data',
            'progress': 100,
            'restore_progress': 0,
            'created_at': at(s, s.n),
        },
    )
    yield (
        share_groups.ShareGroup.__table__,
        sizes.groups,
        lambda s: {
            'id': s.id(13, s.n),
            'project_id': s.text('project-', 1000, s.n % sizes.projects),
            'user_id': 'user',
            'status': 'available',
            'host': host(s, s.n),
            'share_group_type_id': TYPE,
            'created_at': at(s, s.n),
        },
    )
    yield (
        share_groups.ShareGroupSnapshot.__table__,
        sizes.groups,
        lambda s: {
            'id': s.id(14, s.n),
            'share_group_id': s.id(13, s.n),
            'project_id': s.text('project-', 1000, s.n % sizes.projects),
            'user_id': 'user',
            'status': 'available',
            'created_at': at(s, s.n),
        },
    )
    yield (
        share_groups.ShareGroupSnapshotMember.__table__,
        sizes.groups,
        lambda s: {
            'id': s.id(15, s.n),
            'share_group_snapshot_id': s.id(14, s.n),
            'share_id': s.id(1, s.n % sizes.shares),
            'share_instance_id': s.id(2, s.n % sizes.shares),
            'size': 1,
            'share_proto': 'NFS',
            'created_at': at(s, s.n),
        },
    )
    yield (
        share_servers.ShareServer.__table__,
        sizes.servers,
        lambda s: {
            'id': s.id(11, s.n),
            'host': s.text('node-', 1000, s.n % sizes.services).concat('@backend'),
            'share_network_id': s.id(10, s.n % sizes.networks),
            'status': 'active',
            'is_auto_deletable': True,
            'security_service_update_support': False,
            'network_allocation_update_support': False,
            'share_replicas_migration_support': False,
            'idle_since': now,
            'created_at': at(s, s.n),
        },
    )
    yield (
        server_migrations.ServerMigration.__table__,
        sizes.migrations,
        lambda s: {
            'id': s.id(12, s.n),
            'source_server_id': s.id(11, s.n),
            'source_host': 'node-1000@backend',
            'destination_host': 'node-1001@backend',
            'phase': 2,
            'created_at': at(s, s.n),
            'ended_at': at(s, s.n),
            **MIGRATION_FLAGS,
        },
    )
    yield (
        engine.RecoveryLogEntry.__table__,
        sizes.decisions,
        lambda s: {
            'resource': 'share_instance',
            'resource_id': s.id(2, s.n),
            'host': host(s, s.n),
            'action': 'given up',
            'duration': 0.0,
            'made_at': at(s, s.n),
        },
    )
    yield (
        engine.Work.__table__,
        sizes.waiting,
        lambda s: {
            'id': s.id(13, s.n),
            'kind': 'provisioning.extend_share_instance',
            'queue': s.text('node-', 1000, s.n % sizes.services).concat('@backend'),
            'topic': 'manila-share',
            'resource': 'share_instance',
            'resource_id': s.id(2, s.n * (sizes.shares // sizes.waiting)),
            'args': '{}',
            'context': '{}',
            'state': 'queued',
            'attempt': 1,
            'fence': 1,
            'asked': 1,
            'next_try_at': 2.0**31,
            'created_at': at(s, s.n),
        },
    )
    yield (
        engine.Transition.__table__,
        sizes.journal,
        lambda s: {
            'resource': 'share_instance',
            'resource_id': s.id(2, s.n),
            'event': 'created',
            'from_status': 'creating',
            'to_status': 'available',
            'made_at': at(s, s.n),
            'is_sent': sa.true(),
        },
    )
    yield (
        services.Message.__table__,
        sizes.messages,
        lambda s: {
            'id': s.id(9, s.n),
            'project_id': s.text('project-', 1000, s.n % sizes.projects),
            'message_level': 'ERROR',
            'action_id': '001',
            'created_at': at(s, s.n),
            'expires_at': now + datetime.timedelta(days=30),
        },
    )
