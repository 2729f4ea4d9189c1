"""The life of replicas with the official clients, in one process.

Two dummy back ends replicate among each other, each in a zone of its own.
What users write and read is looked at where the back ends keep it.
"""

from openstack import connection
from openstack import exceptions
import pytest

from tests.functional.stories.test_share_servers import NEWEST
from tests.functional.stories.test_share_servers import SERVED
from tests.functional.stories.test_share_servers import SINCE
from tests.functional.stories.test_share_servers import number
from tests.support.cli import Cli
from tests.support.installation import SERVE
from tests.support.processes import wait_until

ZONES = ('north', 'south')
REPLICA = 'share replica'

# Below, the client itself fails: it wants the export locations.
CLIENT_SINCE = {'openstack share replica show': '2.47'}
OPTIONS = 'replica_state_update_interval = 1'


def backends(style, **options):
    """One per zone, of one replication domain."""
    return {
        zone: {
            'replication_domain': 'house',
            'dummy_driver_replication_type': style,
            'backend_availability_zone': zone,
            **options,
        }
        for zone in ZONES
    }


class Story:
    """A share of one style, and its replicas, at one version of the API.

    What the client cannot do at that version is done by a newer one; what
    is waited for is looked at without it, which is cheaper.
    """

    servers = 'false'
    on_network: tuple[str, ...] = ()

    def __init__(self, installation, style, version):
        self.installation = installation
        self.style, self.version = style, version
        options = ('--os-auth-type', 'none', '--os-endpoint', installation.url)
        self.cli = Cli(*options, version=version)
        self.newest = Cli(*options, version=NEWEST)
        self.rest = installation.rest('admin')

    def has(self, minimum):
        return number(self.version) >= number(minimum)

    def settled(self, replica_id, status='available', state='in_sync'):
        """The replica, as soon as it is so."""

        def check():
            shown = self.shown(replica_id)
            return (shown['status'], shown['replica_state']) == (status, state)

        wait_until(check, f'{replica_id} is {status} and {state}')

    def shown(self, replica_id):
        return self.rest.get(f'/share-replicas/{replica_id}')['share_replica']

    @property
    def followed(self):
        """What a replica is called that has caught up."""
        return 'active' if self.style == 'writable' else 'in_sync'

    def share(self, name, *criteria):
        made = self.cli(
            'share create',
            'NFS',
            '1',
            '--name',
            name,
            '--share-type',
            'mirrored',
            '--availability-zone',
            'north',
            *criteria,
        )
        self.id = made['id']
        self.available()

    def available(self):
        """The share, as soon as it is available."""

        def check():
            shown = self.rest.show(self.id)
            return shown if shown['status'] == 'available' else None

        return wait_until(check, 'the share is available')

    def replicas(self, *criteria):
        return {
            one['ID']: one for one in self.cli(f'{REPLICA} list', *criteria)
        }

    def states(self, name):
        """`replica_state` by the zone of a replica."""
        return {
            one['Availability Zone']: one['Replica State']
            for one in self.replicas('--share', name).values()
        }

    def gone(self, replica_id):
        wait_until(
            lambda: (
                replica_id
                not in {
                    one['id']
                    for one in self.rest.get('/share-replicas')[
                        'share_replicas'
                    ]
                }
            ),
            f'{replica_id} is gone',
        )

    def paths(self, replica_id=None):
        """Where the share, or one of its replicas, is exported."""
        path = (
            f'/share-replicas/{replica_id}/export-locations'
            if replica_id
            else f'/shares/{self.id}/export_locations'
        )
        return {one['path'] for one in self.rest.get(path)['export_locations']}

    def casts(self, *replicas):
        return [self.shown(one)['cast_rules_to_readonly'] for one in replicas]

    def end_is_clean(self):
        wait_until(
            lambda: not self.installation.pending_work(), 'nothing is owed'
        )
        assert self.installation.problems() == []


def live_through(story):
    first, second = begin(story)
    look(story, first, second)
    let_in(story, first, second)
    decree(story, second)
    if story.has('2.95'):
        note(story, first, second)
    snapshot(story, second)
    fail_over(story, first, second)
    if story.style != 'writable':
        fail_over(story, second, first)
    end(story, first, second)


def begin(story):
    """A share, and its second replica; the ids of both."""
    cli = story.cli
    cli(
        'share type create',
        'mirrored',
        story.servers,
        '--extra-specs',
        f'replication_type={story.style}',
        'snapshot_support=True',
    )
    story.share('first', *story.on_network)
    (first,) = story.replicas('--share', 'first')
    second = replicate(story)
    shown = cli('share show', 'first')
    assert (shown['has_replicas'], shown['replication_type']) == (
        True,
        story.style,
    )
    return first, second


