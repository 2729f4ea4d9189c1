"""Lists of all projects are read by name, and by the path of an export."""

from alembic import op

revision = '0047'
down_revision = '0046'

_NAMED = ('shares', 'share_snapshots')
_EXPORTS = 'share_instance_export_locations'


def upgrade() -> None:
    for table in _NAMED:
        op.create_index(
            f'ix_{table}_display_name_created_at_id',
            table,
            ['display_name', 'created_at', 'id'],
        )
    op.create_index(
        f'ix_{_EXPORTS}_path',
        _EXPORTS,
        ['path'],
        mysql_length=191,
        mariadb_length=191,
        postgresql_using='hash',
    )


def downgrade() -> None:
    op.drop_index(f'ix_{_EXPORTS}_path', _EXPORTS)
    for table in _NAMED:
        op.drop_index(f'ix_{table}_display_name_created_at_id', table)
