"""A deleted message is still read with the resource that it is about."""

from alembic import op
import sqlalchemy as sa

from manila_lite.db.migrations.kinds import STAMP

revision = '0046'
down_revision = '0045'


def upgrade() -> None:
    op.add_column('messages', sa.Column('kept_until', STAMP))


def downgrade() -> None:
    op.drop_column('messages', 'kept_until')