def replicate(story):
    """The second replica is made in the other zone, and follows."""
    cli = story.cli
    more = []
    if story.has('2.67'):
        host = story.installation.service_host('south')
        more += ['--scheduler-hint', f'only_host={host}#pool']
    if story.has('2.72'):
        more += story.on_network
    if story.has('2.95'):
        more += ['--property', 'site=south']
    made = cli(
        f'{REPLICA} create', 'first', '--availability-zone', 'south', *more
    )
    assert (made['status'], made['replica_state']) == (
        'creating',
        'out_of_sync',
    )
    story.settled(made['id'], state=story.followed)
    assert story.states('first') == {
        'north': 'active',
        'south': story.followed,
    }
    return made['id']


def look(story, first, second):
    """At the replicas, and at where they are exported."""
    cli = story.cli
    assert set(story.replicas()) == {first, second}
    cli(f'{REPLICA} create', 'first', '--availability-zone', 'moon', code=1)
    if story.has('2.47'):
        shown = cli(f'{REPLICA} show', second)
        assert shown['availability_zone'] == 'south'
        assert {one['path'] for one in shown['export_locations']} == (
            story.paths(second)
        )
        command = f'{REPLICA} export location'
        listed = cli(f'{command} list', second)
        one = cli(f'{command} show', second, listed[0]['ID'])
        assert one['path'] == listed[0]['Path']
    assert story.paths(first) <= story.paths()
    assert (story.paths(second) <= story.paths()) == (
        story.style == 'writable'
    )


def let_in(story, first, second):
    """A rule of the share is told to all of its replicas."""
    story.newest('share access create', 'first', 'ip', '10.0.0.1')

    def check():
        (rule,) = story.rest.get(f'/share-access-rules?share_id={story.id}')[
            'access_list'
        ]
        return rule['state'] == 'active'

    wait_until(check, 'the rule is active')
    assert story.casts(first, second) == [False, story.style == 'readable']


def decree(story, replica):
    """What the books say is put right when the back end is asked."""
    cli = story.cli
    cli(f'{REPLICA} set', replica, '--status', 'error')
    if story.style == 'writable':  # each is active, and stays as decreed
        cli(f'{REPLICA} set', replica, '--status', 'available')
    else:
        cli(f'{REPLICA} set', replica, '--replica-state', 'out_of_sync')
    cli(f'{REPLICA} resync', replica)
    story.settled(replica, state=story.followed)


def note(story, first, second):
    """Properties of a replica are of no other one."""
    cli = story.cli
    cli(f'{REPLICA} set', second, '--property', 'color=red')
    assert cli(f'{REPLICA} show', second)['properties'] == {
        'site': 'south',
        'color': 'red',
    }
    assert set(story.replicas('--property', 'color=red')) == {second}
    cli(f'{REPLICA} unset', second, '--property', 'color')
    assert cli(f'{REPLICA} show', second)['properties'] == {'site': 'south'}
    assert cli(f'{REPLICA} show', first)['properties'] == {}


def snapshot(story, second):
    """One is available when all replicas that count have it."""
    story.newest('share snapshot create', 'first', '--name', 'one')

    def check():
        rest = story.rest
        (shown,) = rest.get('/snapshots/detail')['snapshots']
        instances = rest.get('/snapshot-instances/detail')[
            'snapshot_instances'
        ]
        return len(instances) == 2 and {
            shown['status'],
            *(one['status'] for one in instances),
        } == {'available'}

    wait_until(check, 'the snapshot is on both replicas')
    story.settled(second, state=story.followed)


def fail_over(story, old, new):
    """To the other replica; of writable ones there is no need."""
    cli = story.cli
    wait = ('--quiesce-wait-time', '3') if story.has('2.75') else ()
    cli(f'{REPLICA} promote', new, *wait)
    if story.style == 'writable':
        return  # it is active, so nothing is done
    story.settled(new, state='active')
    # Asked again and again, the old one follows the new one.
    story.settled(old)
    shown = story.available()
    assert shown['host'] == story.shown(new)['host']
    assert story.paths() == story.paths(new)
    assert story.casts(old, new) == [story.style == 'readable', False]
    cli(f'{REPLICA} delete', new, code=1)


def end(story, first, second):
    """A share goes when it has no other replicas any more."""
    cli = story.cli
    story.newest('share snapshot delete', 'one')
    wait_until(
        lambda: story.rest.get('/snapshots')['snapshots'] == [],
        'the snapshot is gone',
    )
    cli('share delete', 'first', code=1)
    cli(f'{REPLICA} delete', second)
    story.gone(second)
    third = cli(f'{REPLICA} create', 'first')['id']
    story.settled(third, state=story.followed)
    cli(f'{REPLICA} delete', third, '--force')
    story.gone(third)
    cli(f'{REPLICA} delete', first, code=1)
    assert not story.available()['has_replicas']
    cli('share delete', 'first')
    story.rest.wait_gone(story.id)
    cli('share type delete', 'mirrored')


