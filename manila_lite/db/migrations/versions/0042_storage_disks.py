"""Which disk belongs to which pool; deletions that have begun."""

from alembic import op
import sqlalchemy as sa

from manila_lite.db.migrations.kinds import ID, NAME, OPTIONS, STAMP

revision = '0042'
down_revision = '0041'


def upgrade() -> None:
    op.create_table(
        'storage_disks',
        sa.Column('host', NAME, primary_key=True),
        sa.Column('identity', ID),
        sa.Column('file_system', sa.String(64)),
        sa.Column('location', sa.String(1023)),
        sa.Column('created_at', STAMP, nullable=False),
        sa.Column('updated_at', STAMP),
        sa.UniqueConstraint('identity'),
        **OPTIONS,
    )
    op.add_column('share_instances', sa.Column('removal_began_at', STAMP))


def downgrade() -> None:
    op.drop_column('share_instances', 'removal_began_at')
    op.drop_table('storage_disks')
