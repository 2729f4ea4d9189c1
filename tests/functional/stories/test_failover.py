"""A share of real files survives the loss of its back end.

Two back ends of plain directories replicate to each other. One is lost when
its directory is moved away, and comes back with its old contents. Users send
their requests with the official command line, over HTTP; the test polls
without it, since the client polls in intervals of seconds.
"""

import pathlib
import typing

import pytest

from manila_lite.share.drivers.local.disk import IDENTITY, MARKER
from tests.drivers import content
from tests.drivers.driver_harness import exported_clients
from tests.functional.stories import suites
from tests.functional.stories.conftest import new_installation
from tests.support.cli import Cli
from tests.support.installation import Installation
from tests.support.processes import wait_until
from tests.support.rest_client import RestClient

pytestmark = suites.failures

SITES = ('north', 'south')
CLIENT = '10.0.0.1'
# Access levels on a replica that is not active, by replication type.
LEVELS = {'readable': {'ro'}, 'dr': set()}
READER = '10.0.0.2'
"""A client of the snapshot."""


class Deployment(typing.NamedTuple):
    """An installation on real directories, with clients."""

    installation: Installation
    replication_type: str
    roots: dict[str, pathlib.Path]
    cli: Cli
    rest: RestClient

    def move_away(self, site):
        """Move its directory away, as if a disk were lost."""
        self.roots[site].rename(self._away(site))

    def bring_back(self, site):
        self._away(site).rename(self.roots[site])

    def _away(self, site):
        return self.roots[site].with_name(f'{site}-away')


class Share:
    """A share with a replica on each of the two sites."""

    def __init__(self, deployment):
        self.deployment = deployment
        self.id = deployment.cli(
            'share create',
            'NFS',
            1,
            '--availability-zone',
            'north',
            '--share-type',
            'mirrored',
        )['id']
        self.wait_available()
        deployment.cli('share access create', self.id, 'ip', CLIENT)
        wait_until(self.has_active_rules, 'the rule is active')
        (north,) = self.replicas()
        self.replica_ids = {'north': north}

    def has_active_rules(self):
        rules = self.deployment.rest.get(f'/share-access-rules?share_id={self.id}')[
            'access_list'
        ]
        return {rule['state'] for rule in rules} == {'active'}

    def replicate(self):
        made = self.deployment.cli(
            'share replica create', self.id, '--availability-zone', 'south'
        )
        self.replica_ids['south'] = made['id']
        self.wait_for_replica('south', 'in_sync')

    def replicas(self):
        return [
            one['id']
            for one in self.deployment.rest.get(f'/share-replicas?share_id={self.id}')[
                'share_replicas'
            ]
        ]

    def wait_available(self):
        def check():
            shown = self.deployment.rest.show(self.id)
            return shown if shown['status'] == 'available' else None

        return wait_until(check, 'the share is available')

    def wait_for_replica(self, site, state):
        """Wait until the replica on a site is available, in this state."""

        def check():
            shown = self.deployment.rest.get(
                f'/share-replicas/{self.replica_ids[site]}'
            )['share_replica']
            return (shown['status'], shown['replica_state']) == ('available', state)

        wait_until(check, f'the replica on {site} is {state}')

    def data_folder(self, site):
        return (
            self.deployment.roots[site]
            / 'shares'
            / f'share-{self.replica_ids[site]}'
            / 'data'
        )

    def contents(self, site):
        return content.describe(self.data_folder(site))

    def resync(self, site):
        """Resync the replica on a site and wait until it is in sync."""
        self.deployment.cli('share replica resync', self.replica_ids[site])
        wait_until(
            lambda: not self.deployment.installation.pending_work(),
            'no work is pending',
        )
        self.wait_for_replica(site, 'in_sync')

    def promote(self, site):
        self.deployment.cli('share replica promote', self.replica_ids[site])
        self.wait_for_replica(site, 'active')
        shown = self.wait_available()
        assert shown['host'].startswith(self.deployment.installation.service_host(site))
        (export,) = self.deployment.rest.get(f'/shares/{self.id}/export_locations')[
            'export_locations'
        ]
        assert pathlib.Path(export['path']) == self.data_folder(site)
        wait_until(lambda: self.levels(site) == {'rw'}, 'clients may write')

    def levels(self, site):
        """Return the access levels of the client on a site."""
        file = (
            self.deployment.roots[site]
            / 'exports'
            / f'share-{self.replica_ids[site]}.exports'
        )
        return {level for _, to, level in exported_clients(file) if to == CLIENT}

    def mounts(self, site):
        """Return the access levels of the only snapshot on a site."""
        (file,) = [
            *(self.deployment.roots[site] / 'exports').glob('share-snapshot-*.exports'),
            None,
        ][:1]
        return (
            {level for _, to, level in exported_clients(file) if to == READER}
            if file
            else set()
        )

    def wait_until_mountable(self, active, passive):
        """Wait until the snapshot can be mounted on the active site.

        And on the other one, if the replication type permits it.
        """
        wait_until(
            lambda: (
                (self.mounts(active), self.mounts(passive))
                == ({'ro'}, LEVELS[self.deployment.replication_type])
            ),
            'the snapshot can be read',
        )

    def create_snapshot(self):
        """Create a snapshot, wait until both sites have it; return its id."""
        id = self.deployment.cli('share snapshot create', self.id)['id']
        rest = self.deployment.rest

        def check():
            shown = rest.get(f'/snapshots/{id}')['snapshot']
            instances = rest.get('/snapshot-instances/detail')['snapshot_instances']
            return len(instances) == 2 and {
                shown['status'],
                *(one['status'] for one in instances),
            } == {'available'}

        wait_until(check, 'the snapshot is on both sites')
        self.wait_available()
        return id

    def snapshot_contents(self, site):
        """Describe the contents of the only snapshot on a site."""
        (snapshot,) = (self.deployment.roots[site] / 'snapshots').iterdir()
        return content.describe(snapshot / 'data')


