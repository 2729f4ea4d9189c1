"""The second release: everything since the first one.

It replaces the migrations 0027 to 0045, which were in no release. A database
of the first release or of revision 0045 is upgraded; one at a revision between
is refused, with its number.

The order is that of the former migrations: an upgrade that was interrupted on
MariaDB goes on after those of its statements that have run.
"""

from alembic import op
import sqlalchemy as sa

from manila_lite.db.migrations.kinds import COUNTER, DOCUMENT, ID, NAME, OPTIONS, STAMP

revision = '0045'
down_revision = '0026'


def upgrade() -> None:
    # Encryption keys in use, which are limited by a quota.
    op.create_table(
        'encryption_keys',
        sa.Column('project_id', NAME, primary_key=True),
        sa.Column('key_ref', ID, primary_key=True),
        sa.Column('user_id', NAME),
        sa.Column('share_type_id', ID),
        sa.Column('uses', sa.Integer, nullable=False),
        **OPTIONS,
    )
    # Which migrations of shares are copied by the data service.
    op.add_column(
        'share_migrations',
        sa.Column('host_assisted', sa.Boolean(), nullable=False, server_default='0'),
    )
    # Calls of drivers.
    op.create_table(
        'driver_calls',
        sa.Column('id', ID, primary_key=True),
        sa.Column('resource', sa.String(64), nullable=False),
        sa.Column('resource_id', ID, nullable=False),
        sa.Column('method', sa.String(128), nullable=False),
        sa.Column('host', NAME, nullable=False),
        sa.Column('work_id', ID, nullable=False),
        sa.Column('attempt', sa.Integer, nullable=False),
        sa.Column('request_id', NAME),
        sa.Column('started_at', STAMP, nullable=False),
        sa.Column('ended_at', STAMP),
        sa.Column('outcome', sa.String(16)),
        sa.Column('error', sa.Text),
        **OPTIONS,
    )
    op.create_index(None, 'driver_calls', ['resource', 'resource_id', 'started_at'])
    op.create_index(None, 'driver_calls', ['started_at'])
    # Backups of shares.
    op.create_table(
        'share_backups',
        sa.Column('id', ID, primary_key=True),
        sa.Column('share_id', ID, sa.ForeignKey('shares.id'), nullable=False),
        sa.Column('project_id', NAME, nullable=False),
        sa.Column('user_id', NAME),
        sa.Column('name', NAME),
        sa.Column('description', NAME),
        sa.Column('status', NAME, nullable=False),
        sa.Column('size', sa.Integer, nullable=False),
        sa.Column('host', NAME),
        sa.Column('topic', NAME, nullable=False),
        sa.Column('backup_type', NAME),
        sa.Column('progress', sa.Integer, nullable=False),
        sa.Column('restore_progress', sa.Integer, nullable=False),
        sa.Column('restore_share_id', ID),
        sa.Column('availability_zone_id', ID, sa.ForeignKey('availability_zones.id')),
        sa.Column('created_at', STAMP, nullable=False),
        sa.Column('updated_at', STAMP),
        **OPTIONS,
    )
    for columns in (
        ['project_id', 'created_at', 'id'],
        ['created_at', 'id'],
        ['status'],
        ['share_id'],
        ['restore_share_id'],
    ):
        op.create_index(None, 'share_backups', columns)
    # What share server migrations have reserved on their destinations.
    op.add_column('share_server_migrations', sa.Column('reserved', DOCUMENT))
    # The releases of processes, and which release work needs.
    for column in (
        sa.Column('release_number', sa.Integer()),
        sa.Column('version', sa.String(64)),
        sa.Column('schema_version', sa.String(32)),
    ):
        op.add_column('service_incarnations', column)
    op.add_column('work', sa.Column('needs_release', sa.Integer()))
    # When replicas had the content of their shares.
    op.add_column(
        'share_instances',
        sa.Column(
            'synced_at',
            STAMP,
            nullable=False,
            server_default='9999-12-31 00:00:00.000000',
        ),
    )
    op.create_index(None, 'share_instances', ['service_host', 'synced_at'])
    # The share type that a migration gives to a share.
    op.add_column('share_migrations', sa.Column('new_share_type_id', ID))
    # What a request says to the driver that makes a backup.
    op.add_column('share_backups', sa.Column('backup_options', DOCUMENT))
    # The share network that a migration moves a share to.
    op.add_column('share_migrations', sa.Column('destination_network_id', ID))
    # The share networks and share servers of share groups.
    op.create_index(None, 'share_groups', ['share_network_id'])
    op.create_index(None, 'share_groups', ['share_server_id'])
    # Find the messages about a resource among many.
    op.create_index(None, 'messages', ['resource_id', 'created_at'])
    # The id of a transaction, by which its outcome is found.
    op.add_column('transitions', sa.Column('transaction_id', ID))
    op.create_index(None, 'transitions', ['transaction_id'], unique=True)
    # The copy that a data service keeps, and the position of a restore.
    op.add_column('share_backups', sa.Column('kept_copy', DOCUMENT))
    op.add_column('share_backups', sa.Column('restore_position', COUNTER))
    # What a process lacks although it serves.
    op.add_column('service_incarnations', sa.Column('warning', sa.Text()))
    # Which disk belongs to which pool; deletions that have begun.
    op.create_table(
        'storage_disks',
        sa.Column('host', NAME, primary_key=True),
        sa.Column('identity', ID),
        sa.Column('file_system', sa.String(64)),
        sa.Column('location', sa.String(1023)),
        sa.Column('created_at', STAMP, nullable=False),
        sa.Column('updated_at', STAMP),
        sa.UniqueConstraint('identity'),
        **OPTIONS,
    )
    op.add_column('share_instances', sa.Column('removal_began_at', STAMP))
    # Mount point names in use are found by an index.
    op.create_index(None, 'share_instances', ['mount_point_name'])
    # Samples of figures over time.
    op.create_table(
        'samples',
        sa.Column('source', NAME, primary_key=True),
        sa.Column('resolution', sa.Integer, primary_key=True, autoincrement=False),
        sa.Column('slot', sa.Integer, primary_key=True, autoincrement=False),
        sa.Column('figures', DOCUMENT, nullable=False),
        **OPTIONS,
    )
    op.create_index(None, 'samples', ['resolution', 'slot'])
    # The newest messages of all projects are found by an index.
    op.create_index(None, 'messages', ['created_at', 'id'])


