"""Shares are created: request bodies, refusals and placement."""

import contextlib

import pytest

from tests.functional.api import differences
from tests.functional.api.conftest import create_type, member_of
from tests.functional.api.metadata_client import INVALID_ITEMS
from tests.support.databases import EACH

UNKNOWN = '00000000-0000-4000-8000-000000000000'


def refused(api, code=400, version=None, **body):
    """Return the message of the fault; check that no share was created."""
    before = api.get('/shares?all_tenants=1')['shares']
    (fault,) = api.create(expect=code, version=version, **body).values()
    assert api.get('/shares?all_tenants=1')['shares'] == before
    return fault['message']


def test_create_answers_200_and_the_share_is_creating(cloud, member):
    share = member.create(
        expect=200, name='a', description='b', metadata={'color': 'red'}
    )
    assert share['status'] == 'creating'
    assert (share['name'], share['description']) == ('a', 'b')
    assert share['metadata'] == {'color': 'red'}
    assert share['project_id'] == 'project'
    assert share['user_id'] == 'user of project'
    cloud.settle()
    assert member.show(share['id'])['status'] == 'available'


BODIES = (
    {},
    {
        'name': 'a',
        'description': 'b',
        'metadata': {'shape': 'round', 'color': 'red'},
        'size': '3',
        'share_proto': 'cifs',
        'is_public': True,
    },
    {'share_type': 'special', 'encryption_key_ref': UNKNOWN, 'name': ''},
)
VERSIONS = ('2.0', '2.8', '2.16', '2.53', '2.69', '2.80', '2.90', '2.99')


@pytest.mark.parametrize('kind', EACH)
def test_answer_is_what_is_then_shown(build_cloud, kind, shared_database):
    """It is made of what was inserted, and not read."""
    cloud = build_cloud()
    create_type(
        cloud,
        encryption_support='share',
        snapshot_support='True',
        revert_to_snapshot_support='True',
        replication_type='dr',
    )
    api = cloud.api
    with contextlib.ExitStack() as stack:
        if kind != 'sqlite':
            stack.enter_context(cloud.moved_to(shared_database(kind)))
        (zone,) = api.get('/availability-zones')['availability_zones']
        near = api.create()['id']
        others = (
            {'availability_zone': zone['id']},
            {'scheduler_hints': {'same_host': near}, 'metadata': {'color': 'red'}},
        )
        for version in VERSIONS:
            for body in (*BODIES, *others):
                share = api.create(version=version, **body)
                assert share == api.show(share['id'], version=version)


@differences.proves('required fields')
@pytest.mark.parametrize('missing', ['size', 'share_proto'])
def test_size_and_protocol_are_required(member, missing):
    body = {'share_proto': 'NFS', 'size': 1}
    del body[missing]
    answer = member.request('POST', '/shares', {'share': body}, expect=400)
    assert missing in answer.json['badRequest']['message']


def test_size_may_be_null_with_a_snapshot_only(member):
    assert 'size' in refused(member, size=None)


def test_size_may_be_a_string_of_digits(member):
    assert member.create(size='3')['size'] == 3


@pytest.mark.parametrize('size', [0, -1, '-1', 1.5, '1.5', True, 'x', 2**31])
def test_other_sizes_are_refused(member, size):
    assert 'size' in refused(member, size=size)


def test_body_without_share_is_unprocessable(member):
    member.request('POST', '/shares', {'size': 1}, expect=422)


def test_protocol_is_upper_cased(member):
    assert member.create(share_proto='nFs')['share_proto'] == 'NFS'


@pytest.mark.facts('protocol')
def test_protocol_must_be_enabled(build_cloud):
    cloud = build_cloud('enabled_share_protocols = NFS')
    assert 'share_proto' in refused(cloud.api, share_proto='CIFS')


