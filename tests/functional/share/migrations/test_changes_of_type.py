"""Migrations that give another share type to a share."""

from functools import partial

import pytest
import sqlalchemy as sa

from manila_lite.db.models import quotas, shares
from manila_lite.quota import recount
from tests.support import (
    cloud_snapshots as snapshots,
    host_assisted,
    sampling,
    share_migrations as migrations,
)
from tests.support.cloud import TYPE_ID, Cloud
from tests.support.cloud_images import prepared
from tests.support.concurrent_calls import status_codes

SIZE, LARGE = 2, 3
OF_SNAPSHOTS = 'snapshots', 'snapshot_gigabytes'
USAGE = quotas.QuotaUsage.__table__
INSTANCE = shares.ShareInstance.__table__
GOLD = {
    'snapshot_support': 'True',
    'create_share_from_snapshot_support': 'True',
    'revert_to_snapshot_support': 'True',
    'mount_snapshot_support': 'True',
}
DRIVER = {'writable': True}
COPY = {'writable': False, 'force_host_assisted_migration': True}
WAYS = pytest.mark.parametrize('options', [DRIVER, COPY], ids=['driver', 'copy'])


@pytest.fixture
def cloud(build_cloud):
    return build_cloud(extra_conf=migrations.SHORT_POLL_INTERVAL)


@pytest.fixture
def gold(cloud):
    return migrations.create_type(cloud, **GOLD)


@pytest.fixture
def share(cloud):
    return migrations.create_on_alpha(cloud, size=SIZE)


def start(cloud, share, gold, **options):
    migrations.start(cloud, share, new_share_type_id=gold, **options)
    cloud.settle()
    assert migrations.task_state(cloud, share) in (
        'migration_driver_phase1_done',
        'data_copying_completed',
    )


def test_empty_ids_keep_the_type_and_the_network(cloud, share):
    """Dashboards send every field of the form."""
    start(cloud, share, '', new_share_network_id='')
    migrations.complete(cloud, share)
    cloud.settle()
    shown = cloud.api.show(share)
    assert (shown['status'], shown['share_type']) == ('available', TYPE_ID)
    assert shown['share_network_id'] is None


def used_of(cloud, type_id, count='shares', gigabytes='gigabytes'):
    """Return the shares and GiB that a share type is charged for."""
    rows = cloud.db.read(
        lambda session: session.rows(
            sa.select(USAGE.c.resource, USAGE.c.in_use).where(
                USAGE.c.scope == 'share_type', USAGE.c.scope_id == type_id
            )
        )
    )
    found = {row.resource: row.in_use for row in rows}
    return found.get(count, 0), found.get(gigabytes, 0)


def types_of_instances(cloud):
    return {
        row.host: row.share_type_id
        for row in cloud.db.read(
            lambda session: session.rows(
                sa.select(INSTANCE.c.host, INSTANCE.c.share_type_id)
            )
        )
    }


def check_usage(cloud, own, new, gold):
    assert used_of(cloud, TYPE_ID) == (own, SIZE * own)
    assert used_of(cloud, gold) == (new, SIZE * new)
    assert cloud.usage('shares') == (1, 0)
    assert cloud.usage('gigabytes') == (SIZE, 0)
    cloud.check_invariants()


@WAYS
@pytest.mark.facts('migration-share-type')
def test_the_share_has_the_new_type_after_the_second_phase(cloud, share, gold, options):
    start(cloud, share, gold, **options)
    assert migrations.shown_type(cloud, share) == TYPE_ID
    assert not cloud.api.show(share)['revert_to_snapshot_support']
    assert types_of_instances(cloud) == {
        'node@alpha#pool': TYPE_ID,
        migrations.DESTINATION: gold,
    }
    migrations.complete(cloud, share)
    cloud.settle()
    shown = cloud.api.show(share)
    assert shown['share_type'] == gold
    assert shown['share_type_name'] == 'gold'
    assert shown['status'] == 'available'
    assert shown['host'] == migrations.DESTINATION
    assert {name: shown[name] for name in GOLD} == dict.fromkeys(GOLD, True)
    assert types_of_instances(cloud) == {migrations.DESTINATION: gold}
    cloud.api.request(
        'POST', '/snapshots', {'snapshot': {'share_id': share}}, expect=202
    )
    cloud.settle()
    cloud.check_invariants()


