"""What a process lacks although it serves."""

from alembic import op
import sqlalchemy as sa

revision = '0041'
down_revision = '0040'


def upgrade() -> None:
    op.add_column('service_incarnations', sa.Column('warning', sa.Text()))


def downgrade() -> None:
    op.drop_column('service_incarnations', 'warning')
