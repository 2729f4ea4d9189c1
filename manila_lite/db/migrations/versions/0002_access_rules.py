"""Access rules, and how far each has come on each share instance."""

from alembic import op
import sqlalchemy as sa

from manila_lite.db.migrations.kinds import ID, NAME, OPTIONS, STAMP

revision = '0002'
down_revision = '0001'


def upgrade() -> None:
    op.create_table(
        'share_access_map',
        sa.Column('id', ID, primary_key=True),
        sa.Column(
            'share_id',
            ID,
            sa.ForeignKey('shares.id', ondelete='CASCADE'),
            nullable=False,
        ),
        sa.Column('access_type', sa.String(64), nullable=False),
        sa.Column('access_to', NAME, nullable=False),
        sa.Column('target', NAME, nullable=False),
        sa.Column('access_level', sa.String(2), nullable=False),
        sa.Column('created_at', STAMP, nullable=False),
        sa.Column('updated_at', STAMP),
        sa.UniqueConstraint('share_id', 'access_type', 'target'),
        **OPTIONS,
    )
    op.create_index(None, 'share_access_map', ['share_id', 'created_at', 'id'])
    op.create_table(
        'share_access_rules_metadata',
        sa.Column(
            'access_id',
            ID,
            sa.ForeignKey('share_access_map.id', ondelete='CASCADE'),
            primary_key=True,
        ),
        sa.Column('key', NAME, primary_key=True),
        sa.Column('value', sa.String(1023), nullable=False),
        **OPTIONS,
    )
    op.create_table(
        'share_instance_access_map',
        sa.Column('id', ID, primary_key=True),
        sa.Column(
            'share_instance_id',
            ID,
            sa.ForeignKey('share_instances.id', ondelete='CASCADE'),
            nullable=False,
        ),
        sa.Column(
            'access_id',
            ID,
            sa.ForeignKey('share_access_map.id', ondelete='CASCADE'),
            nullable=False,
        ),
        sa.Column('state', sa.String(32), nullable=False),
        sa.Column('access_key', NAME),
        sa.Column('created_at', STAMP, nullable=False),
        sa.Column('updated_at', STAMP),
        sa.UniqueConstraint('access_id', 'share_instance_id'),
        **OPTIONS,
    )
    op.create_index(None, 'share_instance_access_map', ['share_instance_id', 'state'])
    op.create_index(None, 'share_instance_access_map', ['state'])
    op.add_column(
        'share_instances',
        sa.Column('access_doubted', sa.Boolean, nullable=False, server_default='0'),
    )
    op.create_index(None, 'share_instances', ['access_doubted'])


def downgrade() -> None:
    op.drop_index('ix_share_instances_access_doubted', 'share_instances')
    op.drop_column('share_instances', 'access_doubted')
    for table in (
        'share_instance_access_map',
        'share_access_rules_metadata',
        'share_access_map',
    ):
        op.drop_table(table)
