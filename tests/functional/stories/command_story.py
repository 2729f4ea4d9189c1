"""Every command of the official command line, in the order of a story."""

from tests.functional.stories import (
    access_commands,
    backup_commands,
    group_commands,
    move_commands,
    network_commands,
    transfer_commands,
    type_commands,
)
from tests.support.cli import Cli
from tests.support.make_run import DUMMIES
from tests.support.processes import wait_until

NEWEST = '2.98'
# Below these versions the client itself fails: it needs export locations,
# a task state or metadata.
CLIENT_MINIMUM = {
    'share show': '2.9',
    'share instance show': '2.9',
    'share set': '2.22',
    'share snapshot create': '2.73',
    'share snapshot show': '2.32',
}


class CommandStory:
    """Runs all commands, at one version of the API.

    Most of the shares are on the back end `dummy` of `make run`.
    """

    def __init__(self, installation, version):
        self.host = installation.service_host('dummy')
        self.other_host = installation.service_host('mirror')
        self.pending_work = installation.pending_work
        self.project_id = self.user_id = 'admin'
        self.version = version
        options = installation.readme_options()
        self.cli = Cli(*options, version=version)
        self.newest = Cli(*options, version=NEWEST)
        self.type, self.name = f'type-{version}', f'share-{version}'

    def has(self, minimum):
        """Whether the version of this story is at least `minimum`."""
        return number(self.version) >= number(minimum)

    def shown(self, name=None):
        """Wait until the share is in no transitional status; return it."""
        name = name or self.name

        def check():
            (shown,) = self.cli('share list', '--name', name)
            return shown if not shown['Status'].endswith('ing') else None

        shown = wait_until(check, f'{name} is at rest')
        if self.has(CLIENT_MINIMUM['share show']):
            assert self.cli('share show', name)['status'] == shown['Status']
        return shown

    def types(self):
        type_commands.share_types(self)

    def group_types(self):
        if self.has('2.31'):
            type_commands.group_types(self)

    def qos_types(self):
        if self.has('2.94'):
            type_commands.qos_types(self)

    def quotas(self):
        cli, project = self.cli, self.project_id
        cli('share quota set', project, '--gigabytes', '700')
        assert cli('share quota show', project)['gigabytes'] == 700
        cli('share quota set', project, '--user', self.user_id, '--shares', '40')
        shown = cli('share quota show', project, '--user', self.user_id)
        assert shown['shares'] == 40
        cli('share quota delete', project, '--user', self.user_id)
        if self.has('2.39'):
            cli('share quota set', project, '--share-type', self.type, '--shares', '30')
            cli('share quota delete', project, '--share-type', self.type)
        if self.has('2.25'):
            cli('share quota show', project, '--detail')
        limits = {
            one['Name']: one['Value'] for one in cli('share limits show', '--absolute')
        }
        assert limits['maxTotalShareGigabytes'] == 700
        assert cli('share limits show', '--rate') == []
        cli('share quota delete', project)
        assert cli('share quota show', project, '--defaults')['gigabytes'] == 1000
        cli('share quota set', 'default', '--class', '--shares', '45')
        assert cli('share quota show', project)['shares'] == 45

    def services(self):
        cli = self.cli
        assert [one['Name'] for one in cli('share availability zone list')] == ['nova']
        backends = set(DUMMIES) | {'local'}
        assert {one['Name'].partition('#')[0] for one in cli('share pool list')} == {
            self.host.replace('dummy', name) for name in backends
        }
        assert {
            one['Backend'] for one in cli('share pool list', '--detail')
        } == backends
        for way, status in (('--disable', 'disabled'), ('--enable', 'enabled')):
            cli('share service set', self.host, 'manila-share', way)
            (shown,) = cli('share service list', '--host', self.host)
            assert (shown['Status'], shown['State']) == (status, 'up')
        if self.has('2.86'):
            cli('share service ensure shares', self.host)

    def shares(self):
        cli, name = self.cli, self.name
        created = cli(
            'share create',
            'NFS',
            '1',
            '--name',
            name,
            '--share-type',
            self.type,
            '--property',
            'for=all',
            '--availability-zone',
            'nova',
            '--description',
            'big',
        )
        self.shown()
        cli('share resize', name, '3')
        assert self.shown()['Size'] == 3
        cli('share resize', name, '2')
        assert self.shown()['Size'] == 2
        if self.has(CLIENT_MINIMUM['share set']):
            cli('share set', name, '--property', 'a=b', '--public', 'true')
            cli('share set', name, '--status', 'error', '--name', 'other')
            cli('share set', 'other', '--status', 'available', '--name', name)
            cli('share unset', name, '--property', 'a')
        cli('share unset', name, '--description')
        assert cli('share properties show', name) == {'for': 'all'}
        for criteria in (
            ('--name', name),
            ('--share-type', self.type),
            ('--property', 'for=all'),
            ('--status', 'available', '--sort', 'created_at:desc', '--long'),
            ('--all-projects', '--limit', '1'),
        ):
            assert names(cli('share list', *criteria)) == [name], criteria
        if self.has('2.69'):
            cli('share delete', name, '--soft')
            assert names(cli('share list')) == []
            cli('share restore', created['id'])
        assert self.shown()['ID'] == created['id']

    def instances(self):
        cli = self.cli
        share = self.shown()
        (shown,) = cli('share instance list', '--share', self.name)
        instance_id = shown['ID']
        cli('share instance set', instance_id, '--status', 'error')
        cli('share instance set', instance_id, '--status', 'available')
        if self.has('2.9'):
            assert cli('share instance show', instance_id)['share_id'] == share['ID']
            for owner, target in (
                ('share', self.name),
                ('share instance', instance_id),
            ):
                command = f'{owner} export location'
                locations = cli(f'{command} list', target)
                assert len(locations) == 2
                shown = cli(f'{command} show', target, locations[0]['ID'])
                assert shown['path'] == locations[0]['Path']
        if self.has('2.87'):
            where = (self.name, locations[0]['ID'])
            cli('share export location set', *where, '--property', 'a=b')
            cli('share export location unset', *where, '--property', 'a')

    def access(self):
        access_commands.rules(self)
        access_commands.locks(self)

    def snapshots(self):
        cli, share = self.cli, self.name
        name, kind = f'snapshot-{self.version}', f'kind-{self.version}'
        cli(
            'share type create',
            kind,
            'false',
            '--snapshot-support',
            'true',
            '--revert-to-snapshot-support',
            'true',
            '--mount-snapshot-support',
            'true',
            '--extra-specs',
            'share_backend_name=dummy',
        )
        created = cli(
            'share create', 'NFS', '1', '--name', f'{share}-again', '--share-type', kind
        )
        self.shown(f'{share}-again')
        taken = self.take_snapshot(
            created['id'],
            '--name',
            name,
            '--description',
            'good',
            *(('--property', 'for=all') if self.has('2.73') else ()),
        )
        self.wait_idle()
        if self.has(CLIENT_MINIMUM['share snapshot show']):
            shown = cli('share snapshot show', name)
            assert (shown['id'], shown['status'], shown['description']) == (
                taken['id'],
                'available',
                'good',
            )
        cli(
            'share snapshot set',
            name,
            '--name',
            'other',
            '--status',
            'error',
            *self.property('a=b'),
        )
        cli('share snapshot set', 'other', '--status', 'available', '--name', name)
        cli(
            'share snapshot unset',
            name,
            '--description',
            *(('--property', 'a') if self.has('2.73') else ()),
        )
        self.listed_snapshots(name, created['id'])
        if self.has('2.19'):
            self.snapshot_instances(taken['id'])
        if self.has('2.32'):
            self.mounts(name, taken['id'])
        if self.has('2.27'):
            cli('share revert', name)
            self.wait_idle()
            assert self.shown(f'{share}-again')['Status'] == 'available'
        if self.has('2.37'):
            (message,) = cli('share message list', '--resource-id', created['id'])
            cli('share message delete', message['ID'])
        cli('share snapshot delete', name)
        self.take_snapshot(created['id'], '--force', '--name', name)
        self.wait_idle()
        cli('share snapshot delete', name, '--force')
        self.wait_idle()
        assert cli('share snapshot list') == []
        cli('share delete', created['id'])
        self.wait_idle()
        cli('share type delete', kind)

    def take_snapshot(self, *args):
        """Create a snapshot, at the newest version if this one cannot."""
        cli = (
            self.cli
            if self.has(CLIENT_MINIMUM['share snapshot create'])
            else self.newest
        )
        return cli('share snapshot create', *args)

    def property(self, text):
        return ('--property', text) if self.has('2.73') else ()

    def listed_snapshots(self, name, share_id):
        for criteria in [
            ('--name', name),
            ('--status', 'available'),
            ('--share', share_id),
            ('--usage', 'unused'),
            ('--sort', 'name:asc', '--detail'),
            ('--all-projects', '--limit', '1'),
            self.property('for=all'),
            ('--name~', name[2:]) if self.has('2.36') else (),
        ]:
            assert names(self.cli('share snapshot list', *criteria)) == [name], criteria
        assert self.cli('share snapshot list', '--usage', 'used') == []

    def snapshot_instances(self, snapshot_id):
        cli = self.cli
        (shown,) = cli(
            'share snapshot instance list', '--snapshot', snapshot_id, '--detailed'
        )
        for status in ('error', 'available'):
            cli('share snapshot instance set', shown['ID'], '--status', status)
            assert cli('share snapshot instance show', shown['ID'])['status'] == status

    def mounts(self, name, snapshot_id):
        """Access rules and export locations of a snapshot."""
        cli = self.cli
        command = 'share snapshot access'
        rule = cli(f'{command} create', name, 'ip', '10.0.0.0/24')
        self.wait_idle()
        (shown,) = cli(f'{command} list', name)
        assert shown == {
            'ID': rule['id'],
            'Access Type': 'ip',
            'Access To': '10.0.0.0/24',
            'State': 'active',
        }
        cli(f'{command} delete', name, rule['id'])
        self.wait_idle()
        assert cli(f'{command} list', name) == []
        (instance,) = cli('share snapshot instance list', '--snapshot', snapshot_id)
        for command, target in (
            ('share snapshot export location', name),
            ('share snapshot instance export location', instance['ID']),
        ):
            first, second = cli(f'{command} list', target)
            assert first['Path'] != second['Path']
            shown = cli(f'{command} show', target, first['ID'])
            assert shown['path'] == first['Path']

    def wait_idle(self):
        wait_until(lambda: not self.pending_work(), 'no work is pending')

    def adopted(self):
        """Manage a share and a snapshot that exist on the back end."""
        cli, name = self.cli, f'{self.name}-found'
        cli('share create', 'NFS', '1', '--name', name, '--share-type', self.type)
        host, path = self.place_of(self.shown(name)['ID'])
        cli('share abandon', name)
        self.wait_idle()
        cli(
            'share adopt',
            host,
            'NFS',
            path,
            '--name',
            name,
            '--share-type',
            self.type,
            '--description',
            'found',
            '--driver-options',
            'a=b',
        )
        adopted = self.shown(name)
        assert (adopted['Status'], adopted['Size']) == ('available', 1)
        if self.has('2.12'):
            self.adopted_snapshot(adopted['ID'])
        cli('share delete', adopted['ID'])
        self.wait_idle()

    def place_of(self, share_id):
        """Return host and export path of a share, by the newest version."""
        share = self.newest('share show', share_id)
        paths = [
            one['Path'] for one in self.newest('share export location list', share_id)
        ]
        return share['host'], paths[0]

    def adopted_snapshot(self, share_id):
        cli, name = self.cli, f'found-{self.version}'
        self.take_snapshot(share_id, '--name', name)
        self.wait_idle()
        location = self.newest('share snapshot show', name)['provider_location']
        cli('share snapshot abandon', name)
        self.wait_idle()
        cli(
            'share snapshot adopt',
            share_id,
            location,
            '--name',
            name,
            '--description',
            'found',
            '--driver-option',
            'a=b',
        )
        self.wait_idle()
        (shown,) = cli('share snapshot list', '--name', name, '--detail')
        assert shown['Status'] == 'available'
        cli('share snapshot delete', name)
        self.wait_idle()

    def groups(self):
        if self.has('2.31'):
            group_commands.groups(self)

    def networks(self):
        if self.version == NEWEST:
            network_commands.networks(self)

    def replicas(self):
        if self.version == NEWEST:
            move_commands.replicas(self)

    def migrations(self):
        if self.version == NEWEST:
            move_commands.migrations(self)

    def backups(self):
        if self.has('2.80'):
            backup_commands.backups(self)

    def transfers(self):
        if self.has('2.77'):
            transfer_commands.transfers(self)

    def messages(self):
        cli = self.cli
        name = f'{self.name}-too-large'
        cli('share quota set', self.project_id, '--gigabytes', '-1')
        failed = cli(
            'share create', 'NFS', '50000', '--name', name, '--share-type', self.type
        )
        assert self.shown(name)['Status'] == 'error'
        if self.has('2.37'):
            (message,) = cli('share message list', '--resource-id', failed['id'])
            text = cli('share message show', message['ID'])['user_message']
            assert 'capacity' in text
            assert 'CapacityFilter left 0, rejected ' in text
            cli('share message delete', message['ID'])
            assert cli('share message list') == []
        cli('share delete', name, '--force')

    def ends(self):
        cli = self.cli
        (instance,) = cli('share instance list', '--share', self.name)
        cli('share instance delete', instance['ID'])
        wait_until(lambda: not cli('share list'), 'all shares are gone')
        cli('share type delete', self.type)


def number(version):
    return tuple(map(int, version.split('.')))


def names(shown):
    return [one['Name'] for one in shown]
