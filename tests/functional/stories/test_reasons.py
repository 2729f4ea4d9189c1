"""What users read about operations that were refused for a known reason."""

import pytest

from tests.functional.stories.conftest import new_installation
from tests.support.processes import wait_until


@pytest.fixture
def service(tmp_path):
    with new_installation(
        tmp_path / 'installation',
        options='default_share_type = default',
        backends={'local': {'share_driver': 'local', 'local_root': tmp_path / 'root'}},
    ) as installation:
        installation.start()
        installation.rest().make_default_type()
        yield installation


def wait_for_message(rest, resource_id):
    """Return the text of the message about a resource."""
    (message,) = wait_until(
        lambda: rest.get(f'/messages?resource_id={resource_id}')['messages'],
        'the user is notified',
    )
    return message['user_message']


def test_refused_rule_names_the_client_and_what_is_taken(service):
    rest = service.rest()
    share = rest.create_available()['id']
    rest.act(
        share,
        'allow_access',
        {'access_type': 'user', 'access_to': 'alice', 'access_level': 'rw'},
        expect=200,
    )
    text = wait_for_message(rest, share)
    assert 'user alice: NFS takes rules of the type ip only' in text


def test_path_that_cannot_be_managed_is_named(service):
    rest = service.rest()
    share = rest.request(
        'POST',
        '/shares/manage',
        {
            'share': {
                'service_host': f'{service.service_host("local")}#local',
                'export_path': '/etc',
                'protocol': 'NFS',
            }
        },
        expect=200,
    )['share']['id']
    text = wait_for_message(rest, share)
    assert '/etc: the path is not below' in text


def test_client_that_a_lock_hides_is_not_named(service):
    rest = service.rest()
    share = rest.create_available()['id']
    rest.act(
        share,
        'allow_access',
        {
            'access_type': 'user',
            'access_to': 'alice',
            'access_level': 'rw',
            'lock_visibility': True,
        },
        expect=200,
    )
    text = wait_for_message(rest, share)
    assert 'user ***: NFS takes rules of the type ip only' in text
    assert 'alice' not in text


def test_refused_rule_of_a_snapshot_names_the_client_and_what_is_taken(service):
    rest = service.rest()
    rest.request(
        'POST',
        '/types',
        {
            'share_type': {
                'name': 'mountable',
                'extra_specs': {
                    'driver_handles_share_servers': 'False',
                    'snapshot_support': 'True',
                    'mount_snapshot_support': 'True',
                },
            }
        },
    )
    share = rest.create_available(share_type='mountable')['id']
    snapshot = rest.request(
        'POST', '/snapshots', {'snapshot': {'share_id': share}}, expect=202
    )['snapshot']['id']
    wait_until(
        lambda: rest.get(f'/snapshots/{snapshot}')['snapshot']['status'] == 'available',
        'the snapshot is available',
    )
    rest.request(
        'POST',
        f'/snapshots/{snapshot}/action',
        {'allow_access': {'access_type': 'user', 'access_to': 'alice'}},
        expect=202,
    )
    text = wait_for_message(rest, snapshot)
    assert 'user alice: NFS takes rules of the type ip only' in text
