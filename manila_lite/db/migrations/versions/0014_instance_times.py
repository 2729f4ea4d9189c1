"""When share instances were given a host, and first available."""

from alembic import op
import sqlalchemy as sa

from manila_lite.db.migrations.kinds import STAMP

revision = '0014'
down_revision = '0013'

_COLUMNS = ('scheduled_at', 'launched_at')


def upgrade() -> None:
    for name in _COLUMNS:
        op.add_column('share_instances', sa.Column(name, STAMP))


def downgrade() -> None:
    for name in reversed(_COLUMNS):
        op.drop_column('share_instances', name)
