"""Contract of every driver: test classes that use a `harness` fixture."""

import concurrent.futures
import contextlib
import dataclasses
import os

import pytest

from manila_lite import exception
from manila_lite.share.drivers import base
from manila_lite.share.drivers.contract.connections import open_directory
from tests.drivers.driver_harness import CTX, DirectoryUsers
from tests.support import reference

THREADS = 16


def create(driver, share):
    return base.normalise_export_locations(driver.create_share(CTX, share))


def delete(driver, share):
    """Delete a share; ShareResourceNotFound is success."""
    with contextlib.suppress(exception.ShareResourceNotFound):
        driver.delete_share(CTX, share)


def create_from_snapshot(driver, share, snapshot):
    """Create a share from a snapshot; skip if that is asynchronous."""
    reply = driver.create_share_from_snapshot(CTX, share, snapshot)
    if isinstance(reply, dict):
        if reply['status'] != 'available':
            pytest.skip('the driver creates it asynchronously')
        reply = reply.get('export_locations')
    return base.normalise_export_locations(reply)


def status_or_skip(driver, share):
    """Return a share's status; skip if the driver cannot report it."""
    try:
        return driver.get_share_status(share)
    except NotImplementedError:
        pytest.skip('the driver does not report the status of shares')


def is_gone(driver, share):
    try:
        status_or_skip(driver, share)
    except exception.ShareResourceNotFound:
        return True
    return False


def call_or_skip(operation, *args):
    """Call a method; skip if the driver does not implement it."""
    try:
        return operation(*args)
    except NotImplementedError:
        pytest.skip(f'the driver has no {operation.__name__}')


def users_or_skip(harness, driver, share):
    """Return users of a share; skip if a test cannot act as them."""
    users = harness.users(driver, share)
    if users is None:
        pytest.skip('tests cannot access the content of its shares')
    return users


def _names(info):
    """Return the names in the directory of a connection."""
    directory = open_directory(info['directory'])
    assert directory is not None
    try:
        return os.listdir(directory)
    finally:
        os.close(directory)


def _group_and_snapshot(shares, members):
    """Return a new group with these shares, and the snapshot it is from."""
    group = base.ShareGroupForDriver(
        id='copy', project_id='project', shares=list(shares)
    )
    snapshot = base.ShareGroupSnapshotForDriver(
        id='group snapshot',
        share_group_id='source',
        project_id='project',
        share_group=dataclasses.replace(group, id='source', shares=[]),
        share_group_snapshot_members=list(members),
    )
    return group, snapshot


def _deny(harness, driver, share):
    rule = harness.rule(share, '10.0.0.1')
    driver.apply_access(CTX, share, [], delete_rules=[rule])


def _unmanage(harness, driver, share):
    if not isinstance(driver, base.ManageSupport):
        raise NotImplementedError
    driver.unmanage(share)


ABSENT = {
    'delete': lambda harness, driver, share: driver.delete_share(CTX, share),
    'extend': lambda harness, driver, share: driver.extend_share(share, 3),
    'shrink': lambda harness, driver, share: driver.shrink_share(share, 1),
    'deny': _deny,
    'unmanage': _unmanage,
}
"""What a driver refuses to do with a share that it does not find."""


