"""What drivers report about a server migration beside the percentage."""

from alembic import op
import sqlalchemy as sa

from manila_lite.db.migrations.kinds import DOCUMENT

revision = '0015'
down_revision = '0014'


def upgrade() -> None:
    op.add_column('share_server_migrations', sa.Column('progress_details', DOCUMENT))


def downgrade() -> None:
    op.drop_column('share_server_migrations', 'progress_details')
