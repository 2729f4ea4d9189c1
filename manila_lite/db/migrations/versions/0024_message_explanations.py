"""What administrators read in a user message about placement."""

from alembic import op
import sqlalchemy as sa

revision = '0024'
down_revision = '0023'


def upgrade() -> None:
    op.add_column('messages', sa.Column('explanation', sa.Text()))


def downgrade() -> None:
    op.drop_column('messages', 'explanation')
