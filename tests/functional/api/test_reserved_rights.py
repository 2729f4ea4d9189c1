"""What is reserved for administrators, and resources of two projects.

Each row of a table is one request. `RESERVED` has what only administrators
may send or see; `PAIRS` has what an administrator, who sees all projects,
might combine.
"""

from collections.abc import Callable
import typing
import urllib.parse

import pytest
import sqlalchemy as sa

from manila_lite.db.models import share_groups, shares, snapshots
from tests.functional.api import differences
from tests.functional.api.samples.requests import TENANT
from tests.support.api_client import ApiClient
from tests.support.cloud import TYPE_ID
from tests.support.share_backups import EXPERIMENTAL
from tests.support.share_servers import assign_share_server

NOWHERE = 'nowhere@none#pool'
UNKNOWN = '00000000-0000-4000-8000-000000000000'
_INSTANCE = shares.ShareInstance.__table__
_GROUP = share_groups.ShareGroup.__table__
_SNAPSHOT = snapshots.SnapshotInstance.__table__
_BACKUP = shares.ShareBackup.__table__


# Keys of lists

LISTS = {
    'shares': '/shares/detail',
    'snapshots': '/snapshots/detail',
    'share_groups': '/share-groups/detail',
    'share_group_snapshots': '/share-group-snapshots/detail',
    'share_backups': '/share-backups/detail',
    'share_replicas': '/share-replicas/detail',
    'share_networks': '/share-networks/detail',
    'security_services': '/security-services/detail',
    'transfers': '/share-transfers/detail',
    'resource_locks': '/resource-locks',
    'messages': '/messages',
    'share_types': '/types',
    'share_group_types': '/share-group-types',
    'qos_types': '/qos-types',
}
HIDDEN = {
    'host': 'node@alpha#pool',
    'topic': 'manila-data',
    'share_server_id': UNKNOWN,
    'provider_location': '/somewhere',
    'pool': 'pool',
    'backend': 'alpha',
    'share_backend_name': 'alpha',
}
"""Fields that members do not see, with values that may exist."""
SHOWN = {('share_groups', 'host')}
"""Published for everyone."""


def hidden_fields(key: str) -> list[str]:
    return [field for field in HIDDEN if (key, field) not in SHOWN]


@pytest.mark.parametrize('key', LISTS)
@pytest.mark.facts('backup_host_query')
def test_filter_by_a_hidden_field_tells_members_nothing(sample, key):
    """A member gets the same answer whether or not a value exists."""
    spread(sample)
    for field in hidden_fields(key):
        values = {urllib.parse.quote(HIDDEN[field]), 'nowhere'}
        answers = [
            sample.member.request(
                'GET', f'{LISTS[key]}?{field}={value}', **EXPERIMENTAL
            )
            for value in values | real_values(sample, key, field)
        ]
        assert len({one.status_int for one in answers}) == 1, field
        assert len({one.text for one in answers}) == 1, field


@differences.proves('sort keys of fields for administrators')
@pytest.mark.parametrize('key', LISTS)
def test_hidden_field_does_not_sort_lists_of_members(sample, key):
    """The order is the default one, or the key is refused as unknown."""
    spread(sample)
    for way in ('asc', 'desc'):
        plain = sample.member.get(f'{LISTS[key]}?sort_dir={way}', **EXPERIMENTAL)
        for field in hidden_fields(key):
            answer = sample.member.request(
                'GET', f'{LISTS[key]}?sort_key={field}&sort_dir={way}', **EXPERIMENTAL
            )
            if answer.status_int != 400:
                assert ids(answer.json[key]) == ids(plain[key]), field


@pytest.mark.parametrize(
    'key, field',
    [
        ('shares', 'host'),
        ('shares', 'share_server_id'),
        ('share_groups', 'share_server_id'),
        ('share_backups', 'host'),
        ('share_backups', 'topic'),
    ],
)
def test_administrators_filter_and_sort_by_hidden_fields(sample, key, field):
    path = f'{LISTS[key]}?all_tenants=1&'
    everything = sample.admin.get(path, **EXPERIMENTAL)[key]
    assert everything
    other = '11111111-0000-4000-8000-000000000000'
    found = sample.admin.get(f'{path}{field}={other}', **EXPERIMENTAL)
    assert found[key] == []
    found = sample.admin.get(f'{path}sort_key={field}&sort_dir=asc', **EXPERIMENTAL)[
        key
    ]
    values = [one[field] for one in found if one[field]]
    assert values == sorted(values)


