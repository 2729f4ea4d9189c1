"""The service of a host in a column, which the database computes.

Rows that a process of the previous release writes have it, too.
"""

from alembic import op
import sqlalchemy as sa

from manila_lite.db.migrations.kinds import NAME

revision = '0012'
down_revision = '0011'

_SERVICE_HOST = {
    'sqlite': "substr(host, 1, instr(host || '#', '#') - 1)",
    'mysql': "substring_index(host, '#', 1)",
    'postgresql': "split_part(host, '#', 1)",
}
_INDEXED = {
    'share_instances': (
        ['service_host', 'status', 'id'],
        ['service_host', 'replica_state', 'id'],
    ),
    'recovery_log': (['service_host', 'id'],),
}


def upgrade() -> None:
    dialect = op.get_bind().dialect.name
    for table, indexes in _INDEXED.items():
        op.add_column(
            table,
            sa.Column(
                'service_host',
                NAME,
                sa.Computed(
                    _SERVICE_HOST[dialect],
                    # SQLite cannot add a stored one.
                    persisted=dialect != 'sqlite',
                ),
            ),
        )
        for columns in indexes:
            op.create_index(None, table, columns)
    op.create_index(None, 'share_snapshot_instances', ['access_doubted'])


def downgrade() -> None:
    op.drop_index(
        'ix_share_snapshot_instances_access_doubted', 'share_snapshot_instances'
    )
    for table, indexes in _INDEXED.items():
        for columns in indexes:
            op.drop_index(f'ix_{table}_{"_".join(columns)}', table)
        op.drop_column(table, 'service_host')
