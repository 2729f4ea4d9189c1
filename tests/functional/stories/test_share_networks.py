"""Share networks and security services, with the official command line.

They are created and changed while unused, and then with a share server on
one of them.
"""

from tests.functional.stories import suites
from tests.functional.stories.test_share_servers import NEWEST, SINCE, Story, number
from tests.support.installation import SERVE

pytestmark = suites.several_backends

BACKEND = {
    'driver_handles_share_servers': 'true',
    'standalone_network_plugin_gateway': '10.0.0.1',
    'standalone_network_plugin_mask': '24',
}

# Below these versions the client itself fails, or needs metadata.
CLIENT_MINIMUM = {
    'openstack share network set': '2.63',
    'openstack share network subnet create': '2.78',
}

NETWORK, SUBNET = 'share network', 'share network subnet'
SERVICE = 'share security service'


def run_story(story, newest):
    story.newest = newest.cli
    security_services(story)
    networks(story)
    if story.has('2.51'):
        subnets(story)
    if story.has('2.70'):
        in_use(story)
    delete_all(story)


def names(listed):
    return {one['Name'] for one in listed}


def security_services(story):
    """Create, list, change and delete security services."""
    cli = story.cli
    created = cli(
        f'{SERVICE} create',
        'ldap',
        '--name',
        'people',
        '--dns-ip',
        '10.0.0.53',
        '--user',
        'reader',
        '--password',
        'secret',
        '--domain',
        'example',
        '--server',
        '10.0.0.54',
        '--description',
        'staff',
        *(('--ou', 'CN=x') if story.has('2.44') else ()),
    )
    assert (created['name'], created['type'], created['status']) == (
        'people',
        'ldap',
        'new',
    )
    cli(f'{SERVICE} create', 'kerberos', '--name', 'tickets')
    if story.has('2.76'):
        cli(
            f'{SERVICE} create',
            'active_directory',
            '--name',
            'site',
            '--default-ad-site',
            'here',
        )
        assert names(cli(f'{SERVICE} list', '--default-ad-site', 'here')) == {'site'}
        cli(f'{SERVICE} delete', 'site')
    cli(f'{SERVICE} set', 'people', '--description', 'all', '--user', 'bob')
    cli(f'{SERVICE} unset', 'people', '--domain')
    shown = cli(f'{SERVICE} show', 'people')
    assert (shown['user'], shown['description'], bool(shown['domain'])) == (
        'bob',
        'all',
        False,
    )
    for criteria in (
        ('--type', 'ldap'),
        ('--user', 'bob'),
        ('--dns-ip', '10.0.0.53'),
        ('--name', 'people'),
        ('--server', '10.0.0.54'),
        ('--detail', '--type', 'ldap', '--all-projects'),
    ):
        assert names(cli(f'{SERVICE} list', *criteria)) == {'people'}
    assert names(cli(f'{SERVICE} list')) == {'people', 'tickets'}


def networks(story):
    cli = story.cli
    created = cli(
        f'{NETWORK} create',
        '--name',
        'red',
        '--description',
        'one',
        *(('--availability-zone', 'nova') if story.has('2.51') else ()),
    )
    assert created['name'] == 'red'
    cli(f'{NETWORK} create', '--name', 'blue')
    cli(f'{NETWORK} unset', 'red', '--description')
    assert cli(f'{NETWORK} show', 'red')['name'] == 'red'
    if story.has('2.63'):
        cli(
            f'{NETWORK} set',
            'red',
            '--name',
            'pink',
            '--description',
            'two',
            '--new-security-service',
            'people',
        )
        cli(f'{NETWORK} set', 'pink', '--name', 'red', '--status', 'error')
        assert cli(f'{NETWORK} show', 'red')['status'] == 'error'
        cli(f'{NETWORK} set', 'red', '--status', 'active')
        assert names(cli(f'{NETWORK} list', '--security-service', 'people')) == {'red'}
        assert names(cli(f'{SERVICE} list', '--share-network', 'red')) == {'people'}
        cli(f'{SERVICE} delete', 'people', code=1)
        cli(f'{NETWORK} unset', 'red', '--security-service', 'people')
    for criteria in (
        ('--name', 'red'),
        ('--created-since', '2000-01-01', '--name', 'red'),
        ('--all-projects', '--detail', '--name', 'red'),
        ('--name~', 'ed') if story.has('2.36') else ('--name', 'red'),
    ):
        assert names(cli(f'{NETWORK} list', *criteria)) == {'red'}, criteria
    assert cli(f'{NETWORK} list', '--created-before', '2000-01-01') == []


