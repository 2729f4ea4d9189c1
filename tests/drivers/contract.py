"""What any driver must do: test classes that need a `subject` fixture."""

import concurrent.futures
import contextlib

import pytest

from manila_lite import exception
from manila_lite.share.drivers import base
from tests.drivers.driver_harness import CTX
from tests.support import reference

THREADS = 16


def created(driver, share):
    return base.normalise_export_locations(driver.create_share(CTX, share))


def removed(driver, share):
    """Delete a share; that it is gone may be told or not."""
    with contextlib.suppress(exception.ShareResourceNotFound):
        driver.delete_share(CTX, share)


def cloned(driver, share, snapshot):
    """Make a share from a snapshot; skips where that takes a while."""
    answer = driver.create_share_from_snapshot(CTX, share, snapshot)
    if isinstance(answer, dict):
        if answer['status'] != 'available':
            pytest.skip('the driver goes on making it by itself')
        answer = answer.get('export_locations')
    return base.normalise_export_locations(answer)


def status_of(driver, share):
    """The answer about a share; skips where drivers cannot tell."""
    try:
        return driver.get_share_status(share)
    except NotImplementedError:
        pytest.skip('the driver does not tell the status of shares')


def is_gone(driver, share):
    try:
        status_of(driver, share)
    except exception.ShareResourceNotFound:
        return True
    return False


def optional(verb, *args):
    """Call a verb; skips where drivers do not have it."""
    try:
        return verb(*args)
    except NotImplementedError:
        pytest.skip(f'the driver has no {verb.__name__}')


def users_of(subject, driver, share):
    users = subject.users(driver, share)
    if users is None:
        pytest.skip('no test can reach the content of its shares')
    return users


class ShareContract:
    def test_new_share_can_be_reached(self, subject, driver):
        locations = created(driver, subject.share())
        assert any(not location['is_admin_only'] for location in locations)
        assert all(location['path'] for location in locations)

    def test_locations_of_two_shares_differ(self, subject, driver):
        one = created(driver, subject.share())
        other = created(driver, subject.share())
        assert {location['path'] for location in one}.isdisjoint(
            location['path'] for location in other
        )

    def test_creating_again_keeps_share_and_locations(self, subject, driver):
        share = subject.share()
        locations = created(driver, share)
        assert created(driver, share) == locations
        assert created(subject.start(), share) == locations

    def test_creating_again_keeps_the_content(self, subject, driver):
        share = subject.share()
        users = users_of(subject, driver, share)
        users.write('precious')
        created(driver, share)
        assert users.read() == 'precious'

    def test_deleted_share_is_gone(self, subject, driver):
        share = subject.share()
        created(driver, share)
        driver.delete_share(CTX, share)
        assert is_gone(driver, share)
        assert is_gone(subject.start(), share)

    def test_deleting_again_is_success(self, subject, driver):
        share = subject.share()
        created(driver, share)
        driver.delete_share(CTX, share)
        removed(driver, share)
        removed(subject.start(), share)

    def test_deleting_what_never_was_is_success(self, subject, driver):
        share = subject.share()
        removed(driver, share)
        assert is_gone(driver, share)

    def test_share_deleted_and_made_again_is_empty(self, subject, driver):
        share = subject.share()
        users_of(subject, driver, share).write('old')
        driver.delete_share(CTX, share)
        assert users_of(subject, driver, share).read() == ''

    def test_status_tells_what_is_there(self, subject, driver):
        share = subject.share(size=2)
        locations = created(driver, share)
        for process in (driver, subject.start()):
            answer = status_of(process, share)
            assert answer['status'] == 'available'
            assert answer.get('size', 2) == 2
            assert answer.get('share_proto', 'NFS') == 'NFS'
            assert (
                base.normalise_export_locations(
                    answer.get('export_locations', locations)
                )
                == locations
            )

    def test_status_of_unknown_share_is_not_found(self, subject, driver):
        assert is_gone(driver, subject.share())

    def test_extended_share_has_the_new_size(self, subject, driver):
        share = subject.share(size=1)
        created(driver, share)
        optional(driver.extend_share, share, 3)
        assert status_of(driver, share).get('size', 3) == 3
        assert status_of(subject.start(), share).get('size', 3) == 3

    def test_extending_again_changes_nothing(self, subject, driver):
        share = subject.share(size=1)
        created(driver, share)
        for size in (3, 3, 2):
            optional(driver.extend_share, share, size)
        assert status_of(driver, share).get('size', 3) == 3

    def test_shrunk_share_has_the_new_size(self, subject, driver):
        share = subject.share(size=3)
        created(driver, share)
        optional(driver.shrink_share, share, 1)
        assert status_of(driver, share).get('size', 1) == 1
        assert status_of(subject.start(), share).get('size', 1) == 1

    def test_shrinking_again_changes_nothing(self, subject, driver):
        share = subject.share(size=3)
        created(driver, share)
        for size in (1, 1, 2):
            optional(driver.shrink_share, share, size)
        assert status_of(driver, share).get('size', 1) == 1

    def test_share_with_too_much_in_it_is_not_shrunk(self, subject, driver):
        share = subject.share(size=3)
        users_of(subject, driver, share).fill(1.5)
        with pytest.raises(exception.ShareShrinkingPossibleDataLoss):
            optional(driver.shrink_share, share, 1)
        assert status_of(driver, share).get('size', 3) == 3
        driver.shrink_share(share, 2)
        assert status_of(driver, share).get('size', 2) == 2

    @pytest.mark.parametrize('verb', ['extend_share', 'shrink_share'])
    def test_resizing_an_unknown_share_fails(self, subject, driver, verb):
        with pytest.raises(exception.ShareResourceNotFound):
            optional(getattr(driver, verb), subject.share(size=2), 3)

    def test_ensured_shares_keep_their_locations(self, subject, driver):
        share, unknown = subject.share(), subject.share()
        locations = created(driver, share)
        restarted = subject.start()
        assert (
            base.normalise_export_locations(
                restarted.ensure_share(CTX, share) or locations
            )
            == locations
        )
        answer = optional(restarted.ensure_shares, CTX, [share, unknown])
        told = (answer or {}).get(share.id, {})
        assert told.get('status', 'available') == 'available'
        assert (
            base.normalise_export_locations(
                told.get('export_locations', locations)
            )
            == locations
        )
        assert (answer or {}).get(unknown.id, {}).get('status') != 'available'

    def test_backend_info_is_the_same_after_a_restart(self, subject, driver):
        info = optional(driver.get_backend_info, CTX)
        assert all(isinstance(value, str) for value in info.values())
        assert subject.start().get_backend_info(CTX) == info

    def test_many_at_once_do_not_disturb_each_other(self, subject, driver):
        kept = [subject.share() for _ in range(THREADS)]
        passing = [subject.share() for _ in range(THREADS)]

        def live(stays, goes):
            locations = created(driver, stays)
            created(driver, goes)
            driver.delete_share(CTX, goes)
            return locations

        with concurrent.futures.ThreadPoolExecutor(THREADS) as pool:
            locations = list(pool.map(live, kept, passing))
        assert [created(driver, share) for share in kept] == locations
        assert all(
            status_of(driver, share)['status'] == 'available' for share in kept
        )
        assert all(is_gone(driver, share) for share in passing)

    def test_one_share_made_by_many_is_one(self, subject, driver):
        share = subject.share()
        with concurrent.futures.ThreadPoolExecutor(THREADS) as pool:
            answers = list(
                pool.map(lambda _: created(driver, share), range(THREADS))
            )
        assert all(answer == answers[0] for answer in answers)
        assert status_of(driver, share)['status'] == 'available'


