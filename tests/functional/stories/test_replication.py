"""The life of replicas with the official clients, in one process.

Two dummy back ends replicate to each other, each in its own zone.
"""

from openstack import connection, exceptions
import pytest

from tests.functional.stories import suites
from tests.functional.stories.test_share_servers import NEWEST, SERVED, SINCE, number
from tests.support.cli import Cli
from tests.support.installation import SERVE
from tests.support.processes import wait_until

pytestmark = suites.several_backends

ZONES = ('north', 'south')
REPLICA = 'share replica'

# Below this version the client itself fails: it needs export locations.
CLIENT_MINIMUM = {'openstack share replica show': '2.47'}
OPTIONS = 'replica_state_update_interval = 1'


def backends(replication_type, **options):
    """Return options of one back end per zone, in one domain."""
    return {
        zone: {
            'replication_domain': 'domain',
            'dummy_driver_replication_type': replication_type,
            'backend_availability_zone': zone,
            **options,
        }
        for zone in ZONES
    }


class Story:
    """A share of one replication type, at one version of the API.

    What the client cannot do at that version is done with a newer one. The
    test polls over HTTP, which is cheaper than with the client.
    """

    servers = 'false'
    on_network: tuple[str, ...] = ()

    def __init__(self, installation, replication_type, version):
        self.installation = installation
        self.replication_type, self.version = replication_type, version
        options = ('--os-auth-type', 'none', '--os-endpoint', installation.url)
        self.cli = Cli(*options, version=version)
        self.newest = Cli(*options, version=NEWEST)
        self.rest = installation.rest('admin')

    def has(self, minimum):
        return number(self.version) >= number(minimum)

    def wait_for_replica(self, replica_id, status='available', state='in_sync'):
        """Wait until the replica has this status and state."""

        def check():
            shown = self.shown(replica_id)
            return (shown['status'], shown['replica_state']) == (status, state)

        wait_until(check, f'{replica_id} is {status} and {state}')

    def shown(self, replica_id):
        return self.rest.get(f'/share-replicas/{replica_id}')['share_replica']

    @property
    def up_to_date_state(self):
        """The replica_state of an up-to-date replica."""
        return 'active' if self.replication_type == 'writable' else 'in_sync'

    def share(self, name, *criteria):
        created = self.cli(
            'share create',
            'NFS',
            '1',
            '--name',
            name,
            '--share-type',
            'replicated',
            '--availability-zone',
            'north',
            *criteria,
        )
        self.id = created['id']
        self.wait_available()

    def wait_available(self):
        """Wait until the share is available; return it."""

        def check():
            shown = self.rest.show(self.id)
            return shown if shown['status'] == 'available' else None

        return wait_until(check, 'the share is available')

    def replicas(self, *criteria):
        return {one['ID']: one for one in self.cli(f'{REPLICA} list', *criteria)}

    def states(self, name):
        """Return `replica_state` by zone."""
        return {
            one['Availability Zone']: one['Replica State']
            for one in self.replicas('--share', name).values()
        }

    def wait_deleted(self, replica_id):
        wait_until(
            lambda: (
                replica_id
                not in {
                    one['id']
                    for one in self.rest.get('/share-replicas')['share_replicas']
                }
            ),
            f'{replica_id} is gone',
        )

    def paths(self, replica_id=None):
        """Return the export paths of the share, or of one replica."""
        path = (
            f'/share-replicas/{replica_id}/export-locations'
            if replica_id
            else f'/shares/{self.id}/export_locations'
        )
        return {one['path'] for one in self.rest.get(path)['export_locations']}

    def casts(self, *replicas):
        return [self.shown(one)['cast_rules_to_readonly'] for one in replicas]

    def check_clean(self):
        wait_until(lambda: not self.installation.pending_work(), 'no work is pending')
        assert self.installation.problems() == []


def run_story(story):
    first, second = begin(story)
    check_listings(story, first, second)
    allow_client(story, first, second)
    reset_and_resync(story, second)
    if story.has('2.95'):
        set_properties(story, first, second)
    snapshot(story, second)
    fail_over(story, first, second)
    if story.replication_type != 'writable':
        fail_over(story, second, first)
    delete_all(story, first, second)


