"""Access rules of replicated shares: on all replicas, or on none."""

import pytest
import sqlalchemy as sa

from manila_lite import exception
from manila_lite.db.models import access
from manila_lite.share.drivers.dummy import driver as dummy
from tests.support import unserved
from tests.support.access import ShareRules
from tests.support.replicated import backend_of

MAPPING = access.InstanceAccessRule.__table__
EVERYWHERE = {'alpha': 'active', 'beta': 'active'}


@pytest.fixture
def rules(cloud):
    """The rules of a share active on alpha, with a replica on beta."""
    return mirrored(cloud)


def mirrored(cloud):
    share_id = cloud.create_share_on('alpha')
    cloud.replicate(share_id, 'beta')
    return ShareRules(cloud, share_id)


def replica_on(cloud, share_id, backend):
    return next(
        row.id for row in cloud.replicas(share_id) if backend_of(row) == backend
    )


def access_calls(cloud, backend):
    return [
        call
        for call in cloud.driver(backend).access_calls
        if call.method == 'update_access'
    ]


def let_in(cloud, backend, share_id):
    found = dummy.access_inventory(cloud.folder / 'dummy' / backend)
    return {
        (to, level)
        for _, to, level in found.get(replica_on(cloud, share_id, backend), ())
    }


def mapped(cloud, rules, access_id):
    """Return the states of a rule by the back end of the replica."""
    names = {row.id: backend_of(row) for row in cloud.replicas(rules.share_id)}
    return {
        names[row.share_instance_id]: row.state
        for row in cloud.rows(
            sa.select(MAPPING).where(MAPPING.c.access_id == access_id)
        )
    }


@pytest.mark.facts('add-cast-rules-to-readonly-field.3')
@pytest.mark.parametrize(
    'style, elsewhere',
    [
        ('readable', {('10.0.0.1', 'ro')}),
        ('dr', set()),
        ('writable', {('10.0.0.1', 'rw')}),
    ],
)
def test_rule_applies_to_all_replicas(build_cloud, style, elsewhere):
    cloud = build_cloud(style)
    rules = mirrored(cloud)
    access_id = rules.allow()
    assert mapped(cloud, rules, access_id) == {
        'alpha': 'queued_to_apply',
        'beta': 'queued_to_apply',
    }
    cloud.settle()
    assert mapped(cloud, rules, access_id) == EVERYWHERE
    assert let_in(cloud, 'alpha', rules.share_id) == {('10.0.0.1', 'rw')}
    assert let_in(cloud, 'beta', rules.share_id) == elsewhere
    cloud.check_invariants()
    rules.deny(access_id)
    cloud.settle()
    assert rules.known == 0
    assert let_in(cloud, 'beta', rules.share_id) == set()
    cloud.check_invariants()


def test_each_back_end_gets_a_rule_once(cloud, rules):
    access_id = rules.allow()
    cloud.settle()
    for name in ('alpha', 'beta'):
        assert [call.added for call in access_calls(cloud, name)] == [[access_id]]
    rules.deny(access_id)
    cloud.settle()
    for name in ('alpha', 'beta'):
        assert [call.deleted for call in access_calls(cloud, name)] == [[], [access_id]]


def test_rules_cannot_change_while_a_replica_is_created_or_promoted(cloud, rules):
    access_id = rules.allow()
    cloud.settle()
    for ask in (
        lambda: cloud.request_replica(rules.share_id, 'gamma'),
        lambda: cloud.ask('promote', replica_on(cloud, rules.share_id, 'beta')),
    ):
        ask()
        for change in (
            lambda: rules.allow('10.0.0.2'),
            lambda: rules.deny(access_id),
            lambda: rules.change(access_id, 'ro'),
        ):
            with pytest.raises(exception.InvalidShare):
                change()
        cloud.settle()
    assert rules.known == 1
    rules.deny(access_id)
    cloud.settle()
    assert rules.known == 0
    cloud.check_invariants()


def test_replica_in_error_blocks_old_clients_only(cloud, rules):
    cloud.ask('reset_status', replica_on(cloud, rules.share_id, 'beta'), 'error')
    rule = {'access_type': 'ip', 'access_to': '10.0.0.1'}
    cloud.api.act(rules.share_id, 'allow_access', rule, version='2.73', expect=400)
    made = cloud.api.act(
        rules.share_id, 'allow_access', rule, version='2.74', expect=200
    ).json['access']
    cloud.settle()
    assert mapped(cloud, rules, made['id']) == EVERYWHERE
    gone = {'access_id': made['id']}
    cloud.api.act(rules.share_id, 'deny_access', gone, version='2.73', expect=400)
    cloud.api.act(rules.share_id, 'deny_access', gone, version='2.74')
    cloud.settle()
    assert rules.known == 0


def test_unplaced_replica_is_ignored_by_rules(cloud, rules):
    before = rules.allow('10.0.0.1')
    cloud.settle()
    nowhere = cloud.request_replica(rules.share_id, 'alpha')  # is taken
    cloud.settle()
    assert cloud.replica(nowhere).status == 'error'
    after = rules.allow('10.0.0.2')
    cloud.settle()
    assert mapped(cloud, rules, after) == EVERYWHERE
    rules.change(before, 'ro')
    cloud.settle()
    assert let_in(cloud, 'alpha', rules.share_id) == {
        ('10.0.0.1', 'ro'),
        ('10.0.0.2', 'rw'),
    }
    for access_id in (before, after):
        rules.deny(access_id)
    cloud.settle()
    assert rules.known == 0
    cloud.ask('delete', nowhere)
    cloud.settle()
    cloud.check_invariants()


