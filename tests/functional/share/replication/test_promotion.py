"""Promotion of replicas."""

import pytest
import sqlalchemy as sa

from manila_lite import exception
from manila_lite.db.models import services, shares
from manila_lite.db.queries.recovery import recovery
from tests.functional.share.replication.replica_states import (
    let_in,
    messages,
    refused,
    update_all,
)
from tests.support.api_client import ApiClient
from tests.support.replicated import MEMBER

MESSAGE = services.Message.__table__
EXPORT = shares.ExportLocation.__table__
PASSIVE_STYLES = ('readable', 'dr')


@pytest.mark.facts('add-quiesce-wait-time.1', 'share-replication')
@pytest.mark.parametrize('style', PASSIVE_STYLES)
def test_promoted_replica_takes_over(build_cloud, style):
    cloud = build_cloud(style)
    share_id = cloud.create_share_on('alpha')
    cloud.allow(share_id)
    replica_id = cloud.replicate(share_id, 'beta')
    other_id = cloud.replicate(share_id, 'gamma')
    old_id = cloud.active(share_id).id
    assert cloud.ask('promote', replica_id, ctx=MEMBER, quiesce_wait_time=7)
    assert cloud.replica(replica_id).status == 'replication_change'
    cloud.settle()
    assert cloud.driver('beta').last_quiesce_wait == 7
    assert cloud.active(share_id).id == replica_id
    assert {row.status for row in cloud.replicas(share_id)} == {'available'}
    assert cloud.replica(old_id).replica_state != 'active'
    assert let_in(cloud, 'beta', replica_id) == {('10.0.0.1', 'rw')}
    if style == 'readable':
        for name, id in (('alpha', old_id), ('gamma', other_id)):
            assert let_in(cloud, name, id) == {('10.0.0.1', 'ro')}
    cloud.check_invariants()
    update_all(cloud, share_id)
    assert cloud.replica(old_id).replica_state == 'in_sync'
    cloud.check_invariants()


@pytest.mark.facts('LP1664201')
@pytest.mark.parametrize('style', PASSIVE_STYLES)
@pytest.mark.parametrize('works', [True, False])
def test_no_two_replicas_are_active_during_a_promotion(build_cloud, style, works):
    cloud = build_cloud(style)
    share_id = cloud.create_share_on('alpha')
    replica_id = cloud.replicate(share_id, 'beta')
    cloud.replicate(share_id, 'gamma')
    if not works:
        cloud.driver('beta').fail_next('promote_replica')
    seen = []

    def look(name):
        if name != 'committed':
            return
        cloud.db.on_step = lambda name: None
        states = cloud.states(share_id).values()
        seen.append([state for _, state in states].count('active'))
        cloud.db.on_step = look

    cloud.db.on_step = look
    cloud.ask('promote', replica_id)
    while cloud.step():
        pass
    assert len(seen) > 1
    assert set(seen) == {1}
    assert (cloud.active(share_id).id == replica_id) is works


def paths(api, path, version='2.99'):
    return {row['path'] for row in api.get(path, version=version)['export_locations']}


def open_paths(cloud, replica_id):
    """Return the paths that the back end has reported for tenants."""
    return {
        row.path
        for row in cloud.rows(
            sa.select(EXPORT.c.path).where(
                EXPORT.c.share_instance_id == replica_id,
                EXPORT.c.is_admin_only.is_(False),
            )
        )
    }


@pytest.mark.parametrize('style', PASSIVE_STYLES)
def test_tenants_see_the_exports_that_they_can_use(build_cloud, style):
    """Passive replicas of type dr serve no clients."""
    cloud = build_cloud(style)
    share_id = cloud.create_share_on('alpha')
    passive, active = cloud.replicate(share_id), cloud.active(share_id).id
    tenant = ApiClient(cloud, roles='member,reader')
    for _ in range(2):
        of = {id: f'/share-replicas/{id}/export-locations' for id in (passive, active)}
        known = {id: open_paths(cloud, id) for id in of}
        assert all(known.values())
        for id, path in of.items():
            assert known[id] < paths(cloud.api, path)
        assert paths(tenant, of[active]) == known[active]
        assert paths(tenant, of[passive]) == (
            known[passive] if style == 'readable' else set()
        )
        assert paths(tenant, f'/shares/{share_id}/export_locations', '2.46') == paths(
            tenant, of[active]
        ) | paths(tenant, of[passive])
        assert paths(tenant, f'/shares/{share_id}/export_locations') == known[active]
        cloud.ask('promote', passive)
        cloud.settle()
        passive, active = active, passive
        assert cloud.active(share_id).id == active