def begin(story):
    """Create a share and a second replica; return the ids of both."""
    cli = story.cli
    cli(
        'share type create',
        'replicated',
        story.servers,
        '--extra-specs',
        f'replication_type={story.replication_type}',
        'snapshot_support=True',
    )
    story.share('first', *story.on_network)
    (first,) = story.replicas('--share', 'first')
    second = replicate(story)
    shown = cli('share show', 'first')
    assert (shown['has_replicas'], shown['replication_type']) == (
        True,
        story.replication_type,
    )
    return first, second


def replicate(story):
    """Create the second replica in the other zone; return its id."""
    cli = story.cli
    more = []
    if story.has('2.67'):
        host = story.installation.service_host('south')
        more += ['--scheduler-hint', f'only_host={host}#pool']
    if story.has('2.72'):
        more += story.on_network
    if story.has('2.95'):
        more += ['--property', 'site=south']
    created = cli(f'{REPLICA} create', 'first', '--availability-zone', 'south', *more)
    assert (created['status'], created['replica_state']) == ('creating', 'out_of_sync')
    story.wait_for_replica(created['id'], state=story.up_to_date_state)
    assert story.states('first') == {'north': 'active', 'south': story.up_to_date_state}
    return created['id']


def check_listings(story, first, second):
    """Check the list of replicas and their export locations."""
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
        story.replication_type == 'writable'
    )


def allow_client(story, first, second):
    """A rule of the share is applied to all of its replicas."""
    story.newest('share access create', 'first', 'ip', '10.0.0.1')

    def check():
        (rule,) = story.rest.get(f'/share-access-rules?share_id={story.id}')[
            'access_list'
        ]
        return rule['state'] == 'active'

    wait_until(check, 'the rule is active')
    assert story.casts(first, second) == [False, story.replication_type == 'readable']


def reset_and_resync(story, replica):
    """A resync corrects a status that was reset."""
    cli = story.cli
    cli(f'{REPLICA} set', replica, '--status', 'error')
    # Each writable replica is active and keeps the status.
    if story.replication_type == 'writable':
        cli(f'{REPLICA} set', replica, '--status', 'available')
    else:
        cli(f'{REPLICA} set', replica, '--replica-state', 'out_of_sync')
    cli(f'{REPLICA} resync', replica)
    story.wait_for_replica(replica, state=story.up_to_date_state)


def set_properties(story, first, second):
    """Properties belong to one replica only."""
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
    """A snapshot is available when all up-to-date replicas have it."""
    story.newest('share snapshot create', 'first', '--name', 'one')

    def check():
        rest = story.rest
        (shown,) = rest.get('/snapshots/detail')['snapshots']
        instances = rest.get('/snapshot-instances/detail')['snapshot_instances']
        return len(instances) == 2 and {
            shown['status'],
            *(one['status'] for one in instances),
        } == {'available'}

    wait_until(check, 'the snapshot is on both replicas')
    story.wait_for_replica(second, state=story.up_to_date_state)


def fail_over(story, old, new):
    """Promote the other replica; writable ones are both active."""
    cli = story.cli
    wait = ('--quiesce-wait-time', '3') if story.has('2.75') else ()
    cli(f'{REPLICA} promote', new, *wait)
    if story.replication_type == 'writable':
        return  # it is active already
    story.wait_for_replica(new, state='active')
    # After periodic updates the old one is in sync again.
    story.wait_for_replica(old)
    shown = story.wait_available()
    assert shown['host'] == story.shown(new)['host']
    assert story.paths() == story.paths(new)
    assert story.casts(old, new) == [story.replication_type == 'readable', False]
    cli(f'{REPLICA} delete', new, code=1)


def delete_all(story, first, second):
    """A share can be deleted only without other replicas."""
    cli = story.cli
    story.newest('share snapshot delete', 'one')
    wait_until(
        lambda: story.rest.get('/snapshots')['snapshots'] == [], 'the snapshot is gone'
    )
    cli('share delete', 'first', code=1)
    cli(f'{REPLICA} delete', second)
    story.wait_deleted(second)
    third = cli(f'{REPLICA} create', 'first')['id']
    story.wait_for_replica(third, state=story.up_to_date_state)
    cli(f'{REPLICA} delete', third, '--force')
    story.wait_deleted(third)
    cli(f'{REPLICA} delete', first, code=1)
    assert not story.wait_available()['has_replicas']
    cli('share delete', 'first')
    story.rest.wait_gone(story.id)
    cli('share type delete', 'replicated')