@WAYS
def test_both_types_are_charged_until_the_end(cloud, share, gold, options):
    start(cloud, share, gold, **options)
    check_usage(cloud, 1, 1, gold)
    migrations.complete(cloud, share)
    cloud.settle()
    check_usage(cloud, 0, 1, gold)
    cloud.api.delete(share)
    cloud.settle()
    assert used_of(cloud, gold) == (0, 0)
    cloud.check_invariants()


@WAYS
def test_a_cancelled_change_of_type_leaves_the_share_as_it_was(
    cloud, share, gold, options
):
    before = cloud.api.show(share)
    start(cloud, share, gold, **options)
    migrations.cancel(cloud, share)
    cloud.settle()
    check_usage(cloud, 1, 0, gold)
    after = cloud.api.show(share)
    changing = {'updated_at', 'task_state'}
    assert {name for name in after if after[name] != before[name]} <= changing
    start(cloud, share, gold, **options)
    check_usage(cloud, 1, 1, gold)


def test_the_type_is_charged_from_the_request_on(cloud, share, gold):
    migrations.start(cloud, share, new_share_type_id=gold)
    assert used_of(cloud, gold) == (1, SIZE)
    assert cloud.usage('gigabytes') == (SIZE, 0)
    cloud.settle()
    check_usage(cloud, 1, 1, gold)


def limit_type(cloud, **limits):
    cloud.api.request(
        'PUT', '/quota-sets/project?share_type=gold', {'quota_set': limits}, expect=200
    )


@pytest.mark.parametrize('limits', [{'shares': 0}, {'gigabytes': SIZE - 1}], ids=str)
def test_the_limits_of_the_new_type_apply(cloud, share, gold, limits):
    limit_type(cloud, **limits)
    migrations.start(cloud, share, new_share_type_id=gold, expect=413)
    assert migrations.task_state(cloud, share) is None
    check_usage(cloud, 1, 0, gold)
    migrations.start(cloud, share)


def test_a_project_at_its_limit_can_change_the_type(cloud, share, gold):
    """Its own limits count the share once."""
    cloud.api.request(
        'PUT',
        '/quota-sets/project',
        {'quota_set': {'shares': 1, 'gigabytes': SIZE}},
        expect=200,
    )
    start(cloud, share, gold)
    migrations.complete(cloud, share)
    cloud.settle()
    check_usage(cloud, 0, 1, gold)


@WAYS
def test_the_type_can_be_changed_within_a_pool(cloud, share, gold, options):
    host = cloud.api.show(share)['host']
    start(cloud, share, gold, host=host, **options)
    migrations.complete(cloud, share)
    cloud.settle()
    assert migrations.shown_type(cloud, share) == gold
    assert cloud.api.show(share)['host'] == host
    check_usage(cloud, 0, 1, gold)
    assert len(cloud.driver('alpha').inventory()) == 1


def test_the_same_type_is_no_change(cloud, share):
    migrations.start(
        cloud, share, host='node@alpha#pool', new_share_type_id=TYPE_ID, expect=200
    )
    migrations.start(cloud, share, new_share_type_id=TYPE_ID)
    cloud.settle()
    migrations.complete(cloud, share)
    cloud.settle()
    assert migrations.shown_type(cloud, share) == TYPE_ID
    assert used_of(cloud, TYPE_ID) == (1, SIZE)
    cloud.check_invariants()


# What is refused


