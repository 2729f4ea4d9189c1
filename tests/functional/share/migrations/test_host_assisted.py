"""Shares that the data service copies to another back end."""

import pytest

from manila_lite import exception
from manila_lite.data.copying import TreeCopier
from manila_lite.db.queries.shares import (
    instances as share_instances,
    migrations as migration_rows,
)
from tests.support import host_assisted, share_migrations as migrations

ALPHA, BETA = 'node@alpha#pool', 'node@beta#pool'


@pytest.fixture
def cloud(build_cloud):
    return build_cloud(extra_conf=migrations.SHORT_POLL_INTERVAL)


@pytest.fixture
def share(cloud):
    return host_assisted.create(cloud)


def state(cloud, share):
    shown = cloud.api.show(share)
    return shown['status'], shown['task_state']


def copied_to(cloud, share):
    """Return the directory of the destination."""
    row = cloud.db.read(migration_rows.find_latest, share)
    return host_assisted.content_of(cloud, 'beta', row.destination_instance_id)


@pytest.mark.facts('LP1626523', 'LP1667450')
def test_share_is_copied_and_then_moved(cloud, share):
    source = migrations.instance_of(cloud, share)
    host_assisted.start(cloud, share)
    cloud.settle()
    assert state(cloud, share) == ('migrating', 'data_copying_completed')
    assert migrations.progress(cloud, share)['total_progress'] == 100
    assert host_assisted.names(copied_to(cloud, share)) == host_assisted.COPIED
    assert cloud.driver('alpha').access_inventory() == {
        source: {('ip', '10.1.1.1', 'ro')}
    }
    cloud.check_invariants()
    migrations.complete(cloud, share)
    cloud.settle()
    assert state(cloud, share) == ('available', 'migration_success')
    assert cloud.api.show(share)['host'] == BETA
    moved = migrations.instance_of(cloud, share)
    assert copied_to(cloud, share).name == moved
    assert (copied_to(cloud, share) / 'below' / 'file').read_text() == 'precious'
    assert cloud.driver('alpha').inventory() == {}
    assert not host_assisted.content_of(cloud, 'alpha', source).exists()
    assert cloud.driver('beta').access_inventory() == {
        moved: {('ip', '10.1.1.1', 'rw')}
    }
    (location,) = [
        row
        for row in cloud.api.request(
            'GET', f'/shares/{share}/export_locations', expect=200
        ).json['export_locations']
        if not row['is_admin_only']
    ]
    assert moved in location['path']
    cloud.check_invariants()


def test_quota_is_charged_once(cloud, share):
    usage = cloud.usage('gigabytes')
    host_assisted.start(cloud, share)
    cloud.settle()
    assert cloud.usage('gigabytes') == usage
    migrations.complete(cloud, share)
    cloud.settle()
    assert cloud.usage('gigabytes') == usage
    assert cloud.usage('shares') == (1, 0)


def test_copy_that_is_done_can_be_cancelled(cloud, share):
    source = migrations.instance_of(cloud, share)
    host_assisted.start(cloud, share)
    cloud.settle()
    folder = copied_to(cloud, share)
    migrations.cancel(cloud, share)
    cloud.settle()
    assert state(cloud, share) == ('available', 'migration_cancelled')
    assert migrations.instance_of(cloud, share) == source
    assert cloud.driver('beta').inventory() == {}
    assert not folder.exists()
    assert cloud.driver('alpha').access_inventory() == {
        source: {('ip', '10.1.1.1', 'rw')}
    }
    cloud.check_invariants()


class Interrupting(TreeCopier):
    """Lets the test act in the middle of a copy."""

    def __init__(self, act):
        self.act = act

    def copy_tree(self, source, target, how, **options):
        act, self.act = self.act, None
        if act is not None:
            how.on_progress(1)
            act()
        how.check()
        return TreeCopier.copy_tree(source, target, how, **options)


