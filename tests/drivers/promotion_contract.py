"""Contract of drivers that promote a replica, for each type."""

import datetime

import pytest

from manila_lite import exception
from tests.drivers.contract import call_or_skip
from tests.drivers.driver_harness import CTX
from tests.drivers.replication_sites import PASSIVE_LEVELS


class PromotionContract:
    """For types with one active replica."""

    styles = ('readable', 'dr')

    def test_passive_replica_follows_at_the_next_update(self, sites):
        sites.create_in_sync()
        for text in ('one', 'two'):
            sites.write(text)
            for _ in range(2):
                assert sites.update() == 'in_sync'
                assert sites.read() == text

    def test_time_of_the_last_sync_is_reported(self, sites):
        began = datetime.datetime.now(datetime.UTC)
        sites.create_in_sync()
        sites.update()
        first = sites.there.synced_at
        assert began <= first <= datetime.datetime.now(datetime.UTC)
        sites.update()
        second = sites.there.synced_at
        assert first < second
        sites.here.make_unreachable()
        sites.update()
        assert sites.there.synced_at == second

    def test_no_replica_of_an_unreachable_active_one_is_in_sync(self, sites):
        sites.write('one')
        sites.create_in_sync()
        sites.here.make_unreachable()
        assert sites.update() == 'out_of_sync'
        assert sites.read() == 'one'
        sites.here.make_reachable()
        assert sites.update() == 'in_sync'

    def test_promoted_replica_has_at_least_the_last_synced_content(self, sites):
        sites.write('one')
        sites.create_in_sync()
        sites.write('two')
        sites.update()
        sites.write('three')
        sites.promote()
        assert sites.read() in ('two', 'three')

    @pytest.mark.facts('add-quiesce-wait-time.2')
    def test_replica_promoted_alone_has_the_last_synced_content(self, sites):
        sites.write('one')
        sites.create_in_sync()
        sites.write('two')
        sites.here.make_unreachable()
        sites.promote(quiesce_wait_time=3600)  # without clients to wait for
        assert sites.read() == 'one'
        assert sites.status()['status'] == 'available'

    def test_roles_change_with_the_promotion(self, sites):
        sites.create_in_sync()
        sites.promote(quiesce_wait_time=0)
        assert sites.levels() == {'rw'}
        assert sites.levels(sites.here) == PASSIVE_LEVELS[sites.style]

    def test_promoting_again_undoes_nothing(self, sites):
        sites.write('one')
        sites.create_in_sync()
        before = sites.replica_list
        sites.promote()
        sites.write('two')
        for _ in range(2):
            # The manager was killed before it recorded the promotion.
            replies = sites.there.driver.promote_replica(
                CTX, before, before[1], sites.rules, share_server=sites.there.server
            )
            assert {
                one['id']: one.get('replica_state') for one in replies or [{'id': None}]
            }.get(sites.there.id, 'active') == 'active'
            assert sites.read() == 'two'
            sites.there.restart()
        assert sites.update(sites.here) == 'in_sync'
        assert sites.read(sites.here) == 'two'

    def test_previously_active_replica_follows_the_promoted_one(self, sites):
        sites.write('one')
        sites.create_in_sync()
        sites.promote()
        sites.write('two')
        assert sites.update(sites.here) == 'in_sync'
        assert sites.read(sites.here) == 'two'

    def test_recovered_replica_is_no_longer_active(self, sites):
        sites.write('one')
        sites.create_in_sync()
        sites.write('lost')
        sites.here.make_unreachable()
        sites.promote()
        sites.write('two')
        sites.here.make_reachable()
        assert 'rw' not in sites.levels(sites.here)
        assert sites.update(sites.here) == 'in_sync'
        assert sites.read(sites.here) == 'two'
        sites.apply_rules(sites.here)
        assert sites.levels(sites.here) == PASSIVE_LEVELS[sites.style]
        assert sites.levels() == {'rw'}

    def test_replica_that_others_have_replaced_reports_an_error(self, sites):
        sites.create_in_sync()
        before = sites.share_for(sites.here)
        sites.promote()
        status = call_or_skip(
            sites.here.driver.get_replica_status, before, sites.here.server
        )
        assert status['status'] == 'error'
        assert status['replica_state'] == 'out_of_sync'

    def test_promotion_back_and_forth_keeps_the_content(self, sites):
        sites.create_in_sync()
        for number, site in enumerate((sites.there, sites.here) * 2):
            sites.write(f'before {number}')
            assert sites.update(site) == 'in_sync'
            sites.promote(site)
            assert sites.read(site) == f'before {number}'
            other = sites.here if site is sites.there else sites.there
            assert sites.update(other) == 'in_sync'
            for each in sites.sites:
                each.restart()

    def test_third_replica_follows_the_promoted_one(self, sites):
        if sites.beyond is None:
            pytest.skip('there are only two back ends')
        sites.create_in_sync()
        sites.create_in_sync(sites.beyond)
        sites.here.make_unreachable()
        sites.promote()
        sites.write('two')
        assert sites.update(sites.beyond) == 'in_sync'
        assert sites.read(sites.beyond) == 'two'
        assert sites.levels(sites.beyond) == PASSIVE_LEVELS[sites.style]

    def test_snapshots_outlive_the_promotion(self, sites):
        sites.write('one')
        id = sites.snapshot()
        sites.create_in_sync()
        sites.snapshots[id][0]['there'] = 'available'
        sites.write('two')
        sites.update()
        sites.here.make_unreachable()
        sites.promote()
        assert sites.read() == 'two'
        sites.revert(id)
        assert sites.read() == 'one'

    def test_replica_that_was_active_can_be_deleted(self, sites):
        sites.create_in_sync()
        sites.promote()
        sites.write('two')
        sites.delete(sites.here)
        sites.here.state = None
        assert sites.read() == 'two'
        assert sites.levels() == {'rw'}
        assert sites.create_in_sync(sites.here).read(sites.here) == 'two'

    def test_missing_replica_cannot_be_promoted(self, sites):
        sites.there.state = 'in_sync'
        with pytest.raises(exception.DriverError):
            sites.promote()
        sites.there.state = None
        assert sites.levels(sites.here) == {'rw'}