def test_members_do_not_find_back_end_names_in_share_types(sample):
    created = sample.type_body(public=True)
    created['share_type']['extra_specs']['share_backend_name'] = 'alpha'
    sample.admin.request('POST', '/types', created, expect=200)
    query = "/types?extra_specs={'share_backend_name':'alpha'}"
    assert len(sample.admin.get(query)['share_types']) == 1
    assert sample.member.get(query)['share_types'] == []
    visible = "/types?extra_specs={'driver_handles_share_servers':'False'}"
    assert sample.member.get(visible)['share_types']


# Rights that an operator gives to others


@pytest.fixture
def opened(build_cloud, tmp_path):
    """`opened(policy, rule)` builds a cloud with one rule of its own."""

    def opened(policy, rule):
        rules = tmp_path / 'policy.yaml'
        rules.write_text(f'"{policy}": "{rule}"\n')
        return build_cloud(f'[oslo_policy]\npolicy_file = {rules}\n')

    return opened


def _resource(cloud, api, path):
    if path == '/security-services':
        body = {'security_service': {'type': 'ldap'}}
        answer = api.request('POST', path, body, expect=200).json
        return answer['security_service']['id']
    share = api.create()['id']
    cloud.settle()
    if path == '/shares':
        return share
    body = {'snapshot': {'share_id': share}}
    answer = api.request('POST', path, body, expect=202).json
    cloud.settle()
    return answer['snapshot']['id']


@pytest.mark.facts('LP1916102', 'LP2084532')
@pytest.mark.parametrize(
    'path, policy',
    [
        ('/security-services', 'security_service:get_all_security_services'),
        ('/shares', 'share:list_all_projects'),
        ('/snapshots', 'share_snapshot:list_all_projects'),
    ],
)
def test_lists_of_all_projects_have_a_policy_of_their_own(opened, path, policy):
    cloud = opened(policy, 'role:auditor')
    member = ApiClient(cloud, roles='member,reader')
    stranger = ApiClient(cloud, project='another', roles='member,reader')
    own, foreign = (_resource(cloud, api, path) for api in (member, stranger))
    auditor = ApiClient(cloud, roles='auditor,reader')
    key = path[1:].replace('-', '_')
    for api, expected in (
        (auditor, {own, foreign}),
        (member, {own}),
        (cloud.api, {own}),  # an administrator is not meant by the rule
    ):
        listed = api.request('GET', f'{path}?all_tenants=1')
        if listed.status_int == 403:
            assert api is not auditor
            continue
        assert {one['id'] for one in listed.json[key]} == expected


@pytest.mark.facts('remove-host-field.2')
def test_filter_by_host_has_a_policy_of_its_own(opened):
    cloud = opened('share:list_by_host', 'role:member')
    share = cloud.create_share()
    host = urllib.parse.quote(cloud.api.show(share)['host'])
    member = ApiClient(cloud, roles='member,reader')
    for value, expected in ((host, [share]), ('nowhere', [])):
        listed = member.get(f'/shares?host={value}')['shares']
        assert [one['id'] for one in listed] == expected


@pytest.mark.facts('LP1955627')
@pytest.mark.parametrize(
    'action, args, policy',
    [
        ('reset_status', {'status': 'error'}, 'share:reset_status'),
        ('force_delete', None, 'share:force_delete'),
        ('reset_task_state', {'task_state': None}, 'share:reset_task_state'),
        ('unmanage', None, 'share:unmanage'),
    ],
)
def test_action_on_a_foreign_share_needs_the_right_for_its_project(
    opened, action, args, policy
):
    cloud = opened(policy, 'role:member and project_id:%(project_id)s')
    share = cloud.create_share(is_public=True)
    stranger = ApiClient(cloud, project='another', roles='member,reader')
    stranger.act(share, action, args, expect=403)
    assert stranger.show(share)['status'] == 'available'
    member = ApiClient(cloud, roles='member,reader')
    member.act(share, action, args, expect=202)


# Values and fields of requests


class Reserved(typing.NamedTuple):
    """A request of a member, and what must come of it.

    `code` is the refusal, or 200 if the reserved part is ignored.
    """

    name: str
    request: Callable[..., typing.Any]
    code: int


def _post(path: str, body: object) -> Callable:
    return lambda sample, api: api.request('POST', path, body)


def _create(**body: object) -> Callable:
    share = {'share_proto': 'NFS', 'size': 1, **body}
    return _post('/shares', {'share': share})


