"""Migrations of shares between the pools of two back ends."""

from functools import partial

from oslo_db import exception as db_exc
import pytest

from manila_lite.db.transitions import fire
from manila_lite.states.share_instance import SHARE_INSTANCE
from tests.support import sampling, share_groups, share_migrations as migrations
from tests.support.cloud import Cloud
from tests.support.concurrent_calls import status_codes

SLOW_COPY = 'dummy_driver_share_migration_steps = 4\n'
CLIENTS = 10


@pytest.fixture
def cloud(build_cloud):
    return build_cloud(extra_conf=migrations.SHORT_POLL_INTERVAL)


@pytest.fixture
def share(cloud):
    share = migrations.create_on_alpha(cloud, size=2)
    cloud.driver('alpha').write(migrations.instance_of(cloud, share), 'precious')
    return share


def allocated(cloud):
    """Return the GiB allocated on the pools that have any."""
    pools = cloud.api.get('/scheduler-stats/pools/detail')['pools']
    return {
        pool['name']: int(pool['capabilities']['allocated_capacity_gb'])
        for pool in pools
        if int(pool['capabilities']['allocated_capacity_gb'])
    }


def to_phase1(cloud, share, **options):
    migrations.start(cloud, share, **options)
    cloud.settle()
    assert migrations.task_state(cloud, share) == ('migration_driver_phase1_done')


@pytest.mark.facts('force_host_assisted_migration', 'newton-migration.2')
def test_a_share_moves_in_two_phases(cloud, share):
    migrations.allow(cloud, share)
    cloud.settle()
    source = migrations.instance_of(cloud, share)
    old_path = cloud.driver('alpha').inventory()
    to_phase1(cloud, share)
    assert cloud.api.show(share)['status'] == 'migrating'
    assert migrations.instances(cloud, share) == [
        ('node@alpha#pool', 'migrating'),
        (migrations.DESTINATION, 'migrating_to'),
    ]
    migrations.complete(cloud, share)
    cloud.settle()
    shown = cloud.api.show(share)
    assert shown['status'] == 'available'
    assert shown['host'] == migrations.DESTINATION
    assert shown['progress'] == '100%'
    assert shown['task_state'] == 'migration_success'
    moved = migrations.instance_of(cloud, share)
    assert moved != source
    assert source in old_path
    assert cloud.driver('alpha').inventory() == {}
    assert cloud.driver('beta').inventory() == {moved: 2}
    assert cloud.driver('beta').read(moved) == 'precious'
    assert cloud.driver('beta').access_inventory() == {
        moved: {('ip', '10.1.1.1', 'rw')}
    }
    (location,) = [
        row
        for row in cloud.api.get(f'/shares/{share}/export_locations')[
            'export_locations'
        ]
        if not row['is_admin_only']
    ]
    assert moved in location['path']
    cloud.check_invariants()


@pytest.mark.facts('LP1638896', 'LP1665072', 'LP1660726')
def test_migration_is_successful_when_all_is_done(cloud, share):
    source = migrations.instance_of(cloud, share)
    seen = []

    def look():
        seen.append(migrations.task_state(cloud, share))
        for path in ('export_locations', 'export_locations?x=y'):
            listed = cloud.api.get(f'/shares/{share}/{path}')
            assert {source in one['path'] for one in listed['export_locations']} == {
                True
            }

    to_phase1(cloud, share)
    look()
    migrations.complete(cloud, share)
    seen.append(migrations.task_state(cloud, share))
    for point in ('before migration_complete', 'after migration_complete'):
        cloud.pause_at(point, look)
    cloud.settle()
    assert seen == [
        'migration_driver_phase1_done',
        'migration_completing',
        'migration_completing',
        'migration_completing',
    ]
    assert migrations.task_state(cloud, share) == 'migration_success'
    assert cloud.driver('alpha').inventory() == {}


@pytest.mark.facts('bp-ocata-migration.1')
@pytest.mark.parametrize('missing', sorted(migrations.OPTIONS))
def test_every_option_is_required(cloud, share, missing):
    options = {
        key: value for key, value in migrations.OPTIONS.items() if key != missing
    }
    answer = migrations.act(
        cloud,
        share,
        'migration_start',
        {'host': migrations.DESTINATION, **options},
        expect=400,
    )
    assert missing in answer.json['badRequest']['message']


