"""Shares on share networks, with the official command line.

Share servers are created on demand and deleted by command. The back end has
addresses for two of them.
"""

import pytest

from tests.functional.stories import suites
from tests.support import reference
from tests.support.cli import Cli
from tests.support.installation import SEPARATE, SERVE
from tests.support.processes import wait_until

pytestmark = suites.several_backends

NEWEST = '2.98'
SINCE = {
    row['command']: row['min_microversion']
    for row in reference.table('cli-commands.csv')
}
SERVED = {
    'driver_handles_share_servers': 'true',
    'standalone_network_plugin_gateway': '10.0.0.1',
    'standalone_network_plugin_mask': '24',
    'standalone_network_plugin_network_type': 'flat',
    'standalone_network_plugin_allowed_ip_ranges': '10.0.0.10-10.0.0.11',
}


class Story:
    """Shares and share servers, at one version of the API."""

    def __init__(self, installation, version):
        self.version = version
        self.host = installation.service_host('served')
        self.pending_work = installation.pending_work
        self.cli = Cli(
            '--os-auth-type', 'none', '--os-endpoint', installation.url, version=version
        )

    def has(self, minimum):
        return number(self.version) >= number(minimum)

    def wait_idle(self):
        wait_until(lambda: not self.pending_work(), 'no work is pending')

    def network(self, name):
        self.cli('share network create', '--name', name)
        shown = self.cli('share network show', name)
        assert (shown['name'], shown['id']) == (name, shown['id'])
        return shown['id']

    def share(self, name, network):
        """Create a share on a server, wait for it and return its id."""
        created = self.cli(
            'share create',
            'NFS',
            '1',
            '--name',
            name,
            '--share-network',
            network,
            '--share-type',
            'served',
        )
        self.wait_idle()
        (shown,) = self.cli('share list', '--name', name)
        assert shown['Status'] == 'available', shown
        return created['id']

    def servers(self, *criteria):
        return [one['ID'] for one in self.cli('share server list', *criteria)]

    def remove_servers(self, *criteria):
        found = self.servers(*criteria)
        if found:
            self.cli('share server delete', *found)
            self.wait_idle()

    def list_shares(self, *criteria):
        return {one['Name'] for one in self.cli('share list', *criteria)}


def number(version):
    return tuple(map(int, version.split('.')))


def run_story(story):
    cli = story.cli
    cli(
        *('share type create', 'served', 'true', '--snapshot-support', 'true'),
        *('--create-share-from-snapshot-support', 'true'),
    )
    cli('share create', 'NFS', '1', '--share-type', 'served', code=1)
    red, blue = story.network('red'), story.network('blue')
    first = story.share('first', 'red')
    (server,) = story.servers()
    story.share('second', 'red')
    assert story.servers() == [server]
    story.share('third', 'blue')
    (other,) = set(story.servers()) - {server}
    check_listings(story, server, other, red, blue)
    check_share_group(story, server, red)
    run_out_of_addresses(story)
    if story.has('2.49'):
        reset_status(story, server)
        unmanage_and_manage(story, first, server)
    check_in_use(story, server)
    delete_all(story, server)


def check_listings(story, server, other, red, blue):
    """Check the servers and every filter of their list."""
    cli = story.cli
    shown = cli('share server show', server)
    assert (
        shown['status'],
        shown['host'],
        shown['share_network_id'],
        shown['share_network_name'],
    ) == ('active', story.host, red, 'red')
    assert [key for key in shown if key.startswith('details:')]
    assert story.servers('--share-network', 'red') == [server]
    assert set(story.servers('--host', story.host)) == {server, other}
    assert story.servers('--status', 'error') == []
    if story.has('2.49'):
        assert story.servers('--identifier', shown['identifier']) == [server]
    if story.has('2.51'):
        subnet = cli('share network show', 'red')['share_network_subnets']
        assert subnet
        subnet_id = (
            shown['share_network_subnet_ids'][0]
            if story.has('2.70')
            else shown['share_network_subnet_id']
        )
        assert story.servers('--share-network-subnet', subnet_id) == [server]
    if story.has('2.57'):
        assert story.servers('--source-share-server-id', server) == []
    assert story.list_shares('--share-network', 'red') == {'first', 'second'}
    assert story.list_shares('--share-server', other) == {'third'}


def check_share_group(story, server, red):
    """A group and its copy are on the network, with their shares."""
    cli, command = story.cli, 'share group'
    cli(f'{command} type create', 'of-served', 'served')
    member = cli('share type show', 'served')['id']
    kind = ('--share-group-type', 'of-served', '--share-types', member)
    cli(f'{command} create', '--name', 'astray', *kind, code=1)
    album = cli(
        f'{command} create',
        *('--name', 'album', *kind, '--share-network', 'red', '--wait'),
    )
    assert (album['status'], album['share_network_id']) == ('available', red)
    assert album['share_server_id'] == server
    for criterion in (('--share-network', 'red'), ('--share-server', server)):
        listed = cli(f'{command} list', *criterion)
        assert [one['Name'] for one in listed] == ['album'], criterion
    share = ('NFS', '1', '--share-type', 'served', '--share-group', 'album')
    blue = ('--share-network', 'blue')
    cli('share create', *share, *blue, code=1)
    cli('share create', *share, '--name', 'photo', '--wait')
    cli(f'{command} snapshot create', 'album', '--name', 'monday', '--wait')
    copy = cli(
        f'{command} create',
        *('--source-share-group-snapshot', 'monday'),
        *('--name', 'copy', '--wait'),
    )
    assert copy['share_server_id'] == server
    assert len(cli('share list', '--share-server', server)) == 4
    cli(f'{command} snapshot delete', 'monday', '--wait')
    for name in ('album', 'copy'):
        (one,) = cli('share list', '--share-group', name)
        cli('share delete', one['ID'], '--share-group', name, '--wait')
    for name in ('album', 'copy'):
        cli(f'{command} delete', name, '--wait')
    cli(f'{command} type delete', 'of-served')


