"""Clients that expect a Keystone, on an installation without one."""

import itertools
import json

from keystoneauth1 import exceptions, session
from keystoneauth1.identity import v3
import openstack
import pytest

from tests.functional.stories.conftest import new_installation
from tests.support.cli import Cli
from tests.support.go_client import GoClient, Options
from tests.support.processes import wait_until
from tests.support.share_backups import EXPERIMENTAL

PASSWORDS = {'root': 'the first secret', 'alice': 'another secret'}
PROJECTS = {'root': 'ops', 'alice': 'red'}

_names = (f'pvc-{number}' for number in itertools.count())


@pytest.fixture(scope='module')
def installation(tmp_path_factory):
    """A running service with an administrator and a member."""
    with new_installation(
        tmp_path_factory.mktemp('identity') / 'installation',
        auth='http_basic',
        options='default_share_type = default\ndebug = true',
    ) as installation:
        for name, role in (('root', 'admin'), ('alice', 'member')):
            add_user(installation, name, role)
        installation.start()
        cli_of(installation, 'root')('share type create', 'default', 'false')
        yield installation


def add_user(installation, name, role):
    installation.manage(
        *('user', 'add', name, '--user-id', f'id-of-{name}'),
        *('--project', PROJECTS[name], '--role', role),
        stdin=f'{PASSWORDS[name]}\n',
    )


def options(installation, name, password=None):
    """Return the options of a client, as in the documents."""
    return {
        'auth_url': f'{installation.root}/v3',
        'username': name,
        'password': password or PASSWORDS[name],
        'project_name': PROJECTS[name],
        'user_domain_name': 'Default',
        'project_domain_name': 'Default',
    }


def cli_of(installation, name, password=None):
    return Cli(
        '--os-auth-type',
        'password',
        *itertools.chain.from_iterable(
            (f'--os-{key.replace("_", "-")}', value)
            for key, value in options(installation, name, password).items()
        ),
    )


@pytest.fixture
def admin(installation):
    return cli_of(installation, 'root')


@pytest.fixture
def member(installation):
    return cli_of(installation, 'alice')


def go_options(installation, path='/v3'):
    return Options(f'{installation.root}{path}', 'alice', PASSWORDS['alice'], 'red')


# The command line


def test_quotas_of_projects_are_shown_and_set(admin, member):
    admin('share quota set', 'red', '--gigabytes', '70')
    assert admin('share quota show', 'red')['gigabytes'] == 70
    assert member('share quota show', 'red')['gigabytes'] == 70
    for user in ('alice', 'id-of-alice'):
        admin('share quota set', 'red', '--user', user, '--gigabytes', '7')
        shown = admin('share quota show', 'red', '--user', user)
        assert shown['gigabytes'] == 7
        shown = member('share quota show', 'red', '--user', user)
        assert shown['gigabytes'] == 7
        admin('share quota delete', 'red', '--user', user)
    admin('share quota delete', 'red')
    assert admin('share quota show', 'red')['gigabytes'] == 1000
    assert 'No project' in admin('share quota show', 'green', code=1)
    assert 'No project' in member('share quota show', 'ops', code=1)


def test_private_type_is_granted_to_a_project(admin, member):
    admin('share type create', 'gold', 'false', '--public', 'false')

    def visible():
        return 'gold' in [one['Name'] for one in member('share type list')]

    assert not visible()
    admin('share type access create', 'gold', 'red')
    assert admin('share type access list', 'gold') == [{'Project ID': 'red'}]
    assert visible()
    admin('share type access delete', 'gold', 'red')
    assert not visible()
    admin('share type delete', 'gold')


def test_lists_are_filtered_by_project(admin, member):
    """The client finds users, too; the API has no filter by user."""
    name, other = next(_names), next(_names)
    member('share create', 'NFS', '1', '--name', name)
    admin('share create', 'NFS', '1', '--name', other)

    def listed(*criteria):
        return {one['Name'] for one in admin('share list', *criteria)} & {name, other}

    for criteria in (
        ('--project', 'red'),
        ('--project', 'red', '--project-domain', 'Default'),
        ('--project', 'red', '--user', 'alice'),
        ('--project', 'red', '--user', 'alice', '--user-domain', 'default'),
    ):
        assert listed(*criteria) == {name}, criteria
    assert listed('--project', 'ops') == {other}
    assert listed('--all-projects') == {name, other}
    for owner, share in ((member, name), (admin, other)):
        owner('share delete', share, '--wait')
    assert listed('--all-projects') == set()