class ShareContract:
    def test_new_share_can_be_reached(self, harness, driver):
        locations = create(driver, harness.share())
        assert any(not location['is_admin_only'] for location in locations)
        assert all(location['path'] for location in locations)

    def test_locations_of_two_shares_differ(self, harness, driver):
        one = create(driver, harness.share())
        other = create(driver, harness.share())
        assert {location['path'] for location in one}.isdisjoint(
            location['path'] for location in other
        )

    def test_creating_again_keeps_share_and_locations(self, harness, driver):
        share = harness.share()
        locations = create(driver, share)
        assert create(driver, share) == locations
        assert create(harness.start(), share) == locations

    def test_directory_for_the_data_service_holds_the_content(self, harness, driver):
        share = harness.share()
        create(driver, share)
        info = call_or_skip(driver.connection_get_info, CTX, share)
        if 'directory' not in info:
            pytest.skip('the data service mounts it')
        assert call_or_skip(driver.connection_get_info, CTX, share) == info
        assert _names(info) == []
        users = harness.users(driver, share)
        if isinstance(users, DirectoryUsers):
            users.write('precious')
            assert _names(info) != []
        delete(driver, share)
        assert open_directory(info['directory']) is None

    def test_creating_again_keeps_the_content(self, harness, driver):
        share = harness.share()
        users = users_or_skip(harness, driver, share)
        users.write('precious')
        create(driver, share)
        assert users.read() == 'precious'

    def test_deleted_share_is_gone(self, harness, driver):
        share = harness.share()
        create(driver, share)
        driver.delete_share(CTX, share)
        assert is_gone(driver, share)
        assert is_gone(harness.start(), share)

    def test_deleting_again_is_success(self, harness, driver):
        share = harness.share()
        create(driver, share)
        driver.delete_share(CTX, share)
        delete(driver, share)
        delete(harness.start(), share)

    @pytest.mark.parametrize('change', ABSENT, ids=ABSENT)
    @pytest.mark.parametrize('is_made', [False, True])
    def test_missing_share_is_not_found(self, harness, driver, change, is_made):
        """It may be on a disk that is not where it belongs."""
        share = harness.share(size=2)
        if is_made:
            create(driver, share)
            driver.delete_share(CTX, share)
        try:
            with pytest.raises(exception.ShareResourceNotFound):
                ABSENT[change](harness, driver, share)
        except NotImplementedError:
            pytest.skip('the driver does not implement it')
        assert is_gone(driver, share)

    def test_share_deleted_and_made_again_is_empty(self, harness, driver):
        share = harness.share()
        users_or_skip(harness, driver, share).write('old')
        driver.delete_share(CTX, share)
        assert users_or_skip(harness, driver, share).read() == ''

    def test_transferred_share_keeps_its_content(self, harness, driver):
        """Twice, as work is repeated after a crash."""
        share = harness.share()
        locations = create(driver, share)
        users = users_or_skip(harness, driver, share)
        users.write('precious')
        for _ in range(2):
            driver.transfer_accept(CTX, share, 'user', 'project', access_rules=[])
        assert users.read() == 'precious'
        assert create(driver, share) == locations

    def test_status_matches_the_back_end(self, harness, driver):
        share = harness.share(size=2)
        locations = create(driver, share)
        for process in (driver, harness.start()):
            reply = status_or_skip(process, share)
            assert reply['status'] == 'available'
            assert reply.get('size', 2) == 2
            assert reply.get('share_proto', 'NFS') == share.share_proto
            assert (
                base.normalise_export_locations(
                    reply.get('export_locations', locations)
                )
                == locations
            )

    def test_status_of_unknown_share_is_not_found(self, harness, driver):
        assert is_gone(driver, harness.share())

    def test_extended_share_has_the_new_size(self, harness, driver):
        share = harness.share(size=1)
        create(driver, share)
        call_or_skip(driver.extend_share, share, 3)
        assert status_or_skip(driver, share).get('size', 3) == 3
        assert status_or_skip(harness.start(), share).get('size', 3) == 3

    def test_extending_again_changes_nothing(self, harness, driver):
        share = harness.share(size=1)
        create(driver, share)
        for size in (3, 3, 2):
            call_or_skip(driver.extend_share, share, size)
        assert status_or_skip(driver, share).get('size', 3) == 3

    def test_shrunk_share_has_the_new_size(self, harness, driver):
        share = harness.share(size=3)
        create(driver, share)
        call_or_skip(driver.shrink_share, share, 1)
        assert status_or_skip(driver, share).get('size', 1) == 1
        assert status_or_skip(harness.start(), share).get('size', 1) == 1

    def test_shrinking_again_changes_nothing(self, harness, driver):
        share = harness.share(size=3)
        create(driver, share)
        for size in (1, 1, 2):
            call_or_skip(driver.shrink_share, share, size)
        assert status_or_skip(driver, share).get('size', 1) == 1

    def test_share_with_too_much_in_it_is_not_shrunk(self, harness, driver):
        share = harness.share(size=3)
        users_or_skip(harness, driver, share).fill(1.5)
        with pytest.raises(exception.ShareShrinkingPossibleDataLoss):
            call_or_skip(driver.shrink_share, share, 1)
        assert status_or_skip(driver, share).get('size', 3) == 3
        driver.shrink_share(share, 2)
        assert status_or_skip(driver, share).get('size', 2) == 2

    @pytest.mark.parametrize('operation', ['extend_share', 'shrink_share'])
    def test_resizing_an_unknown_share_fails(self, harness, driver, operation):
        with pytest.raises(exception.ShareResourceNotFound):
            call_or_skip(getattr(driver, operation), harness.share(size=2), 3)

    def test_ensured_shares_keep_their_locations(self, harness, driver):
        share, unknown = harness.share(), harness.share()
        locations = create(driver, share)
        restarted = harness.start()
        assert (
            base.normalise_export_locations(
                restarted.ensure_share(CTX, share) or locations
            )
            == locations
        )
        reply = call_or_skip(restarted.ensure_shares, CTX, [share, unknown])
        reported = (reply or {}).get(share.id, {})
        assert reported.get('status', 'available') == 'available'
        assert (
            base.normalise_export_locations(reported.get('export_locations', locations))
            == locations
        )
        assert (reply or {}).get(unknown.id, {}).get('status') != 'available'

    def test_backend_info_is_the_same_after_a_restart(self, harness, driver):
        info = call_or_skip(driver.get_backend_info, CTX)
        assert all(isinstance(value, str) for value in info.values())
        assert harness.start().get_backend_info(CTX) == info

    def test_concurrent_operations_do_not_interfere(self, harness, driver):
        kept = [harness.share() for _ in range(THREADS)]
        passing = [harness.share() for _ in range(THREADS)]

        def live(stays, goes):
            locations = create(driver, stays)
            create(driver, goes)
            driver.delete_share(CTX, goes)
            return locations

        with concurrent.futures.ThreadPoolExecutor(THREADS) as pool:
            locations = list(pool.map(live, kept, passing))
        assert [create(driver, share) for share in kept] == locations
        assert all(
            status_or_skip(driver, share)['status'] == 'available' for share in kept
        )
        assert all(is_gone(driver, share) for share in passing)

    def test_share_created_concurrently_exists_once(self, harness, driver):
        share = harness.share()
        with concurrent.futures.ThreadPoolExecutor(THREADS) as pool:
            replies = list(pool.map(lambda _: create(driver, share), range(THREADS)))
        assert all(reply == replies[0] for reply in replies)
        assert status_or_skip(driver, share)['status'] == 'available'