@pytest.mark.parametrize(
    'specs, word',
    [
        ({'replication_type': 'readable'}, 'replicas'),
        ({'driver_handles_share_servers': 'True'}, 'new_share_network_id'),
        ({'provisioning:max_share_size': str(SIZE - 1)}, 'maximum'),
        ({'provisioning:min_share_size': str(SIZE + 1)}, 'minimum'),
    ],
)
def test_a_type_that_is_not_for_the_share_is_refused(cloud, share, specs, word):
    other = migrations.create_type(cloud, **specs)
    answer = migrations.start(cloud, share, new_share_type_id=other, expect=400)
    assert word in answer.json['badRequest']['message']
    assert migrations.task_state(cloud, share) is None
    assert cloud.api.show(share)['status'] == 'available'
    cloud.check_invariants()


@pytest.mark.parametrize(
    'column, specs, word',
    [
        ('mount_point_name', {'mount_point_name_support': 'True'}, 'mount point name'),
        ('encryption_key_ref', {'encryption_support': 'share'}, 'encryption key'),
    ],
)
def test_what_the_share_has_needs_support_of_the_new_type(
    cloud, share, gold, column, specs, word
):
    cloud.db.write(
        lambda session: session.run(sa.update(INSTANCE).values({column: 'something'}))
    )
    answer = migrations.start(cloud, share, new_share_type_id=gold, expect=400)
    assert word in answer.json['badRequest']['message']
    able = migrations.create_type(cloud, 'able', **specs)
    migrations.start(cloud, share, new_share_type_id=able)


def test_the_destination_has_to_fit_the_new_type(cloud, share):
    only_alpha = migrations.create_type(cloud, share_backend_name='alpha')
    migrations.start(cloud, share, new_share_type_id=only_alpha)
    cloud.settle()
    shown = cloud.api.show(share)
    assert (shown['status'], shown['task_state']) == ('available', 'migration_error')
    check_usage(cloud, 1, 0, only_alpha)


def test_the_old_type_does_not_restrict_the_destination(cloud):
    only_alpha = migrations.create_type(cloud, 'only alpha', share_backend_name='alpha')
    share = cloud.create_share(share_type=only_alpha)
    migrations.start(cloud, share)
    cloud.settle()
    assert migrations.task_state(cloud, share) == 'migration_error'
    only_beta = migrations.create_type(cloud, 'only beta', share_backend_name='beta')
    start(cloud, share, only_beta)
    migrations.complete(cloud, share)
    cloud.settle()
    assert migrations.shown_type(cloud, share) == only_beta
    cloud.check_invariants()


def test_the_new_type_is_in_use_before_the_destination_exists(cloud, share, gold):
    migrations.start(cloud, share, new_share_type_id=gold)
    cloud.api.request('DELETE', f'/types/{gold}', expect=400)
    cloud.settle()
    migrations.complete(cloud, share)
    cloud.settle()
    cloud.api.request('DELETE', f'/types/{gold}', expect=400)
    cloud.api.request('DELETE', f'/types/{TYPE_ID}', expect=202)
    cloud.check_invariants()


def test_the_share_gets_the_qos_type_of_its_new_type(cloud, share):
    cloud.api.request('POST', '/qos-types', {'qos_type': {'name': 'fast'}}, expect=200)
    gold = migrations.create_type(cloud, default_qos_type='fast')
    (qos,) = cloud.api.get('/qos-types')['qos_types']

    def qos_of_instances():
        return {
            row.host: row.qos_type_id
            for row in cloud.db.read(
                lambda session: session.rows(
                    sa.select(INSTANCE.c.host, INSTANCE.c.qos_type_id)
                )
            )
        }

    start(cloud, share, gold)
    assert qos_of_instances() == {
        'node@alpha#pool': None,
        migrations.DESTINATION: qos['id'],
    }
    migrations.complete(cloud, share)
    cloud.settle()
    assert qos_of_instances() == {migrations.DESTINATION: qos['id']}


