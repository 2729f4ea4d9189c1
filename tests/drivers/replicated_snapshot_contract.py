"""Contract of drivers for snapshots of replicated shares."""

import contextlib
import uuid

import pytest

from manila_lite import exception
from tests.drivers.contract import call_or_skip
from tests.drivers.replication_backends import STYLES


class ReplicatedSnapshotContract:
    """For all replication types."""

    styles = STYLES

    def everywhere(self, sites, id):
        """Poll until all replicas have the snapshot."""
        status, _ = sites.snapshots[id]
        for site in sites.sites:
            for _ in range(5):
                if site.state and status[site.name] == 'creating':
                    sites.update_snapshot(id, site)
        return set(status.values())

    def test_snapshot_reaches_all_replicas(self, sites):
        sites.write('one')
        sites.create_in_sync()
        id = sites.snapshot()
        assert sites.snapshots[id][0]['here'] == 'available'
        assert self.everywhere(sites, id) == {'available'}
        for site in (sites.here, sites.there):
            assert (
                site.driver.get_snapshot_status(sites.instance(id, site))['status']
                == 'available'
            )

    def test_taking_again_changes_nothing(self, sites):
        sites.create_in_sync()
        sites.write('one')
        id = sites.snapshot()
        sites.write('two')
        sites.here.restart()
        sites.take_snapshot(id)
        assert self.everywhere(sites, id) == {'available'}
        sites.revert(id)
        assert sites.read(sites.here) == 'one'

    def test_polling_again_changes_nothing(self, sites):
        sites.create_in_sync()
        id = sites.snapshot()
        self.everywhere(sites, id)
        before = sites.update_snapshot(id)
        sites.there.restart()
        assert sites.update_snapshot(id) == before

    def test_snapshot_is_deleted_from_all_replicas(self, sites):
        sites.create_in_sync()
        id = sites.snapshot()
        self.everywhere(sites, id)
        sites.delete_snapshot(id)
        assert sites.snapshots[id][0]['here'] == 'deleted'
        if sites.snapshots[id][0]['there'] != 'deleted':
            with contextlib.suppress(exception.SnapshotResourceNotFound):
                assert sites.update_snapshot(id)[0]['status'] == 'deleted'
        for site in (sites.here, sites.there):
            with pytest.raises(exception.SnapshotResourceNotFound):
                site.driver.get_snapshot_status(sites.instance(id, site))

    def test_deleting_a_snapshot_again_is_success(self, sites):
        sites.create_in_sync()
        id = sites.snapshot()
        sites.delete_snapshot(id)
        sites.here.restart()
        sites.delete_snapshot(id)
        assert sites.snapshots[id][0]['here'] == 'deleted'

    def test_snapshot_deleted_before_it_is_copied_never_appears(self, sites):
        sites.create_in_sync()
        id = sites.snapshot()
        sites.delete_snapshot(id)
        for _ in range(2):
            if sites.snapshots[id][0]['there'] != 'deleted':
                with contextlib.suppress(exception.SnapshotResourceNotFound):
                    sites.update_snapshot(id)
        with pytest.raises(exception.SnapshotResourceNotFound):
            sites.there.driver.get_snapshot_status(sites.instance(id, sites.there))
        del sites.snapshots[id]
        if sites.there.state != 'active':
            assert sites.update() == 'in_sync'

    def test_missing_snapshot_is_not_found(self, sites):
        sites.create_in_sync()
        id = str(uuid.uuid4())
        for here, there in (('available', 'creating'), ('deleting', 'deleting')):
            sites.snapshots[id] = ({'here': here, 'there': there}, 1)
            with pytest.raises(exception.SnapshotResourceNotFound):
                call_or_skip(sites.update_snapshot, id)

    def test_reverted_share_has_content_and_size_back(self, sites):
        sites.write('one')
        sites.create_in_sync()
        id = sites.snapshot()
        self.everywhere(sites, id)
        sites.write('two')
        call_or_skip(
            sites.here.driver.extend_share,
            sites.share_for(sites.here),
            3,
            sites.here.server,
        )
        sites.size = 3
        for _ in range(2):
            assert sites.revert(id) in (None, 1)
            sites.here.restart()
        sites.size = 1
        assert sites.read(sites.here) == 'one'
        if sites.there.state != 'active':
            assert sites.update() == 'in_sync'
        assert sites.read() == 'one'
        assert sites.status().get('size', 1) == 1

    def test_revert_to_a_missing_snapshot_changes_nothing(self, sites):
        sites.create_in_sync()
        sites.write('one')
        id = str(uuid.uuid4())
        sites.snapshots[id] = (dict.fromkeys(('here', 'there'), 'available'), 1)
        with pytest.raises(exception.DriverError):
            sites.revert(id)
        assert sites.read(sites.here) == 'one'