@pytest.mark.facts('protocol')
def test_published_protocols_can_be_enabled(build_cloud):
    names = ('NFS', 'CIFS', 'GlusterFS', 'HDFS', 'CephFS', 'MAPRFS')
    cloud = build_cloud(f'enabled_share_protocols = {",".join(names)}')
    for name in names:
        share = cloud.api.create(share_proto=name)
        assert share['share_proto'] == name.upper()
    assert 'share_proto' in refused(cloud.api, share_proto='GOPHER')


def test_display_names_are_aliases(member):
    share = member.create(display_name='a', display_description='b')
    assert (share['name'], share['description']) == ('a', 'b')


@pytest.mark.parametrize(
    'key', ['name', 'description', 'display_name', 'display_description']
)
def test_names_have_at_most_255_characters(member, key):
    assert member.create(**{key: 'x' * 255})
    assert key in refused(member, **{key: 'x' * 256})


# Share types


def test_type_is_named_by_id_or_name(member, make_type):
    name = make_type()
    share = member.create(share_type=name)
    assert share['share_type_name'] == share['volume_type'] == name
    again = member.create(volume_type=share['share_type'])
    assert again['share_type'] == share['share_type']


def test_type_must_not_be_given_by_both_names(member):
    refused(member, share_type='default', volume_type='default')


def test_unknown_type_is_not_found(member):
    refused(member, code=404, share_type='moon')


@pytest.mark.facts('LP1885956')
def test_private_type_is_unknown_to_others(admin, member, make_type):
    make_type(public=False)
    theirs = refused(member, code=404, share_type='special')
    assert theirs == refused(member, code=404, share_type='unknown').replace(
        'unknown', 'special'
    )
    assert admin.create(share_type='special')


@pytest.mark.facts('LP1700346')
def test_without_a_default_type_the_share_ends_in_error(build_cloud):
    cloud = build_cloud('default_share_type =')
    member = member_of(cloud)
    share = member.create()
    assert (share['share_type'], share['status']) == (None, 'creating')
    cloud.settle()
    assert member.show(share['id'])['status'] == 'error'
    (message,) = member.get('/messages')['messages']
    assert (message['action_id'], message['detail_id']) == ('001', '024')


@pytest.mark.facts('LP1944478')
def test_type_that_handles_servers_needs_a_network(member, make_type):
    make_type(driver_handles_share_servers='True')
    assert 'share_network_id' in refused(member, share_type='special')


def test_capabilities_of_the_type_are_copied(cloud, admin, member, make_type):
    make_type(
        snapshot_support='True',
        mount_snapshot_support='<is> True',
        create_share_from_snapshot_support='yes',
        revert_to_snapshot_support='1',
        replication_type='dr',
        snapshot_inherit_share_access_support='True',
    )
    plain = member.create(share_type='default')
    able = member.create(share_type='special')
    keys = [key for key in able if key.endswith('_support')]
    assert len(keys) == 5
    assert all(able[key] is True for key in keys)
    assert able['replication_type'] == 'dr'
    assert [key for key in keys if plain[key]] == ['snapshot_support']
    assert plain['replication_type'] is None


def test_later_changes_of_the_type_leave_shares_alone(admin, member, make_type):
    make_type(snapshot_support='True')
    share = member.create(share_type='special')
    admin.request(
        'POST',
        f'/types/{share["share_type"]}/extra_specs',
        {'extra_specs': {'snapshot_support': 'False'}},
        expect=200,
    )
    assert member.show(share['id'])['snapshot_support'] is True


@pytest.mark.facts('min-max-share-size')
@pytest.mark.parametrize('size, code', [(1, 400), (2, 200), (4, 200), (5, 400)])
def test_type_limits_the_size(member, make_type, size, code):
    make_type(provisioning__min_share_size='2', provisioning__max_share_size='4')
    member.create(share_type='special', size=size, expect=code)


# Zones


def test_zone_is_named_by_name_or_id(cloud, member):
    (zone,) = member.get('/availability-zones')['availability_zones']
    for name in (zone['name'], zone['id']):
        share = member.create(availability_zone=name)
        assert share['availability_zone'] == zone['name']
        cloud.settle()
        assert member.show(share['id'])['status'] == 'available'


