"""What a user message says beside its published codes."""

from alembic import op
import sqlalchemy as sa

revision = '0018'
down_revision = '0017'


def upgrade() -> None:
    op.add_column('messages', sa.Column('reason', sa.Text()))


def downgrade() -> None:
    op.drop_column('messages', 'reason')
