"""What drivers store about the resources that they manage."""

from alembic import op
import sqlalchemy as sa

from manila_lite.db.migrations.kinds import ID, NAME, OPTIONS, STAMP

revision = '0011'
down_revision = '0010'


def upgrade() -> None:
    op.create_table(
        'drivers_private_data',
        sa.Column('entity_uuid', ID, primary_key=True),
        sa.Column('key', NAME, primary_key=True),
        sa.Column('value', sa.String(1023), nullable=False),
        sa.Column('created_at', STAMP, nullable=False),
        sa.Column('updated_at', STAMP),
        **OPTIONS,
    )


def downgrade() -> None:
    op.drop_table('drivers_private_data')