def test_unknown_zone_is_not_found(member):
    assert 'moon' in refused(member, code=404, availability_zone='moon')


@pytest.mark.facts('bp-share-type-supported-azs.1')
def test_zones_of_the_type_are_checked_from_2_48(cloud, member, make_type):
    make_type(availability_zones='moon, mars')
    body = {'share_type': 'special', 'availability_zone': 'nova'}
    member.create(version='2.47', **body)
    assert 'nova' in refused(member, version='2.48', **body)


@pytest.mark.facts('bp-share-type-supported-azs.5')
def test_share_is_placed_in_the_zones_of_the_type(cloud, member, make_type):
    make_type(availability_zones='moon')
    share = member.create(share_type='special')
    cloud.settle()
    assert member.show(share['id'])['status'] == 'error'


# Unknown resources


@pytest.mark.parametrize('key', ['snapshot_id', 'share_network_id', 'share_group_id'])
def test_unknown_sources_are_not_found(member, key):
    assert UNKNOWN in refused(member, code=404, **{key: UNKNOWN})


def test_group_is_dropped_below_2_31(member):
    member.create(share_group_id=UNKNOWN, version='2.30')
    refused(member, code=404, version='2.31', share_group_id=UNKNOWN)


# Visibility


@pytest.mark.facts('LP1801763.1', 'LP1801763.3', 'remove-deprecated-public-share')
def test_public_requires_the_policy(admin, member):
    refused(member, code=403, is_public=True)
    assert member.create(is_public=False)['is_public'] is False
    assert admin.create(is_public=True)['is_public'] is True


@pytest.mark.parametrize('value', ['maybe', 2, [], {}, None])
def test_public_must_be_a_boolean(admin, value):
    assert 'is_public' in refused(admin, is_public=value)


# Metadata


@pytest.mark.facts('metadata_request.1')
@pytest.mark.parametrize('metadata', [*INVALID_ITEMS, ['x'], 'x'])
def test_sizes_of_metadata_are_limited(member, metadata):
    refused(member, metadata=metadata)


def test_longest_metadata_is_stored(member):
    metadata = {'k' * 255: 'v' * 1023}
    assert member.create(metadata=metadata)['metadata'] == metadata


@pytest.mark.facts('LP2050010.1')
def test_some_keys_are_for_administrators(build_cloud):
    cloud = build_cloud('admin_only_metadata = sealed')
    refused(member_of(cloud), code=403, metadata={'sealed': 'x'})
    assert cloud.api.create(metadata={'sealed': 'x'})


# Hints


@pytest.mark.facts('affinity-filter.1', 'affinity-filter.2')
def test_hints_place_shares_together_or_apart(cloud, admin, member):
    first = cloud.create_share()
    host = admin.show(first)['host']
    for _ in range(3):
        beside = member.create(scheduler_hints={'same_host': first})
        apart = member.create(scheduler_hints={'different_host': first})
        cloud.settle()
        assert admin.show(beside['id'])['host'] == host
        assert admin.show(apart['id'])['host'] != host


@pytest.mark.facts('affinity-filter.3')
def test_hints_are_in_the_metadata_of_both_shares(cloud, member):
    first, second = (member.create()['id'] for _ in range(2))
    hints = {'same_host': first, 'different_host': second}
    third = member.create(
        scheduler_hints={'same_host': f'{first}, {first}'}, metadata={'colour': 'red'}
    )['id']
    fourth = member.create(scheduler_hints=hints)['id']
    cloud.settle()
    assert affinity(member, first) == {'same_host': {third, fourth}}
    assert affinity(member, second) == {'different_host': {fourth}}
    assert affinity(member, third) == {'same_host': {first}}
    assert affinity(member, fourth) == {
        'same_host': {first},
        'different_host': {second},
    }
    assert member.show(third)['metadata']['colour'] == 'red'
    member.delete(fourth)
    cloud.settle()
    assert affinity(member, first) == {'same_host': {third}}
    assert affinity(member, second) == {}