@pytest.mark.parametrize(
    'replication_type, version',
    [('readable', NEWEST), ('dr', '2.60'), ('readable', '2.11'), ('writable', NEWEST)],
)
def test_command_line_manages_the_life_of_replicas(install, replication_type, version):
    installation = install(
        kind=SERVE, options=OPTIONS, backends=backends(replication_type)
    ).start()
    story = Story(installation, replication_type, version)
    run_story(story)
    assert commands(story) - story.cli.ran == set()
    story.check_clean()


def commands(story):
    """Return the commands of the table that this version supports."""
    since = {
        command: minimum
        for command, minimum in SINCE.items()
        if command.startswith(f'openstack {REPLICA} ')
    } | CLIENT_MINIMUM
    return {command for command, minimum in since.items() if story.has(minimum)}


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
    servers = {one['Host']: one['ID'] for one in story.cli('share server list')}
    assert [story.shown(one)['share_server_id'] for one in (first, second)] == [
        servers[installation.service_host(zone)] for zone in ZONES
    ]
    allow_client(story, first, second)
    snapshot(story, second)
    fail_over(story, first, second)
    delete_all(story, second, first)
    story.cli('share server delete', *servers.values())
    wait_until(
        lambda: story.rest.get('/share-servers')['share_servers'] == [],
        'the servers are gone',
    )
    story.cli('share network delete', 'red')
    story.check_clean()


@pytest.fixture
def sdk(install):
    installation = install(kind=SERVE, options=OPTIONS, backends=backends('dr')).start()
    created = connection.Connection(
        auth_type='none',
        auth={'endpoint': installation.url},
        region_name='RegionOne',
        shared_file_system_default_microversion='2.99',
    )
    yield created.shared_file_system, installation
    created.close()


def test_sdk_manages_the_life_of_replicas(sdk):
    sdk, installation = sdk
    sdk.create_share_type(
        name='replicated',
        extra_specs={'driver_handles_share_servers': 'False', 'replication_type': 'dr'},
    )
    share = sdk.create_share(
        share_protocol='NFS',
        size=1,
        name='first',
        share_type='replicated',
        availability_zone='north',
    )
    wait_until(
        lambda: sdk.get_share(share).status == 'available', 'the share is available'
    )

    def wait_for_replica(replica, state='in_sync'):
        def check():
            found = sdk.get_share_replica(replica)
            return (found.status, found.replica_state) == ('available', state) and found

        return wait_until(check, f'{replica} is {state}')

    (first,) = sdk.share_replicas(share_id=share.id)
    created = sdk.create_share_replica(share.id, availability_zone='south')
    second = wait_for_replica(created.id)
    assert (second.share_id, second.host) == (
        share.id,
        f'{installation.service_host("south")}#pool',
    )
    listed = sdk.share_replicas(share_id=share.id)
    assert {one.id for one in listed} == {first.id, second.id}
    # In pages, each with the last id of the previous one as marker.
    assert [one.id for one in sdk.share_replicas(limit=1)] == [second.id, first.id]
    sdk.reset_share_replica_state(second, 'out_of_sync')
    sdk.reset_share_replica_status(second, 'error')
    sdk.resync_share_replica(second)
    wait_for_replica(second.id)
    with pytest.raises(exceptions.BadRequestException):
        sdk.delete_share_replica(first.id)
    sdk.promote_share_replica(second)
    wait_for_replica(second.id, 'active')
    wait_for_replica(first.id)
    sdk.promote_share_replica(second)  # again, without effect
    sdk.delete_share_replica(first.id)
    wait_until(
        lambda: [one.id for one in sdk.share_replicas()] == [second.id],
        'the old one is gone',
    )
    with pytest.raises(exceptions.NotFoundException):
        sdk.get_share_replica(first.id)
    sdk.delete_share(share)
    sdk.wait_for_delete(share, interval=0.05, wait=30)
    wait_until(lambda: not installation.pending_work(), 'no work is pending')
    assert installation.problems() == []