class StatsContract:
    # Reported only if they apply.
    CONDITIONAL = {
        'allocated_capacity_gb',
        'provisioned_capacity_gb',
        'thin_provisioning',
        'dedupe / compression',
        'replication_type',
        'max_shares_per_share_server',
        'max_share_server_size',
        'server_pools_mapping',
        'netapp_* and other vendor prefix keys',
    }

    def test_published_capabilities_are_all_reported(self, driver):
        published = {
            row['name']
            for row in reference.table('driver-interface.csv')
            if row['kind'] == 'capability'
        }
        assert published - self.CONDITIONAL <= set(driver.get_share_stats(refresh=True))

    def test_capabilities_follow_from_the_interfaces(self, driver):
        stats = driver.get_share_stats(refresh=True)
        for part in [stats, *(stats['pools'] or [])]:
            for name, interface in base.CAPABILITIES.items():
                if part.get(name):
                    assert isinstance(driver, interface), name

    def test_mode_and_name_are_those_configured(self, harness, driver):
        stats = driver.get_share_stats(refresh=True)
        options = harness.configure()
        assert (
            stats['driver_handles_share_servers']
            is options.driver_handles_share_servers
        )
        assert stats['share_backend_name'] == (
            options.share_backend_name or options.config_group
        )

    def test_capacities_are_numbers_unknown_or_infinite(self, driver):
        stats = driver.get_share_stats(refresh=True)
        for part in [stats, *(stats['pools'] or [])]:
            for name in ('total_capacity_gb', 'free_capacity_gb'):
                value = part.get(name, 'unknown')
                assert value in ('unknown', 'infinite') or value >= 0, (
                    f'{name} is {value}'
                )

    def test_pools_have_unique_names(self, driver):
        pools = driver.get_share_stats(refresh=True)['pools'] or []
        names = [pool['pool_name'] for pool in pools]
        assert len(set(names)) == len(names)
        assert all(isinstance(name, str) and name for name in names)

    def test_pool_of_a_share_is_reported(self, harness, driver):
        share = harness.share()
        create(driver, share)
        pools = driver.get_share_stats(refresh=True)['pools']
        pool = driver.get_pool(share)
        names = [each['pool_name'] for each in pools or []]
        assert pool is None or pool in names

    def test_stats_are_kept_until_a_refresh(self, driver):
        stats = driver.get_share_stats(refresh=True)
        assert driver.get_share_stats() == stats