def test_hints_do_not_change_public_shares_of_others(cloud, admin, member, stranger):
    public = stranger.create()['id']
    cloud.settle()
    body = {'share': {'is_public': True}}
    admin.request('PUT', f'/shares/{public}', body, expect=200)
    share = member.create(scheduler_hints={'same_host': public})['id']
    assert affinity(member, share) == {'same_host': {public}}
    assert affinity(stranger, public) == {}


def affinity(api, share_id):
    """Return the shares in the affinity metadata of a share, by hint."""
    prefix = '__affinity_'
    return {
        key.removeprefix(prefix): set(value.split(','))
        for key, value in api.show(share_id)['metadata'].items()
        if key.startswith(prefix)
    }


@pytest.mark.facts('scheduler_hints')
def test_longest_hints_fit_into_the_metadata(cloud, member):
    ids = [member.create()['id'] for _ in range(30)]
    share = member.create(scheduler_hints={'same_host': ','.join(ids)})['id']
    named = affinity(member, share)['same_host']
    assert len(named) == 27
    assert named < set(ids)


def test_hints_are_dropped_below_2_65(cloud, member):
    hints = {'same_host': UNKNOWN}
    member.create(version='2.64', scheduler_hints=hints)
    refused(member, code=404, version='2.65', scheduler_hints=hints)


@pytest.mark.facts('hostonly-filter.2')
def test_only_host_is_honoured_from_2_67(cloud, admin):
    for host in ('node@alpha#pool', 'node@beta#pool'):
        share = admin.create(scheduler_hints={'only_host': host})
        cloud.settle()
        shown = admin.show(share['id'])
        assert shown['host'] == host
        assert shown['metadata'] == {}
    dropped = admin.create(
        version='2.66', scheduler_hints={'only_host': 'node@gamma#pool'}
    )
    cloud.settle()
    assert admin.show(dropped['id'])['status'] == 'available'


@pytest.mark.facts('hostonly-filter.1')
def test_only_host_of_members_is_ignored(cloud, admin, member):
    hosts = set()
    for host in ('node@alpha#pool', 'node@alpha#pool', 'nowhere@none#pool'):
        share = member.create(scheduler_hints={'only_host': host})
        cloud.settle()
        hosts.add(admin.show(share['id'])['host'])
    # Two pools of the same size take turns.
    assert hosts == {'node@alpha#pool', 'node@beta#pool'}


@pytest.mark.facts('affinity-filter.5')
def test_hints_do_not_reveal_foreign_shares(cloud, member, stranger):
    foreign = stranger.create()['id']
    for hint in ('same_host', 'different_host'):
        messages = {
            refused(member, code=404, scheduler_hints={hint: id}).replace(id, 'id')
            for id in (foreign, UNKNOWN)
        }
        assert len(messages) == 1


# Mount point names


@pytest.fixture
def mountable(make_type):
    return make_type(mount_point_name_support='True')


def mount_point(cloud, share):
    listed = cloud.api.get(f'/shares?mount_point_name=project_{share["name"]}')[
        'shares'
    ]
    return [one['id'] for one in listed]


def paths(api, share_id):
    listed = api.get(f'/shares/{share_id}/export_locations')
    return {one['path'] for one in listed['export_locations']}


@pytest.mark.facts('human-readable.2', 'LP2064907.2')
def test_mount_point_is_prefix_and_name(cloud, member, mountable):
    share = member.create(share_type=mountable, name='data', mount_point_name='data')
    assert mount_point(cloud, share) == [share['id']]
    cloud.settle()
    assert paths(member, share['id']) == {'10.0.0.10:/shares/project_data'}


@pytest.mark.facts('human-readable.1', 'LP2064907.1')
@pytest.mark.parametrize(
    'prefix, full',
    [('own-', 'own-data'), ('{project_id}-x_', 'project-x_data'), ('', 'data')],
)
def test_type_may_have_its_own_prefix(cloud, member, make_type, prefix, full):
    make_type(mount_point_name_support='True', provisioning__mount_point_prefix=prefix)
    share = member.create(share_type='special', mount_point_name='data')
    listed = member.get(f'/shares?mount_point_name={full}')['shares']
    assert [one['id'] for one in listed] == [share['id']]
    cloud.settle()
    assert paths(member, share['id']) == {f'10.0.0.10:/shares/{full}'}


