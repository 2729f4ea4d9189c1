"""When addresses of share servers were freed."""

from alembic import op
import sqlalchemy as sa

from manila_lite.db.migrations.kinds import OPTIONS, STAMP

revision = '0017'
down_revision = '0016'


def upgrade() -> None:
    op.create_table(
        'freed_addresses',
        sa.Column('segment', sa.String(128), primary_key=True),
        sa.Column('ip_address', sa.String(64), primary_key=True),
        sa.Column('freed_at', STAMP, nullable=False),
        **OPTIONS,
    )


def downgrade() -> None:
    op.drop_table('freed_addresses')
