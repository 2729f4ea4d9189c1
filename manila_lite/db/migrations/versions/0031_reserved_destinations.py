"""What share server migrations have reserved on their destinations."""

from alembic import op
import sqlalchemy as sa

from manila_lite.db.migrations.kinds import DOCUMENT

revision = '0031'
down_revision = '0030'


def upgrade() -> None:
    op.add_column('share_server_migrations', sa.Column('reserved', DOCUMENT))


def downgrade() -> None:
    op.drop_column('share_server_migrations', 'reserved')