@pytest.mark.facts('LP1889549')
def test_progress_follows_from_the_state_if_the_driver_has_none(
    build_cloud, monkeypatch
):
    cloud = build_cloud(
        extra_conf=migrations.SHORT_POLL_INTERVAL, backend_conf=SLOW_COPY
    )
    share = migrations.create_on_alpha(cloud)

    def refuse(*args):
        raise NotImplementedError

    monkeypatch.setattr(cloud.driver('alpha'), 'migration_get_progress', refuse)
    migrations.start(cloud, share)
    cloud.run_pending()
    found = migrations.progress(cloud, share)
    assert (found['task_state'], found['total_progress']) == (
        'migration_driver_in_progress',
        0,
    )
    cloud.settle()
    found = migrations.progress(cloud, share)
    assert (found['task_state'], found['total_progress']) == (
        'migration_driver_phase1_done',
        100,
    )


def test_capacity_is_reserved_while_both_exist(cloud, share):
    to_phase1(cloud, share)
    cloud.check_invariants()
    usage = cloud.usage('gigabytes')
    migrations.complete(cloud, share)
    cloud.settle()
    assert cloud.usage('gigabytes') == usage == (2, 0)
    cloud.check_invariants()


@pytest.mark.parametrize('writable', [True, False])
def test_a_cancelled_migration_leaves_the_share_as_it_was(cloud, share, writable):
    migrations.allow(cloud, share)
    cloud.settle()
    source = migrations.instance_of(cloud, share)
    to_phase1(cloud, share, writable=writable)
    level = 'rw' if writable else 'ro'
    assert cloud.driver('alpha').access_inventory() == {
        source: {('ip', '10.1.1.1', level)}
    }
    migrations.cancel(cloud, share)
    cloud.settle()
    shown = cloud.api.show(share)
    assert (shown['status'], shown['task_state']) == (
        'available',
        'migration_cancelled',
    )
    assert migrations.instance_of(cloud, share) == source
    assert cloud.driver('beta').inventory() == {}
    assert cloud.driver('alpha').access_inventory() == {
        source: {('ip', '10.1.1.1', 'rw')}
    }
    assert migrations.progress(cloud, share)['total_progress'] == 100
    cloud.check_invariants()
    to_phase1(cloud, share)


def test_rules_are_as_given_after_a_migration_that_was_not_writable(cloud, share):
    migrations.allow(cloud, share)
    cloud.settle()
    to_phase1(cloud, share, writable=False)
    migrations.complete(cloud, share)
    cloud.settle()
    assert cloud.driver('beta').access_inventory() == {
        migrations.instance_of(cloud, share): {('ip', '10.1.1.1', 'rw')}
    }


@pytest.mark.facts('LP1889549.2', 'add-details-to-migration-get-progress')
def test_progress_moves_while_the_driver_copies(build_cloud):
    cloud = build_cloud(
        extra_conf=migrations.SHORT_POLL_INTERVAL, backend_conf=SLOW_COPY
    )
    share = migrations.create_on_alpha(cloud)
    migrations.progress(cloud, share, expect=400)
    migrations.start(cloud, share)
    assert migrations.progress(cloud, share)['total_progress'] == 0
    seen = []
    while migrations.task_state(cloud, share) != ('migration_driver_phase1_done'):
        cloud.run_pending()
        seen.append(migrations.progress(cloud, share))
        cloud.clock.advance(5)
        cloud.beat()
    totals = [one['total_progress'] for one in seen]
    assert totals == sorted(totals)
    assert {25, 50, 75, 100} <= set(totals)
    assert seen[0]['details'] == {'copied': 1}
    old = migrations.act(
        cloud, share, 'migration_get_progress', expect=200, version='2.97'
    ).json
    assert old.pop('last_heard_at') is not None
    assert old == {
        'total_progress': 100,
        'task_state': 'migration_driver_phase1_done',
        'details': seen[-1]['details'],
    }


def test_a_share_that_is_there_already_stays(cloud, share):
    migrations.start(cloud, share, host='node@alpha#pool', expect=200)
    shown = cloud.api.show(share)
    assert (shown['status'], shown['task_state']) == ('available', 'migration_success')


@pytest.mark.parametrize(
    'options, word',
    [
        ({'host': 'node@beta'}, 'host'),
        (
            {'force_host_assisted_migration': True},  # and writable
            'force_host_assisted_migration',
        ),
        (
            {'new_share_type_id': 'a0a0a0a0-0000-4000-8000-000000000000'},
            'new_share_type_id',
        ),
        (
            {'new_share_network_id': 'a0a0a0a0-0000-4000-8000-000000000000'},
            'new_share_network_id',
        ),
    ],
)
def test_a_refused_request_names_the_field_and_changes_nothing(
    cloud, share, options, word
):
    answer = migrations.start(cloud, share, expect=400, **options)
    assert word in answer.json['badRequest']['message']
    shown = cloud.api.show(share)
    assert (shown['status'], shown['task_state']) == ('available', None)


