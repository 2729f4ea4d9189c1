"""Replicas are created: request bodies, refusals, failures and quota."""

import pytest
import sqlalchemy as sa

from manila_lite.db.models import services as service_models, shares
from tests.functional.api.conftest import member_of
from tests.functional.api.replica_client import (
    UNKNOWN,
    create_replica,
    list_replica_ids,
    list_replicas,
    show_replica,
)
from tests.functional.api.samples.replicas import HOSTS
from tests.support.share_servers import create_network_with_subnets

SECTION = """
replication_domain = house
dummy_driver_replication_type = readable
"""
INSTANCE = shares.ShareInstance.__table__


@pytest.fixture
def cloud(build_cloud):
    return build_cloud(backend_conf=SECTION)


@pytest.fixture
def share(cloud, member, make_type):
    """Create an available share of a type with replication."""
    make_type('mirrored', replication_type='readable')
    return new_share(cloud, member)


def new_share(cloud, api, kind='mirrored', **body):
    share_id = api.create(share_type=kind, **body)['id']
    cloud.settle()
    assert api.show(share_id)['status'] == 'available'
    return share_id


def message(answer):
    (fault,) = answer.values()
    return fault['message']


def reset(admin, share, status):
    admin.act(share, 'reset_status', {'status': status})


# Answers


def test_new_replica_is_answered_before_it_is_placed(cloud, admin, member, share):
    created = create_replica(member, share)
    assert (created['share_id'], created['status'], created['replica_state']) == (
        share,
        'creating',
        'out_of_sync',
    )
    shown = show_replica(admin, created['id'])
    assert (
        shown['host'],
        shown['availability_zone'],
        shown['share_server_id'],
        shown['metadata'],
    ) == (None, None, None, {})
    assert shown['cast_rules_to_readonly'] is True


@pytest.mark.facts('share-replication')
def test_replica_is_placed_on_another_pool(cloud, admin, member, share):
    created = create_replica(member, share)
    cloud.settle()
    shown = show_replica(admin, created['id'])
    assert (shown['status'], shown['replica_state']) == ('available', 'in_sync')
    assert {shown['host'], admin.show(share)['host']} == set(HOSTS)
    assert member.show(share)['has_replicas']


@pytest.mark.facts('manage-unmanage-replicated.1')
def test_managed_share_is_the_active_replica(cloud, admin, make_type):
    make_type('mirrored', replication_type='readable')
    path = cloud.driver('alpha').add_unmanaged_share('found', size=3)
    body = {
        'protocol': 'NFS',
        'export_path': path,
        'service_host': 'node@alpha#pool',
        'share_type': 'mirrored',
    }
    share = admin.request('POST', '/shares/manage', {'share': body}, expect=200).json[
        'share'
    ]['id']
    cloud.settle()
    (active,) = list_replicas(admin, f'share_id={share}')
    assert (active['status'], active['replica_state']) == ('available', 'active')
    created = create_replica(admin, share)
    cloud.settle()
    assert show_replica(admin, created['id'])['replica_state'] == 'in_sync'


@pytest.mark.facts('LP1634734')
@pytest.mark.parametrize(
    'key', ['share_backend_name', 'capabilities__share_backend_name']
)
def test_name_of_the_back_end_is_that_of_the_first_replica(
    cloud, admin, member, make_type, key
):
    make_type('named', replication_type='readable', **{key: 'alpha'})
    share = new_share(cloud, member, 'named')
    assert admin.show(share)['host'] == 'node@alpha#pool'
    created = create_replica(member, share)
    cloud.settle()
    shown = show_replica(admin, created['id'])
    assert (shown['status'], shown['host']) == ('available', 'node@beta#pool')


# Request bodies


def test_zone_is_the_requested_one(cloud, member, share):
    created = create_replica(member, share, availability_zone='nova')
    assert created['availability_zone'] == 'nova'


def test_unknown_zone_is_refused(member, share):
    answer = create_replica(member, share, expect=400, availability_zone='moon')
    assert 'moon' in message(answer)
    assert len(list_replica_ids(member)) == 1


@pytest.mark.facts('bp-share-type-supported-azs.2')
def test_zone_that_the_type_does_not_allow_is_refused(cloud, member, make_type):
    zone = service_models.AvailabilityZone.__table__
    cloud.db.write(
        lambda session: session.run(
            sa.insert(zone), id=UNKNOWN, name='moon', created_at=session.now
        )
    )
    make_type('here', replication_type='readable', availability_zones='nova')
    share = new_share(cloud, member, 'here')
    create_replica(member, share, expect=400, availability_zone='moon')
    create_replica(member, share, availability_zone='nova')


