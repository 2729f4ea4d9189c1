"""Encryption keys in use, which are limited by a quota."""

from alembic import op
import sqlalchemy as sa

from manila_lite.db.migrations.kinds import ID, NAME, OPTIONS

revision = '0027'
down_revision = '0026'


def upgrade() -> None:
    op.create_table(
        'encryption_keys',
        sa.Column('project_id', NAME, primary_key=True),
        sa.Column('key_ref', ID, primary_key=True),
        sa.Column('user_id', NAME),
        sa.Column('share_type_id', ID),
        sa.Column('uses', sa.Integer, nullable=False),
        **OPTIONS,
    )


def downgrade() -> None:
    op.drop_table('encryption_keys')