class StatsContract:
    # Reported only where there is something to report.
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
        assert published - self.CONDITIONAL <= set(
            driver.get_share_stats(refresh=True)
        )

    def test_capabilities_follow_from_the_interfaces(self, driver):
        stats = driver.get_share_stats(refresh=True)
        for part in [stats, *(stats['pools'] or [])]:
            for name, interface in base.CAPABILITIES.items():
                if part.get(name):
                    assert isinstance(driver, interface), name

    def test_mode_and_name_are_those_configured(self, subject, driver):
        stats = driver.get_share_stats(refresh=True)
        options = subject.configure()
        assert (
            stats['driver_handles_share_servers']
            is options.driver_handles_share_servers
        )
        assert stats['share_backend_name'] == (
            options.share_backend_name or options.config_group
        )

    def test_capacities_are_numbers_or_one_of_two_words(self, driver):
        stats = driver.get_share_stats(refresh=True)
        for part in [stats, *(stats['pools'] or [])]:
            for name in ('total_capacity_gb', 'free_capacity_gb'):
                value = part.get(name, 'unknown')
                assert value in ('unknown', 'infinite') or value >= 0, (
                    f'{name} is {value}'
                )

    def test_pools_have_names_of_their_own(self, driver):
        pools = driver.get_share_stats(refresh=True)['pools'] or []
        names = [pool['pool_name'] for pool in pools]
        assert len(set(names)) == len(names)
        assert all(isinstance(name, str) and name for name in names)

    def test_share_lies_in_a_reported_pool(self, subject, driver):
        share = subject.share()
        created(driver, share)
        pools = driver.get_share_stats(refresh=True)['pools']
        pool = driver.get_pool(share)
        names = [each['pool_name'] for each in pools or []]
        assert pool is None or pool in names

    def test_stats_are_kept_until_a_refresh(self, driver):
        stats = driver.get_share_stats(refresh=True)
        assert driver.get_share_stats() == stats