@pytest.mark.facts('scheduler_hints_share_replica.1')
@pytest.mark.parametrize(
    'version, obeyed', [('2.66', False), ('2.67', True), ('2.99', True)]
)
def test_host_is_obeyed_from_2_67_and_ignored_below(
    cloud, admin, share, version, obeyed
):
    created = create_replica(
        admin,
        share,
        version=version,
        scheduler_hints={'only_host': admin.show(share)['host']},
    )
    cloud.settle()
    # The pool already has a replica, so no other can be placed there.
    assert show_replica(admin, created['id'])['status'] == (
        'error' if obeyed else 'available'
    )


@pytest.mark.facts('scheduler_hints_share_replica.2')
@pytest.mark.parametrize('host', ['the pool of the share', 'nowhere@none#pool'])
def test_host_of_members_is_ignored(cloud, admin, member, share, host):
    if host == 'the pool of the share':
        host = admin.show(share)['host']
    created = create_replica(member, share, scheduler_hints={'only_host': host})
    cloud.settle()
    assert show_replica(member, created['id'])['status'] == 'available'


@pytest.mark.facts('LP1925486.2')
def test_network_is_refused_below_2_72(cloud, member, share):
    network, _ = create_network_with_subnets(member)
    answer = create_replica(
        member, share, expect=400, version='2.71', share_network_id=network
    )
    assert 'share_network_id' in message(answer)


def test_unknown_network_is_refused(cloud, member, stranger, share):
    foreign, _ = create_network_with_subnets(stranger)
    for network in (UNKNOWN, foreign):
        answer = create_replica(member, share, expect=400, share_network_id=network)
        assert network in message(answer)
    assert len(list_replica_ids(member)) == 1


def test_network_is_refused_for_types_without_servers(member, share):
    network, _ = create_network_with_subnets(member)
    create_replica(member, share, expect=400, share_network_id=network)


@pytest.mark.parametrize('version, kept', [('2.94', False), ('2.95', True)])
def test_metadata_is_stored_from_2_95_and_ignored_below(member, share, version, kept):
    values = {'color': 'red'}
    created = create_replica(member, share, version=version, metadata=values)
    assert created.get('metadata') == (values if kept else None)
    assert show_replica(member, created['id'])['metadata'] == (values if kept else {})


@pytest.mark.parametrize(
    'body',
    [
        {'scheduler_hints': 'node'},
        {'scheduler_hints': {'only_host': 1}},
        {'metadata': {'a': 1}},
        {'metadata': {'': 'x'}},
        {'metadata': 'x'},
        {'availability_zone': 1},
        {'share_network_id': 1},
    ],
)
def test_invalid_body_is_refused(member, share, body):
    create_replica(member, share, expect=400, **body)
    assert len(list_replica_ids(member)) == 1


def test_nulls_count_as_missing(member, share):
    create_replica(
        member,
        share,
        availability_zone=None,
        scheduler_hints=None,
        share_network_id=None,
        metadata=None,
    )


def test_body_without_its_wrapper_is_422(member, share):
    member.request(
        'POST', '/share-replicas', {'replica': {'share_id': share}}, expect=422
    )


def test_share_id_is_required(member):
    member.request('POST', '/share-replicas', {'share_replica': {}}, expect=400)


# Shares


def test_foreign_share_answers_like_an_unknown_one(stranger, share):
    answers = {
        message(create_replica(stranger, id, expect=404)).replace(id, '')
        for id in (share, UNKNOWN)
    }
    assert len(answers) == 1


def test_public_share_is_replicated_by_its_project_only(cloud, admin, stranger, share):
    admin.request('PUT', f'/shares/{share}', {'share': {'is_public': True}}, expect=200)
    create_replica(stranger, share, expect=403)


def test_reader_cannot_create_replicas(cloud, share):
    reader = member_of(cloud)
    reader.headers['X-Roles'] = 'reader'
    create_replica(reader, share, expect=403)
    assert len(list_replica_ids(reader)) == 1


def test_type_of_the_share_must_support_replication(cloud, member):
    share = cloud.create_share()
    assert 'replication_type' in message(create_replica(member, share, expect=400))