def _act(name: str, body: object = None) -> Callable:
    return lambda sample, api: api.act(sample.idle_share(), name, body, expect=None)


RESERVED = [
    Reserved('only_host', _create(scheduler_hints={'only_host': NOWHERE}), 200),
    Reserved('create public share', _create(is_public=True), 403),
    Reserved('sealed metadata', _create(metadata={'__sealed': 'x'}), 403),
    Reserved(
        'set public',
        lambda sample, api: api.request(
            'PUT', f'/shares/{sample.share}', {'share': {'is_public': True}}
        ),
        403,
    ),
    Reserved(
        'change sealed metadata',
        lambda sample, api: api.request(
            'POST', f'/shares/{sample.share}/metadata', {'metadata': {'__sealed': 'x'}}
        ),
        403,
    ),
    Reserved(
        'change metadata of a location',
        lambda sample, api: api.request(
            'POST',
            f'/shares/{sample.share}/export_locations/'
            f'{sample.export_of(sample.share)}/metadata',
            {'metadata': {'preferred': 'True'}},
        ),
        403,
    ),
    Reserved(
        'location for administrators',
        lambda sample, api: api.request(
            'GET',
            f'/shares/{sample.share}/export_locations/'
            f'{sample.export_of(sample.share, admin_only=True)}',
        ),
        403,
    ),
    Reserved(
        'extend without the scheduler',
        _act('extend', {'new_size': 3, 'force': True}),
        403,
    ),
    Reserved(
        'promote a replica that is behind',
        lambda sample, api: api.request(
            'POST',
            '/share-replicas/'
            f'{sample.idle_replica(replica_state="out_of_sync")}/action',
            {'promote': None},
            **EXPERIMENTAL,
        ),
        403,
    ),
    Reserved(
        'lock of an administrator',
        lambda sample, api: api.request(
            'DELETE', '/resource-locks/' + sample.new_lock(tenant_admin(sample))
        ),
        403,
    ),
    Reserved(
        'filter by network_type',
        lambda sample, api: api.request('GET', '/share-networks?network_type=vlan'),
        403,
    ),
]


@pytest.mark.parametrize('row', RESERVED, ids=lambda row: row.name)
def test_reserved_request_of_a_member(sample, row):
    answer = row.request(sample, sample.member)
    assert answer.status_int == row.code, answer.text
    if row.code == 200:
        sample.cloud.settle()
        share = sample.member.show(answer.json['share']['id'])
        assert share['status'] == 'available'


@pytest.mark.parametrize('row', RESERVED, ids=lambda row: row.name)
def test_reserved_request_is_open_to_administrators(sample, row):
    answer = row.request(sample, tenant_admin(sample))
    assert answer.status_int in (200, 202, 204), answer.text


def test_location_for_administrators_is_found_by_them_only(sample):
    """Filters do not match the paths and ids that members do not see."""
    for admin_only in (True, False):
        export = sample.export_of(sample.share, admin_only)
        path = sample.admin.get(f'/shares/{sample.share}/export_locations/{export}')[
            'export_location'
        ]['path']
        for query in (f'export_location_id={export}', f'export_location_path={path}'):
            found = sample.member.get(f'/shares?{query}')['shares']
            assert ids(found) == ([] if admin_only else [sample.share])


def test_growth_beyond_the_maximum_of_a_type_is_for_administrators(sample):
    created = sample.type_body(public=True)
    created['share_type']['extra_specs'] |= {
        'provisioning:max_share_size': '2',
        'provisioning:max_share_extend_size': '4',
    }
    type_id = sample.admin.request('POST', '/types', created, expect=200).json[
        'share_type'
    ]['id']
    share = sample.member.create(share_type=type_id)['id']
    sample.cloud.settle()
    sample.member.act(share, 'extend', {'new_size': 3}, expect=400)
    sample.admin.act(share, 'extend', {'new_size': 3})


# Resources of two projects


class Pair(typing.NamedTuple):
    """A request of an administrator that combines two projects.

    `code` is 400 if it is refused; `reason` says why it is not.
    """

    name: str
    request: Callable[..., typing.Any]
    code: int = 400
    reason: str = ''


def _group_from_snapshot(sample, admin):
    return admin.request(
        'POST',
        '/share-groups',
        {'share_group': {'source_share_group_snapshot_id': sample.group_snapshot}},
    )


