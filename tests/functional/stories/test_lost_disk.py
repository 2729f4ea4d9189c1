"""The disk of a back end disappears, as users and operators see it."""

import shutil

import pytest

from tests.functional.stories import suites
from tests.functional.stories.conftest import new_installation
from tests.support.processes import wait_until

pytestmark = suites.failures


@pytest.fixture
def root(tmp_path):
    return tmp_path / 'disk' / 'root'


@pytest.fixture
def installation(tmp_path, root):
    with new_installation(
        tmp_path / 'installation',
        options='default_share_type = default\nscheduler_wait_for_backends = 0',
        backends={'local': {'share_driver': 'local', 'local_root': root}},
    ) as installation:
        installation.start()
        installation.rest().make_default_type()
        yield installation


def service(installation):
    """Return the back end as an administrator sees it."""
    host = installation.service_host('local')
    services = installation.rest('admin').get(f'/services?host={host}')
    return services['services'][0]


def wait_for_state(installation, state):
    return wait_until(
        lambda: (found := service(installation))['state'] == state and found,
        f'the back end is {state}',
    )


def test_unmounted_disk(installation, root):
    rest = installation.rest()
    share = rest.create_available()
    root.rename(root.with_name('unmounted'))
    root.mkdir()
    wait_for_state(installation, 'down')
    assert 'has no file .manila_lite' in installation.manage('service', 'list')
    refused = rest.wait_at_rest(rest.create()['id'])
    assert refused['status'] == 'error'
    rest.delete(share['id'])
    assert rest.wait_at_rest(share['id'])['status'] == 'error_deleting'
    messages = rest.get('/messages')['messages']
    assert any(
        'cannot be reached' in one['user_message'] and one['resource_id'] == share['id']
        for one in messages
    )
    assert list(root.iterdir()) == []
    root.rmdir()
    root.with_name('unmounted').rename(root)
    wait_for_state(installation, 'up')
    rest.act(share['id'], 'reset_status', {'status': 'error'})
    rest.delete(share['id'])
    rest.wait_gone(share['id'])
    rest.create_available()


def test_disk_that_is_not_mounted_at_the_start(installation, root):
    rest = installation.rest()
    share = rest.create_available()
    installation.stop()
    root.rename(root.with_name('unmounted'))
    root.mkdir()
    installation.start(wait=False)
    assert wait_for_state(installation, 'down')
    assert rest.wait_at_rest(rest.create()['id'])['status'] == 'error'
    assert list(root.iterdir()) == []
    root.rmdir()
    root.with_name('unmounted').rename(root)
    wait_for_state(installation, 'up')
    assert rest.show(share['id'])['status'] == 'available'
    rest.create_available()


def test_deleted_directory(installation, root):
    rest = installation.rest()
    shares = [rest.create_available()['id'] for _ in range(2)]
    shutil.rmtree(root)
    rest.delete(shares[0])
    rest.wait_gone(shares[0])
    failed = rest.wait_at_rest(rest.create()['id'])
    assert failed['status'] == 'error'
    wait_for_state(installation, 'down')
    rest.delete(shares[1])
    rest.wait_gone(shares[1])
    installation.stop()
    installation.start()
    rest.create_available()
