"""Share servers on the page, and their migration."""

import re

import pytest

from manila_lite.states.share_server import TaskState
from tests.functional.ui.conftest import UiCloud
from tests.support import share_servers
from tests.support.cloud_images import prepared
from tests.support.server_migrations import ServerMigrationCloud


class ServersCloud(UiCloud, ServerMigrationCloud):
    """A cloud with the page, whose share servers migrate."""


@pytest.fixture
def cloud(build_ui):
    return build_ui(kind=ServersCloud)


@pytest.fixture
def network(api):
    network, _ = share_servers.create_network_with_subnets(api, name='green')
    return network


@pytest.fixture
@prepared
def server(cloud, api, admin_api, network):
    """The id of a server on the back end alpha with a share of alice."""
    disable(admin_api, 'beta')
    share = api.create(name='data', share_network_id=network)['id']
    cloud.settle()
    disable(admin_api, 'beta', 'enable')
    return cloud.server_of(share)


def disable(admin_api, name, verb='disable'):
    service = {'host': f'node@{name}', 'binary': 'manila-share'}
    admin_api.request('PUT', f'/services/{verb}', service, expect=200)


def path(server):
    return f'/ui/servers/{server}'


def act(browser, server, action, expect=200, **fields):
    form = browser.open(path(server)).form(f'{path(server)}/{action}')
    return browser.submit(form, expect=expect, **fields)


def test_servers_are_for_administrators(server, root, alice):
    assert path(server) in root.open('/ui/servers').links
    for where in ('/ui/servers', path(server)):
        alice.open(where, expect=403)
    assert '/ui/servers' not in alice.open('/ui/').links


def test_server_is_shown_with_its_network_and_shares(server, network, root):
    page = root.open(path(server))
    assert '✓ active' in page.text
    assert f'/ui/networks/{network}' in page.links
    assert 'data ✓ available' in page.text
    assert 'Delete the share server: not possible. There are shares on' in (page.text)


def test_check_says_whether_a_server_can_be_migrated(cloud, server, root):
    page = act(root, server, 'check-migration', host='node@beta')
    assert 'The share server can be migrated to node@beta.' in page.text
    cloud.driver('beta').set_migration_capabilities({'compatible', 'writable'})
    page = act(root, server, 'check-migration', host='node@beta', nondisruptive='1')
    assert re.search(r'cannot be migrated to node@beta: \w+', page.text)
    form = page.form(f'{path(server)}/migrate')
    assert (form.fields['host'], form.fields['nondisruptive']) == ('node@beta', '1')
    # Nothing is begun.
    assert 'The share server has not been migrated.' in page.text


def test_server_is_migrated_and_followed_to_its_end(cloud, server, root):
    page = act(root, server, 'migrate', host='node@beta', writable='1')
    assert 'The migration is requested.' in page.text
    assert 'Demanded Keep the shares writable meanwhile Phase 1' in page.text
    cloud.settle()
    page = root.open(path(server))
    assert 'Migrate the share server: not possible. The state of' in page.text
    name = {'confirm': server}
    act(root, server, 'complete-migration', 400, confirm='data')
    page = act(root, server, 'complete-migration', **name)
    assert 'The migration is being completed.' in page.text
    cloud.settle()
    (moved,) = (row for row in cloud.servers() if row.status == 'active')
    text = root.open(path(moved.id)).text
    assert 'Host node@beta' in text
    assert f'It was made by a migration of {server}' in text
    assert 'data ✓ available' in text


def test_migration_of_a_server_is_cancelled(cloud, server, root):
    act(root, server, 'migrate', host='node@beta')
    cloud.settle()
    act(root, server, 'cancel-migration', confirm=server)
    cloud.settle()
    text = root.open(path(server)).text
    assert 'State • server migration cancelled' in text
    assert '✓ active' in text


def test_state_of_the_migration_of_a_server_is_reset(cloud, server, root):
    act(root, server, 'migrate', host='node@beta')
    cloud.settle()
    state = {'task_state': TaskState.ERROR}
    page = act(root, server, 'reset-migration', confirm=server, **state)
    assert 'The state of the migration has been set.' in page.text
    cloud.settle()
    assert '✗' in root.open(path(server)).text


def test_refused_migration_is_explained_and_keeps_what_was_typed(server, root):
    page = act(root, server, 'migrate', expect=404, host='node@lake')
    assert 'node@lake' in page.text
    form = page.form(f'{path(server)}/migrate')
    assert form.fields['host'] == 'node@lake'


def test_status_is_set_and_an_empty_server_deleted(cloud, network, root):
    server = share_servers.insert_server(cloud, network)
    act(root, server, 'reset-status', confirm=server, status='error')
    page = root.open(path(server))
    assert '✗ error' in page.text
    assert 'not possible. The share server is error; it must be' in page.text
    page = act(root, server, 'delete', confirm=server)
    assert 'The share server is being deleted.' in page.text
    cloud.settle()
    root.open(path(server), expect=404)


def test_servers_are_listed_in_pages_and_found_by_host(
    cloud, network, root, monkeypatch
):
    monkeypatch.setattr('manila_lite.api.ui.listing.ROWS', 2)
    ids = {share_servers.insert_server(cloud, network) for _ in range(5)}
    elsewhere = share_servers.insert_server(cloud, host='node@beta')
    where, seen = '/ui/servers?host=node%40alpha', []
    while where:
        page = root.open(where)
        seen += [id for id in {*ids, elsewhere} if path(id) in page.links]
        where = next((link for link in page.links if 'after=' in link), None)
    assert sorted(seen) == sorted(ids)