@pytest.mark.parametrize('status', ['error', 'creating', 'deleting', 'error_deleting'])
def test_active_replica_must_be_available(admin, member, share, status):
    reset(admin, share, status)
    create_replica(member, share, expect=400)
    assert len(list_replica_ids(member)) == 1


def test_share_in_the_recycle_bin_is_refused(member, share):
    member.act(share, 'soft_delete')
    create_replica(member, share, expect=403)


def test_busy_share_is_refused(cloud, member, share):
    table = shares.Share.__table__
    cloud.db.write(
        lambda session: session.run(
            sa.update(table)
            .where(table.c.id == share)
            .values(task_state='migration_in_progress')
        )
    )
    create_replica(member, share, expect=400)


def test_share_in_a_group_is_refused(cloud, member, share):
    table = shares.Share.__table__
    cloud.db.write(
        lambda session: session.run(
            sa.update(table).where(table.c.id == share).values(share_group_id=UNKNOWN)
        )
    )
    create_replica(member, share, expect=400)


def test_request_is_refused_while_a_replica_is_promoted(cloud, member, share):
    created = create_replica(member, share)
    cloud.settle()
    cloud.db.write(
        lambda session: session.run(
            sa.update(INSTANCE)
            .where(INSTANCE.c.id == created['id'])
            .values(status='replication_change')
        )
    )
    create_replica(member, share, expect=400)


# Failures


def test_failure_is_reported_for_the_replica(cloud, admin, member, share):
    actions = []
    for why in ('nowhere', 'back end'):
        if why == 'nowhere':
            created = create_replica(
                admin, share, scheduler_hints={'only_host': admin.show(share)['host']}
            )
        else:
            for name in ('alpha', 'beta'):
                cloud.driver(name).faults.fail_next('create_replica')
            created = create_replica(member, share)
        cloud.settle()
        shown = show_replica(member, created['id'])
        assert (shown['status'], shown['replica_state']) == ('error', 'error')
        (one,) = member.get(f'/messages?resource_id={created["id"]}')['messages']
        assert one['resource_type'] == 'SHARE_REPLICA'
        actions.append(one['action_id'])
    assert actions == ['001', '002']
    assert member.show(share)['status'] == 'available'
    assert member.get(f'/messages?resource_id={share}')['messages'] == []


# Quota


@pytest.mark.parametrize('limit', [{'share_replicas': 1}, {'replica_gigabytes': 3}])
@pytest.mark.facts('add-tenant-quota-for-share-replicas.1', 'maxTotalReplicaGigabytes')
def test_quota_counts_every_replica(cloud, admin, member, make_type, limit):
    make_type('mirrored', replication_type='readable')
    share = new_share(cloud, member, size=2)
    admin.request('PUT', '/quota-sets/project', {'quota_set': limit}, expect=200)
    create_replica(member, share, expect=413)
    assert len(list_replica_ids(member)) == 1
    admin.request(
        'PUT',
        '/quota-sets/project',
        {'quota_set': {key: value * 2 for key, value in limit.items()}},
        expect=200,
    )
    create_replica(member, share)
    used = member.get('/limits')['limits']['absolute']
    assert (used['totalShareReplicasUsed'], used['totalReplicaGigabytesUsed']) == (2, 4)
    assert (used['totalSharesUsed'], used['totalShareGigabytesUsed']) == (1, 2)
    detail = member.get('/quota-sets/project/detail')['quota_set']
    assert (
        detail['share_replicas']['in_use'] + detail['share_replicas']['reserved'] == 2
    )
    below = member.get('/limits', version='2.52')['limits']['absolute']
    assert 'totalShareReplicasUsed' not in below


@pytest.mark.facts('add-tenant-quota-for-share-replicas.1', 'maxTotalReplicaGigabytes')
@pytest.mark.parametrize('limit', [{'share_replicas': 0}, {'replica_gigabytes': 1}])
def test_share_of_a_replicated_type_is_its_first_replica(
    cloud, admin, member, make_type, limit
):
    make_type('mirrored', replication_type='readable')
    admin.request('PUT', '/quota-sets/project', {'quota_set': limit}, expect=200)
    member.create(share_type='mirrored', size=2, expect=413)
    member.create(size=2)  # of another type
    admin.request('DELETE', '/quota-sets/project', expect=202)
    new_share(cloud, member, size=2)
    assert cloud.usage('share_replicas') == (1, 0)
    assert cloud.usage('replica_gigabytes') == (2, 0)
