"""A share of real files outlives the back end that it was on.

Two back ends of plain directories replicate among each other. One is lost
when its directory is gone, and comes back with what it had then. What users
ask for is asked for with the official command line, over HTTP; how it goes
on is looked up without it, since the client waits in steps of seconds.
"""

import pathlib
import typing

import pytest

from tests.drivers import content
from tests.drivers.driver_harness import exported_clients
from tests.functional.stories.conftest import new_installation
from tests.support.cli import Cli
from tests.support.installation import Installation
from tests.support.processes import wait_until
from tests.support.rest_client import RestClient

SITES = ('north', 'south')
CLIENT = '10.0.0.1'
LEVELS = {'readable': {'ro'}, 'dr': set()}
READER = '10.0.0.2'
"""How clients may use a replica that is not active, by the style."""


class Place(typing.NamedTuple):
    """An installation on real directories, and who uses it."""

    installation: Installation
    style: str
    roots: dict[str, pathlib.Path]
    cli: Cli
    rest: RestClient

    def lose(self, site):
        """Have nobody reach it, as when a disk is gone."""
        self.roots[site].rename(self._away(site))

    def bring_back(self, site):
        self._away(site).rename(self.roots[site])

    def _away(self, site):
        return self.roots[site].with_name(f'{site}-away')


class Share:
    """A share, and a replica of it on each of the two sites."""

    def __init__(self, place):
        self.place = place
        self.id = place.cli(
            'share create',
            'NFS',
            1,
            '--availability-zone',
            'north',
            '--share-type',
            'mirrored',
        )['id']
        self.available()
        place.cli('share access create', self.id, 'ip', CLIENT)
        wait_until(self.is_told, 'the rule is told')
        (north,) = self.replicas()
        self.of = {'north': north}

    def is_told(self):
        rules = self.place.rest.get(f'/share-access-rules?share_id={self.id}')[
            'access_list'
        ]
        return {rule['state'] for rule in rules} == {'active'}

    def replicate(self):
        made = self.place.cli(
            'share replica create', self.id, '--availability-zone', 'south'
        )
        self.of['south'] = made['id']
        self.settled('south', 'in_sync')

    def replicas(self):
        return [
            one['id']
            for one in self.place.rest.get(
                f'/share-replicas?share_id={self.id}'
            )['share_replicas']
        ]

    def available(self):
        def check():
            shown = self.place.rest.show(self.id)
            return shown if shown['status'] == 'available' else None

        return wait_until(check, 'the share is available')

    def settled(self, site, state):
        """The replica on the site is well, and in this state."""

        def check():
            shown = self.place.rest.get(f'/share-replicas/{self.of[site]}')[
                'share_replica'
            ]
            return (shown['status'], shown['replica_state']) == (
                'available',
                state,
            )

        wait_until(check, f'the replica on {site} is {state}')

    def data(self, site):
        return (
            self.place.roots[site]
            / 'shares'
            / f'share-{self.of[site]}'
            / 'data'
        )

    def holds(self, site):
        return content.describe(self.data(site))

    def resync(self, site):
        """What is there now is on the replica when this returns."""
        self.place.cli('share replica resync', self.of[site])
        wait_until(
            lambda: not self.place.installation.pending_work(), 'it is done'
        )
        self.settled(site, 'in_sync')

    def promote(self, site):
        self.place.cli('share replica promote', self.of[site])
        self.settled(site, 'active')
        shown = self.available()
        assert shown['host'].startswith(
            self.place.installation.service_host(site)
        )
        (export,) = self.place.rest.get(f'/shares/{self.id}/export_locations')[
            'export_locations'
        ]
        assert pathlib.Path(export['path']) == self.data(site)
        wait_until(lambda: self.levels(site) == {'rw'}, 'clients may write')

    def levels(self, site):
        """How the client is let in on a site."""
        file = (
            self.place.roots[site]
            / 'exports'
            / f'share-{self.of[site]}.exports'
        )
        return {
            level for _, to, level in exported_clients(file) if to == CLIENT
        }

    def mounts(self, site):
        """How the reader of the only snapshot is let in on a site."""
        (file,) = [
            *(self.place.roots[site] / 'exports').glob(
                'share-snapshot-*.exports'
            ),
            None,
        ][:1]
        return (
            {level for _, to, level in exported_clients(file) if to == READER}
            if file
            else set()
        )

    def is_mounted(self, active, passive):
        """Whoever may mount the snapshot comes to the active site.

        And to the other one, where its style says so.
        """
        wait_until(
            lambda: (
                (self.mounts(active), self.mounts(passive))
                == ({'ro'}, LEVELS[self.place.style])
            ),
            'the snapshot can be read',
        )

    def picture(self):
        """A snapshot, on both sites when this returns; its id."""
        id = self.place.cli('share snapshot create', self.id)['id']
        rest = self.place.rest

        def check():
            shown = rest.get(f'/snapshots/{id}')['snapshot']
            instances = rest.get('/snapshot-instances/detail')[
                'snapshot_instances'
            ]
            return len(instances) == 2 and {
                shown['status'],
                *(one['status'] for one in instances),
            } == {'available'}

        wait_until(check, 'the snapshot is on both sites')
        self.available()
        return id

    def pictured(self, site):
        """What the only snapshot on a site holds."""
        (snapshot,) = (self.place.roots[site] / 'snapshots').iterdir()
        return content.describe(snapshot / 'data')