def test_wrong_password_is_refused(installation):
    cli = cli_of(installation, 'alice', 'wrong')
    assert 'requires authentication' in cli('share list', code=1)


def shown(cli, *words):
    """Return the rows that a command of another service shows."""
    ended = cli.run(*words, '-f', 'json')
    assert ended.code == 0, ended
    return json.loads(ended.out)


def test_services_roles_and_versions_are_listed(installation, admin):
    endpoints = shown(admin, 'endpoint', 'list', '--service', 'sharev2')
    assert {one['URL'] for one in endpoints} == {installation.url}
    services = shown(admin, 'service', 'list')
    assert 'shared-file-system' in {one['Type'] for one in services}
    roles = shown(admin, 'role', 'list')
    assert [one['Name'] for one in roles] == ['admin', 'member', 'reader']
    of_alice = shown(admin, 'role', 'assignment', 'list', '--user', 'alice', '--names')
    assert [(one['Role'], one['Project']) for one in of_alice] == [
        ('member', 'red@Default')
    ]
    identity = {
        one['Version']
        for one in shown(admin, 'versions', 'show')
        if one['Service Type'] == 'identity'
    }
    assert identity == {'3.14'}


def test_token_is_revoked(installation, member):
    token = shown(member, 'token', 'issue')['id']
    client = installation.rest(headers={'X-Auth-Token': token})
    client.request('GET', '/shares', expect=200)
    assert member.run('token', 'revoke', token).code == 0
    client.request('GET', '/shares', expect=401)


# openstacksdk


def test_sdk_signs_in_and_finds_the_services(installation):
    cloud = openstack.connection.Connection(
        auth_type='password',
        auth=options(installation, 'alice'),
        region_name='RegionOne',
        shared_file_system_default_microversion='2.60',
    )
    assert cloud.current_project_id == 'red'
    assert cloud.current_user_id == 'id-of-alice'
    assert cloud.identity.find_project('red').id == 'red'
    assert cloud.identity.find_user('alice').id == 'id-of-alice'
    assert [one.id for one in cloud.identity.projects()] == ['red']
    sdk = cloud.shared_file_system
    share = sdk.create_share(share_protocol='NFS', size=1, name=next(_names))
    share = sdk.wait_for_status(share, 'available', interval=0.1, wait=60)
    assert share.project_id == 'red'
    sdk.delete_share(share)
    sdk.wait_for_delete(share, interval=0.1, wait=60)
    cloud.close()


LISTED = 4
"""How many there are of what the SDK lists: pages of 1, 2 and 4 are full."""


@pytest.fixture(scope='module')
def listing(installation):
    """A connection of an administrator, to a project with several of each."""
    cloud = openstack.connection.Connection(
        auth_type='password',
        auth=options(installation, 'root'),
        region_name='RegionOne',
        shared_file_system_default_microversion='2.82',
    )
    sdk = cloud.shared_file_system
    rest = installation.rest(headers={'X-Auth-Token': cloud.auth_token})

    def post(path, expect=200, **body):
        return rest.request('POST', path, body, expect, **EXPERIMENTAL)

    def share(**body):
        body = {'share_protocol': 'NFS', 'size': 1, **body}
        return sdk.create_share(name=next(_names), **body)

    def available(**body):
        return sdk.wait_for_status(share(**body), 'available', interval=0.1, wait=60)

    name = next(_names)
    nowhere = {'driver_handles_share_servers': 'False', 'share_backend_name': 'none'}
    post('/types', share_type={'name': name, 'extra_specs': nowhere})
    specs = {'driver_handles_share_servers': 'False', 'snapshot_support': 'True'}
    created = post('/types', share_type={'name': next(_names), 'extra_specs': specs})
    type_id = created['share_type']['id']
    group_type = {'name': name, 'share_types': [type_id]}
    created = post('/share-group-types', share_group_type=group_type)
    group_type_id = created['share_group_type']['id']
    first = available(share_type=type_id)
    for _ in range(LISTED):
        sdk.create_share_snapshot(share_id=first.id, name=next(_names))
        lock = {'resource_id': available().id, 'resource_type': 'share'}
        sdk.create_resource_lock(resource_action='delete', **lock)
        sdk.create_share_network(name=next(_names))
        share(share_type=name)
        post(
            '/share-groups',
            202,
            share_group={
                'share_group_type_id': group_type_id,
                'share_types': [type_id],
            },
        )
    wait_until(lambda: not installation.pending_work(), 'no work is pending')
    yield sdk
    cloud.close()


