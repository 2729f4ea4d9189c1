"""Shares on networks of their projects, with the official command line.

The servers come by themselves, and go by the commands for them. The back
end has addresses for two of them.
"""

import pytest

from tests.support import reference
from tests.support.cli import Cli
from tests.support.installation import SEPARATE
from tests.support.installation import SERVE
from tests.support.processes import wait_until

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
    """One life of shares and servers, at one version of the API."""

    def __init__(self, installation, version):
        self.version = version
        self.host = installation.service_host('served')
        self.pending_work = installation.pending_work
        self.cli = Cli(
            '--os-auth-type',
            'none',
            '--os-endpoint',
            installation.url,
            version=version,
        )

    def has(self, minimum):
        return number(self.version) >= number(minimum)

    def quiet(self):
        wait_until(lambda: not self.pending_work(), 'nothing is owed')

    def network(self, name):
        self.cli('share network create', '--name', name)
        shown = self.cli('share network show', name)
        assert (shown['name'], shown['id']) == (name, shown['id'])
        return shown['id']

    def share(self, name, network):
        """A share that is available on a server; its id."""
        made = self.cli(
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
        self.quiet()
        (shown,) = self.cli('share list', '--name', name)
        assert shown['Status'] == 'available', shown
        return made['id']

    def servers(self, *criteria):
        return [one['ID'] for one in self.cli('share server list', *criteria)]

    def remove_servers(self, *criteria):
        found = self.servers(*criteria)
        if found:
            self.cli('share server delete', *found)
            self.quiet()

    def shares_on(self, *criteria):
        return {one['Name'] for one in self.cli('share list', *criteria)}


def number(version):
    return tuple(map(int, version.split('.')))


def live_through(story):
    cli = story.cli
    cli('share type create', 'served', 'true', '--snapshot-support', 'true')
    cli('share create', 'NFS', '1', '--share-type', 'served', code=1)
    red, blue = story.network('red'), story.network('blue')
    first = story.share('first', 'red')
    (server,) = story.servers()
    story.share('second', 'red')
    assert story.servers() == [server]
    story.share('third', 'blue')
    (other,) = set(story.servers()) - {server}
    look(story, server, other, red, blue)
    run_out_of_addresses(story)
    if story.has('2.49'):
        decree(story, server)
        change_hands(story, first, server)
    refuse(story, server)
    end(story, server)


def look(story, server, other, red, blue):
    """At the servers, by what they are found by."""
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
    assert story.shares_on('--share-network', 'red') == {'first', 'second'}
    assert story.shares_on('--share-server', other) == {'third'}


def run_out_of_addresses(story):
    """A third server has none left: the share fails, and says why."""
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
    story.quiet()
    (shown,) = cli('share list', '--name', 'failed')
    assert shown['Status'] == 'error'
    if story.has('2.37'):
        (told,) = cli('share message list', '--resource-id', failed['id'])
        assert (
            'address' in cli('share message show', told['ID'])['user_message']
        )
    cli('share delete', failed['id'])
    story.quiet()
    story.remove_servers('--share-network', 'green')
    cli('share network delete', 'green')


def decree(story, server):
    """A server in error takes no shares, until it is active again."""
    cli = story.cli
    cli('share server set', server, '--status', 'error')
    assert story.servers('--status', 'error') == [server]
    cli('share server set', server, '--status', 'active')
    if story.has('2.57'):
        cli('share server set', server, '--task-state', 'migration_error')
        assert (
            cli('share server show', server)['task_state'] == 'migration_error'
        )
        cli('share server set', server, '--task-state', 'None')


def change_hands(story, share, server):
    """A share, its server; let go, and taken over again."""
    cli = story.cli
    for name in ('first', 'second'):
        cli('share server abandon', server, code=1)
        told = cli('share show', name)
        path = cli('share export location list', name)[0]['Path']
        cli('share abandon', name)
        story.quiet()
        if name == 'first':
            adopted = told['host'], path
    identifier = cli('share server show', server)['identifier']
    cli('share server abandon', server, '--force')
    story.quiet()
    assert server not in story.servers()
    made = cli(
        'share server adopt',
        story.host,
        'red',
        identifier,
        '--driver-options',
        'a=b',
    )
    story.quiet()
    made = cli('share server show', made['id'])
    assert (made['status'], made['identifier']) == ('active', identifier)
    assert made['is_auto_deletable'] is False
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
        made['id'],
    )
    story.quiet()
    assert story.shares_on('--share-server', made['id']) == {'first'}


def refuse(story, server):
    """What is in use stays."""
    for server in story.servers('--share-network', 'red'):
        story.cli('share server delete', server, code=1)
    story.cli('share network delete', 'red', code=1)


def end(story, server):
    """Nothing is left, not even an address."""
    cli = story.cli
    for name in story.shares_on():
        cli('share delete', name)
    story.quiet()
    story.remove_servers()
    assert story.servers() == []
    story.share('again', 'red')
    cli('share delete', 'again')
    story.quiet()
    story.remove_servers()
    for name in ('red', 'blue'):
        cli('share network delete', name)
    assert cli('share network list') == []


@pytest.mark.parametrize('version', [NEWEST, '2.48'])
def test_in_one_process(install, version):
    installation = install(kind=SERVE, backends={'served': SERVED}).start()
    story = Story(installation, version)
    live_through(story)
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
    """What races for the first server of a network ends up on one."""
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
        user.request('POST', '/share-networks', {'share_network': {}})[
            'share_network'
        ]['id']
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
        (share['share_network_id'], share['share_server_id'])
        for share in shares
    } == {(one['share_network_id'], one['id']) for one in servers}
    for id in asked:
        user.delete(id)
    for id in asked:
        user.wait_gone(id)
    for server in servers:
        user.request('DELETE', f'/share-servers/{server["id"]}', expect=202)
    wait_until(
        lambda: not user.get('/share-servers')['share_servers'],
        'all servers are gone',
    )
    for network in networks:
        user.request('DELETE', f'/share-networks/{network}', expect=202)
    assert installation.problems() == []
