"""The id of a transaction, by which its outcome is found."""

from alembic import op
import sqlalchemy as sa

from manila_lite.db.migrations.kinds import ID

revision = '0039'
down_revision = '0038'


def upgrade() -> None:
    op.add_column('transitions', sa.Column('transaction_id', ID))
    op.create_index(None, 'transitions', ['transaction_id'], unique=True)


def downgrade() -> None:
    op.drop_index('ix_transitions_transaction_id', 'transitions')
    op.drop_column('transitions', 'transaction_id')