def _replica_on_network(sample, admin):
    return admin.request(
        'POST',
        '/share-replicas',
        {
            'share_replica': {
                'share_id': with_servers(sample, sample.replicated_share),
                'share_network_id': sample.new_network(sample.apis['foreign']),
            }
        },
        **EXPERIMENTAL,
    )


def _manage_on_server(sample, admin):
    body = sample.manage_body()
    body['share'] |= {
        'share_server_id': sample.spare_server(),
        'share_type': server_type(sample),
    }
    return admin.request('POST', '/shares/manage', body)


def _restore_elsewhere(sample, admin):
    share = sample.apis['foreign'].create(size=2)['id']
    sample.cloud.settle()
    return admin.request(
        'POST',
        f'/share-backups/{sample.backup}/action',
        {'restore': share},
        **EXPERIMENTAL,
    )


def _network_action(action: str) -> Callable:
    def request(sample, admin):
        return admin.request(
            'POST',
            f'/share-networks/{sample.network}/action',
            {
                action: {
                    'security_service_id': sample.new_security_service(
                        sample.apis['foreign'], type='active_directory'
                    )
                }
            },
        )

    return request


def _migration(sample, admin):
    return admin.act(
        with_servers(sample, sample.idle_share()),
        'migration_start',
        {
            'host': 'node@beta#pool',
            'writable': False,
            'nondisruptive': False,
            'preserve_metadata': False,
            'preserve_snapshots': False,
            'new_share_network_id': sample.new_network(sample.apis['foreign']),
        },
        expect=None,
    )


def _server_migration(action: str) -> Callable:
    def request(sample, admin):
        return admin.request(
            'POST',
            f'/share-servers/{server_with_a_share(sample)}/action',
            {
                action: {
                    'host': 'node@beta',
                    'writable': False,
                    'nondisruptive': False,
                    'preserve_snapshots': False,
                    'new_share_network_id': sample.new_network(sample.apis['foreign']),
                }
            },
            **EXPERIMENTAL,
        )

    return request


PAIRS = [
    Pair(
        'share on a network',
        lambda sample, admin: admin.create(
            share_type=server_type(sample), share_network_id=sample.network, expect=None
        ),
    ),
    Pair(
        'share from a snapshot',
        lambda sample, admin: admin.create(
            snapshot_id=sample.snapshot, size=2, expect=None
        ),
    ),
    Pair(
        'share in a group',
        lambda sample, admin: admin.create(
            share_group_id=sample.group, share_type=TYPE_ID, expect=None
        ),
    ),
    Pair(
        'group on a network',
        lambda sample, admin: admin.request(
            'POST',
            '/share-groups',
            {
                'share_group': {
                    **types_with_servers(sample),
                    'share_network_id': sample.network,
                }
            },
        ),
    ),
    Pair('group from a group snapshot', _group_from_snapshot),
    Pair('replica on a network', _replica_on_network),
    Pair('managed share on a server', _manage_on_server),
    Pair('backup restored to a share', _restore_elsewhere),
    *(
        Pair(action, _network_action(action))
        for action in ('add_security_service', 'add_security_service_check')
    ),
    Pair('share migrated to a network', _migration),
    *(
        Pair(f'share server, {action}', _server_migration(action))
        for action in ('migration_check', 'migration_start')
    ),
    Pair(
        'subnet of a network',
        lambda sample, admin: admin.request(
            'POST',
            f'/share-networks/{sample.new_network()}/subnets',
            {'share-network-subnet': {'neutron_net_id': None}},
        ),
        code=200,
        reason='a subnet has no project: it is part of the network',
    ),
    Pair(
        'managed server on a network',
        lambda sample, admin: admin.request(
            'POST', '/share-servers/manage', sample.manage_server_body()
        ),
        code=202,
        reason='a share server has no project: it is that of its network',
    ),
    Pair(
        'snapshot of a share',
        lambda sample, admin: admin.request(
            'POST',
            '/snapshots',
            {'snapshot': {'share_id': sample.idle_snapshot_source()}},
        ),
        code=202,
        reason='the snapshot belongs to the project of the share',
    ),
    Pair(
        'backup of a share',
        lambda sample, admin: admin.request(
            'POST', '/share-backups', sample.backup_body(), **EXPERIMENTAL
        ),
        code=202,
        reason='the backup belongs to the project of the share',
    ),
    Pair(
        'access rule of a share',
        lambda sample, admin: admin.act(
            sample.idle_share(),
            'allow_access',
            {'access_type': 'ip', 'access_to': '10.1.2.3'},
            expect=None,
        ),
        code=200,
        reason='the project sees and denies the rule',
    ),
    Pair(
        'offer of a share',
        lambda sample, admin: admin.request(
            'POST', '/share-transfers', sample.transfer_body()
        ),
        code=202,
        reason='the project sees the offer and can withdraw it',
    ),
    Pair(
        'lock of a share',
        lambda sample, admin: admin.request(
            'POST', '/resource-locks', sample.lock_body()
        ),
        code=200,
        reason='published: locks of administrators hold against the owner',
    ),
    Pair(
        'share away from a share',
        lambda sample, admin: admin.request(
            'POST',
            '/shares',
            {
                'share': {
                    'share_proto': 'NFS',
                    'size': 1,
                    'scheduler_hints': {'different_host': sample.share},
                }
            },
        ),
        code=200,
        reason='a hint affects the placement of the new share only',
    ),
]


