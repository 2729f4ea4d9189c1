"""Which moves of the journal were sent as events, and what these say."""

from alembic import op
import sqlalchemy as sa

from manila_lite.db.migrations.kinds import COUNTER, ID, NAME

revision = '0025'
down_revision = '0024'


def upgrade() -> None:
    op.add_column('transitions', sa.Column('parent_id', ID))
    op.add_column('transitions', sa.Column('project_id', NAME))
    op.add_column('transitions', sa.Column('reason', sa.Text()))
    op.add_column('transitions', sa.Column('is_sent', sa.Boolean()))
    op.create_index(None, 'transitions', ['is_sent', 'id'])
    op.add_column('cluster_tasks', sa.Column('position', COUNTER))


def downgrade() -> None:
    op.drop_column('cluster_tasks', 'position')
    op.drop_index('ix_transitions_is_sent_id', 'transitions')
    for name in ('is_sent', 'reason', 'project_id', 'parent_id'):
        op.drop_column('transitions', name)
