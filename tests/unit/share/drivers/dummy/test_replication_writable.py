"""Writable replicas of the dummy driver, beyond the contract."""

import itertools
import os

import pytest

from manila_lite import exception
from manila_lite.share.drivers.dummy.replication_domain import DummyReplica
from tests.drivers.crashes import changes, killed_at
from tests.drivers.replication_sites import Sites


class TestWritable:
    def test_snapshot_is_on_all_replicas_or_none(self, make_sites):
        sites = make_sites('writable').create_in_sync()
        sites.there.make_unreachable()
        with pytest.raises(exception.ShareBackendException):
            sites.snapshot()
        assert sites.here.driver.snapshot_inventory() == {}

    def test_snapshot_stays_while_one_is_unreachable(self, make_sites):
        sites = make_sites('writable').create_in_sync()
        id = sites.snapshot()
        sites.there.make_unreachable()
        with pytest.raises(exception.ShareBackendException):
            sites.delete_snapshot(id)
        assert len(sites.here.driver.snapshot_inventory()) == 1

    def test_promotion_is_not_implemented(self, make_sites):
        sites = make_sites('writable').create_in_sync()
        with pytest.raises(NotImplementedError):
            sites.promote()

    def test_recovered_replica_is_outdated_until_its_next_use(self, make_sites):
        sites = make_sites('writable').create_in_sync()
        sites.there.make_unreachable()
        sites.write('two', sites.here)
        sites.there.make_reachable()
        assert not sites.there.driver.replica_inventory()[sites.there.id].synced
        assert sites.status()['status'] == 'available'
        assert sites.there.driver.replica_inventory()[sites.there.id].synced
        assert sites.read() == 'two'

    def test_outdated_replica_cannot_be_changed(self, make_sites):
        sites = make_sites('writable').create_in_sync()
        sites.there.make_unreachable()
        sites.write('two', sites.here)
        sites.here.make_unreachable()
        sites.there.make_reachable()
        there = sites.share_for(sites.there)
        for change in (
            lambda: sites.write('old', sites.there),
            lambda: sites.there.driver.extend_share(there, 3),
            lambda: sites.there.driver.shrink_share(there, 1),
        ):
            with pytest.raises(exception.ShareBackendException):
                change()
        sites.here.make_reachable()
        sites.write('three', sites.there)
        assert sites.read(sites.here) == 'three'

    def test_outdated_replicas_do_not_continue_alone(self, make_sites):
        sites = make_sites('writable').create_in_sync()
        sites.create_in_sync(sites.beyond)
        for site in (sites.there, sites.beyond):
            site.make_unreachable()
        sites.write('two', sites.here)
        sites.here.make_unreachable()
        for site in (sites.there, sites.beyond):
            site.make_reachable()
            assert not site.driver.replica_inventory()[site.id].synced
        for site in (sites.there, sites.beyond):
            assert sites.status(site)['status'] == 'error'
            with pytest.raises(exception.ShareBackendException):
                sites.write('old', site)
        sites.here.make_reachable()
        assert {sites.read(site) for site in sites.sites} == {'two'}

    def test_replica_is_not_created_from_an_outdated_one(self, make_sites):
        sites = make_sites('writable').create_in_sync()
        sites.there.make_unreachable()
        sites.write('two', sites.here)
        sites.here.make_unreachable()
        sites.there.make_reachable()
        sites.create(sites.beyond)
        assert sites.beyond.state == 'out_of_sync'
        sites.here.make_reachable()
        assert sites.update(sites.beyond) == 'active'
        assert sites.read(sites.beyond) == 'two'

    def test_only_replica_continues_after_a_kill(self, make_sites, tmp_path):
        for step in itertools.count(1):
            (tmp_path / str(step)).mkdir()
            sites = Sites(tmp_path / str(step), 'dummy', 'writable')
            if not killed_at(step, lambda s=sites: s.write('one'), changes):
                break
            sites.write('two')
            assert sites.read(sites.here) == 'two'

    def test_write_of_a_killed_process_is_on_all_or_none(self, make_sites, tmp_path):
        for step in itertools.count(1):
            (tmp_path / str(step)).mkdir()
            sites = Sites(tmp_path / str(step), 'dummy', 'writable')
            sites.create_in_sync()
            sites.write('one')
            sites.create_in_sync(sites.beyond)
            killed = killed_at(step, lambda s=sites: s.write('two'), changes)
            found = {sites.read(site) for site in sites.sites}
            assert found in ({'one'}, {'two'})
            sites.write('three', sites.there)
            assert {sites.read(site) for site in sites.sites} == {'three'}
            if not killed:
                break
        assert found == {'two'}

    def test_write_to_a_single_replica_survives_a_kill(self, make_sites, tmp_path):
        for step in itertools.count(1):
            (tmp_path / str(step)).mkdir()
            sites = Sites(tmp_path / str(step), 'dummy', 'writable')
            sites.write('one')
            sites.create_in_sync()
            sites.there.make_unreachable()
            sites.write('two', sites.here)
            sites.there.make_reachable()
            killed = killed_at(step, lambda s=sites: s.write('three'), changes)
            found = {sites.read(site) for site in sites.sites[:2]}
            assert found in ({'two'}, {'three'})
            if not killed:
                break

    def test_concurrent_processes_lose_no_writes(self, make_sites):
        sites = make_sites('writable').create_in_sync()
        children = [
            _child(
                lambda site=site: [
                    sites.write(f'{site.name} {number}', site) for number in range(20)
                ]
            )
            for site in (sites.here, sites.there)
        ]
        assert [os.waitpid(child, 0)[1] for child in children] == [0, 0]
        here, there = (
            {*site.driver.replica_inventory().values()}
            for site in (sites.here, sites.there)
        )
        assert here == there == {DummyReplica('active', 40, True)}
        assert sites.read(sites.here) == sites.read()


def _child(act):
    """Run a function in another process; return its id."""
    process = os.fork()
    if process == 0:
        code = 1
        try:
            act()
            code = 0
        finally:
            os._exit(code)
    return process