def run_out_of_addresses(story):
    """A third server gets no address: the share fails with a message."""
    cli = story.cli
    story.network('green')
    failed = cli(
        'share create',
        'NFS',
        '1',
        '--name',
        'failed',
        '--share-network',
        'green',
        '--share-type',
        'served',
    )
    story.wait_idle()
    (shown,) = cli('share list', '--name', 'failed')
    assert shown['Status'] == 'error'
    if story.has('2.37'):
        (message,) = cli('share message list', '--resource-id', failed['id'])
        assert 'address' in cli('share message show', message['ID'])['user_message']
    cli('share delete', failed['id'])
    story.wait_idle()
    story.remove_servers('--share-network', 'green')
    cli('share network delete', 'green')


def reset_status(story, server):
    """Reset the status of a server to error and back."""
    cli = story.cli
    cli('share server set', server, '--status', 'error')
    assert story.servers('--status', 'error') == [server]
    cli('share server set', server, '--status', 'active')
    if story.has('2.57'):
        cli('share server set', server, '--task-state', 'migration_error')
        assert cli('share server show', server)['task_state'] == 'migration_error'
        cli('share server set', server, '--task-state', 'None')


def unmanage_and_manage(story, share, server):
    """Unmanage a share and its server, and manage both again."""
    cli = story.cli
    for name in ('first', 'second'):
        cli('share server abandon', server, code=1)
        shown_before = cli('share show', name)
        path = cli('share export location list', name)[0]['Path']
        cli('share abandon', name)
        story.wait_idle()
        if name == 'first':
            adopted = shown_before['host'], path
    identifier = cli('share server show', server)['identifier']
    cli('share server abandon', server, '--force')
    story.wait_idle()
    assert server not in story.servers()
    created = cli(
        'share server adopt', story.host, 'red', identifier, '--driver-options', 'a=b'
    )
    story.wait_idle()
    created = cli('share server show', created['id'])
    assert (created['status'], created['identifier']) == ('active', identifier)
    assert created['is_auto_deletable'] is False
    cli('share server adopt', story.host, 'red', identifier, code=1)
    cli(
        'share adopt',
        adopted[0],
        'NFS',
        adopted[1],
        '--name',
        'first',
        '--share-type',
        'served',
        '--share-server-id',
        created['id'],
    )
    story.wait_idle()
    assert story.list_shares('--share-server', created['id']) == {'first'}


def check_in_use(story, server):
    """Servers and networks in use cannot be deleted."""
    for server in story.servers('--share-network', 'red'):
        story.cli('share server delete', server, code=1)
    story.cli('share network delete', 'red', code=1)


def delete_all(story, server):
    """Delete everything; no address stays allocated."""
    cli = story.cli
    for name in story.list_shares():
        cli('share delete', name)
    story.wait_idle()
    story.remove_servers()
    assert story.servers() == []
    story.share('again', 'red')
    cli('share delete', 'again')
    story.wait_idle()
    story.remove_servers()
    for name in ('red', 'blue'):
        cli('share network delete', name)
    assert cli('share network list') == []


@pytest.mark.parametrize('version', [NEWEST, '2.48'])
def test_in_one_process(install, version):
    installation = install(kind=SERVE, backends={'served': SERVED}).start()
    story = Story(installation, version)
    run_story(story)
    commands = {
        command
        for command, minimum in SINCE.items()
        if command.startswith('openstack share server ')
        and 'migration' not in command
        and story.has(minimum)
    }
    assert commands - story.cli.ran == set()
    assert installation.problems() == []


def test_on_two_share_services(install, new_database, broker_url):
    """Concurrent first shares of a network get the same server."""
    installation = install(
        kind=SEPARATE,
        backends={'served': SERVED},
        database_url=new_database('mysql'),
        options=f'transport_url = {broker_url}',
    ).start()
    installation.running['another'] = installation._run('share')
    installation.wait_until_ready()
    user = installation.rest()
    user.request(
        'POST',
        '/types',
        {
            'share_type': {
                'name': 'served',
                'extra_specs': {'driver_handles_share_servers': 'True'},
            }
        },
    )
    networks = [
        user.request('POST', '/share-networks', {'share_network': {}})['share_network'][
            'id'
        ]
        for _ in range(2)
    ]
    asked = [
        user.create(share_type='served', share_network_id=network)['id']
        for _ in range(4)
        for network in networks
    ]
    shares = [user.wait_at_rest(id, timeout=60) for id in asked]
    assert {share['status'] for share in shares} == {'available'}
    servers = user.get('/share-servers')['share_servers']
    assert {one['share_network_id'] for one in servers} == set(networks)
    assert {
        (share['share_network_id'], share['share_server_id']) for share in shares
    } == {(one['share_network_id'], one['id']) for one in servers}
    for id in asked:
        user.delete(id)
    for id in asked:
        user.wait_gone(id)
    for server in servers:
        user.request('DELETE', f'/share-servers/{server["id"]}', expect=202)
    wait_until(
        lambda: not user.get('/share-servers')['share_servers'], 'all servers are gone'
    )
    for network in networks:
        user.request('DELETE', f'/share-networks/{network}', expect=202)
    assert installation.problems() == []