@pytest.fixture(scope='module', params=['readable', 'dr'])
def place(request, tmp_path_factory):
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
                'replication_domain': 'house',
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
        yield Place(
            installation, request.param, roots, cli, installation.rest('admin')
        )


def test_files_outlive_their_back_end_and_come_home(place):
    share = Share(place)
    content.populate(share.data('north'))
    share.replicate()
    begun = share.holds('north')
    assert share.holds('south') == begun
    wait_until(
        lambda: share.levels('south') == LEVELS[place.style],
        'clients use the replica as its style says',
    )

    snapshot = share.picture()
    place.cli('share snapshot access create', snapshot, 'ip', READER)
    share.is_mounted('north', 'south')
    content.damage(share.data('north'))
    share.resync('south')
    synced = share.holds('north')
    assert share.holds('south') == synced != begun
    assert share.pictured('south') == begun

    # The site is lost, with what came after the last look.
    place.lose('north')
    lost = place.roots['north'].with_name('north-away')
    lost_data = lost / share.data('north').relative_to(place.roots['north'])
    (lost_data / 'lost').write_text('nobody has seen this')
    share.promote('south')
    assert share.holds('south') == synced
    (share.data('south') / 'since').write_text('written on the other site')
    (share.data('south') / 'new' / 'file').unlink()
    changed = share.holds('south')

    # What was lost is not active any more when it is back.
    place.bring_back('north')
    share.settled('north', 'in_sync')
    share.resync('north')
    assert share.holds('north') == changed
    wait_until(
        lambda: share.levels('north') == LEVELS[place.style],
        'clients do not write to what was lost',
    )

    # The snapshot has outlived it, too.
    share.is_mounted('south', 'north')
    place.cli('share revert', snapshot)
    share.available()
    wait_until(lambda: not place.installation.pending_work(), 'it is reverted')
    assert share.holds('south') == begun
    share.resync('north')
    assert share.holds('north') == begun
    content.damage(share.data('south'))
    kept = share.holds('south')

    # Back home, with what was written just before.
    share.promote('north')
    assert share.holds('north') == kept
    share.settled('south', 'in_sync')
    assert share.holds('south') == kept
    wait_until(
        lambda: share.levels('south') == LEVELS[place.style],
        'clients write on one site only',
    )
    share.is_mounted('north', 'south')
    end(place, share, snapshot)


def end(place, share, snapshot):
    """All of it goes, and nothing is left behind."""
    place.cli('share snapshot delete', snapshot)
    wait_until(
        lambda: not place.rest.get('/snapshots')['snapshots'],
        'the snapshot is gone',
    )
    place.cli('share replica delete', share.of['south'])
    wait_until(lambda: len(share.replicas()) == 1, 'the replica is gone')
    place.cli('share delete', share.id)
    wait_until(
        lambda: not place.rest.get('/shares')['shares'], 'the share is gone'
    )
    wait_until(
        lambda: not place.installation.pending_work(), 'nothing is owed'
    )
    assert [
        path
        for root in place.roots.values()
        for path in root.rglob('*')
        if not path.is_dir()
    ] == []
