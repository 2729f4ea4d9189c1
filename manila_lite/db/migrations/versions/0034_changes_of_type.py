"""The share type that a migration gives to a share."""

from alembic import op
import sqlalchemy as sa

from manila_lite.db.migrations.kinds import ID

revision = '0034'
down_revision = '0033'


def upgrade() -> None:
    op.add_column('share_migrations', sa.Column('new_share_type_id', ID))


def downgrade() -> None:
    op.drop_column('share_migrations', 'new_share_type_id')
