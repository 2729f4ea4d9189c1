"""The copy that a data service keeps, and the position of a restore."""

from alembic import op
import sqlalchemy as sa

from manila_lite.db.migrations.kinds import COUNTER, DOCUMENT

revision = '0040'
down_revision = '0039'


def upgrade() -> None:
    op.add_column('share_backups', sa.Column('kept_copy', DOCUMENT))
    op.add_column('share_backups', sa.Column('restore_position', COUNTER))


def downgrade() -> None:
    op.drop_column('share_backups', 'restore_position')
    op.drop_column('share_backups', 'kept_copy')
