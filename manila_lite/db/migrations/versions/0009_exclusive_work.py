"""Work that has its resource to itself, and fences that are times."""

from alembic import op
import sqlalchemy as sa

from manila_lite.db.migrations.kinds import NAME

revision = '0009'
down_revision = '0008'


def upgrade() -> None:
    # Nullable: a process of the release before this one goes on writing.
    op.add_column('work', sa.Column('exclusion_key', NAME))
    op.add_column('work', sa.Column('running_key', NAME))
    op.create_index(None, 'work', ['running_key'], unique=True)
    _change_fence(sa.BigInteger())


def downgrade() -> None:
    # Fences are compared for equality only within one claim.
    op.execute(sa.text('UPDATE work SET fence = 0'))
    _change_fence(sa.Integer())
    op.drop_index('ix_work_running_key', 'work')
    op.drop_column('work', 'running_key')
    op.drop_column('work', 'exclusion_key')


def _change_fence(kind: sa.types.TypeEngine) -> None:
    if op.get_context().dialect.name == 'sqlite':
        return  # its integers have 64 bits
    op.alter_column('work', 'fence', type_=kind, existing_nullable=False)
