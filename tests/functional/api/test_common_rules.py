"""Rules that hold for resources of several kinds."""

import typing

import pytest

from tests.functional.api.conftest import member_of
from tests.functional.api.snapshot_client import create_snapshot
from tests.support import share_groups, share_migrations
from tests.support.api_client import ApiClient
from tests.support.cloud import TYPE_ID


class Named(typing.NamedTuple):
    """A resource with a name and a description."""

    path: str
    wrapper: str
    body: dict[str, typing.Any]
    code: int
    """The status code of the answer to a create."""
    prefix: str = ''
    """The beginning of the keys of a change."""


SPECS = {'driver_handles_share_servers': False}
NAMED = (
    Named('/shares', 'share', {'share_proto': 'NFS', 'size': 1}, 200, 'display_'),
    Named('/snapshots', 'snapshot', {'share_id': '{share}'}, 202, 'display_'),
    Named('/share-networks', 'share_network', {}, 200),
    Named('/security-services', 'security_service', {'type': 'ldap'}, 200),
    Named(
        '/share-groups',
        'share_group',
        {'share_group_type_id': '{group_type}', 'share_types': [TYPE_ID]},
        202,
    ),
    Named('/types', 'share_type', {'extra_specs': SPECS, 'name': 'a'}, 200),
)
by_resource = pytest.mark.parametrize(
    'resource', NAMED, ids=lambda named: named.path[1:]
)


@pytest.fixture
def client(cloud, admin, share):
    """Return a function that creates and one that changes a resource."""
    group_type = share_groups.create_type(admin)

    class Client:
        def create(self, named, expect=None, **values):
            body = {
                key: value.format(share=share, group_type=group_type)
                if isinstance(value, str)
                else value
                for key, value in named.body.items()
            } | values
            answer = admin.request(
                'POST', named.path, {named.wrapper: body}, expect=expect or named.code
            )
            return answer.json.get(named.wrapper)

        def change(self, named, id, expect=200, **values):
            answer = admin.request(
                'PUT',
                f'{named.path}/{id}',
                {
                    named.wrapper: {
                        named.prefix + key: value for key, value in values.items()
                    }
                },
                expect=expect,
            )
            return answer.json.get(named.wrapper)

    return Client()


@pytest.mark.facts('description_request')
@by_resource
@pytest.mark.parametrize('key', ['name', 'description'])
def test_texts_have_at_most_255_characters(cloud, client, resource, key):
    client.create(resource, expect=400, **{key: 'x' * 256})
    found = client.create(resource, **{key: 'x' * 255})
    assert found[key] == 'x' * 255
    cloud.settle()
    client.change(resource, found['id'], expect=400, **{key: 'y' * 256})
    changed = client.change(resource, found['id'], **{key: 'y' * 255})
    assert changed[key] == 'y' * 255


@pytest.mark.facts('updated_at')
@pytest.mark.parametrize(
    'resource',
    [
        named
        for named in NAMED
        if named.path in ('/share-networks', '/security-services')
    ],
    ids=lambda named: named.path[1:],
)
def test_time_of_the_last_change_is_null_before_the_first(admin, client, resource):
    id = client.create(resource)['id']

    def updated_at():
        shown = admin.get(f'{resource.path}/{id}')
        return shown[resource.wrapper]['updated_at']

    assert updated_at() is None
    client.change(resource, id, name='new')
    assert updated_at() is not None


@pytest.mark.facts('change_user_project_length')
def test_users_and_projects_have_ids_of_255_characters(cloud, admin):
    project, user = 'p' * 255, 'u' * 255
    api = ApiClient(cloud, project=project, user=user, roles='member,reader')
    share = api.create()['id']
    cloud.settle()
    shown = api.show(share)
    assert (shown['status'], shown['project_id']) == ('available', project)
    assert admin.show(share)['user_id'] == user
    snapshot = create_snapshot(api, share)['id']
    cloud.settle()
    assert [one['id'] for one in api.get('/snapshots?limit=1')['snapshots']] == [
        snapshot
    ]
    path = f'/quota-sets/{project}/detail?user_id={user}'
    assert admin.get(path)['quota_set']['shares']['in_use'] == 1
    cloud.check_invariants()


@pytest.mark.facts('LP1860061')
@pytest.mark.parametrize('path', ['/shares', '/snapshots'])
def test_filtered_list_is_cut_after_it_was_filtered(cloud, member, path):
    share = cloud.create_share()
    for number in range(6):
        name = f'{"wanted" if number % 2 else "other"} {number}'
        if path == '/shares':
            member.create(name=name)
        else:
            create_snapshot(member, share, name=name)
            cloud.settle()
    for kind in (path, f'{path}/detail'):
        for sort_dir, expected in (('asc', [1, 3, 5]), ('desc', [5, 3, 1])):
            query = f'?name~=wanted&sort_key=created_at&sort_dir={sort_dir}'
            for limit in (1, 2, 3, 4):
                for offset in range(4):
                    page = f'{query}&limit={limit}&offset={offset}'
                    assert [
                        int(one['name'][-1])
                        for one in member.get(kind + page)[path[1:]]
                    ] == expected[offset : offset + limit]
    stranger = member_of(cloud, 'another')
    assert stranger.get(f'{path}?name~=wanted')[path[1:]] == []


@pytest.mark.facts('LP1886690')
def test_refusal_says_plainly_that_a_service_is_down(cloud, admin, share):
    host = admin.show(share)['host']
    service, _, _ = host.partition('#')
    cloud.clock.advance(3600)
    for code, path, body in (
        (
            400,
            '/shares/manage',
            {'share': {'protocol': 'NFS', 'export_path': '/new', 'service_host': host}},
        ),
        (
            400,
            f'/shares/{share}/action',
            {
                'migration_start': {
                    'host': host.replace('alpha#', 'beta#')
                    if 'alpha' in host
                    else host.replace('beta#', 'alpha#'),
                    **share_migrations.OPTIONS,
                }
            },
        ),
        (409, '/services/ensure-shares', {'ensure_shares': {'host': service}}),
    ):
        answer = admin.request('POST', path, body, expect=code)
        (fault,) = answer.json.values()
        assert 'is down' in fault['message'], path
        assert 'node@' in fault['message'], path