@pytest.mark.parametrize('host', ['node@moon#pool', 'node@beta#moon'])
def test_an_unknown_host_is_not_found(cloud, share, host):
    answer = migrations.start(cloud, share, host=host, expect=404)
    message = answer.json['itemNotFound']['message']
    assert message.startswith('host: ')
    assert 'moon' in message
    assert cloud.api.show(share)['status'] == 'available'


@pytest.mark.facts('LP1660319')
def test_a_member_of_a_share_group_is_not_migrated(cloud):
    share = migrations.create_on_alpha(cloud)
    group = share_groups.create(cloud)
    member = cloud.create_share(share_group_id=group)
    host = cloud.api.show(member)['host']
    (other,) = {'node@alpha#pool', migrations.DESTINATION} - {host}
    answer = migrations.start(cloud, member, host=other, expect=400)
    assert 'share group' in answer.json['badRequest']['message']
    migrations.start(cloud, share)


def test_a_share_with_snapshots_is_not_migrated(build_cloud):
    cloud = build_cloud(extra_conf=migrations.SHORT_POLL_INTERVAL)
    share = migrations.create_on_alpha(cloud)
    cloud.api.request(
        'POST', '/snapshots', {'snapshot': {'share_id': share}}, expect=202
    )
    cloud.settle()
    answer = migrations.start(cloud, share, expect=400)
    assert 'snapshots' in answer.json['badRequest']['message']


@pytest.mark.facts('migration-access-fix')
def test_other_operations_wait_for_the_end(cloud, share):
    rule = migrations.allow(cloud, share, '10.2.2.2').json['access']['id']
    cloud.settle()
    to_phase1(cloud, share)
    cloud.api.delete(share, expect=403)
    cloud.api.act(share, 'force_delete', expect=400)
    cloud.api.act(share, 'extend', {'new_size': 3}, expect=400)
    cloud.api.act(share, 'shrink', {'new_size': 1}, expect=400)
    cloud.api.act(share, 'soft_delete', expect=403)
    for refused in (
        migrations.allow(cloud, share, expect=400),
        cloud.api.act(share, 'deny_access', {'access_id': rule}, expect=400),
    ):
        assert 'migrated' in refused.json['badRequest']['message']
    cloud.api.request(
        'POST', '/snapshots', {'snapshot': {'share_id': share}}, expect=400
    )
    cloud.api.request(
        'POST', '/share-transfers', {'transfer': {'share_id': share}},
        expect=400,
    )  # fmt: skip
    migrations.start(cloud, share, expect=400)
    (instance, _) = (
        row['id']
        for row in cloud.api.get(f'/shares/{share}/instances')['share_instances']
    )
    cloud.api.request(
        'POST',
        f'/share_instances/{instance}/action',
        {'force_delete': None},
        expect=400,
    )
    migrations.complete(cloud, share)
    cloud.settle()
    cloud.api.act(share, 'extend', {'new_size': 3}, expect=202)
    cloud.settle()
    cloud.api.delete(share)
    cloud.settle()
    cloud.check_invariants()


def test_a_destination_without_room_is_reported(build_cloud):
    cloud = build_cloud(capacity=10, backend_conf='max_over_subscription_ratio = 1\n')
    share = migrations.create_on_alpha(cloud, size=8)
    cloud.create_share(size=8)
    migrations.start(cloud, share)
    cloud.settle()
    shown = cloud.api.show(share)
    assert (shown['status'], shown['task_state']) == ('available', 'migration_error')
    assert migrations.instances(cloud, share) == [('node@alpha#pool', 'available')]
    (message,) = cloud.api.get('/messages')['messages']
    assert (message['resource_id'], message['action_id']) == (share, '001')
    cloud.check_invariants()


@pytest.mark.facts('affinity-filter.4')
def test_recorded_hints_restrict_the_destination(cloud):
    first = migrations.create_on_alpha(cloud)
    beside = cloud.create_share(scheduler_hints={'same_host': first})
    apart = cloud.create_share(scheduler_hints={'different_host': first})
    alone = migrations.create_on_alpha(cloud)
    alpha, beta = 'node@alpha#pool', migrations.DESTINATION
    for share, host, end, is_refused in (
        (first, beta, alpha, True),
        (beside, beta, alpha, True),
        (apart, alpha, beta, True),
        (alone, beta, beta, False),
    ):
        migrations.start(cloud, share, host=host)
        cloud.settle()
        found = cloud.api.get(f'/messages?resource_id={share}')['messages']
        assert [one['action_id'] for one in found] == ['001'] * is_refused
        if not is_refused:
            migrations.complete(cloud, share)
            cloud.settle()
        shown = cloud.api.show(share)
        assert (shown['status'], shown['host']) == ('available', end)
        assert shown['task_state'] == (
            'migration_error' if is_refused else 'migration_success'
        )
    cloud.check_invariants()