def test_promotion_of_the_active_replica_changes_nothing(cloud, share_id):
    cloud.replicate(share_id)
    assert cloud.ask('promote', cloud.active(share_id).id) is False
    assert not cloud.step()


def test_invalid_promotions_are_refused(cloud, share_id):
    first, second = (cloud.replicate(share_id) for _ in range(2))
    cloud.ask('reset_replica_state', first, 'out_of_sync')
    with pytest.raises(exception.PromotionNeedsAdmin):
        cloud.ask('promote', first, ctx=MEMBER)
    cloud.ask('reset_status', first, 'error')
    refused('must be available', cloud.ask, 'promote', first)
    cloud.ask('reset_status', first, 'available')
    cloud.ask('promote', second)
    refused('being promoted', cloud.ask, 'promote', first)
    refused('being promoted', cloud.ask, 'delete', first)
    refused('being promoted', cloud.ask, 'force_delete', second)
    refused('being promoted', cloud.request_replica, share_id)
    cloud.settle()
    cloud.check_invariants()


def test_replica_takes_over_from_a_lost_one(cloud, share_id):
    replica_id = cloud.replicate(share_id, 'beta')
    old_id = cloud.active(share_id).id
    cloud.ask('reset_status', old_id, 'error')
    cloud.ask('promote', replica_id)
    cloud.settle()
    assert cloud.states(share_id) == {
        'alpha': ('error', 'out_of_sync'),
        'beta': ('available', 'active'),
    }
    cloud.check_invariants()


def test_promotion_leaves_nothing_to_do_about_a_replica_without_a_back_end(
    cloud, share_id
):
    """A fourth one fits nowhere; no service would ever resync its rules."""
    cloud.allow(share_id)
    replica_id = cloud.replicate(share_id, 'beta')
    cloud.replicate(share_id, 'gamma')
    fourth = cloud.request_replica(share_id)
    cloud.settle()
    assert cloud.replica(fourth).host is None
    cloud.ask('promote', replica_id)
    cloud.settle()
    assert cloud.active(share_id).id == replica_id
    for kind in recovery.KINDS:
        assert not cloud.db.read(recovery.list_in_flight, kind, most=9)


def test_failed_promotion_leaves_all_replicas_in_error(cloud, share_id):
    replica_id = cloud.replicate(share_id, 'beta')
    cloud.replicate(share_id, 'gamma')
    cloud.driver('beta').fail_next('promote_replica')
    cloud.ask('promote', replica_id)
    cloud.crash_at(None)
    while cloud.step():
        pass
    assert cloud.states(share_id) == {
        'alpha': ('error', 'active'),
        'beta': ('error', 'error'),
        'gamma': ('error', 'out_of_sync'),
    }
    assert messages(cloud) == [('004', '001')]


def test_without_an_active_replica_nothing_is_promoted(cloud, share_id):
    replica_id = cloud.replicate(share_id, 'beta')
    cloud.ask('promote', replica_id)
    cloud.db.write(
        lambda session: session.run(
            sa.text(
                "UPDATE share_instances SET replica_state = 'out_of_sync', "
                'sole_active_of = NULL, cast_rules_to_readonly = 1 '
                "WHERE replica_state = 'active'"
            )
        )
    )
    cloud.settle()
    assert cloud.states(share_id)['beta'] == ('available', 'in_sync')
    assert messages(cloud) == [('004', '006')]


def test_writable_replicas_are_not_promoted(build_cloud):
    cloud = build_cloud('writable')
    share_id = cloud.create_share_on('alpha')
    replica_id = cloud.replicate(share_id)
    assert cloud.ask('promote', replica_id) is False
    cloud.driver('gamma').fail_next('create_replica')
    third = cloud.request_replica(share_id, 'gamma')
    cloud.settle()
    refused('writable', cloud.ask, 'promote', third)


def test_promotion_overtaken_by_reset_status_fails(cloud, share_id):
    replica_id = cloud.replicate(share_id, 'beta')
    cloud.ask('promote', replica_id)
    cloud.pause_at(
        'after promote_replica',
        lambda: cloud.ask('reset_status', replica_id, 'available'),
    )
    while cloud.step():
        pass
    assert cloud.states(share_id) == {
        'alpha': ('error', 'active'),
        'beta': ('error', 'error'),
    }