@pytest.fixture
def interrupt(cloud, monkeypatch):
    def interrupt(act):
        handler = cloud.data.runners[0].executor.handlers['migration_copies.copy_share']
        handler.run.__self__.copier = Interrupting(act)

    monkeypatch.setattr('manila_lite.data.progress.INTERVAL', 0.0)
    return interrupt


def test_copy_in_progress_shows_it_and_is_cancelled(cloud, share, interrupt):
    seen = []

    def act():
        seen.append(migrations.progress(cloud, share))
        migrations.cancel(cloud, share)

    interrupt(act)
    host_assisted.start(cloud, share)
    cloud.settle()
    assert [one['task_state'] for one in seen] == ['data_copying_in_progress']
    assert state(cloud, share) == ('available', 'migration_cancelled')
    assert cloud.driver('beta').inventory() == {}
    cloud.check_invariants()


def test_rescue_that_another_release_asks_for_leaves_the_copy_alone(
    cloud, share, interrupt
):
    """Release 1 does not know the work that owes the next move."""
    source = migrations.instance_of(cloud, share)

    def act():
        reconciliation = cloud.share.backends[0].endpoints.reconciliation

        def rescue(session):
            row = share_instances.get(session, source)
            resource = reconciliation.resources['share_instance']
            resource.submit(session, source, row)

        cloud.db.write(rescue)

    interrupt(act)
    host_assisted.start(cloud, share)
    cloud.settle()
    assert state(cloud, share) == ('migrating', 'data_copying_completed')
    migrations.complete(cloud, share)
    cloud.settle()
    assert state(cloud, share) == ('available', 'migration_success')
    cloud.check_invariants()


def test_failed_copy_leaves_the_share_as_it_was(cloud, share, interrupt):
    def act():
        raise OSError('the disk is full')

    source = migrations.instance_of(cloud, share)
    interrupt(act)
    host_assisted.start(cloud, share)
    cloud.settle()
    assert state(cloud, share) == ('available', 'migration_error')
    assert migrations.instance_of(cloud, share) == source
    assert cloud.driver('beta').inventory() == {}
    (message,) = cloud.api.request('GET', '/messages', expect=200).json['messages']
    assert message['resource_id'] == share
    assert message['message_level'] == 'ERROR'
    assert message['detail_id'] == '001'
    cloud.check_invariants()


def test_copy_is_tried_again_while_a_share_service_is_away(cloud, share, interrupt):
    def act():
        raise exception.ServiceUnavailable('away')

    interrupt(act)
    host_assisted.start(cloud, share)
    cloud.settle()
    assert state(cloud, share) == ('migrating', 'data_copying_completed')


FAULTS = pytest.mark.parametrize(
    'fault', ['fail_next', 'half_fail_next', 'lose_reply_next']
)


@FAULTS
def test_share_whose_driver_fails_at_the_start_is_copied(cloud, share, fault):
    getattr(cloud.driver('alpha'), fault)('migration_start')
    migrations.start(cloud, share, writable=False)
    cloud.settle()
    assert state(cloud, share) == ('migrating', 'data_copying_completed')
    assert host_assisted.names(copied_to(cloud, share)) == host_assisted.COPIED
    cloud.check_invariants()
    migrations.complete(cloud, share)
    cloud.settle()
    assert state(cloud, share) == ('available', 'migration_success')
    assert cloud.driver('alpha').inventory() == {}
    cloud.check_invariants()


@pytest.mark.parametrize('demanded', ['writable', 'nondisruptive'])
def test_share_is_not_copied_if_only_its_driver_does_what_was_demanded(
    cloud, share, demanded
):
    cloud.driver('alpha').fail_next('migration_start')
    migrations.start(cloud, share, **{'writable': False, demanded: True})
    cloud.settle()
    assert state(cloud, share) == ('available', 'migration_error')
    assert cloud.driver('beta').inventory() == {}
    cloud.check_invariants()


