"""QoS types, their specs, and the QoS types of share instances."""

from alembic import op
import sqlalchemy as sa

from manila_lite.db.migrations.kinds import ID, NAME, OPTIONS, STAMP

revision = '0021'
down_revision = '0020'


def upgrade() -> None:
    op.create_table(
        'qos_types',
        sa.Column('id', ID, primary_key=True),
        sa.Column('name', NAME, nullable=False),
        sa.Column('description', NAME),
        sa.Column('created_at', STAMP, nullable=False),
        sa.Column('updated_at', STAMP),
        sa.UniqueConstraint('name'),
        **OPTIONS,
    )
    op.create_index(None, 'qos_types', ['created_at', 'id'])
    op.create_table(
        'qos_type_specs',
        sa.Column(
            'qos_type_id',
            ID,
            sa.ForeignKey('qos_types.id', ondelete='CASCADE'),
            primary_key=True,
        ),
        sa.Column('spec_key', NAME, primary_key=True),
        sa.Column('spec_value', NAME, nullable=False),
        **OPTIONS,
    )
    # SQLite cannot add a foreign key to a table.
    op.add_column('share_instances', sa.Column('qos_type_id', ID))
    op.create_index(None, 'share_instances', ['qos_type_id'])


def downgrade() -> None:
    op.drop_index('ix_share_instances_qos_type_id', 'share_instances')
    op.drop_column('share_instances', 'qos_type_id')
    op.drop_table('qos_type_specs')
    op.drop_table('qos_types')