def test_a_new_type_with_an_unknown_qos_type_is_refused(cloud, share):
    gold = migrations.create_type(cloud, default_qos_type='moon')
    migrations.start(cloud, share, new_share_type_id=gold, expect=400)
    assert migrations.task_state(cloud, share) is None


# Snapshots


PRESERVE = {'preserve_snapshots': True}


@pytest.fixture
@prepared
def with_snapshots(cloud, share):
    """The share, with two snapshots of different sizes."""
    snapshots.create_available(cloud, share)
    cloud.api.act(share, 'extend', {'new_size': LARGE})
    cloud.settle()
    snapshots.create_available(cloud, share)
    return share


def check_charges(cloud, *types):
    """Assert that these types are charged for all, the project once."""
    for type_id in types:
        assert used_of(cloud, type_id) == (1, LARGE)
        assert used_of(cloud, type_id, *OF_SNAPSHOTS) == (2, SIZE + LARGE)
    for resource, used in zip(OF_SNAPSHOTS, (2, SIZE + LARGE), strict=True):
        assert cloud.usage(resource) == (used, 0)


def run_and_recount(cloud):
    """Run all work; usage equals a recount after each step."""
    while True:
        assert cloud.db.read(recount.differences) == []
        if not cloud.step():
            break
    cloud.settle()
    cloud.check_invariants()


def start_with_snapshots(cloud, share, gold, **options):
    migrations.start(cloud, share, new_share_type_id=gold, **PRESERVE, **options)
    check_charges(cloud, TYPE_ID, gold)
    run_and_recount(cloud)


def test_snapshots_are_charged_to_both_types_until_the_end(cloud, with_snapshots, gold):
    start_with_snapshots(cloud, with_snapshots, gold)
    check_charges(cloud, TYPE_ID, gold)
    migrations.complete(cloud, with_snapshots)
    run_and_recount(cloud)
    check_charges(cloud, gold)
    assert used_of(cloud, TYPE_ID) == (0, 0)
    assert used_of(cloud, TYPE_ID, *OF_SNAPSHOTS) == (0, 0)
    shown = cloud.api.show(with_snapshots)
    assert (shown['host'], shown['share_type']) == (migrations.DESTINATION, gold)
    for one in cloud.api.get('/snapshots/detail')['snapshots']:
        assert one['status'] == 'available'
        snapshots.delete(cloud, one['id'])
    run_and_recount(cloud)
    assert used_of(cloud, gold, *OF_SNAPSHOTS) == (0, 0)


def test_type_is_changed_there_and_back_with_snapshots(cloud, with_snapshots, gold):
    """Whichever of the two types comes first."""
    start_with_snapshots(cloud, with_snapshots, gold)
    migrations.complete(cloud, with_snapshots)
    run_and_recount(cloud)
    start_with_snapshots(cloud, with_snapshots, TYPE_ID, host='node@alpha#pool')
    migrations.complete(cloud, with_snapshots)
    run_and_recount(cloud)
    check_charges(cloud, TYPE_ID)
    assert used_of(cloud, gold, *OF_SNAPSHOTS) == (0, 0)


def cancel(cloud, share, gold):
    start_with_snapshots(cloud, share, gold)
    migrations.cancel(cloud, share)


def fail_at_once(cloud, share, gold):
    cloud.driver('alpha').fail_next('migration_start')
    start_with_snapshots(cloud, share, gold)


def fail_to_copy(cloud, share, gold):
    cloud.driver('alpha').fail_next('migration_continue')
    start_with_snapshots(cloud, share, gold)


def leave_remains(cloud, share, gold):
    cloud.driver('alpha').fail_next('migration_cancel', None)
    cancel(cloud, share, gold)
    cloud.settle()
    check_charges(cloud, TYPE_ID)
    found = cloud.api.get(f'/shares/{share}/instances')['share_instances']
    (remains,) = [one for one in found if one['status'] == 'error']
    cloud.api.request(
        'POST',
        f'/share_instances/{remains["id"]}/action',
        {'force_delete': None},
        expect=202,
    )