@pytest.mark.parametrize(
    'style, version',
    [
        ('readable', NEWEST),
        ('dr', '2.60'),
        ('readable', '2.11'),
        ('writable', NEWEST),
    ],
)
def test_command_line_leads_replicas_through_their_lives(
    install, style, version
):
    installation = install(
        kind=SERVE, options=OPTIONS, backends=backends(style)
    ).start()
    story = Story(installation, style, version)
    live_through(story)
    assert commands(story) - story.cli.ran == set()
    story.end_is_clean()


def commands(story):
    """The commands of the table that this version serves."""
    since = {
        command: minimum
        for command, minimum in SINCE.items()
        if command.startswith(f'openstack {REPLICA} ')
    } | CLIENT_SINCE
    return {
        command for command, minimum in since.items() if story.has(minimum)
    }


def test_on_share_servers_of_two_back_ends(install):
    """Each replica is on a share server of its own back end."""
    installation = install(
        kind=SERVE, options=OPTIONS, backends=backends('readable', **SERVED)
    ).start()
    story = Story(installation, 'readable', NEWEST)
    story.servers = 'true'
    story.on_network = ('--share-network', 'red')
    story.cli('share network create', '--name', 'red')
    first, second = begin(story)
    servers = {
        one['Host']: one['ID'] for one in story.cli('share server list')
    }
    assert [
        story.shown(one)['share_server_id'] for one in (first, second)
    ] == [servers[installation.service_host(zone)] for zone in ZONES]
    let_in(story, first, second)
    snapshot(story, second)
    fail_over(story, first, second)
    end(story, second, first)
    story.cli('share server delete', *servers.values())
    wait_until(
        lambda: story.rest.get('/share-servers')['share_servers'] == [],
        'the servers are gone',
    )
    story.cli('share network delete', 'red')
    story.end_is_clean()


@pytest.fixture
def sdk(install):
    installation = install(
        kind=SERVE, options=OPTIONS, backends=backends('dr')
    ).start()
    made = connection.Connection(
        auth_type='none',
        auth={'endpoint': installation.url},
        region_name='RegionOne',
        shared_file_system_default_microversion='2.99',
    )
    yield made.shared_file_system, installation
    made.close()


def test_sdk_leads_replicas_through_their_lives(sdk):
    sdk, installation = sdk
    sdk.create_share_type(
        name='mirrored',
        extra_specs={
            'driver_handles_share_servers': 'False',
            'replication_type': 'dr',
        },
    )
    share = sdk.create_share(
        share_protocol='NFS',
        size=1,
        name='first',
        share_type='mirrored',
        availability_zone='north',
    )
    wait_until(
        lambda: sdk.get_share(share).status == 'available',
        'the share is available',
    )

    def settled(replica, state='in_sync'):
        def check():
            found = sdk.get_share_replica(replica)
            return (found.status, found.replica_state) == (
                'available',
                state,
            ) and found

        return wait_until(check, f'{replica} is {state}')

    (first,) = sdk.share_replicas(share_id=share.id)
    made = sdk.create_share_replica(share.id, availability_zone='south')
    second = settled(made.id)
    assert (second.share_id, second.host) == (
        share.id,
        f'{installation.service_host("south")}#pool',
    )
    listed = sdk.share_replicas(share_id=share.id)
    assert {one.id for one in listed} == {first.id, second.id}
    # Page after page, by the last id of the one before.
    assert [one.id for one in sdk.share_replicas(limit=1)] == [
        second.id,
        first.id,
    ]
    sdk.reset_share_replica_state(second, 'out_of_sync')
    sdk.reset_share_replica_status(second, 'error')
    sdk.resync_share_replica(second)
    settled(second.id)
    with pytest.raises(exceptions.BadRequestException):
        sdk.delete_share_replica(first.id)
    sdk.promote_share_replica(second)
    settled(second.id, 'active')
    settled(first.id)
    sdk.promote_share_replica(second)  # again, and nothing is done
    sdk.delete_share_replica(first.id)
    wait_until(
        lambda: [one.id for one in sdk.share_replicas()] == [second.id],
        'the old one is gone',
    )
    with pytest.raises(exceptions.NotFoundException):
        sdk.get_share_replica(first.id)
    sdk.delete_share(share)
    sdk.wait_for_delete(share, interval=0.05, wait=30)
    wait_until(lambda: not installation.pending_work(), 'nothing is owed')
    assert installation.problems() == []
