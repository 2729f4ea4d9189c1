"""Share transfers."""

from alembic import op
import sqlalchemy as sa

from manila_lite.db.migrations.kinds import ID, NAME, OPTIONS, STAMP

revision = '0020'
down_revision = '0019'


def upgrade() -> None:
    op.create_table(
        'transfers',
        sa.Column('id', ID, primary_key=True),
        sa.Column('status', sa.String(16), nullable=False),
        sa.Column('resource_type', sa.String(36), nullable=False),
        sa.Column(
            'resource_id',
            ID,
            sa.ForeignKey('shares.id', ondelete='CASCADE'),
            nullable=False,
        ),
        sa.Column('display_name', NAME),
        sa.Column('salt', NAME, nullable=False),
        sa.Column('crypt_hash', NAME, nullable=False),
        sa.Column('source_project_id', NAME, nullable=False),
        sa.Column('destination_project_id', NAME),
        sa.Column('destination_user_id', NAME),
        sa.Column('clear_access_rules', sa.Boolean, nullable=False),
        sa.Column('expires_at', STAMP, nullable=False),
        sa.Column('created_at', STAMP, nullable=False),
        sa.Column('updated_at', STAMP),
        **OPTIONS,
    )
    op.create_index(None, 'transfers', ['created_at', 'id'])
    op.create_index(None, 'transfers', ['expires_at', 'id'])
    op.create_index(None, 'transfers', ['resource_id'], unique=True)
    op.create_index(None, 'transfers', ['source_project_id', 'created_at', 'id'])
    op.create_index(None, 'transfers', ['status'])


def downgrade() -> None:
    op.drop_table('transfers')