@differences.proves('resources of two projects')
@pytest.mark.parametrize('row', PAIRS, ids=lambda row: row.name)
def test_administrator_combines_two_projects(sample, row):
    assert (row.code == 400) is not bool(row.reason)
    answer = row.request(sample, sample.admin)
    if isinstance(answer, dict):  # of `ApiClient.create`
        (fault,) = answer.values()
        assert fault['code'] == row.code
        message = fault['message']
    else:
        assert answer.status_int == row.code, answer.text
        message = answer.text
    if row.code == 400:
        assert 'project' in message


# What rows need


def tenant_admin(sample: typing.Any) -> ApiClient:
    """Return an administrator in the project of the member."""
    return ApiClient(sample.cloud, project=TENANT, user='tenant-admin')


def server_type(sample: typing.Any) -> str:
    """Create a share type whose shares are on share servers."""
    body = sample.type_body(public=True)
    body['share_type']['extra_specs']['driver_handles_share_servers'] = True
    return sample.admin.request('POST', '/types', body, expect=200).json['share_type'][
        'id'
    ]


def server_with_a_share(sample: typing.Any) -> str:
    """Return a share server of the member with one share."""
    server = sample.spare_server()
    share = with_servers(sample, sample.idle_share())
    assign_share_server(sample.cloud, share, server, sample.used_network)
    return server


def types_with_servers(sample: typing.Any) -> dict[str, typing.Any]:
    """Create the types of a group on share servers."""
    body = sample.group_type_body()
    share_types = [server_type(sample)]
    body['share_group_type']['share_types'] = share_types
    created = sample.admin.request('POST', '/share-group-types', body, expect=200).json[
        'share_group_type'
    ]
    return {'share_group_type_id': created['id'], 'share_types': share_types}


def with_servers(sample: typing.Any, share_id: str) -> str:
    """Give a share a type whose shares are on share servers."""
    type_id = server_type(sample)
    sample.cloud.db.write(
        lambda session: session.run(
            sa.update(_INSTANCE)
            .where(_INSTANCE.c.share_id == share_id)
            .values(share_type_id=type_id)
        )
    )
    return share_id


def real_values(sample: typing.Any, key: str, field: str) -> set[str]:
    """Return the values of a field that administrators see, for a query."""
    return {
        urllib.parse.quote(one[field])
        for one in sample.admin.get(f'{LISTS[key]}?all_tenants=1', **EXPERIMENTAL)[key]
        if one.get(field)
    }


def spread(sample: typing.Any) -> None:
    """Give rows different values of what members do not see.

    Sorted by them, they are in another order than by age.
    """
    for _ in range(2):
        sample.new_backup()
        sample.new_group()
    servers = [sample.spare_server() for _ in range(2)]

    def change(session):
        for column in (
            _INSTANCE.c.host,
            _SNAPSHOT.c.provider_location,
            _BACKUP.c.host,
            _BACKUP.c.topic,
            _INSTANCE.c.share_server_id,
            _GROUP.c.share_server_id,
        ):
            found = session.rows(
                sa.select(column.table.c.id).order_by(column.table.c.created_at)
            )
            for number, row in enumerate(found):
                session.run(
                    sa.update(column.table)
                    .where(column.table.c.id == row.id)
                    .values(
                        {
                            column.name: servers[number % 2]
                            if column.name == 'share_server_id'
                            else f'value-{len(found) - number:03}'
                        }
                    )
                )

    sample.cloud.db.write(change)


def ids(found: list[dict]) -> list[str]:
    return [one['id'] for one in found]
