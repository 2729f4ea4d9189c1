"""The share network that a migration moves a share to."""

from alembic import op
import sqlalchemy as sa

from manila_lite.db.migrations.kinds import ID

revision = '0036'
down_revision = '0035'


def upgrade() -> None:
    op.add_column('share_migrations', sa.Column('destination_network_id', ID))


def downgrade() -> None:
    op.drop_column('share_migrations', 'destination_network_id')
