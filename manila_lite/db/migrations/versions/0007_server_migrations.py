"""What is known of the migrations of share servers."""

from alembic import op
import sqlalchemy as sa

from manila_lite.db.migrations.kinds import ID, NAME, OPTIONS, STAMP

revision = '0007'
down_revision = '0006'


def upgrade() -> None:
    op.create_table(
        'share_server_migrations',
        sa.Column('id', ID, primary_key=True),
        sa.Column('source_server_id', ID, nullable=False),
        sa.Column('destination_server_id', ID),
        sa.Column('open_for', ID),
        sa.Column('source_host', NAME, nullable=False),
        sa.Column('destination_host', NAME, nullable=False),
        sa.Column('destination_pool', NAME),
        sa.Column('old_share_network_id', ID),
        sa.Column('new_share_network_id', ID),
        sa.Column('writable', sa.Boolean, nullable=False),
        sa.Column('nondisruptive', sa.Boolean, nullable=False),
        sa.Column('preserve_snapshots', sa.Boolean, nullable=False),
        sa.Column('phase', sa.Integer, nullable=False),
        sa.Column('outcome', NAME),
        sa.Column('can_cancel', sa.Boolean, nullable=False),
        sa.Column('tells_progress', sa.Boolean, nullable=False),
        sa.Column('made_destination', sa.Boolean, nullable=False),
        sa.Column('is_set_up', sa.Boolean, nullable=False),
        sa.Column('casts_rules', sa.Boolean, nullable=False),
        sa.Column('progress', sa.Integer),
        sa.Column('heard_at', STAMP),
        sa.Column('error', sa.String(1000)),
        sa.Column('project_id', NAME),
        sa.Column('user_id', NAME),
        sa.Column('created_at', STAMP, nullable=False),
        sa.Column('updated_at', STAMP),
        sa.Column('ended_at', STAMP),
        sa.UniqueConstraint('open_for'),
        **OPTIONS,
    )
    op.create_index(None, 'share_server_migrations', ['source_server_id', 'created_at'])
    op.create_index(None, 'share_server_migrations', ['destination_server_id'])
    op.create_index(None, 'share_server_migrations', ['ended_at'])


def downgrade() -> None:
    op.drop_table('share_server_migrations')
