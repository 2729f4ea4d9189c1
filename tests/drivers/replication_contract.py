"""Contract of drivers that replicate shares, for each type."""

import dataclasses
import uuid

import pytest

from manila_lite import exception
from manila_lite.share.drivers import base
from tests.drivers.contract import call_or_skip
from tests.drivers.driver_harness import CTX
from tests.drivers.replication_backends import STYLES
from tests.drivers.replication_sites import PASSIVE_LEVELS


class ReplicaContract:
    """For all replication types."""

    styles = STYLES

    def test_stats_report_replication_type_and_domain(self, sites):
        for site in sites.sites:
            stats = site.driver.get_share_stats(refresh=True)
            assert stats['replication_type'] == sites.style
            assert stats['replication_domain']

    def test_replica_in_sync_has_the_content(self, sites):
        sites.write('one')
        assert sites.create_in_sync().read() == 'one'

    def test_replica_has_its_own_export_locations(self, sites):
        sites.create_in_sync()
        paths = [
            {one['path'] for one in base.normalise_export_locations(site.locations)}
            for site in (sites.here, sites.there)
        ]
        assert paths[0].isdisjoint(paths[1])
        assert all(paths)

    def test_only_writable_replicas_are_made_active(self, sites):
        sites.create_in_sync()
        assert (sites.there.state == 'active') == (sites.style == 'writable')

    def test_replica_in_sync_has_the_snapshots(self, sites):
        sites.write('one')
        id = sites.snapshot()
        sites.write('two')
        sites.create_in_sync()
        there = sites.there.driver.get_snapshot_status(sites.instance(id, sites.there))
        assert there['status'] == 'available'
        assert there.get('size', 1) == 1

    def test_share_from_a_snapshot_may_be_on_another_back_end(self, sites):
        sites.write('one')
        snapshot = sites.instance(sites.snapshot(), sites.here)
        sites.write('two')
        clone = dataclasses.replace(
            sites.share_for(sites.there),
            id=str(uuid.uuid4()),
            share_id=str(uuid.uuid4()),
            name=f'share-{uuid.uuid4()}',
            replica_state=None,
            export_locations=[],
        )
        reply = call_or_skip(
            sites.there.driver.create_share_from_snapshot,
            CTX,
            clone,
            snapshot,
            sites.there.server,
            snapshot.share,
        )
        sites.there.locations = (
            reply['export_locations'] if isinstance(reply, dict) else reply
        )
        assert sites.there.users(clone).read() == 'one'
        sites.there.driver.delete_share(CTX, clone, sites.there.server)

    def test_without_a_snapshot_it_is_not_in_sync(self, sites):
        missing = str(uuid.uuid4())
        sites.snapshots[missing] = ({'here': 'available'}, 1)
        sites.create()
        assert sites.there.state not in ('in_sync', 'active')
        sites.update()
        assert sites.there.state not in ('in_sync', 'active')
        del sites.snapshots[missing]
        assert sites.update() in ('in_sync', 'active')

    def test_creating_again_changes_nothing(self, sites):
        sites.write('one')
        sites.create_in_sync()
        for _ in range(2):
            before = sites.there.locations
            sites.create()
            assert base.normalise_export_locations(
                sites.there.locations
            ) == base.normalise_export_locations(before)
            assert sites.read() == 'one'
            sites.there.restart()

    def test_rules_apply_as_the_replication_type_requires(self, sites):
        sites.create_in_sync()
        assert sites.levels(sites.here) == {'rw'}
        assert sites.levels() == PASSIVE_LEVELS[sites.style]
        sites.apply_rules(sites.there)
        assert sites.levels() == PASSIVE_LEVELS[sites.style]

    def test_rule_is_denied_on_all_replicas(self, sites):
        sites.create_in_sync()
        rules, sites.rules = sites.rules, []
        for site in (sites.here, sites.there):
            site.driver.apply_access(
                CTX, sites.share_for(site), [], [], rules, share_server=site.server
            )
            assert sites.levels(site) == set()

    def test_deleted_replica_is_gone_and_the_others_stay(self, sites):
        sites.write('one')
        sites.create_in_sync()
        sites.delete()
        with pytest.raises(exception.ShareResourceNotFound):
            sites.status()
        assert sites.levels() == set()
        assert sites.read(sites.here) == 'one'
        assert sites.status(sites.here)['status'] == 'available'
        sites.there.state = None
        assert sites.levels(sites.here) == {'rw'}

    def test_deleting_again_is_success(self, sites):
        sites.create_in_sync()
        id = sites.snapshot()
        for _ in range(2):
            sites.delete()
            sites.there.restart()
            sites.delete()
        with pytest.raises(exception.SnapshotResourceNotFound):
            sites.there.driver.get_snapshot_status(sites.instance(id, sites.there))

    def test_deleting_a_missing_one_is_success(self, sites):
        sites.there.state = 'out_of_sync'
        sites.delete()
        assert sites.status(sites.here)['status'] == 'available'

    def test_replica_can_be_created_again_after_deletion(self, sites):
        sites.create_in_sync()
        sites.delete()
        sites.there.state = None
        sites.write('two')
        assert sites.create_in_sync().read() == 'two'

    def test_status_matches_the_back_end(self, sites):
        sites.there.state = 'out_of_sync'
        with pytest.raises(exception.ShareResourceNotFound):
            sites.status()
        sites.create_in_sync()
        for site in (sites.here, sites.there):
            site.restart()
            reply = sites.status(site)
            assert reply['status'] == 'available'
            assert reply.get('size', 1) == 1

    def test_missing_replica_has_no_state(self, sites):
        sites.there.state = 'out_of_sync'
        with pytest.raises(exception.ShareResourceNotFound):
            sites.update()

    def test_extension_reaches_all_replicas(self, sites):
        sites.create_in_sync()
        call_or_skip(
            sites.here.driver.extend_share,
            sites.share_for(sites.here),
            3,
            sites.here.server,
        )
        sites.size = 3
        if sites.there.state != 'active':
            sites.update()
        assert sites.status().get('size', 3) == 3

    def test_restarted_driver_knows_its_replicas(self, sites):
        sites.write('one')
        sites.create_in_sync()
        for site in sites.sites:
            site.restart()
        sites.write('two')
        if sites.there.state != 'active':
            assert sites.update() == 'in_sync'
        assert sites.read() == 'two'

    def test_a_third_replica_is_like_the_second(self, sites):
        if sites.beyond is None:
            pytest.skip('there are only two back ends')
        sites.write('one')
        sites.create_in_sync()
        sites.create_in_sync(sites.beyond)
        assert sites.read(sites.beyond) == 'one'
        sites.delete()
        sites.there.state = None
        sites.write('two')
        if sites.beyond.state != 'active':
            assert sites.update(sites.beyond) == 'in_sync'
        assert sites.read(sites.beyond) == 'two'


class WritableContract:
    """For the type with all replicas active."""

    styles = ('writable',)

    def test_write_to_one_reaches_all(self, sites):
        sites.create_in_sync()
        sites.create_in_sync(sites.beyond)
        for site in sites.sites:
            sites.write(f'from {site.name}', site)
            assert {sites.read(each) for each in sites.sites} == {f'from {site.name}'}

    def test_others_continue_without_one(self, sites):
        sites.create_in_sync()
        sites.write('one')
        sites.here.make_unreachable()
        sites.write('two', sites.there)
        assert sites.read() == 'two'
        sites.here.make_reachable()
        assert sites.status(sites.here)['status'] == 'available'
        assert sites.read(sites.here) == 'two'

    def test_first_replica_can_be_deleted(self, sites):
        sites.create_in_sync()
        sites.write('one')
        sites.delete(sites.here)
        sites.here.state = None
        sites.write('two', sites.there)
        assert sites.create_in_sync(sites.here).read(sites.here) == 'two'