def downgrade() -> None:
    op.drop_index('ix_messages_created_at_id', 'messages')
    op.drop_table('samples')
    op.drop_index('ix_share_instances_mount_point_name', 'share_instances')
    op.drop_column('share_instances', 'removal_began_at')
    op.drop_table('storage_disks')
    op.drop_column('service_incarnations', 'warning')
    op.drop_column('share_backups', 'restore_position')
    op.drop_column('share_backups', 'kept_copy')
    op.drop_index('ix_transitions_transaction_id', 'transitions')
    op.drop_column('transitions', 'transaction_id')
    op.drop_index('ix_messages_resource_id_created_at', 'messages')
    op.drop_index('ix_share_groups_share_server_id', 'share_groups')
    op.drop_index('ix_share_groups_share_network_id', 'share_groups')
    op.drop_column('share_migrations', 'destination_network_id')
    op.drop_column('share_backups', 'backup_options')
    op.drop_column('share_migrations', 'new_share_type_id')
    op.drop_index('ix_share_instances_service_host_synced_at', 'share_instances')
    op.drop_column('share_instances', 'synced_at')
    op.drop_column('work', 'needs_release')
    for name in ('schema_version', 'version', 'release_number'):
        op.drop_column('service_incarnations', name)
    op.drop_column('share_server_migrations', 'reserved')
    op.drop_table('share_backups')
    op.drop_table('driver_calls')
    op.drop_column('share_migrations', 'host_assisted')
    op.drop_table('encryption_keys')