class SnapshotContract:
    @pytest.fixture
    def driver(self, harness):
        return self.offering(harness.start(), base.SnapshotSupport)

    @staticmethod
    def offering(driver, interface):
        if not isinstance(driver, interface):
            pytest.skip(f'the driver does not offer {interface.__name__}')
        return driver

    @pytest.fixture
    def share(self, harness, driver):
        share = harness.share(size=1)
        create(driver, share)
        return share

    def test_snapshot_taken_twice_is_one(self, harness, driver, share):
        snapshot = harness.snapshot(share)
        assert (
            driver.create_snapshot(CTX, snapshot)
            == driver.create_snapshot(CTX, snapshot)
            == harness.start().create_snapshot(CTX, snapshot)
        )

    def test_creating_again_keeps_its_content(self, harness, driver, share):
        self.offering(driver, base.RevertSupport)
        users = users_or_skip(harness, driver, share)
        snapshot = harness.snapshot(share)
        users.write('then')
        driver.create_snapshot(CTX, snapshot)
        users.write('now')
        driver.create_snapshot(CTX, snapshot)
        driver.revert_to_snapshot(CTX, snapshot, [], [])
        assert users.read() == 'then'

    def test_deleting_again_is_success(self, harness, driver, share):
        snapshot = harness.snapshot(share)
        driver.create_snapshot(CTX, snapshot)
        driver.delete_snapshot(CTX, snapshot)
        driver.delete_snapshot(CTX, snapshot)
        harness.start().delete_snapshot(CTX, snapshot)

    def test_deleting_a_missing_one_is_success(self, harness, driver, share):
        driver.delete_snapshot(CTX, harness.snapshot(share))

    def test_snapshot_of_unknown_share_fails(self, harness, driver):
        with pytest.raises(exception.ShareResourceNotFound):
            driver.create_snapshot(CTX, harness.snapshot(harness.share()))

    def test_status_matches_the_back_end(self, harness, driver, share):
        snapshot = harness.snapshot(share)
        with pytest.raises(exception.SnapshotResourceNotFound):
            call_or_skip(driver.get_snapshot_status, snapshot)
        taken = driver.create_snapshot(CTX, snapshot) or {}
        for process in (driver, harness.start()):
            reply = process.get_snapshot_status(snapshot)
            assert reply['status'] == 'available'
            assert reply.get('size', 1) == 1
            for reported in ('provider_location', 'export_locations'):
                assert reply.get(reported) in (None, taken.get(reported))
        driver.delete_snapshot(CTX, snapshot)
        with pytest.raises(exception.SnapshotResourceNotFound):
            driver.get_snapshot_status(snapshot)

    def test_share_from_snapshot_has_its_content(self, harness, driver, share):
        self.offering(driver, base.CreateFromSnapshotSupport)
        users_or_skip(harness, driver, share).write('then')
        snapshot = harness.snapshot(share)
        driver.create_snapshot(CTX, snapshot)
        users_or_skip(harness, driver, share).write('now')
        clone = harness.share(size=2, snapshot_id=snapshot.snapshot_id)
        for process in (driver, harness.start()):
            locations = create_from_snapshot(process, clone, snapshot)
            assert locations == create(process, clone)
        assert users_or_skip(harness, driver, clone).read() == 'then'
        assert users_or_skip(harness, driver, share).read() == 'now'
        assert status_or_skip(driver, clone).get('size', 2) == 2

    def test_group_from_snapshot_has_the_content_of_its_members(
        self, harness, driver, share
    ):
        self.offering(driver, base.ShareGroupFromSnapshotSupport)
        other = harness.share()
        create(driver, other)
        members = [harness.snapshot(one) for one in (share, other)]
        for number, one in enumerate((share, other)):
            users_or_skip(harness, driver, one).write(f'then {number}')
            driver.create_snapshot(CTX, members[number])
            users_or_skip(harness, driver, one).write('now')
        clones = [
            harness.share(source_share_group_snapshot_member_id=member.id)
            for member in members
        ]
        group, snapshot = _group_and_snapshot(clones, members)
        for process in (driver, harness.start()):
            _, replies = process.create_share_group_from_share_group_snapshot(
                CTX, group, snapshot
            )
            for clone, reply in zip(clones, replies, strict=True):
                assert reply['id'] == clone.id
                assert base.normalise_export_locations(
                    reply['export_locations']
                ) == create(process, clone)
            assert process.get_share_group_status(group) == {'status': 'available'}
        assert [users_or_skip(harness, driver, clone).read() for clone in clones] == [
            'then 0',
            'then 1',
        ]

    def test_group_from_unknown_snapshots_can_be_deleted(self, harness, driver, share):
        self.offering(driver, base.ShareGroupFromSnapshotSupport)
        member = harness.snapshot(share)
        clone = harness.share(source_share_group_snapshot_member_id=member.id)
        group, snapshot = _group_and_snapshot([clone], [member])
        with pytest.raises(exception.DriverError):
            driver.create_share_group_from_share_group_snapshot(CTX, group, snapshot)
        delete(driver, clone)
        driver.delete_share_group(CTX, group)
        assert is_gone(driver, clone)
        with pytest.raises(exception.ShareGroupResourceNotFound):
            driver.get_share_group_status(group)

    def test_share_from_snapshot_outlives_it(self, harness, driver, share):
        self.offering(driver, base.CreateFromSnapshotSupport)
        users_or_skip(harness, driver, share).write('then')
        snapshot, clone = harness.snapshot(share), harness.share()
        driver.create_snapshot(CTX, snapshot)
        create_from_snapshot(driver, clone, snapshot)
        driver.delete_snapshot(CTX, snapshot)
        driver.delete_share(CTX, share)
        assert users_or_skip(harness, driver, clone).read() == 'then'

    def test_share_from_unknown_snapshot_fails(self, harness, driver, share):
        self.offering(driver, base.CreateFromSnapshotSupport)
        clone = harness.share()
        with pytest.raises(exception.DriverError):
            create_from_snapshot(driver, clone, harness.snapshot(share))
        assert is_gone(driver, clone)

    def test_reverted_share_has_content_and_size_back(self, harness, driver, share):
        self.offering(driver, base.RevertSupport)
        locations = create(driver, share)
        users_or_skip(harness, driver, share).write('then')
        snapshot = harness.snapshot(share)
        driver.create_snapshot(CTX, snapshot)
        call_or_skip(driver.extend_share, share, 4)
        for process in (driver, harness.start()):
            users_or_skip(harness, process, share).write('now')
            size = process.revert_to_snapshot(CTX, snapshot, [], [])
            assert size in (None, 1)
            assert users_or_skip(harness, process, share).read() == 'then'
            assert status_or_skip(process, share)['status'] == 'available'
            assert status_or_skip(process, share).get('size', 1) == 1
        assert create(driver, share) == locations

    def test_share_is_reverted_step_by_step(self, harness, driver, share):
        self.offering(driver, base.RevertSupport)
        users = users_or_skip(harness, driver, share)
        older, newer = harness.snapshot(share), harness.snapshot(share)
        users.write('first')
        driver.create_snapshot(CTX, older)
        users.write('second')
        driver.create_snapshot(CTX, newer)
        users.write('broken')
        driver.revert_to_snapshot(CTX, newer, [], [])
        assert users.read() == 'second'
        driver.delete_snapshot(CTX, newer)
        driver.revert_to_snapshot(CTX, older, [], [])
        assert users.read() == 'first'

    def test_revert_to_unknown_snapshot_changes_nothing(self, harness, driver, share):
        self.offering(driver, base.RevertSupport)
        users = users_or_skip(harness, driver, share)
        users.write('now')
        with pytest.raises(exception.DriverError):
            driver.revert_to_snapshot(CTX, harness.snapshot(share), [], [])
        assert users.read() == 'now'
        assert status_or_skip(driver, share)['status'] == 'available'
