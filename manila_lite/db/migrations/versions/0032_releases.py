"""The releases of processes, and which release work needs."""

from alembic import op
import sqlalchemy as sa

revision = '0032'
down_revision = '0031'


def upgrade() -> None:
    for column in (
        sa.Column('release_number', sa.Integer()),
        sa.Column('version', sa.String(64)),
        sa.Column('schema_version', sa.String(32)),
    ):
        op.add_column('service_incarnations', column)
    op.add_column('work', sa.Column('needs_release', sa.Integer()))


def downgrade() -> None:
    op.drop_column('work', 'needs_release')
    for name in ('schema_version', 'version', 'release_number'):
        op.drop_column('service_incarnations', name)