@pytest.mark.facts('human-readable.4')
def test_mount_point_in_use_is_refused(cloud, member, stranger, mountable):
    share = member.create(share_type=mountable, mount_point_name='data')
    for _ in range(2):
        assert 'project_data' in refused(
            member, share_type=mountable, mount_point_name='data'
        )
        cloud.settle()
    stranger.create(share_type=mountable, mount_point_name='data')
    member.delete(share['id'])
    cloud.settle()
    member.create(share_type=mountable, mount_point_name='data')


@pytest.mark.facts('human-readable.3')
def test_mount_point_needs_a_type_that_supports_it(member):
    assert 'mount_point_name' in refused(member, mount_point_name='data')


@pytest.mark.parametrize('name', ['a/b', 'a b', 'ä', 'x' * 248])
def test_mount_point_has_letters_and_digits(member, mountable, name):
    refused(member, share_type=mountable, mount_point_name=name)


def test_mount_point_is_dropped_below_2_84(member):
    member.create(version='2.83', mount_point_name='data')


# Encryption keys


@pytest.mark.facts('add-share-and-share-server-encryption-key.1')
def test_key_needs_a_type_that_encrypts(member, make_type):
    assert 'encryption' in refused(member, encryption_key_ref=UNKNOWN)
    make_type(encryption_support='share')
    share = member.create(share_type='special', encryption_key_ref=UNKNOWN)
    assert share['encryption_key_ref'] == UNKNOWN


def test_key_is_a_uuid_from_2_90(member, make_type):
    make_type(encryption_support='share')
    refused(member, share_type='special', encryption_key_ref='secret')
    refused(member, share_type='special', encryption_key_ref='')
    member.create(share_type='special', version='2.89', encryption_key_ref='secret')


# Quotas


def test_quota_is_charged_when_accepted(cloud, member):
    member.create(size=3)
    assert cloud.usage('shares') == (1, 0)
    assert cloud.usage('gigabytes') == (3, 0)


@pytest.mark.parametrize(
    'quota, error',
    [
        ('shares = 1', 'ShareLimitExceeded'),
        ('gigabytes = 2', 'ShareSizeExceedsAvailableQuota'),
        ('per_share_gigabytes = 1', 'ShareSizeExceedsLimit'),
    ],
)
def test_excess_answers_413(build_cloud, quota, error):
    cloud = build_cloud(f'[quota]\n{quota}')
    member = member_of(cloud)
    member.create()
    answer = member.request(
        'POST', '/shares', {'share': {'share_proto': 'NFS', 'size': 2}}, expect=413
    )
    assert answer.headers['Retry-After'] == '0'
    assert answer.json['overLimit']['message'].startswith(f'{error}: ')
    assert len(member.get('/shares')['shares']) == 1


@pytest.mark.parametrize(
    'quota, error',
    [
        ('share_replicas = 1', 'ShareReplicasLimitExceeded'),
        ('replica_gigabytes = 2', 'ShareReplicaSizeExceedsAvailableQuota'),
    ],
)
def test_shares_that_can_replicate_count_as_replicas(build_cloud, quota, error):
    cloud = build_cloud(f'[quota]\n{quota}')
    create_type(cloud, replication_type='dr')
    cloud.api.create(share_type='special')
    fault = cloud.api.create(share_type='special', size=2, expect=413)
    assert fault['overLimit']['message'].startswith(f'{error}: ')
    cloud.api.create(size=2)


def test_empty_ids_are_not_given(cloud, member):
    ids = (
        'share_network_id',
        'snapshot_id',
        'share_group_id',
        'availability_zone',
        'share_type',
    )
    shown = member.create(**dict.fromkeys(ids, ''))
    assert shown['share_type_name'] == 'default'
    cloud.settle()
    assert member.show(shown['id'])['status'] == 'available'