@pytest.mark.facts('preserve_metadata')
@pytest.mark.parametrize('offers', [(), ('compatible', 'writable')])
def test_a_driver_that_cannot_do_it_leaves_the_share_available(
    cloud, share, offers, caplog
):
    cloud.driver('alpha').set_share_migration_capabilities(offers)
    migrations.start(cloud, share)
    cloud.settle()
    shown = cloud.api.show(share)
    assert (shown['status'], shown['task_state']) == ('available', 'migration_error')
    (message,) = cloud.api.get('/messages')['messages']
    assert message['resource_id'] == share
    assert cloud.driver('beta').inventory() == {}
    assert not [one for one in caplog.records if one.exc_info]
    cloud.check_invariants()


@pytest.mark.parametrize('method', ['migration_start', 'migration_continue'])
def test_what_a_failed_first_phase_has_copied_is_removed(cloud, share, method):
    cloud.driver('alpha').fail_next(method)
    migrations.start(cloud, share)
    cloud.settle()
    shown = cloud.api.show(share)
    assert (shown['status'], shown['task_state']) == ('available', 'migration_error')
    assert cloud.driver('beta').inventory() == {}
    (message,) = cloud.api.get('/messages')['messages']
    assert message['message_level'] == 'ERROR'
    assert message['detail_id'] == '001'
    cloud.check_invariants()
    to_phase1(cloud, share)


def test_a_copy_that_cannot_be_removed_stays_visible(cloud, share):
    to_phase1(cloud, share)
    cloud.driver('alpha').fail_next('migration_cancel', None)
    migrations.cancel(cloud, share)
    cloud.settle()
    assert migrations.task_state(cloud, share) == 'migration_error'
    assert migrations.instances(cloud, share) == [
        ('node@alpha#pool', 'available'),
        (migrations.DESTINATION, 'error'),
    ]
    migrations.start(cloud, share, expect=400)
    (left,) = (
        row['id']
        for row in cloud.api.get(f'/shares/{share}/instances')['share_instances']
        if row['status'] == 'error'
    )
    cloud.api.request(
        'POST', f'/share_instances/{left}/action', {'force_delete': None}, expect=202
    )
    cloud.settle()
    cloud.check_invariants()


def test_a_failed_second_phase_puts_both_instances_into_error(cloud, share):
    to_phase1(cloud, share)
    cloud.driver('alpha').fail_next('migration_complete', None)
    migrations.complete(cloud, share)
    cloud.settle()
    shown = cloud.api.show(share)
    assert (shown['status'], shown['task_state']) == ('error', 'migration_error')
    (message,) = cloud.api.get('/messages')['messages']
    assert message['resource_id'] == share


@pytest.mark.facts('newton-migration.3')
def test_a_reset_task_state_ends_the_migration(cloud, share):
    to_phase1(cloud, share)
    migrations.act(cloud, share, 'reset_task_state', {'task_state': 'moon'}, expect=400)
    migrations.act(cloud, share, 'reset_task_state', {'task_state': 'migration_error'})
    cloud.settle()
    shown = cloud.api.show(share)
    assert (shown['status'], shown['task_state']) == ('available', 'migration_error')
    migrations.act(
        cloud,
        share,
        'reset_task_state',
        {'task_state': 'migration_completing'},
        expect=400,
    )
    migrations.act(cloud, share, 'reset_task_state', {'task_state': None})
    assert migrations.task_state(cloud, share) is None
    cloud.check_invariants()


def test_a_reset_status_does_not_let_a_migrating_share_change(cloud, share):
    """The copy would keep the old size, and lack the snapshot."""
    size = cloud.api.show(share)['size']
    to_phase1(cloud, share)
    (source,) = (
        row['id']
        for row in cloud.api.get(f'/shares/{share}/instances')['share_instances']
        if row['status'] == 'migrating'
    )
    # As the previous release lets administrators do.
    cloud.db.write(fire, SHARE_INSTANCE, source, 'reset_available')
    for action, body in (
        ('extend', {'new_size': size + 1}),
        ('extend', {'new_size': size + 1, 'force': True}),
        ('shrink', {'new_size': size - 1}),
    ):
        answer = migrations.act(cloud, share, action, body, expect=400)
        assert 'busy: migration_driver_phase1_done' in str(answer.json)
    answer = cloud.api.request(
        'POST', '/snapshots', {'snapshot': {'share_id': share}}, expect=400
    )
    assert 'busy' in str(answer.json)
    answer = migrations.act(cloud, share, 'soft_delete', expect=403)
    assert 'busy' in str(answer.json)
    assert cloud.api.show(share)['status'] == 'available'
    migrations.cancel(cloud, share)
    cloud.settle()
    assert cloud.api.show(share)['size'] == size
    cloud.check_invariants()


