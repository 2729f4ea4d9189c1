"""Which migrations of shares are copied by the data service."""

from alembic import op
import sqlalchemy as sa

revision = '0028'
down_revision = '0027'


def upgrade() -> None:
    op.add_column(
        'share_migrations',
        sa.Column('host_assisted', sa.Boolean(), nullable=False, server_default='0'),
    )


def downgrade() -> None:
    op.drop_column('share_migrations', 'host_assisted')