class SnapshotContract:
    @pytest.fixture
    def driver(self, subject):
        return self.offering(subject.start(), base.SnapshotSupport)

    @staticmethod
    def offering(driver, interface):
        if not isinstance(driver, interface):
            pytest.skip(f'the driver does not offer {interface.__name__}')
        return driver

    @pytest.fixture
    def share(self, subject, driver):
        share = subject.share(size=1)
        created(driver, share)
        return share

    def test_snapshot_taken_twice_is_one(self, subject, driver, share):
        snapshot = subject.snapshot(share)
        assert (
            driver.create_snapshot(CTX, snapshot)
            == driver.create_snapshot(CTX, snapshot)
            == subject.start().create_snapshot(CTX, snapshot)
        )

    def test_taking_it_again_keeps_what_it_has(self, subject, driver, share):
        self.offering(driver, base.RevertSupport)
        users = users_of(subject, driver, share)
        snapshot = subject.snapshot(share)
        users.write('then')
        driver.create_snapshot(CTX, snapshot)
        users.write('now')
        driver.create_snapshot(CTX, snapshot)
        driver.revert_to_snapshot(CTX, snapshot, [], [])
        assert users.read() == 'then'

    def test_deleting_again_is_success(self, subject, driver, share):
        snapshot = subject.snapshot(share)
        driver.create_snapshot(CTX, snapshot)
        driver.delete_snapshot(CTX, snapshot)
        driver.delete_snapshot(CTX, snapshot)
        subject.start().delete_snapshot(CTX, snapshot)

    def test_deleting_what_never_was_is_success(self, subject, driver, share):
        driver.delete_snapshot(CTX, subject.snapshot(share))

    def test_snapshot_of_unknown_share_fails(self, subject, driver):
        with pytest.raises(exception.ShareResourceNotFound):
            driver.create_snapshot(CTX, subject.snapshot(subject.share()))

    def test_status_tells_what_is_there(self, subject, driver, share):
        snapshot = subject.snapshot(share)
        with pytest.raises(exception.SnapshotResourceNotFound):
            optional(driver.get_snapshot_status, snapshot)
        taken = driver.create_snapshot(CTX, snapshot) or {}
        for process in (driver, subject.start()):
            answer = process.get_snapshot_status(snapshot)
            assert answer['status'] == 'available'
            assert answer.get('size', 1) == 1
            for told in ('provider_location', 'export_locations'):
                assert answer.get(told) in (None, taken.get(told))
        driver.delete_snapshot(CTX, snapshot)
        with pytest.raises(exception.SnapshotResourceNotFound):
            driver.get_snapshot_status(snapshot)

    def test_share_from_snapshot_has_its_content(self, subject, driver, share):
        self.offering(driver, base.CreateFromSnapshotSupport)
        users_of(subject, driver, share).write('then')
        snapshot = subject.snapshot(share)
        driver.create_snapshot(CTX, snapshot)
        users_of(subject, driver, share).write('now')
        clone = subject.share(size=2, snapshot_id=snapshot.snapshot_id)
        for process in (driver, subject.start()):
            locations = cloned(process, clone, snapshot)
            assert locations == created(process, clone)
        assert users_of(subject, driver, clone).read() == 'then'
        assert users_of(subject, driver, share).read() == 'now'
        assert status_of(driver, clone).get('size', 2) == 2

    def test_share_from_snapshot_outlives_it(self, subject, driver, share):
        self.offering(driver, base.CreateFromSnapshotSupport)
        users_of(subject, driver, share).write('then')
        snapshot, clone = subject.snapshot(share), subject.share()
        driver.create_snapshot(CTX, snapshot)
        cloned(driver, clone, snapshot)
        driver.delete_snapshot(CTX, snapshot)
        driver.delete_share(CTX, share)
        assert users_of(subject, driver, clone).read() == 'then'

    def test_share_from_unknown_snapshot_fails(self, subject, driver, share):
        self.offering(driver, base.CreateFromSnapshotSupport)
        clone = subject.share()
        with pytest.raises(exception.DriverError):
            cloned(driver, clone, subject.snapshot(share))
        assert is_gone(driver, clone)

    def test_reverted_share_has_content_and_size_back(
        self, subject, driver, share
    ):
        self.offering(driver, base.RevertSupport)
        locations = created(driver, share)
        users_of(subject, driver, share).write('then')
        snapshot = subject.snapshot(share)
        driver.create_snapshot(CTX, snapshot)
        optional(driver.extend_share, share, 4)
        for process in (driver, subject.start()):
            users_of(subject, process, share).write('now')
            size = process.revert_to_snapshot(CTX, snapshot, [], [])
            assert size in (None, 1)
            assert users_of(subject, process, share).read() == 'then'
            assert status_of(process, share)['status'] == 'available'
            assert status_of(process, share).get('size', 1) == 1
        assert created(driver, share) == locations

    def test_share_is_reverted_step_by_step(self, subject, driver, share):
        self.offering(driver, base.RevertSupport)
        users = users_of(subject, driver, share)
        older, newer = subject.snapshot(share), subject.snapshot(share)
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

    def test_revert_to_unknown_snapshot_changes_nothing(
        self, subject, driver, share
    ):
        self.offering(driver, base.RevertSupport)
        users = users_of(subject, driver, share)
        users.write('now')
        with pytest.raises(exception.DriverError):
            driver.revert_to_snapshot(CTX, subject.snapshot(share), [], [])
        assert users.read() == 'now'
        assert status_of(driver, share)['status'] == 'available'
