"""Samples of figures over time."""

from alembic import op
import sqlalchemy as sa

from manila_lite.db.migrations.kinds import DOCUMENT, NAME, OPTIONS

revision = '0044'
down_revision = '0043'


def upgrade() -> None:
    op.create_table(
        'samples',
        sa.Column('source', NAME, primary_key=True),
        sa.Column('resolution', sa.Integer, primary_key=True, autoincrement=False),
        sa.Column('slot', sa.Integer, primary_key=True, autoincrement=False),
        sa.Column('figures', DOCUMENT, nullable=False),
        **OPTIONS,
    )
    op.create_index(None, 'samples', ['resolution', 'slot'])


def downgrade() -> None:
    op.drop_table('samples')
