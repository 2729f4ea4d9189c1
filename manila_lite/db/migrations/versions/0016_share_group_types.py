"""Share group types, their specs, and the projects of private ones."""

from alembic import op
import sqlalchemy as sa

from manila_lite.db.migrations.kinds import ID, NAME, OPTIONS, STAMP

revision = '0016'
down_revision = '0015'


def upgrade() -> None:
    op.create_table(
        'share_group_types',
        sa.Column('id', ID, primary_key=True),
        sa.Column('name', NAME, nullable=False),
        sa.Column('is_public', sa.Boolean, nullable=False),
        sa.Column('created_at', STAMP, nullable=False),
        sa.Column('updated_at', STAMP),
        sa.UniqueConstraint('name'),
        **OPTIONS,
    )
    op.create_table(
        'share_group_type_share_type_mappings',
        _group_type(),
        sa.Column(
            'share_type_id',
            ID,
            sa.ForeignKey('share_types.id'),
            primary_key=True,
            index=True,
        ),
        **OPTIONS,
    )
    op.create_table(
        'share_group_type_specs',
        _group_type(),
        sa.Column('spec_key', NAME, primary_key=True),
        sa.Column('spec_value', NAME, nullable=False),
        **OPTIONS,
    )
    op.create_table(
        'share_group_type_projects',
        _group_type(),
        sa.Column('project_id', NAME, primary_key=True),
        **OPTIONS,
    )


def _group_type() -> sa.Column:
    return sa.Column(
        'share_group_type_id',
        ID,
        sa.ForeignKey('share_group_types.id', ondelete='CASCADE'),
        primary_key=True,
    )


def downgrade() -> None:
    for table in (
        'share_group_type_projects',
        'share_group_type_specs',
        'share_group_type_share_type_mappings',
        'share_group_types',
    ):
        op.drop_table(table)