def test_copy_of_the_driver_that_cannot_be_removed_stays_visible(cloud, share):
    cloud.driver('alpha').half_fail_next('migration_start')
    cloud.driver('alpha').fail_next('migration_cancel', None)
    migrations.start(cloud, share, writable=False)
    cloud.settle()
    assert state(cloud, share) == ('available', 'migration_error')
    assert migrations.instances(cloud, share) == [(ALPHA, 'available'), (BETA, 'error')]


def test_refused_destination_leaves_the_share_as_it_was(cloud, share):
    cloud.driver('beta').fail_next('create_share')
    host_assisted.start(cloud, share)
    cloud.settle()
    assert state(cloud, share) == ('available', 'migration_error')
    assert cloud.driver('beta').inventory() == {}
    cloud.check_invariants()


def test_source_that_cannot_be_deleted_remains_in_error(cloud, share):
    host_assisted.start(cloud, share)
    cloud.settle()
    cloud.driver('alpha').fail_next('delete_share')
    migrations.complete(cloud, share)
    cloud.settle()
    assert state(cloud, share) == ('available', 'migration_success')
    assert migrations.instances(cloud, share) == [(ALPHA, 'error'), (BETA, 'available')]
    (remains,) = [
        row['id']
        for row in cloud.api.request(
            'GET', f'/shares/{share}/instances', expect=200
        ).json['share_instances']
        if row['status'] == 'error'
    ]
    cloud.api.request(
        'POST', f'/share_instances/{remains}/action', {'force_delete': None}, expect=202
    )
    cloud.settle()
    assert migrations.instances(cloud, share) == [(BETA, 'available')]
    assert cloud.driver('alpha').inventory() == {}
    cloud.check_invariants()


def test_only_the_data_service_completes_the_copy(cloud, share, interrupt):
    """The source would be removed. Of this copy the driver knows nothing."""
    answers = {}

    def act():
        for state in (
            'data_copying_completed',
            'migration_driver_in_progress',
            'migration_driver_phase1_done',
            'migration_completing',
        ):
            answers[state] = migrations.act(
                cloud, share, 'reset_task_state', {'task_state': state}, expect=None
            ).status_int

    interrupt(act)
    host_assisted.start(cloud, share)
    cloud.settle()
    assert set(answers.values()) == {400}
    assert state(cloud, share) == ('migrating', 'data_copying_completed')
    migrations.complete(cloud, share)
    cloud.settle()
    assert migrations.instances(cloud, share) == [(BETA, 'available')]
    cloud.check_invariants()


@pytest.mark.parametrize('word', ['writable', 'nondisruptive', 'preserve_snapshots'])
@pytest.mark.facts('bp-ocata-migration.3')
def test_what_only_drivers_can_do_is_refused(cloud, share, word):
    answer = host_assisted.start(cloud, share, expect=400, **{word: True})
    assert word in answer.json['badRequest']['message']
    assert state(cloud, share) == ('available', None)


def test_without_a_data_service_the_request_is_refused(cloud, share):
    cloud.data.stop()
    answer = host_assisted.start(cloud, share, expect=400)
    assert 'data service' in answer.json['badRequest']['message']
    assert state(cloud, share) == ('available', None)


class TestFallback:
    """The driver of the source cannot reach the destination."""

    @pytest.fixture
    def cloud(self, cloud, monkeypatch):
        for name in ('alpha', 'beta'):
            monkeypatch.setattr(
                cloud.driver(name),
                'migration_check_compatibility',
                lambda *args, **kwargs: {'compatible': False},
            )
        return cloud

    def test_the_data_service_copies(self, cloud, share):
        migrations.start(cloud, share, writable=False)
        cloud.settle()
        assert state(cloud, share) == ('migrating', 'data_copying_completed')

    def test_nothing_is_copied_that_had_to_be_writable(self, cloud, share):
        migrations.start(cloud, share, writable=True)
        cloud.settle()
        assert state(cloud, share) == ('available', 'migration_error')
        assert cloud.driver('beta').inventory() == {}
