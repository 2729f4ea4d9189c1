"""The whole life of a share, in each way of running the service.

These processes are the installed commands, not forked ones.
"""

import pytest

from tests.support import databases
from tests.support.installation import SEPARATE, SERVE

CONCURRENCY = ('threading', 'eventlet')
SPECS = {
    'driver_handles_share_servers': 'False',
    'snapshot_support': 'True',
    'share_backend_name': 'dummy',
}
TOLERANCE = 5.0
"""Seconds of delay tolerated on a loaded machine."""
OPTIONS = 'default_share_type = ordinary\n'
BACKENDS = {
    'dummy': {
        'dummy_driver_capacity_gb': 100,
        'max_over_subscription_ratio': 1,
        'dummy_driver_fail_methods': 'extend_share:1',
    }
}


@pytest.mark.parametrize('concurrency', CONCURRENCY)
def test_in_one_process(install, concurrency):
    run_story(
        install(
            kind=SERVE,
            concurrency=concurrency,
            forked=False,
            backends=BACKENDS,
            options=OPTIONS,
        )
    )


@pytest.mark.parametrize('concurrency', CONCURRENCY)
@pytest.mark.parametrize('kind', ['mysql', 'postgresql'])
def test_in_separate_services(install, new_database, broker_url, kind, concurrency):
    url = new_database(kind)
    if kind == 'mysql':  # the service chooses the driver
        url = databases.through('mysql', url)
    run_story(
        install(
            kind=SEPARATE,
            concurrency=concurrency,
            forked=False,
            backends=BACKENDS,
            database_url=url,
            options=f'{OPTIONS}transport_url = {broker_url}',
        )
    )


def run_story(installation):
    """Run the life of a share from end to end."""
    user = installation.start().rest()
    print(f'ready after {installation.startup_seconds:.2f} s')
    assert is_eventlet(user) is (installation.concurrency == 'eventlet')
    make_type(user)
    check_failed_extend(user)
    check_failed_create(user)
    share = user.create_available(name='first', metadata={'made': 'today'})
    check_listings(user, share)
    resize(user, share)
    set_properties(user, share)
    soft_delete_and_restore(user, share)
    user.delete(share['id'])
    user.wait_gone(share['id'])
    assert in_use(user) == (0, 0)
    assert installation.problems() == []
    took = installation.stop()
    print(
        *(f'{name} stopped after {seconds:.2f} s' for name, seconds in took.items()),
        sep=', ',
    )
    assert max(took.values()) < 1 + TOLERANCE


def is_eventlet(user):
    """Whether eventlet serves the API; it sends no Server header."""
    user.get('/')
    return 'Server' not in user.last.headers


def make_type(user):
    made = user.request(
        'POST', '/types', {'share_type': {'name': 'ordinary', 'extra_specs': SPECS}}
    )['share_type']
    assert made['extra_specs'] == SPECS
    assert [one['name'] for one in user.get('/types')['share_types']] == ['ordinary']
    assert user.get('/types/default')['share_type']['id'] == made['id']


def check_failed_extend(user):
    """The driver fails the first extend, as configured."""
    share = user.create_available()
    user.act(share['id'], 'extend', {'new_size': 3})
    share = user.wait_at_rest(share['id'])
    assert (share['status'], share['size']) == ('extending_error', 1)
    assert message_codes(user, share) == [('008', '015')]
    assert in_use(user) == (1, 1)
    user.act(share['id'], 'reset_status', {'status': 'error'})
    user.delete(share['id'])
    user.wait_gone(share['id'])


def check_failed_create(user):
    """No back end is large enough; the user gets a message."""
    share = user.wait_at_rest(user.create(size=500)['id'])
    assert share['status'] == 'error'
    assert message_codes(user, share) == [('001', '009')]
    assert 'capacity' in user.get('/messages')['messages'][0]['user_message']
    user.delete(share['id'])
    user.wait_gone(share['id'])


def message_codes(user, share):
    """Return the codes of the user messages about a share."""
    found = user.get(f'/messages?resource_id={share["id"]}')['messages']
    return [(one['action_id'], one['detail_id']) for one in found]


def check_listings(user, share):
    assert (
        share['name'],
        share['share_type_name'],
        share['size'],
        share['metadata'],
    ) == ('first', 'ordinary', 1, {'made': 'today'})
    assert [one['id'] for one in user.get('/shares')['shares']] == [share['id']]
    (listed,) = user.get('/shares/detail')['shares']
    assert listed == share
    locations = user.get(f'/shares/{share["id"]}/export_locations')
    assert len(locations['export_locations']) == 2
    assert in_use(user) == (1, 1)


def resize(user, share):
    user.act(share['id'], 'extend', {'new_size': 5})
    assert resized(user, share) == ('available', 5)
    assert in_use(user) == (1, 5)
    user.act(share['id'], 'shrink', {'new_size': 2})
    assert resized(user, share) == ('available', 2)
    assert in_use(user) == (1, 2)


def resized(user, share):
    share = user.wait_at_rest(share['id'])
    return share['status'], share['size']


def set_properties(user, share):
    path = f'/shares/{share["id"]}/metadata'
    user.request('POST', path, {'metadata': {'for': 'all'}})
    user.request('PUT', path, {'metadata': {'only': 'this'}})
    assert user.get(path) == {'metadata': {'only': 'this'}}
    user.request(
        'PUT', f'/shares/{share["id"]}', {'share': {'display_name': 'renamed'}}
    )
    assert user.show(share['id'])['name'] == 'renamed'


def soft_delete_and_restore(user, share):
    user.act(share['id'], 'soft_delete')
    assert user.get('/shares')['shares'] == []
    (deleted,) = user.get('/shares?is_soft_deleted=true')['shares']
    assert deleted['id'] == share['id']
    user.act(share['id'], 'extend', {'new_size': 9}, expect=403)
    user.act(share['id'], 'restore')
    assert [one['id'] for one in user.get('/shares')['shares']] == [share['id']]


def in_use(user):
    """Return number and GiB of shares charged to the project."""
    limits = user.get('/limits')['limits']['absolute']
    return limits['totalSharesUsed'], limits['totalShareGigabytesUsed']
