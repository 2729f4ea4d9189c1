"""Resource locks."""

from alembic import op
import sqlalchemy as sa

from manila_lite.db.migrations.kinds import ID, NAME, OPTIONS, STAMP

revision = '0004'
down_revision = '0003'


def upgrade() -> None:
    op.create_table(
        'resource_locks',
        sa.Column('id', ID, primary_key=True),
        sa.Column('user_id', NAME, nullable=False),
        sa.Column('project_id', NAME, nullable=False),
        sa.Column('lock_context', sa.String(16), nullable=False),
        sa.Column('resource_id', ID, nullable=False),
        sa.Column('resource_type', sa.String(64), nullable=False),
        sa.Column('resource_action', sa.String(64), nullable=False),
        sa.Column('lock_reason', sa.String(1023)),
        sa.Column(
            'share_id',
            ID,
            sa.ForeignKey('shares.id', ondelete='CASCADE'),
            nullable=False,
        ),
        sa.Column(
            'access_id', ID, sa.ForeignKey('share_access_map.id', ondelete='CASCADE')
        ),
        sa.Column(
            'because_of', ID, sa.ForeignKey('resource_locks.id', ondelete='CASCADE')
        ),
        sa.Column('created_at', STAMP, nullable=False),
        sa.Column('updated_at', STAMP),
        **OPTIONS,
    )
    op.create_index(None, 'resource_locks', ['access_id'])
    op.create_index(None, 'resource_locks', ['because_of'])
    op.create_index(None, 'resource_locks', ['created_at', 'id'])
    op.create_index(None, 'resource_locks', ['project_id', 'created_at', 'id'])
    op.create_index(None, 'resource_locks', ['resource_id', 'resource_action'])
    op.create_index(None, 'resource_locks', ['share_id', 'resource_action'])


def downgrade() -> None:
    op.drop_table('resource_locks')