def reset(cloud, share, gold):
    start_with_snapshots(cloud, share, gold)
    migrations.act(cloud, share, 'reset_task_state', {'task_state': 'migration_error'})


def find_no_destination(cloud, share, gold):
    migrations.set_disabled(cloud, 'beta', True)
    start_with_snapshots(cloud, share, gold)


@pytest.mark.parametrize(
    'end',
    [cancel, fail_at_once, fail_to_copy, leave_remains, reset, find_no_destination],
)
def test_a_new_type_that_is_not_reached_returns_what_snapshots_took(
    cloud, with_snapshots, gold, end
):
    end(cloud, with_snapshots, gold)
    run_and_recount(cloud)
    check_charges(cloud, TYPE_ID)
    assert used_of(cloud, gold) == (0, 0)
    assert used_of(cloud, gold, *OF_SNAPSHOTS) == (0, 0)
    assert migrations.shown_type(cloud, with_snapshots) == TYPE_ID
    for one in cloud.api.get('/snapshots/detail')['snapshots']:
        assert one['status'] == 'available'
        snapshots.delete(cloud, one['id'])
    run_and_recount(cloud)
    assert used_of(cloud, TYPE_ID, *OF_SNAPSHOTS) == (0, 0)


def test_a_failed_second_phase_returns_what_snapshots_took(cloud, with_snapshots, gold):
    start_with_snapshots(cloud, with_snapshots, gold)
    cloud.driver('alpha').fail_next('migration_complete', None)
    migrations.complete(cloud, with_snapshots)
    cloud.settle()
    check_charges(cloud, TYPE_ID)
    assert used_of(cloud, gold, *OF_SNAPSHOTS) == (0, 0)
    assert cloud.db.read(recount.differences) == []


@pytest.mark.parametrize(
    'limits', [{'snapshots': 1}, {'snapshot_gigabytes': 2 * SIZE}], ids=str
)
def test_limits_of_the_new_type_apply_to_snapshots(cloud, with_snapshots, gold, limits):
    limit_type(cloud, **limits)
    migrations.start(
        cloud, with_snapshots, new_share_type_id=gold, expect=413, **PRESERVE
    )
    check_charges(cloud, TYPE_ID)
    assert used_of(cloud, gold) == (0, 0)
    for one in cloud.api.get('/snapshots/detail')['snapshots']:
        assert one['status'] == 'available'
    cloud.check_invariants()


def test_snapshots_need_support_of_the_new_type(cloud, with_snapshots):
    other = migrations.create_type(cloud)
    answer = migrations.start(
        cloud, with_snapshots, new_share_type_id=other, expect=400, **PRESERVE
    )
    assert 'does not support the snapshots' in answer.text
    assert cloud.api.show(with_snapshots)['status'] == 'available'


def test_rules_of_snapshots_need_support_of_the_new_type(cloud):
    snapshots.enable_snapshot_features(cloud)
    share = migrations.create_on_alpha(cloud)
    snapshots.act(
        cloud,
        snapshots.create_available(cloud, share),
        'allow_access',
        {'access_type': 'ip', 'access_to': '10.0.0.1'},
    )
    cloud.settle()
    other = migrations.create_type(cloud, snapshot_support='True')
    answer = migrations.start(
        cloud, share, new_share_type_id=other, expect=400, **PRESERVE
    )
    assert 'does not support the access rules' in answer.text
    gold = migrations.create_type(cloud, 'gold too', **GOLD)
    migrations.start(cloud, share, new_share_type_id=gold, **PRESERVE)


# Failures


@pytest.mark.parametrize('method', ['migration_start', 'migration_continue'])
def test_a_failed_first_phase_releases_the_new_type(cloud, share, gold, method):
    cloud.driver('alpha').fail_next(method)
    migrations.start(cloud, share, new_share_type_id=gold)
    cloud.settle()
    assert migrations.task_state(cloud, share) == 'migration_error'
    assert migrations.shown_type(cloud, share) == TYPE_ID
    check_usage(cloud, 1, 0, gold)