@pytest.mark.parametrize('limit', [1, 2, 3, LISTED, LISTED + 1])
@pytest.mark.parametrize(
    'kind',
    [
        'resource_locks',
        'share_group_snapshots',
        'share_groups',
        'share_instances',
        'share_networks',
        'share_replicas',
        'share_snapshot_instances',
        'share_snapshots',
        'shares',
        'user_messages',
    ],
)
def test_sdk_reads_every_list_in_pages(listing, kind, limit):
    """The SDK takes a list of transfers for one transfer."""
    read = getattr(listing, kind)
    expected = [one.id for one in read()]
    if kind not in ('share_group_snapshots', 'share_replicas'):
        assert len(expected) >= LISTED
    assert [one.id for one in read(limit=limit)] == expected


@pytest.mark.parametrize('limit', [1, 2, 3])
def test_sdk_reads_lists_without_pages_that_it_wants_in_pages(listing, limit):
    """Not so the pools: they have no id that could be a marker."""

    def read(kind, *args, **query):
        return [one.id for one in getattr(listing, kind)(*args, **query)]

    share = next(one for one in listing.shares() if one.status == 'available')
    rules = {
        listing.create_access_rule(
            share.id, access_type='ip', access_to=f'10.0.{limit}.{n}'
        ).id
        for n in range(2)
    }
    assert rules <= {*read('access_rules', share)}
    for kind, args in (
        ('access_rules', (share,)),
        ('share_types', ()),
        ('services', ()),
    ):
        assert read(kind, *args, limit=limit) == read(kind, *args)
        assert read(kind, *args)


def test_dashboard_signs_in_and_out(installation):
    """Send what the dashboard of OpenStack does, for a person's project."""
    url = f'{installation.root}/v3'
    sign_in = v3.Password(
        url,
        username='alice',
        password=PASSWORDS['alice'],
        user_domain_name='Default',
        unscoped=True,
    )
    browser = session.Session(sign_in)
    user = sign_in.get_access(browser).user_id
    projects = browser.get(f'{url}/users/{user}/projects').json()['projects']
    assert [one['id'] for one in projects] == ['red']
    with pytest.raises(exceptions.Unauthorized):  # it tries a domain as well
        v3.Token(
            url, browser.get_token(), domain_id=projects[0]['domain_id']
        ).get_access(browser)
    scoped = session.Session(v3.Token(url, browser.get_token(), project_id='red'))
    for kind in ('sharev2', 'shared-file-system'):
        assert scoped.get('/shares', endpoint_filter={'service_type': kind})
    for signed_in in (scoped, browser):
        signed_in.delete(
            f'{url}/auth/tokens', headers={'X-Subject-Token': signed_in.get_token()}
        )
    client = installation.rest(headers={'X-Auth-Token': scoped.get_token()})
    client.request('GET', '/shares', expect=401)


# Go


@pytest.mark.parametrize('path', ['/v3', '/v3/', '/identity'])
@pytest.mark.parametrize('service_type', ['sharev2', 'shared-file-system'])
def test_go_client_finds_the_share_service(installation, path, service_type):
    client = GoClient(go_options(installation, path), service_type)
    assert client.endpoint == f'{installation.url}/'
    (version,) = client('GET', '')['versions']
    assert (version['id'], version['status']) == ('v2.0', 'CURRENT')


