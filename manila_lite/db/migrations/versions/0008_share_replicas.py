"""Replicas: which is active, in which round, and their metadata."""

from alembic import op
import sqlalchemy as sa

from manila_lite.db.migrations.kinds import ID, NAME, OPTIONS

revision = '0008'
down_revision = '0007'

_SHARES = sa.table('shares', sa.column('id'), sa.column('replication_type'))
_INSTANCES = sa.table(
    'share_instances',
    sa.column('share_id'),
    sa.column('replica_state'),
    sa.column('sole_active_of'),
)


def upgrade() -> None:
    op.add_column('share_instances', sa.Column('sole_active_of', ID))
    op.add_column(
        'share_instances',
        sa.Column('replica_round', sa.Integer, nullable=False, server_default='0'),
    )
    op.create_index(None, 'share_instances', ['sole_active_of'], unique=True)
    op.create_index(None, 'share_instances', ['replica_state', 'id'])
    # Until now every share had but one instance.
    replicated = sa.select(_SHARES.c.id).where(_SHARES.c.replication_type.is_not(None))
    op.execute(
        sa.update(_INSTANCES)
        .where(_INSTANCES.c.share_id.in_(replicated))
        .values(replica_state='active')
    )
    op.execute(
        sa.update(_INSTANCES)
        .where(
            _INSTANCES.c.share_id.in_(
                replicated.where(_SHARES.c.replication_type != 'writable')
            )
        )
        .values(sole_active_of=_INSTANCES.c.share_id)
    )
    op.create_table(
        'share_instance_metadata',
        sa.Column(
            'share_instance_id',
            ID,
            sa.ForeignKey('share_instances.id', ondelete='CASCADE'),
            primary_key=True,
        ),
        sa.Column('key', NAME, primary_key=True),
        sa.Column('value', sa.String(1023), nullable=False),
        **OPTIONS,
    )


def downgrade() -> None:
    op.drop_table('share_instance_metadata')
    for columns in (['replica_state', 'id'], ['sole_active_of']):
        op.drop_index(f'ix_share_instances_{"_".join(columns)}', 'share_instances')
    for column in ('replica_round', 'sole_active_of'):
        op.drop_column('share_instances', column)