def test_rule_is_removed_with_its_last_replica(cloud, rules):
    access_id = rules.allow()
    cloud.settle()
    cloud.driver('beta').refuse_rules(lambda verb, rule: verb == 'deny')
    rules.deny(access_id)
    for _ in range(10):
        cloud.step()
    assert mapped(cloud, rules, access_id).keys() == {'beta'}
    cloud.driver('beta').refuse_rules(None)
    cloud.ask('force_delete', replica_on(cloud, rules.share_id, 'beta'))
    cloud.settle()
    assert rules.known == 0
    cloud.check_invariants()


def test_passive_replica_is_read_only_after_a_promotion(cloud, rules):
    access_id = rules.allow()
    cloud.settle()
    cloud.ask('promote', replica_on(cloud, rules.share_id, 'beta'))
    cloud.settle()
    assert let_in(cloud, 'beta', rules.share_id) == {('10.0.0.1', 'rw')}
    assert let_in(cloud, 'alpha', rules.share_id) == {('10.0.0.1', 'ro')}
    rules.deny(access_id)
    cloud.settle()
    assert rules.known == 0
    cloud.check_invariants()


def test_rule_is_shown_as_applying_until_applied_everywhere(cloud, rules):
    made = cloud.api.act(
        rules.share_id,
        'allow_access',
        {'access_type': 'ip', 'access_to': '10.0.0.1'},
        expect=200,
    ).json['access']

    def shown():
        (rule,) = cloud.api.get('/share-access-rules?share_id=' + rules.share_id)[
            'access_list'
        ]
        return (rule['state'], cloud.api.show(rules.share_id)['access_rules_status'])

    cloud.driver('beta').fail_next('update_access', times=None)
    for _ in range(6):
        cloud.step()
    assert mapped(cloud, rules, made['id'])['alpha'] == 'active'
    assert shown() == ('error', 'error')
    cloud.driver('beta').faults.clear()
    cloud.api.act(rules.share_id, 'deny_access', {'access_id': made['id']})
    cloud.settle()
    assert cloud.api.show(rules.share_id)['access_rules_status'] == 'active'
    cloud.check_invariants()


# The back end of a passive replica is out of reach


@pytest.fixture(params=['readable', 'dr'])
def outage(request, build_cloud, database_url):
    """A cloud whose rules are about to change while beta is out of reach."""
    cloud = build_cloud(request.param, url=database_url)
    rules = mirrored(cloud)
    kept = rules.allow('10.0.0.1')
    cloud.settle()
    cloud.driver('beta').make_unreachable()
    return cloud, rules, kept


def end_outage(cloud, rules):
    cloud.driver('beta').make_reachable()
    for _ in range(3):
        cloud.update()
        cloud.settle()
    replica = cloud.replica(replica_on(cloud, rules.share_id, 'beta'))
    assert (replica.status, replica.replica_state) == ('available', 'in_sync')


@pytest.mark.parametrize('noticed', [True, False])
def test_rules_changed_during_an_outage_are_sent_again(outage, noticed):
    cloud, rules, denied = outage
    allowed = rules.allow('10.0.0.2')
    rules.deny(denied)
    cloud.run_pending()
    if noticed:
        for backend in cloud.share.backends:
            backend.endpoints.replica_updates.request_pass()
        cloud.run_pending()
    assert mapped(cloud, rules, allowed) == {'alpha': 'active', 'beta': 'error'}
    assert mapped(cloud, rules, denied) == {'beta': 'error'}
    end_outage(cloud, rules)
    assert mapped(cloud, rules, allowed) == EVERYWHERE
    assert mapped(cloud, rules, denied) == {}
    assert rules.known == 1
    level = {('10.0.0.2', 'ro')} if cloud.style == 'readable' else set()
    assert let_in(cloud, 'beta', rules.share_id) == level
    assert cloud.api.show(rules.share_id)['access_rules_status'] == 'active'
    cloud.check_invariants()


def test_rules_changed_during_an_outage_between_two_updates_are_sent_again(outage):
    """The replica was in sync before and after it."""
    cloud, rules, denied = outage
    allowed = rules.allow('10.0.0.2')
    rules.deny(denied)
    cloud.run_pending()
    assert mapped(cloud, rules, denied) == {'beta': 'error'}
    cloud.driver('beta').make_reachable()
    cloud.settle()
    assert mapped(cloud, rules, allowed) == EVERYWHERE
    assert rules.known == 1
    level = {('10.0.0.2', 'ro')} if cloud.style == 'readable' else set()
    assert let_in(cloud, 'beta', rules.share_id) == level
    cloud.check_invariants()


def test_rules_of_a_site_without_services_are_sent_when_it_is_back(cloud, rules):
    kept = rules.allow('10.0.0.1')
    cloud.settle()
    allowed = rules.allow('10.0.0.2')
    rules.deny(kept)
    unserved.lose(cloud.db, 'node@beta')
    assert cloud.scheduler.unserved_work.run_pass() == 1
    cloud.run_pending()
    assert mapped(cloud, rules, allowed)['beta'] == 'error'
    cloud.beat()
    cloud.settle()
    assert mapped(cloud, rules, allowed) == EVERYWHERE
    assert rules.known == 1
    cloud.check_invariants()


def test_rule_that_is_refused_is_not_sent_again_and_again(cloud, rules):
    cloud.driver('beta').refuse_rules(lambda verb, rule: verb == 'allow')
    refused = rules.allow()
    cloud.settle()
    calls = len(access_calls(cloud, 'beta'))
    for _ in range(3):
        cloud.update()
        cloud.settle()
    assert mapped(cloud, rules, refused) == {'alpha': 'active', 'beta': 'error'}
    assert len(access_calls(cloud, 'beta')) == calls
