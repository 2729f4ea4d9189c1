"""Inserts many replicas into the database, healthy and at rest."""

import sqlalchemy as sa

from manila_lite.db.models import access, shares, snapshots
from manila_lite.db.session import Session
from tests.support.rows import SHARE_FLAGS

RULE = access.AccessRule.__table__
MAPPING = access.InstanceAccessRule.__table__
EXPORT = shares.ExportLocation.__table__


def insert_replicated_shares(
    session: Session,
    number: int,
    *,
    type_id: str | None,
    active_on: str,
    passive_on: str,
    project: str = 'project',
    share_server_id: str | None = None,
) -> list[str]:
    """Insert shares with two replicas each; return ids of the passive ones.

    Each has an access rule, a snapshot and an export location. The hosts
    are host@backend#pool.
    """
    now, passive = session.now, []
    rows: dict[sa.Table, list[dict[str, object]]] = {}

    def add(table: sa.Table, **values: object) -> None:
        rows.setdefault(table, []).append(values)

    for count in range(number):
        share_id, rule_id, snapshot_id = (session.new_id() for _ in 'abc')
        add(
            shares.Share.__table__,
            id=share_id,
            project_id=project,
            user_id='user',
            size=1,
            share_proto='NFS',
            display_name=f'share {count}',
            replication_type='readable',
            created_at=now,
            **SHARE_FLAGS,
        )
        add(
            RULE,
            id=rule_id,
            share_id=share_id,
            access_type='ip',
            access_to='10.0.0.1',
            target='10.0.0.1',
            access_level='rw',
            created_at=now,
        )
        add(
            snapshots.Snapshot.__table__,
            id=snapshot_id,
            project_id=project,
            user_id='user',
            share_id=share_id,
            size=1,
            share_size=1,
            share_proto='NFS',
            created_at=now,
        )
        for host, state in ((active_on, 'active'), (passive_on, 'in_sync')):
            id = session.new_id()
            add(
                shares.ShareInstance.__table__,
                id=id,
                share_id=share_id,
                host=host,
                status='available',
                share_type_id=type_id,
                access_rules_status='active',
                replica_state=state,
                cast_rules_to_readonly=state != 'active',
                sole_active_of=share_id if state == 'active' else None,
                share_server_id=share_server_id,
                created_at=now,
            )
            add(
                MAPPING,
                id=session.new_id(),
                access_id=rule_id,
                share_instance_id=id,
                state='active',
                created_at=now,
            )
            add(
                EXPORT,
                id=session.new_id(),
                share_instance_id=id,
                path=f'10.0.0.10:/{id}',
                is_admin_only=False,
                created_at=now,
                updated_at=now,
            )
            add(
                snapshots.SnapshotInstance.__table__,
                id=session.new_id(),
                snapshot_id=snapshot_id,
                share_instance_id=id,
                status='available',
                progress='100%',
                created_at=now,
            )
            if state != 'active':
                passive.append(id)
    for table, values in rows.items():
        session.run_many(sa.insert(table), values)
    return passive