def test_a_failed_second_phase_keeps_the_type(cloud, share, gold):
    start(cloud, share, gold)
    cloud.driver('alpha').fail_next('migration_complete', None)
    migrations.complete(cloud, share)
    cloud.settle()
    assert migrations.shown_type(cloud, share) == TYPE_ID
    assert set(types_of_instances(cloud).values()) == {TYPE_ID}
    assert used_of(cloud, TYPE_ID) == (1, SIZE)
    assert used_of(cloud, gold) == (0, 0)


def test_remains_on_the_destination_are_not_charged_to_the_new_type(cloud, share, gold):
    start(cloud, share, gold)
    cloud.driver('alpha').fail_next('migration_cancel', None)
    migrations.cancel(cloud, share)
    cloud.settle()
    assert set(types_of_instances(cloud).values()) == {TYPE_ID}
    check_usage(cloud, 1, 0, gold)


def test_remains_on_the_source_are_not_charged_to_the_old_type(cloud, gold):
    share = host_assisted.create(cloud)
    start(cloud, share, gold, **COPY)
    cloud.driver('alpha').fail_next('delete_share', None)
    migrations.complete(cloud, share)
    cloud.settle()
    shown = cloud.api.show(share)
    assert (shown['host'], shown['share_type']) == (migrations.DESTINATION, gold)
    assert set(types_of_instances(cloud).values()) == {gold}
    assert used_of(cloud, TYPE_ID) == (0, 0)
    cloud.check_invariants()


def test_a_reset_task_state_releases_the_new_type(cloud, share, gold):
    start(cloud, share, gold)
    migrations.act(cloud, share, 'reset_task_state', {'task_state': 'migration_error'})
    cloud.settle()
    check_usage(cloud, 1, 0, gold)


@pytest.mark.parametrize('steps', [0, 1])
def test_a_reset_before_the_copy_releases_the_new_type(cloud, share, gold, steps):
    migrations.start(cloud, share, new_share_type_id=gold)
    for _ in range(steps):
        cloud.step()
    migrations.act(cloud, share, 'reset_task_state', {'task_state': 'migration_error'})
    cloud.settle()
    assert cloud.api.show(share)['status'] == 'available'
    check_usage(cloud, 1, 0, gold)


# Races


@sampling.dialects
def test_of_concurrent_changes_those_within_the_limit_are_accepted(
    database_url, tmp_path
):
    cloud = Cloud(tmp_path, url=database_url, extra_conf=migrations.SHORT_POLL_INTERVAL)
    gold = migrations.create_type(cloud, **GOLD)
    limit_type(cloud, shares=2)
    ids = [migrations.create_on_alpha(cloud) for _ in range(4)]
    codes = status_codes(
        *[
            partial(migrations.start, cloud, id, new_share_type_id=gold, expect=None)
            for id in ids
        ],
        rng=cloud.rng,
    )
    assert sorted(codes) == [202, 202, 413, 413]
    cloud.settle()
    cloud.check_invariants()
    moved = [id for id, code in zip(ids, codes, strict=True) if code == 202]
    codes = status_codes(
        partial(migrations.cancel, cloud, moved[0], expect=None),
        partial(migrations.complete, cloud, moved[0], expect=None),
        partial(migrations.complete, cloud, moved[1], expect=None),
        partial(migrations.complete, cloud, moved[1], expect=None),
        rng=cloud.rng,
    )
    assert sorted(codes[:2]) == sorted(codes[2:]) == [202, 400]
    cloud.settle()
    cloud.check_invariants()
    completed = 1 + (codes[1] == 202)
    assert used_of(cloud, gold) == (completed, completed)
    assert used_of(cloud, TYPE_ID) == (4 - completed, 4 - completed)
    cloud.db.dispose()
