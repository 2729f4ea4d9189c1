"""Share networks and security services, with the official command line.

They are made and changed while nothing uses them, and then with a share
server on one of them.
"""

from tests.functional.stories.test_share_servers import NEWEST
from tests.functional.stories.test_share_servers import SINCE
from tests.functional.stories.test_share_servers import Story
from tests.functional.stories.test_share_servers import number
from tests.support.installation import SERVE

BACKEND = {
    'driver_handles_share_servers': 'true',
    'standalone_network_plugin_gateway': '10.0.0.1',
    'standalone_network_plugin_mask': '24',
}

# Below, the client itself refuses to set anything, or wants metadata.
CLIENT_SINCE = {
    'openstack share network set': '2.63',
    'openstack share network subnet create': '2.78',
}

NETWORK, SUBNET = 'share network', 'share network subnet'
SERVICE = 'share security service'


def live_through(story, newest):
    story.newest = newest.cli
    directory(story)
    networks(story)
    if story.has('2.51'):
        subnets(story)
    if story.has('2.70'):
        in_use(story)
    end(story)


def names(listed):
    return {one['Name'] for one in listed}


def directory(story):
    """Services come, are found and changed, and go."""
    cli = story.cli
    made = cli(
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
    assert (made['name'], made['type'], made['status']) == (
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
        assert names(cli(f'{SERVICE} list', '--default-ad-site', 'here')) == {
            'site'
        }
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
    made = cli(
        f'{NETWORK} create',
        '--name',
        'red',
        '--description',
        'one',
        *(('--availability-zone', 'nova') if story.has('2.51') else ()),
    )
    assert made['name'] == 'red'
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
        assert names(
            cli(f'{NETWORK} list', '--security-service', 'people')
        ) == {'red'}
        assert names(cli(f'{SERVICE} list', '--share-network', 'red')) == {
            'people'
        }
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
        ('--property', 'color=red', '--property', 'a=b')
        if story.has('2.78')
        else ()
    )
    made = (cli if extra else story.newest)(f'{SUBNET} create', 'red', *extra)
    shown = cli(f'{SUBNET} show', 'red', made['id'])
    assert (shown['id'], shown['share_network_name']) == (made['id'], 'red')
    if story.has('2.78'):
        cli(f'{SUBNET} set', 'red', made['id'], '--property', 'color=blue')
        cli(f'{SUBNET} unset', 'red', made['id'], '--property', 'a')
        assert 'blue' in str(cli(f'{SUBNET} show', 'red', made['id']))
    cli(f'{NETWORK} delete', 'red', code=1)
    cli(f'{SUBNET} delete', 'red', made['id'])
    cli(f'{SUBNET} show', 'red', made['id'], code=1)


def in_use(story):
    """With a share server there is a check before each change."""
    cli = story.cli
    cli('share type create', 'served', 'true')
    story.share('first', 'blue')
    change = ('blue', '--new-security-service', 'people')
    cli(f'{NETWORK} set', *change, code=1)
    cli(f'{NETWORK} set', *change, '--check-only')
    story.quiet()
    cli(f'{NETWORK} set', *change)
    story.quiet()
    rest(story, 'blue')
    other = cli(f'{SERVICE} create', 'ldap', '--name', 'others')['id']
    change = (
        'blue',
        '--current-security-service',
        'people',
        '--new-security-service',
        other,
    )
    cli(f'{NETWORK} set', *change, '--check-only')
    story.quiet()
    cli(f'{NETWORK} set', *change)
    story.quiet()
    rest(story, 'blue')
    assert names(cli(f'{SERVICE} list', '--share-network', 'blue')) == {
        'others'
    }
    cli(f'{NETWORK} unset', 'blue', '--security-service', 'others', code=1)
    subnet_in_use(story)
    cli('share delete', 'first')
    story.quiet()


def subnet_in_use(story):
    cli = story.cli
    cli(f'{SUBNET} create', 'blue', code=1)
    check = ('blue', '--check-only')
    assert cli(f'{SUBNET} create', *check)['compatible'] is None
    story.quiet()
    assert cli(f'{SUBNET} create', *check)['compatible'] is True
    cli(f'{SUBNET} create', *check, '--restart-check')
    story.quiet()
    before = cli('share export location list', 'first')
    cli(f'{SUBNET} create', 'blue')
    story.quiet()
    rest(story, 'blue')
    after = cli('share export location list', 'first')
    assert len(after) > len(before)
    (server,) = story.servers()
    assert (
        len(cli('share server show', server)['share_network_subnet_ids']) == 2
    )


def rest(story, network):
    assert story.cli(f'{NETWORK} show', network)['status'] == 'active'
    for server in story.servers():
        assert story.cli('share server show', server)['status'] == 'active'


def end(story):
    """Networks go, and with them what no share is on any more."""
    cli = story.cli
    (found,) = cli(f'{NETWORK} list', '--name', 'blue', '--detail')
    if story.has('2.51'):
        shown = story.cli(f'{NETWORK} show', 'blue')
        for subnet in more_subnets(shown)[1:]:
            cli(f'{SUBNET} delete', 'blue', subnet)
        story.quiet()
    for name in ('red', 'blue'):
        cli(f'{NETWORK} delete', name)
    story.quiet()
    assert story.servers() == []
    assert cli(f'{NETWORK} list') == []
    for service in cli(f'{SERVICE} list'):
        cli(f'{SERVICE} delete', service['ID'])
    assert cli(f'{SERVICE} list') == []


def more_subnets(shown):
    """The ids of the subnets of a network, as the client shows it."""
    found = shown['share_network_subnets']
    if isinstance(found, str):
        return [
            line.split('=')[1].strip()
            for line in found.splitlines()
            if line.strip().startswith('id =')
        ]
    return [subnet['id'] for subnet in found]


def test_commands_for_networks_and_services(install):
    """One life after the other, from the newest version to an old one."""
    installation = install(kind=SERVE, backends={'served': BACKEND}).start()
    since = SINCE | CLIENT_SINCE
    for version in (NEWEST, '2.62', '2.6'):
        story = Story(installation, version)
        live_through(story, Story(installation, NEWEST))
        commands = {
            command
            for command, minimum in since.items()
            if command.startswith(
                (
                    'openstack share network ',
                    'openstack share security service ',
                )
            )
            and number(version) >= number(minimum)
        }
        assert commands - story.cli.ran == set(), version
    assert installation.problems() == []