def test_csi_driver_provisions_and_removes_a_volume(installation):
    client = GoClient(go_options(installation), version='2.37')
    name = next(_names)
    (found,) = client('GET', '')['versions']
    assert found['min_version'] <= '2.37'
    types = client('GET', 'types')['share_types']
    assert 'default' in [one['name'] for one in types]
    assert client('GET', f'shares/detail?name={name}')['shares'] == []
    share = client(
        'POST',
        'shares',
        {
            'share': {
                'metadata': {'manila.csi.openstack.org/cluster': 'k8s'},
                'name': name,
                'share_proto': 'NFS',
                'share_type': 'default',
                'size': 1,
            }
        },
        expect=(200, 202),
    )['share']
    wait_for(client, share['id'], 'available')
    action = f'shares/{share["id"]}/action'
    rule = client(
        'POST',
        action,
        {
            'allow_access': {
                'access_level': 'rw',
                'access_to': '10.0.0.0/24',
                'access_type': 'ip',
            }
        },
    )['access']
    wait_until(
        lambda: (
            client('POST', action, {'access_list': None})['access_list'][0]['state']
            == 'active'
        ),
        'the rule is active',
    )
    path = f'shares/{share["id"]}/export_locations'
    assert client('GET', path)['export_locations']
    client('POST', action, {'extend': {'new_size': 2}}, expect=(202,))
    wait_for(client, share['id'], 'available')
    assert client('GET', f'messages?resource_id={share["id"]}')
    client('POST', action, {'deny_access': {'access_id': rule['id']}}, expect=(202,))
    wait_until(
        lambda: client('POST', action, {'access_list': None})['access_list'] == [],
        'the rule is gone',
    )
    client('DELETE', f'shares/{share["id"]}', expect=(202,))
    wait_gone(client, share['id'])
    assert client.sign_ins == 1


def test_terraform_creates_changes_and_destroys_a_share(installation):
    client = GoClient(go_options(installation), version='2.14')
    share = client(
        'POST',
        'shares',
        {
            'share': {
                'description': 'test share',
                'name': next(_names),
                'share_proto': 'NFS',
                'share_type': 'default',
                'size': 1,
                'metadata': {'key': 'value'},
            }
        },
        expect=(200, 202),
    )['share']
    share_id = share['id']
    assert share['project_id'] == 'red'
    wait_for(client, share_id, 'available')
    assert client('GET', f'shares/{share_id}/export_locations')
    client(
        'PUT',
        f'shares/{share_id}',
        {'share': {'display_name': 'renamed', 'display_description': ''}},
    )
    client('POST', f'shares/{share_id}/metadata', {'metadata': {'key': 'other'}})
    client(
        'POST', f'shares/{share_id}/action', {'shrink': {'new_size': 1}}, expect=(400,)
    )
    shown = client('GET', f'shares/{share_id}')['share']
    assert (shown['name'], shown['metadata']) == ('renamed', {'key': 'other'})
    client('DELETE', f'shares/{share_id}', expect=(202,))
    wait_gone(client, share_id)


def test_go_client_signs_in_again_when_its_token_has_ended(installation):
    client = GoClient(go_options(installation))
    client.token = 'ended'
    assert 'shares' in client('GET', 'shares')
    assert client.sign_ins == 2


def wait_for(client, share_id, status):
    wait_until(
        lambda: client('GET', f'shares/{share_id}')['share']['status'] == status,
        f'the share is {status}',
    )


def wait_gone(client, share_id):
    def gone():
        answer = client('GET', f'shares/{share_id}', expect=(200, 404))
        return 'share' not in answer

    wait_until(gone, 'the share is gone')


# The service


def test_tokens_outlive_a_restart_and_end_with_the_user(installation):
    client = GoClient(go_options(installation))
    installation.stop()
    installation.start()
    assert 'shares' in client('GET', 'shares')
    assert client.sign_ins == 1
    token = client.token
    installation.manage('user', 'remove', 'alice')
    user = installation.rest(headers={'X-Auth-Token': token})
    user.get('/shares', expect=401)
    add_user(installation, 'alice', 'member')  # for the other tests
    key = installation.folder / 'state' / 'token_key'
    assert key.stat().st_mode & 0o777 == 0o600
    logs = ''.join(text for _, text in installation.logs())
    for secret in (*PASSWORDS.values(), token, key.read_text().strip()):
        assert secret not in logs