def test_progress_of_a_back_end_that_has_died_is_the_last_known(build_cloud):
    cloud = build_cloud(
        extra_conf=migrations.SHORT_POLL_INTERVAL, backend_conf=SLOW_COPY
    )
    share = migrations.create_on_alpha(cloud)
    migrations.start(cloud, share)
    cloud.run_pending()
    known = migrations.progress(cloud, share)
    assert known['total_progress'] == 25
    cloud.clock.advance(60)
    cloud.process.transport.silence('node@alpha', cloud.clock.advance)
    asked_at = cloud.clock.now
    assert migrations.progress(cloud, share) == known
    assert 1 < cloud.clock.now - asked_at < 3


def reset(cloud, share, task_state, expect=202):
    return migrations.act(
        cloud, share, 'reset_task_state', {'task_state': task_state}, expect
    )


def test_no_reset_leads_back_to_the_first_phase(cloud, share):
    """A cancellation would then remove the only copy of the data."""
    to_phase1(cloud, share)
    migrations.complete(cloud, share)
    for state in (
        'migration_in_progress',
        'migration_driver_in_progress',
        'migration_driver_phase1_done',
    ):
        answer = reset(cloud, share, state, expect=400)
        assert 'is in its second phase' in str(answer.json)
    reset(cloud, share, 'migration_completing')
    cloud.settle()
    assert migrations.task_state(cloud, share) == 'migration_success'
    cloud.check_invariants()


def test_no_reset_begins_the_second_phase(cloud, share):
    to_phase1(cloud, share)
    answer = reset(cloud, share, 'migration_completing', expect=400)
    assert 'is in its first phase' in str(answer.json)
    migrations.cancel(cloud, share)
    cloud.settle()
    cloud.check_invariants()


def test_state_between_the_phases_needs_a_migration(cloud, share):
    """Nothing else would leave it."""
    reset(cloud, share, 'migration_driver_phase1_done', expect=400)
    assert migrations.task_state(cloud, share) is None


def test_copy_of_a_start_that_is_refused_when_repeated_is_removed(cloud, share):
    """The driver had begun to copy before, and its reply was lost."""
    driver = cloud.driver('alpha')
    driver.lose_reply_next('migration_start', error=db_exc.DBConnectionError('lost'))
    cloud.pause_at(
        'before migration_start', lambda: driver.set_share_migration_capabilities(())
    )
    migrations.start(cloud, share)
    cloud.settle()
    assert not cloud.pending_pauses
    assert migrations.task_state(cloud, share) == 'migration_error'
    assert cloud.driver('beta').inventory() == {}
    cloud.check_invariants()


def test_a_change_by_the_official_client_ends_no_migration(cloud, share):
    """It sends null as the task state with every change of a share."""
    to_phase1(cloud, share)
    null = {'task_state': None}
    answer = migrations.act(cloud, share, 'reset_task_state', null, expect=400)
    assert 'is being migrated' in str(answer.json)
    cloud.settle()
    assert migrations.task_state(cloud, share) == 'migration_driver_phase1_done'
    migrations.complete(cloud, share)
    cloud.settle()
    assert cloud.api.show(share)['host'] == migrations.DESTINATION
    migrations.act(cloud, share, 'reset_task_state', null)


@sampling.dialects
def test_one_of_ten_concurrent_requests_is_accepted(database_url, tmp_path):
    cloud = Cloud(tmp_path, url=database_url, extra_conf=migrations.SHORT_POLL_INTERVAL)
    share = migrations.create_on_alpha(cloud)
    for verb, others in (
        (migrations.start, 400),
        (migrations.cancel, 400),
        (migrations.start, 400),
        (migrations.complete, 400),
    ):
        codes = status_codes(
            *[partial(verb, cloud, share, expect=None)] * CLIENTS, rng=cloud.rng
        )
        assert sorted(codes) == [202] + [others] * (CLIENTS - 1)
        cloud.settle()
        cloud.check_invariants()
    assert cloud.api.show(share)['host'] == migrations.DESTINATION
    cloud.db.dispose()