def subnets(story):
    cli = story.cli
    extra = (
        ('--property', 'color=red', '--property', 'a=b') if story.has('2.78') else ()
    )
    created = (cli if extra else story.newest)(f'{SUBNET} create', 'red', *extra)
    shown = cli(f'{SUBNET} show', 'red', created['id'])
    assert (shown['id'], shown['share_network_name']) == (created['id'], 'red')
    if story.has('2.78'):
        cli(f'{SUBNET} set', 'red', created['id'], '--property', 'color=blue')
        cli(f'{SUBNET} unset', 'red', created['id'], '--property', 'a')
        assert 'blue' in str(cli(f'{SUBNET} show', 'red', created['id']))
    cli(f'{NETWORK} delete', 'red', code=1)
    cli(f'{SUBNET} delete', 'red', created['id'])
    cli(f'{SUBNET} show', 'red', created['id'], code=1)


def in_use(story):
    """With a share server, a check is needed before each change."""
    cli = story.cli
    cli('share type create', 'served', 'true')
    story.share('first', 'blue')
    change = ('blue', '--new-security-service', 'people')
    cli(f'{NETWORK} set', *change, code=1)
    cli(f'{NETWORK} set', *change, '--check-only')
    story.wait_idle()
    cli(f'{NETWORK} set', *change)
    story.wait_idle()
    check_active(story, 'blue')
    other = cli(f'{SERVICE} create', 'ldap', '--name', 'others')['id']
    change = (
        'blue',
        '--current-security-service',
        'people',
        '--new-security-service',
        other,
    )
    cli(f'{NETWORK} set', *change, '--check-only')
    story.wait_idle()
    cli(f'{NETWORK} set', *change)
    story.wait_idle()
    check_active(story, 'blue')
    assert names(cli(f'{SERVICE} list', '--share-network', 'blue')) == {'others'}
    cli(f'{NETWORK} unset', 'blue', '--security-service', 'others', code=1)
    subnet_in_use(story)
    cli('share delete', 'first')
    story.wait_idle()


def subnet_in_use(story):
    cli = story.cli
    cli(f'{SUBNET} create', 'blue', code=1)
    check = ('blue', '--check-only')
    assert cli(f'{SUBNET} create', *check)['compatible'] is None
    story.wait_idle()
    assert cli(f'{SUBNET} create', *check)['compatible'] is True
    cli(f'{SUBNET} create', *check, '--restart-check')
    story.wait_idle()
    before = cli('share export location list', 'first')
    cli(f'{SUBNET} create', 'blue')
    story.wait_idle()
    check_active(story, 'blue')
    after = cli('share export location list', 'first')
    assert len(after) > len(before)
    (server,) = story.servers()
    assert len(cli('share server show', server)['share_network_subnet_ids']) == 2


def check_active(story, network):
    assert story.cli(f'{NETWORK} show', network)['status'] == 'active'
    for server in story.servers():
        assert story.cli('share server show', server)['status'] == 'active'


def delete_all(story):
    """Delete the networks, and with them their unused servers."""
    cli = story.cli
    (found,) = cli(f'{NETWORK} list', '--name', 'blue', '--detail')
    if story.has('2.51'):
        shown = story.cli(f'{NETWORK} show', 'blue')
        for subnet in subnet_ids(shown)[1:]:
            cli(f'{SUBNET} delete', 'blue', subnet)
        story.wait_idle()
    for name in ('red', 'blue'):
        cli(f'{NETWORK} delete', name)
    story.wait_idle()
    assert story.servers() == []
    assert cli(f'{NETWORK} list') == []
    for service in cli(f'{SERVICE} list'):
        cli(f'{SERVICE} delete', service['ID'])
    assert cli(f'{SERVICE} list') == []


def subnet_ids(shown):
    """Return the subnet ids of a network in the client's output."""
    found = shown['share_network_subnets']
    if isinstance(found, str):
        return [
            line.split('=')[1].strip()
            for line in found.splitlines()
            if line.strip().startswith('id =')
        ]
    return [subnet['id'] for subnet in found]


def test_commands_for_networks_and_services(install):
    """One story after the other, from the newest version to an old one."""
    installation = install(kind=SERVE, backends={'served': BACKEND}).start()
    since = SINCE | CLIENT_MINIMUM
    for version in (NEWEST, '2.62', '2.6'):
        story = Story(installation, version)
        run_story(story, Story(installation, NEWEST))
        commands = {
            command
            for command, minimum in since.items()
            if command.startswith(
                ('openstack share network ', 'openstack share security service ')
            )
            and number(version) >= number(minimum)
        }
        assert commands - story.cli.ran == set(), version
    assert installation.problems() == []
