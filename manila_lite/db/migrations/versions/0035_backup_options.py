"""What a request says to the driver that makes a backup."""

from alembic import op
import sqlalchemy as sa

from manila_lite.db.migrations.kinds import DOCUMENT

revision = '0035'
down_revision = '0034'


def upgrade() -> None:
    op.add_column('share_backups', sa.Column('backup_options', DOCUMENT))


def downgrade() -> None:
    op.drop_column('share_backups', 'backup_options')
