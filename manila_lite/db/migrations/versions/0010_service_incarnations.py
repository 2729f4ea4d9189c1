"""Services: a row per process that serves a host."""

from alembic import op
import sqlalchemy as sa

from manila_lite.db.migrations.kinds import COUNTER, ID, OPTIONS

revision = '0010'
down_revision = '0009'


def upgrade() -> None:
    # A process of the release before this one writes services only; until
    # the next heartbeat of a newer process its values are shown.
    op.create_table(
        'service_incarnations',
        sa.Column(
            'service_id',
            COUNTER,
            sa.ForeignKey('services.id', ondelete='CASCADE'),
            primary_key=True,
        ),
        sa.Column('incarnation', ID, primary_key=True),
        sa.Column('started_at', sa.Double, nullable=False),
        sa.Column('heartbeat_at', sa.Double, nullable=False),
        sa.Column('ready_at', sa.Double),
        sa.Column('health', sa.Text),
        **OPTIONS,
    )
    op.create_index(None, 'service_incarnations', ['heartbeat_at'])


def downgrade() -> None:
    op.drop_table('service_incarnations')
