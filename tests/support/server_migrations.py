"""A cloud whose share servers migrate between two back ends."""

import sqlalchemy as sa

from manila_lite.db.models import migrations as server_migrations, shares, snapshots
from tests.support.cloud_images import prepared
from tests.support.dhss import ShareServersCloud

MIGRATION = server_migrations.ServerMigration.__table__
INSTANCE = shares.ShareInstance.__table__
SNAPSHOT_INSTANCE = snapshots.SnapshotInstance.__table__
EXPORT = shares.ExportLocation.__table__

# Simulated seconds between two polls of the driver.
SHORT_POLL_INTERVAL = 'server_migration_driver_continue_update_interval = 5\n'

MIGRATION_OPTIONS = {
    'writable': True,
    'nondisruptive': False,
    'preserve_snapshots': True,
}


class ServerMigrationCloud(ShareServersCloud):
    """Two back ends with share servers."""

    def configure(self, *, backend_conf='', extra_conf=''):
        super().configure(
            backend_conf=backend_conf, extra_conf=SHORT_POLL_INTERVAL + extra_conf
        )

    @prepared
    def create_share_on_alpha(self, network_id, **body):
        """Create a share on the back end alpha and return its id."""
        self.disable('beta', True)
        share_id = self.create_share_on_network(network_id, **body)
        self.disable('beta', False)
        return share_id

    def disable(self, name, disabled):
        self.api.request(
            'PUT',
            '/services/' + ('disable' if disabled else 'enable'),
            {'host': f'node@{name}', 'binary': 'manila-share'},
            expect=200,
        )

    @prepared
    def snapshot(self, share_id):
        answer = self.api.request(
            'POST', '/snapshots', {'snapshot': {'share_id': share_id}}, expect=202
        )
        self.settle()
        return answer.json['snapshot']['id']

    @prepared
    def allow(self, share_id, access_to='10.1.1.1', level='rw'):
        self.api.act(
            share_id,
            'allow_access',
            {'access_type': 'ip', 'access_to': access_to, 'access_level': level},
            expect=200,
        )
        self.settle()

    # Requests

    def act(self, server_id, action, args=None, expect=None, version='2.99'):
        return self.api.request(
            'POST',
            f'/share-servers/{server_id}/action',
            {action: args},
            expect=expect,
            version=version,
        )

    def start(self, server_id, host='node@beta', expect=202, **options):
        return self.act(
            server_id,
            'migration_start',
            {'host': host, **MIGRATION_OPTIONS, **options},
            expect,
        )

    def check(self, server_id, host='node@beta', expect=200, **options):
        return self.act(
            server_id,
            'migration_check',
            {
                'host': host,
                'new_share_network_id': None,
                **MIGRATION_OPTIONS,
                **options,
            },
            expect,
        ).json

    def complete(self, server_id, expect=200):
        return self.act(server_id, 'migration_complete', expect=expect).json

    def cancel(self, server_id, expect=202):
        return self.act(server_id, 'migration_cancel', expect=expect)

    def progress(self, server_id, expect=200):
        return self.act(server_id, 'migration_get_progress', expect=expect).json

    @prepared
    def start_to_phase1(self, server_id, **options):
        """Start a migration and run it to the end of its first phase."""
        self.start(server_id, **options)
        self.settle()
        assert self.server(server_id)['task_state'] == ('migration_driver_phase1_done')

    def server(self, server_id, expect=200):
        return self.api.get(f'/share-servers/{server_id}', expect=expect).get(
            'share_server'
        )

    def migrations(self):
        return self.rows(sa.select(MIGRATION).order_by(MIGRATION.c.created_at))

    def instance(self, share_id):
        (row,) = self.rows(sa.select(INSTANCE).where(INSTANCE.c.share_id == share_id))
        return row

    def exports(self, share_id):
        """Return the export paths of a share, for users and administrators."""
        return {
            row.path
            for row in self.rows(
                sa.select(EXPORT.c.path)
                .join(INSTANCE)
                .where(INSTANCE.c.share_id == share_id)
            )
        }

    def state_summary(self):
        """Return everything that describes the current state, to compare."""
        return {
            'servers': {
                row.id: (row.status, row.host, row.share_network_id)
                for row in self.servers()
            },
            'shares': {
                row.id: (
                    row.status,
                    row.host,
                    row.share_server_id,
                    row.cast_rules_to_readonly,
                )
                for row in self.rows(sa.select(INSTANCE))
            },
            'snapshots': {
                row.id: (row.status, row.provider_location)
                for row in self.rows(sa.select(SNAPSHOT_INSTANCE))
            },
            'exports': {
                (row.share_instance_id, row.path)
                for row in self.rows(sa.select(EXPORT))
            },
            'addresses': self.addresses(),
            'inventories': [
                self.driver(name).inventory() for name in self.backend_names
            ],
            'clients': [
                self.driver(name).access_inventory() for name in self.backend_names
            ],
        }

    def has_no_incoming_servers(self):
        return not any(self.driver(name).incoming() for name in self.backend_names)