@pytest.fixture(scope='module', params=['readable', 'dr'])
def deployment(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp('failover')
    roots = {site: folder / site for site in SITES}
    with new_installation(
        folder / 'installation',
        options='replica_state_update_interval = 1',
        backends={
            site: {
                'share_driver': 'local',
                'local_root': root,
                'local_capacity_gb': 100,
                'max_over_subscription_ratio': 1,
                'local_replication_type': request.param,
                'replication_domain': 'domain',
                'backend_availability_zone': site,
            }
            for site, root in roots.items()
        },
    ) as installation:
        installation.start()
        cli = Cli('--os-auth-type', 'none', '--os-endpoint', installation.url)
        cli(
            'share type create',
            'mirrored',
            'false',
            '--extra-specs',
            f'replication_type={request.param}',
            'snapshot_support=True',
            'revert_to_snapshot_support=True',
            'mount_snapshot_support=True',
        )
        yield Deployment(
            installation, request.param, roots, cli, installation.rest('admin')
        )


def test_files_survive_failover_and_failback(deployment):
    share = Share(deployment)
    content.populate(share.data_folder('north'))
    share.replicate()
    begun = share.contents('north')
    assert share.contents('south') == begun
    wait_until(
        lambda: share.levels('south') == LEVELS[deployment.replication_type],
        'clients have the access of the replication type',
    )

    snapshot = share.create_snapshot()
    deployment.cli('share snapshot access create', snapshot, 'ip', READER)
    share.wait_until_mountable('north', 'south')
    content.damage(share.data_folder('north'))
    share.resync('south')
    synced = share.contents('north')
    assert share.contents('south') == synced != begun
    assert share.snapshot_contents('south') == begun

    # The site is lost, with what was written after the last update.
    deployment.move_away('north')
    lost = deployment.roots['north'].with_name('north-away')
    lost_data = lost / share.data_folder('north').relative_to(deployment.roots['north'])
    (lost_data / 'lost').write_text('never replicated')
    share.promote('south')
    assert share.contents('south') == synced
    (share.data_folder('south') / 'since').write_text('written on the other site')
    (share.data_folder('south') / 'new' / 'file').unlink()
    changed = share.contents('south')

    # The lost replica is no longer active when it is back.
    deployment.bring_back('north')
    share.wait_for_replica('north', 'in_sync')
    share.resync('north')
    assert share.contents('north') == changed
    wait_until(
        lambda: share.levels('north') == LEVELS[deployment.replication_type],
        'clients do not write to what was lost',
    )

    # The snapshot has survived, too.
    share.wait_until_mountable('south', 'north')
    deployment.cli('share revert', snapshot)
    share.wait_available()
    wait_until(lambda: not deployment.installation.pending_work(), 'it is reverted')
    assert share.contents('south') == begun
    share.resync('north')
    assert share.contents('north') == begun
    content.damage(share.data_folder('south'))
    kept = share.contents('south')

    # Failback, with what was written just before.
    share.promote('north')
    assert share.contents('north') == kept
    share.wait_for_replica('south', 'in_sync')
    assert share.contents('south') == kept
    wait_until(
        lambda: share.levels('south') == LEVELS[deployment.replication_type],
        'clients write on one site only',
    )
    share.wait_until_mountable('north', 'south')
    delete_all(deployment, share, snapshot)


def delete_all(deployment, share, snapshot):
    """Delete everything; nothing is left behind."""
    deployment.cli('share snapshot delete', snapshot)
    wait_until(
        lambda: not deployment.rest.get('/snapshots')['snapshots'],
        'the snapshot is gone',
    )
    deployment.cli('share replica delete', share.replica_ids['south'])
    wait_until(lambda: len(share.replicas()) == 1, 'the replica is gone')
    deployment.cli('share delete', share.id)
    wait_until(
        lambda: not deployment.rest.get('/shares')['shares'], 'the share is gone'
    )
    wait_until(lambda: not deployment.installation.pending_work(), 'no work is pending')
    assert [
        path
        for root in deployment.roots.values()
        for path in root.rglob('*')
        if not path.is_dir()
        and path.parent.name != 'fencing'
        and path.name not in (MARKER, IDENTITY)
    ] == []
